"""Read the events of one visit of a state, whole, and what is in them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import engine
from console.db.prepared import read_rows
from console.masking import masked_execution
from console.models import HistoryEvent
from console.web.history.traces import details_of
from engine import event_types

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from django.db.models import QuerySet

    from console.models import Execution
    from engine import Trace, Visit

MOST_EVENTS = 200
"""A Map of ten thousand items has more events than a panel can show; the first ones are enough."""


_AT_ONCE = 500
_OF_ITERATIONS = engine.event_names(frozenset({engine.Family.MAP_ITERATION}))
_GROUP_FAILED = engine.event_names(event_types.GROUP_FAMILIES, engine.Stage.FAILED)


@dataclass(frozen=True, slots=True)
class VisitEvent:
    """An event of a visit, read whole."""

    id: int
    at_ms: int
    type: str
    details: dict[str, Any]
    previous: int


def events_of_visit(
    execution: Execution, visit: Visit, *, with_iterations: bool = True
) -> list[VisitEvent]:
    """Return the events of a visit: the first ones and the last two.

    ``with_iterations``: False leaves out those that tell of the iterations of a Map, most of them.
    """
    build = _read_events if with_iterations else _read_own_events
    return read_events(execution, visit.ends_of_events(MOST_EVENTS, 2), build)


def _read_events(execution: int, numbers: Sequence[int]) -> QuerySet[HistoryEvent, Any]:
    rows = HistoryEvent.objects.filter(execution_id=execution, event_id__in=numbers)
    return rows.order_by("event_id").values_list("event_id", "at_ms", "type", "details", "previous")


def _read_own_events(execution: int, numbers: Sequence[int]) -> QuerySet[HistoryEvent, Any]:
    return _read_events(execution, numbers).exclude(type__in=_OF_ITERATIONS)


def read_events(
    execution: Execution,
    numbers: Iterable[int],
    build: Callable[[int, Sequence[int]], QuerySet[HistoryEvent, Any]] = _read_events,
) -> list[VisitEvent]:
    """Return events by their ids, in order. ``build``: which of them."""
    asked = tuple(numbers)
    if not asked:
        return []
    rows = read_rows(("events", build), build, execution.pk, asked)
    masked = masked_execution.masked_execution(execution)
    return [
        VisitEvent(number, at_ms, kind, details_of(masked.event(number, text)), previous)
        for number, at_ms, kind, text, previous in rows
    ]


def events_of_types(execution: Execution, types: Collection[str]) -> Iterator[VisitEvent]:
    """Yield all events of some types, in order."""
    rows = HistoryEvent.objects.filter(execution_id=execution.pk, type__in=types)
    yield from read_in_pieces(execution, list(rows.values_list("event_id", flat=True)))


def read_in_pieces(execution: Execution, numbers: Collection[int]) -> Iterator[VisitEvent]:
    """Yield events by their ids, in order, as many as there may be."""
    ordered = sorted(numbers)
    for place in range(0, len(ordered), _AT_ONCE):
        yield from read_events(execution, ordered[place : place + _AT_ONCE])


def payload_of(
    events: Sequence[VisitEvent], types: Collection[str], field: str
) -> tuple[int, str] | None:
    """Return event and text of a payload: of the last event of these types that has it."""
    for event in reversed(events):
        if event.type in types and field in event.details:
            return event.id, event.details[field]
    return None


def failure_of_visit(
    execution: Execution, trace: Trace, visit: Visit, events: Sequence[VisitEvent]
) -> tuple[str, str | None]:
    """Return error and cause: of the last failed attempt, else of the execution it ended."""
    if visit.status not in ("failed", "caught"):
        return "", None
    for event in reversed(events):
        if "error" in event.details or "cause" in event.details:
            return event.details.get("error", ""), event.details.get("cause")
    if visit is trace.culprit or (visit.status == "failed" and not visit.iteration):
        return execution.error or "", execution.cause
    return "", None


def with_failures(execution: Execution, events: list[VisitEvent]) -> list[VisitEvent]:
    """Add the events that made a Parallel or Map retry or fail."""
    own = {event.id for event in events}
    again = [event.previous for event in events if event.type in event_types.ATTEMPT_BEGINNINGS][1:]
    again += [event.previous for event in events if event.type in _GROUP_FAILED]
    lost = read_events(execution, [number for number in again if number not in own])
    worded = [_with_fail_error(execution, event) for event in (*events, *lost)]
    return sorted(worded, key=lambda event: event.id)


def _with_fail_error(execution: Execution, event: VisitEvent) -> VisitEvent:
    """Add its error to the entry of a Fail, since the history does not repeat it."""
    if event.type != "FailStateEntered" or "name" not in event.details:
        return event
    machine, name = engine.parse_stored_state(execution.definition.text, event.details["name"])
    text = event.details.get("input", "{}")
    moment = engine.Moment(event.at_ms, event.id)
    trial = engine.try_state(machine, name, text, moment, about={"context": {}, "input": "{}"})
    words = {"error": trial.error, "cause": trial.cause}
    return replace(event, details=event.details | words)
