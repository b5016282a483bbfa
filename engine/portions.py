"""What is a trace fed with?  Events, one by one or as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class Event(Protocol):
    """What a trace reads of an event: ``engine.Event``, or a row with the same fields."""

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


class Portion(NamedTuple):
    """Events one after the other, as columns. ``kinds``: (type, state), ``last``: the last id.

    ``lengths``: id -> how many items, of each ``MapStateStarted`` that says so.
    """

    last: int
    previous: Iterable[int]
    at_ms: Iterable[int]
    kinds: Iterable[tuple[str, str]]
    lengths: Mapping[int, int]


class Newest(NamedTuple):
    """The last event of a trace."""

    id: int
    at_ms: int
    type: str
    state: str
