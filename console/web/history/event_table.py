"""Read a page of the event table: 50 rows, without payloads until a row is expanded."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from django.db.models import Count, Max
from django.db.models.functions import Left
from django.utils.safestring import SafeString

import engine
from console.masking import masked_execution
from console.models import HistoryEvent
from console.web.core import formatting
from console.web.graph import svg
from console.web.history import timed_out, traces
from console.web.history.traces import details_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.db.models import QuerySet

    from console.models import Execution
    from console.web.history.event_filter import EventFilter

PAGE = 50
MOST_ROWS = 200
"""The number of rows at which a live page stops growing and links to the next page."""
MOST_NAMES = 1000
"""The maximum number of states in the filter of the event table: the first of the definition.
"""
HEAD = 600  # characters of the details that are read for a row; they include the resource


_TIMED_OUT = engine.event_names(frozenset(engine.Family), engine.Stage.TIMED_OUT)


@dataclass(frozen=True, slots=True)
class EventRow:
    """One row of the table. ``step``/``resource``: "" if the event has none.

    ``elapsed``: since the start, in ms; ``after``: since the event before it, None of the first.
    ``error``: the error of a failed event, masked for the reader.
    """

    id: int
    previous: int
    type: str
    tone: str
    step: str
    resource: str
    elapsed: int
    at_ms: int
    after: int | None = None
    error: str = ""
    detail: EventDetail | None = None

    @property
    def number(self) -> SafeString:
        """Return the id as text, because templates format numbers slowly."""
        return SafeString(self.id)


@dataclass(frozen=True, slots=True)
class EventDetail:
    """An expanded row: short facts, and payloads as trees.

    ``child_arn``: the ARN of the execution that the event started, "" if none; ``child``: that
    execution.
    """

    facts: tuple[tuple[str, str], ...]
    payloads: tuple[tuple[str, formatting.PayloadView], ...]
    child_arn: str = ""
    child: Execution | None = None


@dataclass(frozen=True, slots=True)
class EventCounts:
    """Number of events by type, and the id of the last one."""

    types: Mapping[str, int]
    last: int


@dataclass(frozen=True, slots=True)
class EventPage:
    """One page of the table. ``total``: number of all events; ``matching``: of the filtered ones.

    ``types``, ``states``: the values that events can be filtered by.
    """

    rows: tuple[EventRow, ...]
    filters: EventFilter
    number: int
    pages: int
    matching: int
    total: int
    last: int
    types: list[str]
    states: list[str]

    @property
    def previous(self) -> int:
        """Return the previous page number."""
        return self.number - 1

    @property
    def next(self) -> int:
        """Return the next page number."""
        return self.number + 1

    @property
    def first(self) -> int:
        """Return the position of the first row among the matches, from 1; 0 without any."""
        return (self.number - 1) * PAGE + 1 if self.rows else 0

    @property
    def final(self) -> int:
        """Return the position of the last row among the matches."""
        return (self.number - 1) * PAGE + len(self.rows)

    @property
    def all_opened(self) -> bool:
        """Whether every row is expanded."""
        return all(row.detail is not None for row in self.rows)

    @property
    def numbers(self) -> str:
        """Return the ids of all rows' events, in the format of the parameter of expanded rows."""
        return ".".join(str(row.id) for row in self.rows)

    @property
    def follows(self) -> bool:
        """Whether new events belong at the end of this page."""
        return not self.filters.newest_first and self.number == self.pages


