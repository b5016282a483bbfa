"""Read an execution's history: its trace, now or in the past, events of a visit, and children.

Traces (``engine.Trace``) are cached in memory by execution and fed only with new events, so that no
history is read twice. They hold ids and times, no payloads.
"""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock
from typing import TYPE_CHECKING, Any

import engine
from console.db.prepared import read_rows
from console.masking import masked_execution
from console.models import Execution, HistoryEvent
from console.store.state import history_columns
from console.store.tasks.schedule import NESTED
from console.web.core.scope import reject_value
from engine import Trace, event_types

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from django.db.models import QuerySet
    from django.http import QueryDict

    from engine import Visit

EVENTS_KEPT = 200_000
"""The maximum number of events in all cached traces."""
MOST_EVENTS = 200
"""The maximum number of events of a Map that a panel shows: the first."""
PAST_KEPT = 4
"""The number of past traces that are cached: a slider asks for one event after the other."""
_OF_ITERATIONS = engine.event_names(frozenset({engine.Family.MAP_ITERATION}))
_GROUP_FAILED = engine.event_names(event_types.GROUP_FAMILIES, engine.Stage.FAILED)
MOST_CHILDREN = 20
"""The number of children named by one step or one page of events."""
_TELL_OF_CHILDREN = ("TaskSubmitted", "TaskSucceeded")
_CHILD_COLUMNS = (
    "arn",
    "name",
    "state_machine_arn",
    "status",
    "start_ms",
    "stop_ms",
    "imported_ms",
)


# -- traces ----------------------------------------------------------------------------------------


class _Traces:
    """Cache of traces, by execution."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: OrderedDict[int, tuple[Lock, Trace]] = OrderedDict()

    def of(self, execution: Execution) -> tuple[Lock, Trace]:
        """Return the execution's trace and the lock to hold while using it."""
        with self._lock:
            entry = self._known.get(execution.pk)
            if entry is None:
                entry = self._known[execution.pk] = (Lock(), _new_trace(execution))
            self._known.move_to_end(execution.pk)
            total = sum(trace.last for _, trace in self._known.values())
            while total > EVENTS_KEPT and len(self._known) > 1:
                _, (_, dropped) = self._known.popitem(last=False)
                total -= dropped.last
            return entry


_TRACES = _Traces()
_PAST_LOCK = Lock()
_past: OrderedDict[int, Trace] = OrderedDict()


@contextmanager
def open_trace(execution: Execution) -> Iterator[Trace]:
    """Yield the trace of everything committed so far; raise ``engine.DefinitionError``."""
    lock, trace = _TRACES.of(execution)
    with lock:
        _feed(trace, execution.pk)
        yield trace


@contextmanager
def open_trace_at(execution: Execution, number: int) -> Iterator[Trace]:
    """Yield the trace up to event ``number``, 0 for all; raise ``engine.DefinitionError``."""
    if not number:
        with open_trace(execution) as trace:
            yield trace
        return
    with _PAST_LOCK:
        past = _past.pop(execution.pk, None)
    # A trace can only be continued forward: for an earlier event a new one is made.
    trace = past if past is not None and past.last <= number else _new_trace(execution)
    _feed(trace, execution.pk, number)
    yield trace
    with _PAST_LOCK:
        _past[execution.pk] = trace
        while len(_past) > PAST_KEPT:
            _past.popitem(last=False)


def _new_trace(execution: Execution) -> Trace:
    return Trace(engine.build_graph(engine.parse_stored(execution.definition.text)))


def past_ms(execution: Execution, trace: Trace) -> int:
    """Return the time of the last event of ``trace``."""
    return execution.start_ms if trace.last_event is None else trace.last_event.at_ms


def asked_event(query: QueryDict) -> int:
    """Return the event number in the URL, 0 for the present."""
    text = query.get("at", "")
    if re.fullmatch(r"\d{1,6}", text, re.ASCII):
        return int(text)
    if text:
        reject_value(query, "at", "the number of an event")
    return 0


