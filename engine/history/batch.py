"""The input of a ``Trace``: single history events, or batches of events as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from engine.jsontext import byte_size, least_size, payload_limit

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class RecordedEvent(Protocol):
    """The fields that a trace reads, of an ``engine.Event`` or a database row."""

    @property
    def id(self) -> int:
        """Return the event's number, from 1."""

    @property
    def previous(self) -> int:
        """Return the number of the preceding event (``previousEventId``)."""

    @property
    def at_ms(self) -> int:
        """Return its time in epoch milliseconds."""

    @property
    def type(self) -> str:
        """Return its type, such as ``TaskStateEntered``."""

    @property
    def details(self) -> Mapping[str, Any] | None:
        """Return its details."""

    @property
    def state(self) -> str:
        """Return the name of its state, "" without one."""


class EventBatch(NamedTuple):
    """Consecutive events, as columns.

    ``last``: the id of the last one; ``previous``: the ids they followed; ``at_ms``: epoch
    milliseconds; ``kinds``: (type, state) of each; ``numbers``: id -> number of items, of each
    ``MapStateStarted`` that has one, and index of the iteration, of each ``MapIterationAborted``.
    ``sizes``: id -> size of the largest payload, of events for which ``large_payload`` has one.
    """

    last: int
    previous: Iterable[int]
    at_ms: Iterable[int]
    kinds: Iterable[tuple[str, str]]
    numbers: Mapping[int, int]
    sizes: Mapping[int, int] = {}


_NUMBERED = {"MapStateStarted": "length", "MapIterationAborted": "index"}
"""Type -> the field of its details that is in ``EventBatch.numbers``."""


def batch_of(events: Sequence[RecordedEvent]) -> EventBatch:
    """Return consecutive events (one or more) as columns."""
    numbers = {
        event.id: (event.details or {}).get(_NUMBERED[event.type])
        for event in events
        if event.type in _NUMBERED
    }
    return EventBatch(
        events[-1].id,
        [event.previous for event in events],
        [event.at_ms for event in events],
        [(event.type, event.state) for event in events],
        {event: number for event, number in numbers.items() if number is not None},
        {event.id: size for event in events if (size := large_payload(event.details or {}))},
    )


def large_payload(details: Mapping[str, Any]) -> int:
    """Return the size of an event's largest payload; 0 if none is near the limit.

    It is in the unit of the limit: bytes, or characters.
    """
    least = least_size()
    texts = [details[name] for name in _PAYLOADS if isinstance(details.get(name), str)]
    in_bytes = payload_limit().unit != "characters"
    sizes = (byte_size(text) if in_bytes else len(text) for text in texts if len(text) * 4 >= least)
    return max((size for size in sizes if size >= least), default=0)


_PAYLOADS = ("input", "output", "parameters")
"""The fields of details that are payloads."""


class LastEvent(NamedTuple):
    """The last event of a trace."""

    id: int
    at_ms: int
    type: str
    state: str
