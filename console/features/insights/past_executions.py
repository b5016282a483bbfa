"""Summarize the recent executions of a state machine by state, for grid and insights.

It uses the same fold as the execution page (``engine.Trace``), so all pages agree. Folded histories
are cached, because a history only grows.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from dataclasses import dataclass
from itertools import groupby
from statistics import quantiles
from threading import Lock
from typing import TYPE_CHECKING

from django.db.models import Case, F, Q, TextField, Value, When

import engine
from console.db import clock
from console.models import Execution, HistoryEvent
from console.statuses import ExecutionStatus
from console.store.state import history_columns
from console.web.core.formatting import DAY
from console.web.execution import steps
from console.web.execution.header import limits_of
from console.web.history.traces import details_of
from engine import event_types

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from django.db.models import QuerySet

    from console.models import StateMachine
    from console.web.core.formatting import StatusLabel

MOST_EVENTS = 50_000
"""The number of events of several executions that are read for one page."""

LOOKED_AT = 1_000
"""The number of latest executions that are searched for executions with a definition."""

_KEPT = 2_000
_MOST_CHILDREN = 200
_MOST_SEARCHED = 20
_BARE = ("input", "output", "cause", "error", "trace_header")


@dataclass(frozen=True, slots=True)
class GridCell:
    """One state in one execution. ``times``: of each finished visit, in milliseconds.

    Aborted visits are left out, because they do not show how long the state takes.

    ``spent``: wall time of all visits in milliseconds, where simultaneous visits count once; None
    while one is running. ``status``, ``label``: as in the execution's graph; ``succeeded``,
    ``failed`` (also by the execution's timeout), ``caught``, ``aborted``, ``running``: numbers of
    visits. ``redriven``: number of redrives that continued a visit; ``failed_before``: such
    redrives after a failure.
    """

    status: str
    label: StatusLabel
    visits: int
    retries: int
    succeeded: int
    failed: int
    caught: int
    aborted: int
    running: int
    times: tuple[int, ...]
    spent: int | None
    redriven: int = 0
    failed_before: int = 0

    @property
    def typical(self) -> int | None:
        """Return the wall time for comparisons; None with aborted or running visits."""
        return None if self.aborted else self.spent


@dataclass(frozen=True, slots=True)
class PastExecution:
    """A summarized execution. ``ways``: (state, next state); ``reached``: points of coverage.

    ``limits``: the limits of AWS that it comes near.
    """

    execution: Execution
    cells: dict[str, GridCell]
    ways: frozenset[tuple[str, str]]
    reached: engine.Reached
    limits: tuple[engine.LimitAhead, ...] = ()

    @property
    def spent(self) -> int | None:
        """Return its duration, None while running."""
        execution = self.execution
        return None if execution.stop_ms is None else execution.stop_ms - execution.start_ms

    @property
    def typical(self) -> int | None:
        """Return the duration for comparisons; None for an aborted execution."""
        return None if self.execution.status == ExecutionStatus.ABORTED else self.spent


def last_executions(
    machine: StateMachine, most: int, *, definition: str = "", among: Q | None = None
) -> list[PastExecution]:
    """Return the latest executions, newest first; fewer if histories are very long.

    ``definition``: the SHA-256 of the definition that the executions must have, "" for any.
    ``among``: a condition.
    """
    executions = recent_executions(machine, definition, among)
    return _folded(_chosen_rows(executions.order_by("-start_ms", "-pk"), most))


def recent_executions(
    machine: StateMachine, definition: str = "", among: Q | None = None
) -> QuerySet[Execution]:
    """Return the candidates of ``last_executions``, unordered."""
    executions = Execution.objects.filter(state_machine=machine, map_run=None)
    if not definition and among is None:
        return executions
    # no index has these columns: a rare value would be looked for among all executions
    recent = executions.order_by("-start_ms", "-pk").values("pk")[:LOOKED_AT]
    executions = executions.filter(among or Q(), pk__in=recent)
    return executions.filter(definition_id=definition) if definition else executions


def last_execution_in(machine: StateMachine, state: str) -> Execution | None:
    """Return the latest recent execution that entered a state, None without one."""
    executions = last_executions(machine, _MOST_SEARCHED)
    return next((run.execution for run in executions if state in run.cells), None)


def child_executions(executions: Sequence[PastExecution]) -> list[PastExecution]:
    """Return the latest child executions of the distributed Maps of some executions."""
    parents = [run.execution.pk for run in executions]
    rows = Execution.objects.filter(map_run__parent__in=parents)
    return _folded(_chosen_rows(rows.order_by("-pk"), _MOST_CHILDREN)) if parents else []


def _chosen_rows(executions: QuerySet[Execution], most: int) -> list[tuple[Execution, int]]:
    """Return executions and the lengths of their histories, within a page's limit."""
    rows = (
        executions.select_related("definition").defer(*_BARE).annotate(next=F("runrow__next_event"))
    )
    chosen: list[tuple[Execution, int]] = []
    total = 0
    for row in rows[:most]:
        length = (row.next or 1) - 1
        total += length
        if chosen and total > MOST_EVENTS:
            break
        chosen.append((row, length))
    return chosen


# -- folding ---------------------------------------------------------------------------------------

_Folded = tuple[
    dict[str, GridCell],
    frozenset[tuple[str, str]],
    engine.Reached,
    tuple[engine.LimitAhead, ...],
]
_NOTHING: _Folded = ({}, frozenset(), engine.Reached(), ())
_DETAILED = {"MapStateStarted", "ExecutionFailed"} | {
    name
    for name, kind in engine.EVENT_TYPES.items()
    if kind.is_failure and name not in event_types.STATE_ENTRIES
}
"""Types of events whose details are read: they have a number of items, or an error."""
_known: OrderedDict[tuple[int, int, int], _Folded] = OrderedDict()
"""(Execution, length of its history, days of running) -> its folded history."""
_lock = Lock()


def _folded(chosen: Sequence[tuple[Execution, int]]) -> list[PastExecution]:
    with _lock:
        records = {row.pk: _known.get(_key_of(row, length)) for row, length in chosen}
    missing = {row.pk: (row, length) for row, length in chosen if records[row.pk] is None}
    readers = {row.definition_id: _reader_of(row.definition.text) for row, _ in missing.values()}
    choices = {name for reader in readers.values() if reader for name in reader.ambiguous}
    large: dict[int, list[int]] = {}
    for number, events in groupby(_events(missing, choices, large), key=lambda pair: pair[0]):
        row, length = missing[number]
        reader = readers[row.definition_id]
        record = _fold(reader, row, [event for _, event in events if event.id <= length], large)
        records[number] = record
        with _lock:
            _known[_key_of(row, length)] = record
            while len(_known) > _KEPT:
                _known.popitem(last=False)
    return [PastExecution(row, *(records[row.pk] or _NOTHING)) for row, _ in chosen]


def _key_of(row: Execution, length: int) -> tuple[int, int, int]:
    running = row.status == ExecutionStatus.RUNNING
    return row.pk, length, (clock.now_ms() - row.start_ms) // DAY if running else 0


def _events(
    numbers: Collection[int], choices: Collection[str], large: dict[int, list[int]]
) -> Iterator[tuple[int, engine.Event]]:
    """Yield (execution, event) in order, without payloads except the inputs of ``choices``.

    ``large``: gets execution -> its events that may have a payload near the limit.
    """
    if not numbers:
        return
    detailed = Q(type__in=_DETAILED) | Q(type="ChoiceStateEntered", state__in=choices)
    length = Case(
        When(detailed, then=F("details")),
        default=Value(""),
        output_field=TextField(),
    )
    rows = (
        HistoryEvent.objects.filter(execution_id__in=list(numbers))
        .annotate(size=history_columns.ByteLength("details"))
        .order_by("execution_id", "event_id")
        .values_list(
            *("execution_id", "event_id", "previous", "at_ms", "type", length, "state", "size")
        )
    )
    least = engine.least_size()
    for execution, number, previous, at_ms, kind, details, state, size in rows.iterator(
        chunk_size=5000
    ):
        if size >= least:
            large.setdefault(execution, []).append(number)
        event = engine.Event(number, previous, at_ms, kind, details_of(details), state)
        yield execution, event


def _reader_of(text: str) -> engine.CoverageReader | None:
    try:
        return engine.CoverageReader(engine.parse_stored(text))
    except engine.DefinitionError:  # stored by a version that checked less
        return None


def _fold(
    reader: engine.CoverageReader | None,
    row: Execution,
    events: Sequence[engine.Event],
    large: Mapping[int, Sequence[int]],
) -> _Folded:
    if reader is None:
        return _NOTHING
    graph = reader.graph
    trace, reached = reader.fold(events)
    counts = trace.counts()
    statuses = trace.statuses(counts)
    cells = {
        graph.by_id[node].name: _cell(statuses.get(node, ""), visits, counts.get(node, {}))
        for node, visits in trace.visits.items()
    }
    trace.payloads.update(history_columns.read_sizes(row.pk, large.get(row.pk, ())))
    return cells, _ways(events), reached, limits_of(row, trace)


def _cell(status: str, visits: engine.Visits, latest: Mapping[str, int]) -> GridCell:
    counts = Counter(visit.status for visit in visits)
    before = Counter(status for visit in visits for status in visit.interrupted.values())
    return GridCell(
        status=status,
        label=steps.endings_label(status, latest),
        visits=len(visits),
        retries=sum(visit.retries for visit in visits),
        succeeded=counts[engine.VisitStatus.SUCCEEDED],
        failed=counts[engine.VisitStatus.FAILED] + counts[engine.VisitStatus.TIMED_OUT],
        caught=counts[engine.VisitStatus.CAUGHT],
        aborted=counts[engine.VisitStatus.ABORTED],
        running=counts[engine.VisitStatus.RUNNING],
        times=tuple(
            took
            for visit in visits
            if (took := visit.took_ms) is not None and visit.status != engine.VisitStatus.ABORTED
        ),
        spent=None if any(visit.took_ms is None for visit in visits) else visits.covered_ms(0),
        redriven=before.total(),
        failed_before=before[engine.VisitStatus.FAILED] + before[engine.VisitStatus.TIMED_OUT],
    )


def _ways(events: Sequence[engine.Event]) -> frozenset[tuple[str, str]]:
    """Return the transitions taken, including attempts replaced by a retry."""
    exits = {event.id: event.state for event in events if event.type in event_types.STATE_EXITS}
    entered = (event for event in events if event.type in event_types.STATE_ENTRIES)
    return frozenset(
        (exits[event.previous], event.state) for event in entered if event.previous in exits
    )


# -- numbers ---------------------------------------------------------------------------------------

_ENOUGH = 5
_LEAST_MS = 100


def percentile(times: Sequence[int], percent: int) -> int | None:
    """Return the smallest of some times that at least ``percent`` of them do not exceed."""
    ordered = sorted(times)
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)] if ordered else None


def unusual_duration(times: Sequence[int]) -> int | None:
    """Return the limit above which a duration is unusual; None for too few values.

    Beyond the upper quarter by one and a half times the middle half (Tukey's fence), and far
    enough from the median for a person to notice.
    """
    if len(times) < _ENOUGH:
        return None
    low, middle, high = quantiles(times, n=4, method="inclusive")
    fence = high + 1.5 * (high - low)
    return int(max(fence, middle * 1.5, middle + _LEAST_MS)) + 1
