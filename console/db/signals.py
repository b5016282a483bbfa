"""Wake up threads and processes that wait for a commit: publish and subscribe.

A signal saves time and carries no data that exists only in it: it may be lost, arrive twice or
late. Every subscriber finds the same by reading the rows, which the sweepers do every second or so.

In a process that does all the work, ``publish`` calls its own subscribers after the commit. In a
team of processes, a ``Transport`` writes the signals for other processes in the transaction that
they belong to, so they arrive if and only if it commits.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from itertools import count
from typing import TYPE_CHECKING, Protocol

from console.db import rows
from console.statuses import DueKind, Topic

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Channel = tuple[object, ...]
"""A ``Topic``, and for some topics an id or ARN behind it."""


class Transport(Protocol):
    """Sends signals to other processes."""

    def takes(self, channel: Channel) -> bool:
        """Return whether other processes get the signals of a channel."""

    def keeps(self, channel: Channel) -> bool:
        """Return whether this process gets the signals of a channel, too."""

    def send(self, channel: Channel, values: tuple[object, ...]) -> None:
        """Add a signal to the current transaction; without a transaction send it at once."""

    def statements(
        self, batch: Sequence[tuple[Channel, tuple[object, ...]]]
    ) -> Sequence[tuple[str, Sequence[str]]]:
        """Return the SQL that sends signals within a transaction, with the texts of its values."""

    def flush(self) -> None:
        """Write the added signals; the transaction commits next."""

    def drop(self) -> None:
        """Drop the added signals: the transaction begins, or begins again."""


_listeners: dict[Channel, list[Callable[..., None]]] = defaultdict(list)
_in_turn: set[Channel] = set()  # channels whose signals go to one listener each, in turn
_lock = threading.Lock()
_numbers = count(1)
_last: dict[object, int] = {}  # topic -> number of its last signal
_transport: Transport | None = None


def use_transport(transport: Transport | None) -> None:
    """Set the transport to other processes; None: signals stay in this process."""
    global _transport  # noqa: PLW0603 - one a process
    _transport = transport


def get_transport() -> Transport | None:
    """Return the current transport, None in a process that does all the work."""
    return _transport


def subscribe(
    channel: Channel, listener: Callable[..., None], *, in_turn: bool = False
) -> Callable[[], None]:
    """Call ``listener`` for each signal of a channel; return the function to unsubscribe.

    ``in_turn``: each signal goes to one listener of the channel only, in turn.
    """
    with _lock:
        _listeners[channel] = [*_listeners[channel], listener]
        if in_turn:
            _in_turn.add(channel)

    def end() -> None:
        with _lock:
            remaining = [other for other in _listeners[channel] if other is not listener]
            if remaining:
                _listeners[channel] = remaining
            else:
                _listeners.pop(channel, None)
                _in_turn.discard(channel)

    return end


def subscribers(channel: Channel) -> int:
    """Return the number of listeners of a channel in this process."""
    return len(_listeners.get(channel, ()))


def last_signal(channel: Channel) -> int:
    """Return the number of the last signal of a channel's topic in this process, 0 without one.

    Read it before the rows: while it is the same, no signal has announced a change of them.
    """
    return _last.get(channel[0], 0)


def publish(channel: Channel, *values: object) -> None:
    """Call the channel's listeners after the current transaction's commit, or now without one.

    Exceptions of a listener are logged and not raised: the caller must learn that the commit
    stands.
    """
    recorded = rows.current_write_set()
    if recorded is not None:
        recorded.signals.append((channel, values))
        return
    if _transport is not None and _transport.takes(channel):
        _transport.send(channel, values)
        if not _transport.keeps(channel):
            return
    rows.current_database().on_commit(lambda: deliver(channel, *values), robust=True)


def after_commit(hook: Callable[[], None]) -> None:
    """Call a hook after the current transaction's commit; its exceptions are logged."""
    recorded = rows.current_write_set()
    if recorded is not None:
        recorded.after.append(hook)
    else:
        rows.current_database().on_commit(hook, robust=True)


def deliver(channel: Channel, *values: object) -> None:
    """Call the channel's listeners in this process."""
    _last[channel[0]] = next(_numbers)  # first: a listener may subscribe only now
    for listener in _next_listeners(channel):
        listener(*values)


def _next_listeners(channel: Channel) -> Sequence[Callable[..., None]]:
    """Return the listeners that get the next signal of a channel."""
    if channel not in _in_turn:
        return _listeners.get(channel, ())
    with _lock:
        listeners = _listeners.get(channel)
        if not listeners:
            return ()
        _listeners[channel] = [*listeners[1:], listeners[0]]
        return listeners[:1]


def publish_runnable(execution_id: int) -> None:
    """Signal that an execution can continue."""
    publish((Topic.RUNNABLE,), execution_id)


def publish_created(execution_id: int) -> None:
    """Signal that a new execution can continue: no process has it in memory."""
    publish((Topic.CREATED,), execution_id)


def publish_due(due_ms: int, kind: DueKind, execution_id: int, task: int = 0) -> None:
    """Signal that a timer of an execution is due at ``due_ms`` (epoch milliseconds)."""
    publish((Topic.DUE,), due_ms, kind, execution_id, task)
