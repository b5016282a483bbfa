"""The way from a Task to the operations of this server's own AWS API, in this process.

The worker knows nothing of the API's edge: ``apps.py`` connects the two when the program starts.
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
"""After so long a long poll looks again, in case a hint was lost."""
Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Parent:
    """The execution whose Task starts another one.

    ``depth``: how many executions are above it; ``task``: its task that waits for the end of the
    other one, None if it does not wait.
    """

    execution_id: int
    depth: int
    task: int | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf an operation is called.

    ``trusted``: what is asked belongs to a call that was allowed before, and needs no right of its
    own. ``parent``: what the executions it starts are children of. ``service``: whose operations
    are called, by botocore's name.
    """

    principal: Principal
    actor: Actor
    region: str
    trusted: bool = False
    parent: Parent | None = None
    service: str = "stepfunctions"


@dataclass(frozen=True, slots=True)
class LongPoll:
    """An answer to wait for without holding a thread.

    ``look``: returns the answer or None; called when ``topic`` is told, and each second in case a
    hint was lost. ``otherwise``: the answer after ``seconds``. ``undo``: called when the caller
    went away while the answer was found, so that it is not lost. ``one_each``: a
    signal wakes one waiter instead of all of them. ``short``: to look takes a few rows. ``key_id``:
    the access key of the caller.
    """

    look: Callable[[], Answer | Change[Answer | None] | None]
    topic: signals.Channel
    seconds: float
    otherwise: Answer
    undo: Callable[[], object] | None = None
    one_each: bool = False
    short: bool = False
    key_id: str = ""

    def checked(self, check: Callable[[], object]) -> LongPoll:
        """Return a copy that calls ``check`` before every look; an error of it ends the wait.

        Who waits for a minute may be removed meanwhile, and must get nothing after that.
        """

        def look() -> Answer | Change[Answer | None] | None:
            check()
            return self.look()

        return replace(self, look=look)

    def result(self) -> Answer:
        """Wait for the answer on this thread, which keeps no connection meanwhile.

        While the database is out there is no answer yet.
        """
        told = threading.Event()
        end = signals.subscribe(self.topic, lambda *_: told.set(), in_turn=self.one_each)
        deadline = time.monotonic() + self.seconds
        try:
            while (remaining_s := deadline - time.monotonic()) > 0:
                told.clear()
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
                told.wait(min(LOOK_AGAIN_S, remaining_s))
            return self.otherwise
        finally:
            end()
            if self.one_each and told.is_set():  # it was told of more than it takes
                signals.deliver(self.topic)


if TYPE_CHECKING:
    Begun = Answer | Change[Answer] | LongPoll
    """What is known of an answer: it, the change that makes it, or how to wait for it."""
_connected: list[Callable[[Caller, str, dict[str, Any]], Begun]] = []
_listed: list[Callable[[str, str], bool]] = []


def connect(
    operations: Callable[[Caller, str, dict[str, Any]], Begun],
    has_operation: Callable[[str, str], bool],
) -> None:
    """Let ``answer`` and ``serves`` reach the operations."""
    _connected[:] = [operations]
    _listed[:] = [has_operation]


def serves(service: str, action: str) -> bool:
    """Tell whether this server has an operation of a service, by botocore's names."""
    return _listed[0](service, action)


def answer(caller: Caller, action: str, params: dict[str, Any]) -> Begun:
    """Begin an action; return its answer, a change still to be written, or how to wait.

    ``params``: as the service model has them. What the operation writes on its own, before its
    answer is known, is written when this returns. Raise a ``ServiceError``, as the change may.
    """
    return _connected[0](caller, action, params)
