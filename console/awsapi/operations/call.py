"""The ``Call`` that a handler gets, and long polls: answers that are given later."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from console.awsapi.waiting_calls import WAITING_CALLS
from console.db import signals
from console.db.writer import Change, is_embedded, settled
from console.errors import ErrorCode, ProtocolError
from console.own_api import LOOK_AGAIN_S, LongPoll
from console.server.shutdown import SHUTTING_DOWN
from console.server.threads import await_write, run_in_loop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from console.access import Principal
    from console.db.audit import Actor
    from console.models import Project
    from console.own_api import Parent
    from console.server.threads import Threads

    Receive = Callable[[], Awaitable[dict[str, Any]]]

Found = dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Call:
    """One checked, authorised call.

    ``params``: as in the service model; ``parent``: the execution whose Task calls; ``trusted``:
    part of an allowed call, and its answer is not shown; ``as_json``: the answer is sent as JSON,
    so that parts may be JSON text (``msgspec.Raw``).
    """

    action: str
    params: dict[str, Any]
    principal: Principal
    region: str
    actor: Actor
    parent: Parent | None = None
    trusted: bool = False
    as_json: bool = False

    @property
    def project(self) -> Project:
        """Return the caller's project."""
        return self.principal.project


async def wait_for(
    poll: LongPoll, threads: Threads, receive: Receive | None = None
) -> dict[str, Any]:
    """Wait for the answer of a long poll without a thread.

    ``receive``: completes when the caller disconnects; nobody waits then.
    """
    changed = asyncio.Event()
    disconnect = asyncio.create_task(_wait_for_disconnect(receive, changed))
    try:
        with WAITING_CALLS.one_more(poll.key_id):
            answer = poll.first
            if answer is None:
                answer = await _poll_until_answer(poll, threads, changed, disconnect)
        if answer is None:
            return _without_answer(poll)
        await _undo_if(poll, disconnect, threads)
        return answer
    finally:
        disconnect.cancel()


def _without_answer(poll: LongPoll) -> dict[str, Any]:
    """Return the answer of a long poll that has timed out.

    When the server shuts down, a task worker gets the answer "no task", and polls the next server;
    an SDK makes other calls again if they are answered with ServiceUnavailable.
    """
    if SHUTTING_DOWN.is_set() and not poll.one_each:
        raise ProtocolError(ErrorCode.ServiceUnavailable, "The server shuts down: call again")
    return poll.otherwise


async def _poll_until_answer(
    poll: LongPoll, threads: Threads, changed: asyncio.Event, disconnect: asyncio.Task[None]
) -> dict[str, Any] | None:
    """Poll at each signal, until there is an answer, a timeout or a disconnect.

    The first look is left out if the operation has looked, and no signal has come since:

    1. GetActivityTask finds no task, and the thread passes the poll to the event loop.
    2. Meanwhile a task is committed. Its signal finds no listener, as the poll has none yet.
    3. The poll subscribes, sees that there was another signal, and looks.
    """
    loop = asyncio.get_running_loop()
    over: list[bool] = []

    def arrive() -> None:
        if over and poll.one_each:  # the signal chose this waiter, which has left: pass it on
            signals.deliver(poll.topic)
        changed.set()

    def tell(*_: object) -> None:
        loop.call_soon_threadsafe(arrive)

    end = signals.subscribe(poll.topic, tell, in_turn=poll.one_each)
    deadline = loop.time() + poll.seconds
    has_looked = poll.seen is not None and signals.last_signal(poll.topic) == poll.seen
    try:
        while not (disconnect.done() or (poll.one_each and SHUTTING_DOWN.is_set())):
            if not has_looked:
                changed.clear()
                answer = await _look(poll, threads)
                if answer is not None:
                    return answer
            has_looked = False
            if SHUTTING_DOWN.is_set() or loop.time() >= deadline:
                return None
            await _either(changed, min(LOOK_AGAIN_S, deadline - loop.time()))
        return None
    finally:
        end()
        over.append(True)
        if poll.one_each and changed.is_set():  # a signal that this waiter does not use
            signals.deliver(poll.topic)


async def _look(poll: LongPoll, threads: Threads) -> Found:
    if poll.short and is_embedded():
        outcome = run_in_loop(_settled, poll)
    else:
        answer: Found = await threads.run_to_commit(None, partial(_settled, poll))
        return answer
    return await await_write(outcome, threads) if isinstance(outcome, Change) else outcome


def look_first(poll: LongPoll, look: Callable[[], Any]) -> LongPoll | Change[Any]:
    """Look on the thread of the operation, if the operation has seen that there is an answer.

    Return the poll, or the change whose result is the poll with its first answer. ``look``: that of
    the poll, without the checks that the operation has just made.
    """
    if not poll.ready or SHUTTING_DOWN.is_set():
        return poll
    seen = signals.last_signal(poll.topic)
    outcome = look()
    if isinstance(outcome, Change):
        return settled(outcome.then(lambda answer: replace(poll, first=answer, seen=seen)))
    return replace(poll, first=outcome, seen=seen)


def _settled(poll: LongPoll) -> Found | Change[Found]:
    return settled(poll.look())


async def _undo_if(poll: LongPoll, disconnect: asyncio.Task[None], threads: Threads) -> None:
    """Undo an answer if its caller has disconnected."""
    await asyncio.sleep(0)  # handle signals that arrived during the check
    if poll.undo is not None and disconnect.done():
        await threads.run(poll.undo)


async def _wait_for_disconnect(receive: Receive | None, changed: asyncio.Event) -> None:
    """Return when the caller has disconnected, and wake the waiting call."""
    if receive is None:
        await asyncio.Event().wait()
        return
    while (await receive())["type"] != "http.disconnect":
        pass
    changed.set()


async def _either(changed: asyncio.Event, seconds: float) -> None:
    """Return at a signal or after a time."""
    try:
        await asyncio.wait_for(changed.wait(), max(seconds, 0))
    except TimeoutError:
        return


Answer = dict[str, Any] | LongPoll | Change[dict[str, Any]]
"""The result of an operation: the members, or how to wait for them."""


def seconds(ms: int) -> float:
    """Convert epoch milliseconds to AWS's epoch seconds."""
    return ms / 1000


def present(**members: Any) -> dict[str, Any]:
    """Return the members that have a value, as AWS omits the others."""
    return {name: value for name, value in members.items() if value is not None}
