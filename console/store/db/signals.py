"""Who wants to know that something was committed?  Wake-ups inside this process, or to others.

Hints only save time: whoever misses one finds the same in the rows a moment later. In a process
that does all the work they go straight to their listeners; where others work, a *carrier* takes
those that are not for this process along in the transaction they belong to.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import TYPE_CHECKING, Protocol

from django.db import transaction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# Topics: ("wake",) and ("born",) with an execution id, ("task",) and ("map",) with (execution id,
# task), ("due",) with epoch milliseconds and what is due, ("map-run",) with its id, ("ended",) with
# an execution id, ("long",) with that of one whose history is, ("offered",) with an activity's ARN;
# ("activity", arn), ("execution", id), ("event",) and ("rights",) with nothing.
Topic = tuple[object, ...]


class Transport(Protocol):
    """Takes hints to other processes."""

    def takes(self, topic: Topic) -> bool:
        """Tell whether it takes hints of a topic."""

    def keeps(self, topic: Topic) -> bool:
        """Tell whether this process wants a hint of the topic, too."""

    def carry(self, topic: Topic, what: tuple[object, ...]) -> None:
        """Take a hint along with the current transaction, or at once without one."""

    def flush(self) -> None:
        """Write what was taken; the transaction commits next."""

    def drop(self) -> None:
        """Forget what was taken: the transaction begins, or begins again."""


_listeners: dict[Topic, list[Callable[..., None]]] = defaultdict(list)
_alone: set[Topic] = set()  # topics of which one listener is told, each in turn
_lock = threading.Lock()
_carrier: Transport | None = None


def use_transport(carrier: Transport | None) -> None:
    """Let a carrier take hints to other processes."""
    global _carrier  # noqa: PLW0603 - one a process
    _carrier = carrier


def transport() -> Transport | None:
    """Return who takes hints to other processes, if anybody."""
    return _carrier


def subscribe(
    topic: Topic, listener: Callable[..., None], *, alone: bool = False
) -> Callable[[], None]:
    """Call ``listener`` whenever the topic is told; return a function that ends that.

    ``alone``: of all who listen to the topic one is told, in turn.
    """
    with _lock:
        _listeners[topic] = [*_listeners[topic], listener]
        if alone:
            _alone.add(topic)

    def end() -> None:
        with _lock:
            left = [one for one in _listeners[topic] if one is not listener]
            if left:
                _listeners[topic] = left
            else:
                _listeners.pop(topic, None)
                _alone.discard(topic)

    return end


def subscribers(topic: Topic) -> int:
    """Return how many listen to a topic in this process."""
    return len(_listeners.get(topic, ()))


def publish(topic: Topic, *what: object) -> None:
    """Call the topic's listeners after the current transaction's commit, or now without one.

    What a listener raises is logged: the commit stands, and whoever waits for it must hear that.
    """
    if _carrier is not None and _carrier.takes(topic):
        _carrier.carry(topic, what)
        if not _carrier.keeps(topic):
            return
    transaction.on_commit(lambda: deliver(topic, *what), robust=True)


def deliver(topic: Topic, *what: object) -> None:
    """Call the topic's listeners in this process."""
    for listener in _wanted(topic):
        listener(*what)


def _wanted(topic: Topic) -> Sequence[Callable[..., None]]:
    """Return who is told of a topic now."""
    if topic not in _alone:
        return _listeners.get(topic, ())
    with _lock:
        listeners = _listeners.get(topic)
        if not listeners:
            return ()
        _listeners[topic] = [*listeners[1:], listeners[0]]
        return listeners[:1]


def publish_runnable(execution_id: int) -> None:
    """Say that an execution can go on."""
    publish(("wake",), execution_id)


def publish_created(execution_id: int) -> None:
    """Say that a new execution can go on: no process has anything of it in memory."""
    publish(("born",), execution_id)


def publish_due(due_ms: int, what: str, execution_id: int, task: int = 0) -> None:
    """Say that something of an execution is due at a moment.

    ``timer``, ``timeout`` or ``heartbeat``.
    """
    publish(("due",), due_ms, what, execution_id, task)
