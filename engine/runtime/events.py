"""The ``Event`` type: one event of an execution's history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

if TYPE_CHECKING:
    from collections.abc import Mapping


class Event(Struct, frozen=True, gc=False):
    """An event of the history.

    ``id``: counts from 1. ``previous``: the id of the event that this one follows (AWS's
    ``previousEventId``); 0 if it follows none, as ExecutionStarted, the first ...StateEntered,
    ExecutionAborted and ExecutionTimedOut. ``at_ms``: epoch milliseconds. ``type``: a name in
    ``engine.history.event_types``. ``details``: the fields of the type's details member, payloads
    as JSON text; None if the type has no such member. ``state``: the name of the state, "" for an
    event of the execution itself.
    """

    id: int
    previous: int
    at_ms: int
    type: str
    details: Mapping[str, Any] | None = field(default_factory=dict)
    state: str = ""