def _feed(trace: Trace, execution_id: int, upto: int = history_columns.LAST) -> None:
    """Feed a trace with new events."""
    batch = history_columns.read_batch(execution_id, trace.last, upto)
    if batch is not None:
        trace.take(batch)


def details_of(text: str) -> dict[str, Any]:
    """Return an event's details; empty for types without any."""
    return dict(json.loads(text)) if text else {}


# -- the events of a visit -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VisitEvent:
    """An event of a visit, with its details."""

    id: int
    at_ms: int
    type: str
    details: dict[str, Any]
    previous: int


def events_of_visit(
    execution: Execution, visit: Visit, *, with_iterations: bool = True
) -> list[VisitEvent]:
    """Return the events of a visit: the first of them and the last two.

    ``with_iterations``: False omits a Map's iteration events, which are most of them.
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
    """Return events by their ids, in order. ``build``: makes the query."""
    event_ids = tuple(numbers)
    if not event_ids:
        return []
    rows = read_rows(("events", build), build, execution.pk, event_ids)
    masked = masked_execution.masked_execution(execution)
    return [
        VisitEvent(number, at_ms, kind, details_of(masked.event(number, text)), previous)
        for number, at_ms, kind, text, previous in rows
    ]


def payload_of(
    events: Sequence[VisitEvent], types: Collection[str], field: str
) -> tuple[int, str] | None:
    """Return event and text of a payload: from the last event of these types."""
    for event in reversed(events):
        if event.type in types and field in event.details:
            return event.id, event.details[field]
    return None


def failure_of_visit(
    execution: Execution, trace: Trace, visit: Visit, events: Sequence[VisitEvent]
) -> tuple[str, str | None]:
    """Return error and cause of the last failed attempt, else of the ended execution."""
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
    """Add a Fail state's error to its entry, because the history does not repeat it."""
    if event.type != "FailStateEntered" or "name" not in event.details:
        return event
    machine, name = engine.parse_stored_state(execution.definition.text, event.details["name"])
    text = event.details.get("input", "{}")
    moment = engine.Moment(event.at_ms, event.id)
    trial = engine.try_state(machine, name, text, moment, about={"context": {}, "input": "{}"})
    words = {"error": trial.error, "cause": trial.cause}
    return replace(event, details=event.details | words)


# -- the executions that a visit started -----------------------------------------------------------


def arn_of_started_child(kind: str, details: Mapping[str, Any]) -> str:
    """Return the ARN of the child execution in an event, "" without one.

    ``details``: as the reader may see them, which ``masked_execution`` made: masked values of
    outputs are not searched.
    """
    if kind not in _TELL_OF_CHILDREN or details.get("resourceType") not in NESTED:
        return ""
    if not str(details.get("resource", "")).startswith("startExecution"):
        return ""
    try:
        output = json.loads(details.get("output", ""))
    except (ValueError, RecursionError):  # cut, or hidden from the reader
        return ""
    if not isinstance(output, dict):
        return ""
    return str(output.get("ExecutionArn") or output.get("executionArn") or "")


def arn_started_last(events: Sequence[VisitEvent]) -> str:
    """Return the ARN of a visit's latest child execution, "" without one."""
    arns = (arn_of_started_child(event.type, event.details) for event in reversed(events))
    return next((arn for arn in arns if arn), "")


def children_by_arn(execution: Execution, arns: Iterable[str]) -> dict[str, Execution]:
    """Return the executions of ARNs visible to the reader of ``execution``, in order."""
    newest = list(dict.fromkeys(arn for arn in arns if arn))[-MOST_CHILDREN:]
    if not newest or execution.imported_ms is not None:
        return {}
    rows = Execution.objects.filter(project=execution.project_id, arn__in=newest)
    by_arn = {row.arn: row for row in rows.only(*_CHILD_COLUMNS)}
    return {arn: by_arn[arn] for arn in newest if arn in by_arn}
