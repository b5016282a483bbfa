"""The events of an execution's history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

if TYPE_CHECKING:
    from collections.abc import Mapping


class Event(Struct, frozen=True, gc=False):
    """One line of the history.

    ``id`` counts from 1. ``previous`` is the event that it followed on its line of control, 0 for
    none. ``at_ms``: epoch milliseconds. ``type``: one of ``engine.history.event_types``.
    ``details``: the fields of the type's details member, payloads as JSON text; None if the type
    has no such member. ``state``: the state it belongs to, "" for events of the execution itself.
    """

    id: int
    previous: int
    at_ms: int
    type: str
    details: Mapping[str, Any] | None = field(default_factory=dict)
    state: str = ""
