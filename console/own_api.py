"""The way from a Task to the operations of this server's own AWS API, in this process.

The worker knows nothing of the API's edge: ``apps.py`` connects the two when the program starts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.access import Principal
    from console.db.audit import Actor
    from console.db.signals import Channel
    from console.db.writer import Pending


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


class AnswerWait(Protocol):
    """How to wait for an answer that comes later."""

    @property
    def look(self) -> Callable[[], Answer | Pending[Answer | None] | None]:
        """Return a function that looks for the answer and returns it, or None if pending."""

    @property
    def topic(self) -> Channel:
        """Return the channel whose signals announce an answer; signals may be lost."""

    @property
    def one_each(self) -> bool:
        """Whether a signal wakes one waiter or all of them."""

    @property
    def seconds(self) -> float:
        """Return for how long to wait at most."""

    @property
    def otherwise(self) -> Answer:
        """Return the answer after that time."""

    def now(self) -> Answer:
        """Wait for the answer on this thread."""


Answer = dict[str, Any]
if TYPE_CHECKING:
    Begun = Answer | Pending[Answer] | AnswerWait
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
