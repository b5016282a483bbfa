"""The interface through which Tasks call this server's own AWS API (``states:startExecution``).

The call stays within the process. The worker does not import the API: ``apps.py`` passes the
operations to ``connect`` when the program starts, and ``worker.own_calls`` uses ``answer``.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from console.db import outages, signals
from console.db.writer import Change, drop_broken_connection, is_outage, release_connection

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.access import Principal
    from console.db.audit import Actor

LOOK_AGAIN_S = 1.0
"""The interval at which a long poll checks again, in case a signal was lost."""
Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Parent:
    """The execution whose Task starts another execution.

    ``depth``: the number of executions above it; ``task``: its task that waits for the child's end,
    None if it does not wait.
    """

    execution_id: int
    depth: int
    task: int | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of an operation, with its rights.

    ``trusted``: the operation is part of a call that was already allowed, so it needs no right of
    its own. ``parent``: the parent of the executions that it starts. ``service``: the operation's
    service, by botocore's name.
    """

    principal: Principal
    actor: Actor
    region: str
    trusted: bool = False
    parent: Parent | None = None
    service: str = "stepfunctions"


@dataclass(frozen=True, slots=True)
class LongPoll:
    """An answer that does not exist yet, to wait for without holding a thread.

    ``look``: returns the answer or None; called at each signal of ``topic``, and each second in
    case a signal was lost. ``otherwise``: the answer after ``seconds``. ``undo``: called if the
    caller has disconnected by the time there is an answer, so that the answer is not lost.
    ``one_each``: a signal wakes one waiter instead of all. ``short``: ``look`` reads only a few
    rows. ``key_id``: the access key of the caller. ``ready``: there probably is an answer, so the
    thread of the operation looks first. ``first``: the answer that it got. ``seen``: the number of
    the topic's last signal before the rows had no answer; None if nobody has looked.
    """

    look: Callable[[], Answer | Change[Answer | None] | None]
    topic: signals.Channel
    seconds: float
    otherwise: Answer
    undo: Callable[[], object] | None = None
    one_each: bool = False
    short: bool = False
    key_id: str = ""
    ready: bool = False
    first: Answer | None = None
    seen: int | None = None

    def checked(self, check: Callable[[], object]) -> LongPoll:
        """Return a copy that calls ``check`` before each look; an error of ``check`` ends the wait.

        A caller may lose the right during a wait of a minute, and must get no answer after that.
        """

        def look() -> Answer | Change[Answer | None] | None:
            check()
            return self.look()

        return replace(self, look=look)

    def result(self) -> Answer:
        """Wait for the answer on this thread, which holds no database connection meanwhile.

        The wait continues during an outage of the database.
        """
        changed = threading.Event()
        end = signals.subscribe(self.topic, lambda *_: changed.set(), in_turn=self.one_each)
        deadline = time.monotonic() + self.seconds
        try:
            while (remaining_s := deadline - time.monotonic()) > 0:
                changed.clear()
                try:
                    outcome = self.look()
                    answer = outcome.result() if isinstance(outcome, Change) else outcome
                except Exception as error:
                    if not is_outage(error):
                        raise
                    outages.note_outage("looking for an answer", error)
                    drop_broken_connection()
                    answer = None
                if answer is not None:
                    return answer
                release_connection()
                changed.wait(min(LOOK_AGAIN_S, remaining_s))
            return self.otherwise
        finally:
            end()
            if self.one_each and changed.is_set():  # a signal that this waiter does not use
                signals.deliver(self.topic)


if TYPE_CHECKING:
    Begun = Answer | Change[Answer] | LongPoll
    """A begun answer: the answer itself, the change that makes it, or how to wait for it."""
_connected: list[Callable[[Caller, str, dict[str, Any]], Begun]] = []
_listed: list[Callable[[str, str], bool]] = []


def connect(
    operations: Callable[[Caller, str, dict[str, Any]], Begun],
    has_operation: Callable[[str, str], bool],
) -> None:
    """Set the functions that ``answer`` and ``serves`` call."""
    _connected[:] = [operations]
    _listed[:] = [has_operation]


def serves(service: str, action: str) -> bool:
    """Return whether this server has an operation, by botocore's names of service and action."""
    return _listed[0](service, action)


def answer(caller: Caller, action: str, params: dict[str, Any]) -> Begun:
    """Begin an operation; return its answer, a ``Change`` to commit, or a ``LongPoll``.

    ``params``: named as in the service model. Before it returns a ``LongPoll``, the operation has
    written its own changes. Raise a ``ServiceError``; committing the ``Change`` may, too.
    """
    return _connected[0](caller, action, params)
