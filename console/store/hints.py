"""Who wants to know that something was committed?  Wake-ups inside this process.

Hints only save time: whoever misses one finds the same in the rows a moment later.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import TYPE_CHECKING

from django.db import transaction

if TYPE_CHECKING:
    from collections.abc import Callable

# Topics: ("wake",) with an execution id, ("task",) and ("map",) with (execution id, task), ("due",)
# with epoch milliseconds and what is due, ("map-run",) with its id, ("ended",) with an execution
# id, ("offered",) with an activity's ARN; ("activity", arn), ("execution", id), ("event",) with
# nothing.
Topic = tuple[object, ...]
_listeners: dict[Topic, list[Callable[..., None]]] = defaultdict(list)
_lock = threading.Lock()


def listen(topic: Topic, listener: Callable[..., None]) -> Callable[[], None]:
    """Call ``listener`` whenever the topic is told; return a function that ends that."""
    with _lock:
        _listeners[topic] = [*_listeners[topic], listener]

    def end() -> None:
        with _lock:
            left = [one for one in _listeners[topic] if one is not listener]
            if left:
                _listeners[topic] = left
            else:
                _listeners.pop(topic, None)

    return end


def listening(topic: Topic) -> int:
    """Return how many listen to a topic in this process."""
    return len(_listeners.get(topic, ()))


def tell(topic: Topic, *what: object) -> None:
    """Call the topic's listeners after the current transaction's commit, or now without one.

    What a listener raises is logged: the commit stands, and whoever waits for it must hear that.
    """
    transaction.on_commit(lambda: _call(topic, what), robust=True)


def _call(topic: Topic, what: tuple[object, ...]) -> None:
    for listener in _listeners.get(topic, ()):
        listener(*what)


def wake(execution_id: int) -> None:
    """Say that an execution can go on."""
    tell(("wake",), execution_id)


def due(due_ms: int, what: str, execution_id: int, task: int = 0) -> None:
    """Say that something of an execution is due at a moment.

    ``timer``, ``timeout`` or ``heartbeat``.
    """
    tell(("due",), due_ms, what, execution_id, task)