def event_page(
    execution: Execution, filters: EventFilter, counts: EventCounts | None = None
) -> EventPage:
    """Return the requested page, or the page of event ``filters.at``."""
    counts = counts or _event_counts(execution)
    rows = filters.rows(execution)
    total = sum(counts.types.values())
    count = rows.count() if filters.active else total
    pages = max(1, -(-count // PAGE))
    chosen = filters.at and not filters.paged
    number = min(_page_of(rows, filters) if chosen else filters.page, pages)
    order = "-event_id" if filters.newest_first else "event_id"
    found_rows = rows.order_by(order)[(number - 1) * PAGE : number * PAGE]
    opened = {*filters.opened, filters.at} if chosen else {*filters.opened}
    event_rows = tuple(_event_rows(execution, found_rows, opened))
    return EventPage(
        rows=event_rows,
        filters=filters,
        number=number,
        pages=pages,
        matching=count,
        total=total,
        last=counts.last,
        types=sorted(counts.types),
        states=_state_names(execution),
    )


def _state_names(execution: Execution) -> list[str]:
    """Return the state names for the filter."""
    try:
        return list(svg.state_names(execution.definition.text)[:MOST_NAMES])
    except engine.DefinitionError:
        return []


def _event_counts(execution: Execution) -> EventCounts:
    rows = HistoryEvent.objects.filter(execution_id=execution.pk).order_by()
    kinds = list(rows.values_list("type").annotate(n=Count("*"), last=Max("event_id")))
    last = max((number for _, _, number in kinds), default=0)
    return EventCounts({kind: count for kind, count, _ in kinds}, last)


def events_between(
    execution: Execution, filters: EventFilter, cursor: int, upto: int, most: int
) -> tuple[EventRow, ...]:
    """Return up to ``most`` rows after event ``cursor``, up to event ``upto``."""
    rows = filters.rows(execution).filter(event_id__gt=cursor, event_id__lte=upto)
    return tuple(_event_rows(execution, rows.order_by("event_id")[:most], set()))


def last_event_id(execution: Execution) -> int:
    """Return the id of the last event."""
    rows = HistoryEvent.objects.filter(execution_id=execution.pk).order_by("-event_id")
    return rows.values_list("event_id", flat=True).first() or 0


def opened_event(execution: Execution, number: int) -> EventRow | None:
    """Return one expanded row."""
    rows = HistoryEvent.objects.filter(execution_id=execution.pk, event_id=number)
    return next(iter(_event_rows(execution, rows, {number})), None)


def _page_of(rows: QuerySet[HistoryEvent], filters: EventFilter) -> int:
    if filters.newest_first:
        return -(-max(1, rows.filter(event_id__gte=filters.at).count()) // PAGE)
    return -(-max(1, rows.filter(event_id__lte=filters.at).count()) // PAGE)


def _event_rows(
    execution: Execution, rows: QuerySet[HistoryEvent], opened: set[int]
) -> list[EventRow]:
    lean = rows.annotate(head=Left("details", HEAD)).values_list(
        "event_id", "previous", "type", "state", "at_ms", "head"
    )
    texts = dict(
        HistoryEvent.objects.filter(execution_id=execution.pk, event_id__in=opened).values_list(
            "event_id", "details"
        )
    )
    rows_read = list(lean)
    clocks = timed_out.clocks_of_events(
        execution,
        {row[0]: row[1] for row in rows_read if row[0] in texts and row[2] in _TIMED_OUT},
    )
    details = {
        row[0]: _open_event(execution, row[0], row[2], texts[row[0]], clocks.get(row[0]))
        for row in rows_read
        if row[0] in texts
    }
    details = _with_children(execution, details)
    times = _times_with_those_before(execution, {row[0]: row[4] for row in rows_read})
    return [
        EventRow(
            id=number,
            previous=previous,
            type=kind,
            tone=engine.EVENT_TYPES[kind].tone,
            step=state,
            resource=_resource(head),
            elapsed=at_ms - execution.start_ms,
            at_ms=at_ms,
            after=at_ms - times[number - 1] if number - 1 in times else None,
            error=_error_text(execution, number, kind, head),
            detail=details.get(number),
        )
        for number, previous, kind, state, at_ms, head in rows_read
    ]


def _times_with_those_before(execution: Execution, times: dict[int, int]) -> dict[int, int]:
    """Return event -> time, for events and their predecessors, in one query at most."""
    missing = {number - 1 for number in times} - {0, *times}
    if not missing:
        return times
    rows = HistoryEvent.objects.filter(execution_id=execution.pk, event_id__in=missing)
    return times | dict(rows.values_list("event_id", "at_ms"))


def _with_children(
    execution: Execution, details: Mapping[int, EventDetail]
) -> dict[int, EventDetail]:
    """Add the child executions of expanded events, in one query at most."""
    arns = [detail.child_arn for detail in details.values()]
    by_arn = traces.children_by_arn(execution, arns)
    return {
        number: replace(detail, child=by_arn.get(detail.child_arn))
        for number, detail in details.items()
    }


_RESOURCE = re.compile(r'"resource":\s*"((?:[^"\\]|\\.)*)"')
_RESOURCE_TYPE = re.compile(r'"resourceType":\s*"((?:[^"\\]|\\.)*)"')


def _resource(head: str) -> str:
    resource, kind = _RESOURCE.search(head), _RESOURCE_TYPE.search(head)
    if resource is None:
        return ""
    return f"{kind[1]}: {resource[1]}" if kind else resource[1]


_ERROR = re.compile(r'"error":\s*("(?:[^"\\]|\\.)*")')


def _error_text(execution: Execution, number: int, kind: str, head: str) -> str:
    """Return the error at the start of a failure's details, "" without one."""
    error = _ERROR.search(head) if engine.EVENT_TYPES[kind].tone == "failed" else None
    if error is None:
        return ""
    masked = masked_execution.masked_execution(execution).event(number, f'{{"error": {error[1]}}}')
    return str(details_of(masked).get("error") or "")


_PAYLOADS = ("input", "output", "parameters", "cause")


def _open_event(
    execution: Execution, number: int, kind: str, text: str, clock: str | None
) -> EventDetail:
    """Expand an event. ``clock``: the kind of timeout, in words."""
    masked = masked_execution.masked_execution(execution).event(number, text)
    opened = _event_detail(number, kind, masked)
    if kind == "ExecutionTimedOut":
        facts = (*opened.facts, *timed_out.event_facts(execution, number))
        return replace(opened, facts=facts)
    return replace(opened, facts=(*opened.facts, ("timeout", clock))) if clock else opened


def _event_detail(number: int, kind: str, text: str) -> EventDetail:
    details: dict[str, Any] = details_of(text)
    facts = tuple(
        (name, value if isinstance(value, str) else str(value))
        for name, value in details.items()
        if name not in _PAYLOADS and not isinstance(value, dict)
    )
    payloads = [
        (name, formatting.payload_view(str(details[name]), f"events/{number}/{name}/"))
        for name in _PAYLOADS
        if details.get(name) is not None
    ]
    assigned = details.get("assignedVariables")
    if isinstance(assigned, dict):
        payloads += [
            (f"${name}", formatting.payload_view(str(value))) for name, value in assigned.items()
        ]
    child = traces.arn_of_started_child(kind, details)
    return EventDetail(facts, tuple(payloads), child)
