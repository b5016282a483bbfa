"""Name the state of each event in a history of AWS, which has names in some events only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.history.event_types import (
    EVENT_TYPES,
    GROUP_FAMILIES,
    GROUP_STARTED,
    Family,
    event_names,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.history.batch import RecordedEvent

_LONGEST_NAME = 80
_GROUP_EVENTS = event_names(GROUP_FAMILIES)
_GROUP_ENTRIES = {
    Family.MAP: "MapStateEntered",
    Family.PARALLEL: "ParallelStateEntered",
}
_NAMED_EVENTS = event_names(GROUP_FAMILIES | {Family.STATE, Family.MAP_ITERATION})
"""Events whose details have the name of their state."""
_GROUP_ENDS = _GROUP_EVENTS - GROUP_STARTED


def name_states(events: Sequence[RecordedEvent]) -> list[str]:
    """Return the name of the state of each event of a whole history, "" for the execution's."""
    owners = [""]
    for event in events:
        owners.append(_owner(event, events, owners))
    return [owner[:_LONGEST_NAME] for owner in owners[1:]]


def _owner(event: RecordedEvent, events: Sequence[RecordedEvent], owners: list[str]) -> str:
    """Return the state of an event: the event's, or else the previous event's."""
    if EVENT_TYPES[event.type].family is Family.EXECUTION:
        return ""
    state_name = (event.details or {}).get("name") or (event.details or {}).get("state")
    if isinstance(state_name, str) and event.type in _NAMED_EVENTS:
        return state_name
    if event.type in _GROUP_EVENTS:
        return _group(event, events, owners)
    number = event.previous
    while number and not owners[number]:  # a redrive continues with the failed state
        number = events[number - 1].previous
    return owners[number]


def _group(event: RecordedEvent, events: Sequence[RecordedEvent], owners: list[str]) -> str:
    """Return the Map or Parallel state that an event ends or restarts.

    Go back event by event, past the groups within it, to its start.
    """
    family = EVENT_TYPES[event.type].family
    depth, number = 0, event.previous
    while number:
        earlier = events[number - 1]
        same_family = EVENT_TYPES[earlier.type].family is family
        if same_family and earlier.type in GROUP_STARTED:
            if not depth:
                return owners[number]
            depth -= 1
        elif same_family and earlier.type in _GROUP_ENDS:
            depth += 1
        elif number == event.previous and earlier.type == _GROUP_ENTRIES[family]:
            return owners[number]
        number = earlier.previous
    return owners[event.previous]
