"""The call that an operation gets, and the ways to answer it later."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from console.awsapi.waiting_calls import WAITING_CALLS
from console.db import outages, signals
from console.db.writer import (
    Pending,
    drop_broken_connection,
    is_embedded,
    is_outage,
    release_connection,
    settled,
)
from console.errors import ErrorCode, ProtocolError
from console.server.shutdown import SHUTTING_DOWN
from console.server.threads import run_in_loop, written

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from console.access import Principal
    from console.db.audit import Actor
    from console.models import Project
    from console.own_api import Parent
    from console.server.threads import Threads

    Receive = Callable[[], Awaitable[dict[str, Any]]]

_LOOK_AGAIN_S = 1.0
Found = dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Call:
    """One checked, authorised call.

    ``params``: as the service model has them; ``parent``: the execution whose Task calls;
    ``trusted``: it belongs to a call that was allowed before, and nobody reads its answer;
    ``as_json``: its answer is sent as JSON, so that parts of it may be JSON text (``msgspec.Raw``).
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


@dataclass(frozen=True, slots=True)
class Later:
    """An answer to wait for without holding a thread.

    ``look``: returns the answer or None; called when ``topic`` is told, and each second in case a
    hint was lost. ``otherwise``: the answer after ``seconds``. ``undo``: called when the caller
    went away while the answer was found, so that it is not lost. ``one_each``: what the topic tells
    is for one caller only, so one is told. ``short``: to look takes a few rows. ``key_id``:
    the access key of the caller.
    """

    look: Callable[[], Found | Pending[Found]]
    topic: signals.Channel
    seconds: float
    otherwise: dict[str, Any]
    undo: Callable[[], object] | None = None
    one_each: bool = False
    short: bool = False
    key_id: str = ""

    def checked(self, check: Callable[[], object]) -> Later:
        """Return a copy that calls ``check`` before every look; an error of it ends the wait.

        Who waits for a minute may be removed meanwhile, and must get nothing after that.
        """

        def look() -> Found | Pending[Found]:
            check()
            return self.look()

        return replace(self, look=look)

    async def wait(self, threads: Threads, receive: Receive | None = None) -> dict[str, Any]:
        """Wait for the answer. ``receive``: tells when the caller goes away; nobody waits then."""
        told = asyncio.Event()
        gone = asyncio.create_task(_gone(receive, told))
        try:
            with WAITING_CALLS.one_more(self.key_id):
                answer = await self._looked(threads, told, gone)
            if answer is None:
                return self._without_answer()
            await self._undo_if(gone, threads)
            return answer
        finally:
            gone.cancel()

    def _without_answer(self) -> dict[str, Any]:
        """Return what is answered in the end.

        When the server shuts down, a worker is told that there is no task, and asks the next one;
        an SDK makes other calls again if they are answered with ServiceUnavailable.
        """
        if SHUTTING_DOWN.is_set() and not self.one_each:
            raise ProtocolError(ErrorCode.ServiceUnavailable, "The server shuts down: call again")
        return self.otherwise

    def now(self) -> dict[str, Any]:
        """Wait for the answer on this thread, which keeps no connection meanwhile.

        While the database is out there is no answer yet.
        """
        told = threading.Event()
        end = signals.subscribe(self.topic, lambda *_: told.set(), in_turn=self.one_each)
        deadline = time.monotonic() + self.seconds
        try:
            while (left := deadline - time.monotonic()) > 0:
                told.clear()
                try:
                    found = self.look()
                    answer = found.now() if isinstance(found, Pending) else found
                except Exception as error:
                    if not is_outage(error):
                        raise
                    outages.note_outage("looking for an answer", error)
                    drop_broken_connection()
                    answer = None
                if answer is not None:
                    return answer
                release_connection()
                told.wait(min(_LOOK_AGAIN_S, left))
            return self.otherwise
        finally:
            end()
            if self.one_each and told.is_set():  # it was told of more than it takes
                signals.deliver(self.topic)

    async def _looked(
        self, threads: Threads, told: asyncio.Event, gone: asyncio.Task[None]
    ) -> dict[str, Any] | None:
        """Look whenever told, until there is an answer, the time is up or the caller gone."""
        loop = asyncio.get_running_loop()
        over: list[bool] = []

        def arrive() -> None:
            if over and self.one_each:  # it was chosen to be told, and has left meanwhile
                signals.deliver(self.topic)
            told.set()

        def tell(*_: object) -> None:
            loop.call_soon_threadsafe(arrive)

        end = signals.subscribe(self.topic, tell, in_turn=self.one_each)
        deadline = loop.time() + self.seconds
        try:
            while not (gone.done() or (self.one_each and SHUTTING_DOWN.is_set())):
                told.clear()
                answer = await self._look(threads)
                if answer is not None:
                    return answer
                if SHUTTING_DOWN.is_set() or loop.time() >= deadline:
                    return None
                await _either(told, min(_LOOK_AGAIN_S, deadline - loop.time()))
            return None
        finally:
            end()
            over.append(True)
            if self.one_each and told.is_set():  # it was told of more than it takes
                signals.deliver(self.topic)

    async def _look(self, threads: Threads) -> Found:
        if self.short and is_embedded():
            found = run_in_loop(self._settled)
        else:
            found = await threads.run(self._settled)
        return await written(found, threads) if isinstance(found, Pending) else found

    def _settled(self) -> Found | Pending[Found]:
        return settled(self.look())

    async def _undo_if(self, gone: asyncio.Task[None], threads: Threads) -> None:
        """Take the answer back if there is nobody to hear it."""
        await asyncio.sleep(0)  # what came in while we looked is heard now
        if self.undo is not None and gone.done():
            await threads.run(self.undo)


async def _gone(receive: Receive | None, told: asyncio.Event) -> None:
    """Return when the caller has gone away, and wake who waits."""
    if receive is None:
        await asyncio.Event().wait()
        return
    while (await receive())["type"] != "http.disconnect":
        pass
    told.set()


async def _either(told: asyncio.Event, seconds: float) -> None:
    """Return when told, or after some time."""
    try:
        await asyncio.wait_for(told.wait(), max(seconds, 0))
    except TimeoutError:
        return


Answer = dict[str, Any] | Later | Pending[dict[str, Any]]
"""What an operation returns: the members, or how to wait for them."""


def seconds(ms: int) -> float:
    """Return epoch seconds of epoch milliseconds, as AWS answers times."""
    return ms / 1000


def present(**members: Any) -> dict[str, Any]:
    """Return the members that have a value: AWS leaves absent ones out."""
    return {name: value for name, value in members.items() if value is not None}
