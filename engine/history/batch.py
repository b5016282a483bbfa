"""Forms in which a trace takes events: single events, or batches as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class RecordedEvent(Protocol):
    """The fields that a trace reads: of an ``engine.Event``, or of a row that has the same."""

    @property
    def id(self) -> int:
        """Return its number, from 1."""

    @property
    def previous(self) -> int:
        """Return the number of the event it followed."""

    @property
    def at_ms(self) -> int:
        """Return when it happened."""

    @property
    def type(self) -> str:
        """Return its type."""

    @property
    def details(self) -> Mapping[str, Any] | None:
        """Return its fields."""

    @property
    def state(self) -> str:
        """Return the state it belongs to, "" if to none."""


class EventBatch(NamedTuple):
    """Consecutive events, as columns.

    ``last``: the id of the last one; ``previous``: the ids they followed; ``at_ms``: epoch
    milliseconds; ``kinds``: (type, state) of each; ``numbers``: id -> number of items, of each
    ``MapStateStarted`` that has one, and index of the iteration, of each ``MapIterationAborted``.
    """

    last: int
    previous: Iterable[int]
    at_ms: Iterable[int]
    kinds: Iterable[tuple[str, str]]
    numbers: Mapping[int, int]


_NUMBERED = {"MapStateStarted": "length", "MapIterationAborted": "index"}
"""Type -> the field of its details that is in ``EventBatch.numbers``."""


def batch_of(events: Sequence[RecordedEvent]) -> EventBatch:
    """Return consecutive events, at least one, as columns."""
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
    )


class LastEvent(NamedTuple):
    """The last event that a trace has taken."""

    id: int
    at_ms: int
    type: str
    state: str
