"""Read the latest log lines of a state machine, page by page.

Streams are ordered by start, lines by time: an old execution may have the latest line. A batch has
the executions started since the time ``floor``, and earlier executions that still ran then. Their
lines since ``floor`` are all lines of that time; older lines belong to the next batch:

    1. A starts at 10:00 and waits; 50 others start from 10:05 on: floor is 10:05.
    2. A fails at 10:07. It is in the first batch, too, with its lines from 10:05 on.
    3. The next batch begins before 10:05 and has A's first lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from django.db.models import Q

from console.features.logs import read, streams
from console.models import Execution
from console.statuses import ExecutionStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from console.features.logs.streams import Span, Stream
    from console.models import LogGroup, StateMachine

    Mask = Callable[[Sequence[Stream]], Callable[[read.Line], read.Line]]

BATCH = 50
"""The number of executions read at a time."""
_MOST_BATCHES = 4
_MOST_READ = 2_000
"""The maximum number of lines that a page matches against a pattern."""
_MOST_RUNNING = 200
_MOST_ENDED = 2_000

LineCursor = tuple[int, int, int]
"""The position of a line: its time, the key of its execution and its number."""


@dataclass(frozen=True, slots=True)
class LineQuery:
    """A query of lines. ``execution``: the key of a single one, None for all.

    ``before``: only lines older than that; ``types``: of their events, None for all; ``state``: ""
    for all; ``matches``: None for all.
    """

    limit: int
    span: read.Range
    execution: int | None = None
    before: LineCursor | None = None
    types: frozenset[str] | None = None
    state: str = ""
    matches: Callable[[str], bool] | None = None

    def condition(self) -> Q:
        """Return the query condition on events."""
        condition = Q() if self.types is None else Q(type__in=self.types)
        if self.state:
            condition &= Q(state=self.state)
        if self.before is not None:
            at_ms, execution, number = self.before
            condition &= (
                Q(at_ms__lt=at_ms)
                | Q(at_ms=at_ms, execution_id__lt=execution)
                | Q(at_ms=at_ms, execution_id=execution, event_id__lt=number)
            )
        return condition

    @property
    def latest(self) -> int | None:
        """Return the latest time of a line, None without a limit."""
        bounds = [self.span.until, self.before and self.before[0]]
        return min((bound for bound in bounds if bound is not None), default=None)


@dataclass(frozen=True, slots=True)
class NewestLines:
    """A page of lines, newest first. ``cursor``: of older lines, None without any."""

    lines: list[read.Line]
    cursor: LineCursor | None


def newest_page(
    group: LogGroup, machine: StateMachine, query: LineQuery, mask: Mask
) -> NewestLines:
    """Return the latest lines of a state machine for a query.

    ``mask``: returns the masks for the lines of some streams. They are masked before they are
    matched, so that no pattern can find out a masked value.
    """
    spans = [span for span in streams.log_spans(group) if span.machine_arn == machine.arn]
    page: list[read.Line] = []
    budget, latest, cursor = _MOST_READ, query.latest, query.before
    for _ in range(_MOST_BATCHES):
        batch, floor = _newest_streams(group, spans, machine, query, latest)
        most = budget if query.matches else query.limit + 1 - len(page)
        span = read.Range(max(floor, query.span.since or 0) or None, _until(query, latest))
        lines = read.newest_lines(group, batch, most, span, query.condition())
        masked = mask(batch)
        for line in lines:
            if len(page) == query.limit:
                return NewestLines(page, cursor)
            cursor = (line.at_ms, line.stream.place[1], line.number)
            masked_line = masked(line)
            if query.matches is None or query.matches(masked_line.text):
                page.append(masked_line)
        budget -= len(lines)
        if len(lines) < most and floor <= (query.span.since or 0):
            return NewestLines(page, None)
        if len(lines) < most:
            latest, cursor = floor, (floor, 0, 0)
        if budget <= 0 or len(page) >= query.limit:
            break
    return NewestLines(page, cursor)


def _until(query: LineQuery, latest: int | None) -> int | None:
    """Return the end of a batch's period: the query's, or the begin of the previous batch."""
    return query.span.until if latest == query.latest else latest


def _newest_streams(
    group: LogGroup,
    spans: Sequence[Span],
    machine: StateMachine,
    query: LineQuery,
    latest: int | None,
) -> tuple[list[Stream], int]:
    """Return a batch of streams, and the time since which it is complete (0: always)."""
    if query.execution is not None:
        return list(streams.streams_by_time(group, spans, Q(pk=query.execution))), 0
    begun = Q() if latest is None else Q(start_ms__lte=latest)
    condition = read.Range(query.span.since).executions() & begun
    newest = list(
        islice(streams.streams_by_time(group, spans, condition, descending=True), BATCH + 1)
    )
    if len(newest) <= BATCH:
        return newest, 0
    newest.pop()
    floor = newest[-1].execution.start_ms
    keys = _keys_before(machine, floor) - {stream.execution.pk for stream in newest}
    if keys:
        newest += streams.streams_by_time(group, spans, Q(pk__in=keys))
    return newest, floor


def _keys_before(machine: StateMachine, floor: int) -> set[int]:
    """Return executions that started before a time and still ran then, up to a limit."""
    running = machine.execution_set.filter(status=ExecutionStatus.RUNNING, start_ms__lte=floor)
    ended = Execution.objects.filter(project_id=machine.project_id, stop_ms__gte=floor)
    rows = ended.order_by("stop_ms").values_list("pk", "start_ms", "state_machine_id")
    return set(running.order_by("-start_ms").values_list("pk", flat=True)[:_MOST_RUNNING]) | {
        pk
        for pk, start_ms, machine_id in rows[:_MOST_ENDED]
        if start_ms <= floor and machine_id == machine.pk
    }
