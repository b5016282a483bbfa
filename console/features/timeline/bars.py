"""Draw the timeline bar of each step, with a segment per attempt.

A bar is a stretched SVG of 1,000 units, with a lane for each redrive; each segment has a text, so
colour is not the only information.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from operator import sub
from typing import TYPE_CHECKING

from django.utils.html import escape
from django.utils.safestring import SafeString

import engine
from console.features.timeline.axis import (
    LANE,
    SHORTEST,
    AxisSpan,
    ExecutionAttempt,
    TimeAxis,
    execution_attempts,
    fold_idle_time,
)
from console.features.timeline.critical_path import CriticalPath, critical_path
from console.features.timeline.pieces import (
    WHOLE_TIME,
    BarPiece,
    clip_piece,
    stays_by_attempt,
)
from console.models import HistoryEvent
from console.web.core import formatting
from console.web.execution.iteration_rows import WORST_FIRST, endings_text
from console.web.execution.panel import list_attempts
from console.web.history.traces import VisitEvent, open_trace_at
from engine import Visits, event_types

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from console.features.timeline.axis import ExecutionAttempt
    from console.features.timeline.pieces import TimelineZoom
    from console.models import Execution
    from console.web.execution.step_tree import StepRow
    from engine import Trace, Visit, VisitStatus

MOST_VISITS = 50
"""Above this number, a state's visits that are close to each other are drawn as one segment."""
_KINDS = (
    event_types.ATTEMPT_BEGINNINGS
    | event_types.WORK_OUTCOMES
    | engine.event_names(event_types.GROUP_FAMILIES, engine.Stage.SUCCEEDED, engine.Stage.FAILED)
)
_TOP_AND_HEIGHT = {"wait": (5, 12), "failed": (6, 14)}
_HIDDEN = 'height="3" aria-hidden="true"'
_FAILED_BEFORE = {
    "MapStateStarted": "MapStateFailed",
    "ParallelStateStarted": "ParallelStateFailed",
}


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment of a bar. ``tone``: a status's tone, or ``wait`` before an attempt.

    ``lane``: which of the bar's lanes it stands in, from 0; ``critical``: it is on the critical
    path.
    """

    x: float
    width: float
    tone: str
    text: str
    lane: int = 0
    critical: bool = False

    @property
    def drawing(self) -> SafeString:
        """Return the SVG; no template is used, because a page may have hundreds."""
        text, across = escape(self.text), f'x="{self.x}" width="{self.width}"'
        top, height = _TOP_AND_HEIGHT.get(self.tone, (2, 18))
        place = f' transform="translate(0 {self.lane * LANE})"' if self.lane else ""
        more = f'<rect class="flag" {across} {_HIDDEN} y="0"/>' if self.tone == "failed" else ""
        more += f'<rect class="critical" {across} {_HIDDEN} y="17"/>' if self.critical else ""
        return SafeString(
            f'<g{place}><rect class="{self.tone}" role="img" aria-label="{text}" {across}'
            f' y="{top}" height="{height}"><title>{text}</title></rect>{more}</g>'
        )


def timeline_bars(
    execution: Execution,
    trace: Trace,
    rows: Iterable[StepRow],
    now_ms: int,
    past_ms: int | None = None,
    zoom: TimelineZoom = WHOLE_TIME,
) -> tuple[TimeAxis, dict[str, tuple[Segment, ...]]]:
    """Return the axis and row id -> segments; ``past_ms``: as of that time.

    ``zoom``: the part of the timeline that the reader selected.
    """
    shown_rows = list(rows)
    attempts = execution_attempts(execution, now_ms, past_ms)
    chosen = zoom.attempt if 1 <= zoom.attempt <= len(attempts) > 1 else 0
    retried = _retry_events(execution, trace, shown_rows)
    limits = _axis_limits(execution, attempts, chosen, now_ms, past_ms)
    begin, end = zoom.cut(*limits[:2])
    now = limits[2]
    span = AxisSpan(begin, end, now, origin=limits[0])
    every = attempts if past_ms is None else execution_attempts(execution, now_ms)
    plain = len(every) == 1 and not retried
    ends = (begin, end, now)
    busy = plain and trace.derive(_is_busy, ends, lambda: _is_busy(trace, *ends))
    long = end - begin >= SHORTEST and not busy
    if long or len(every) > 1:
        worked = [*_busy_stretches(trace, attempts, retried, now), *_future(every, past_ms)]
        ended_between = [(first.until, second.since) for first, second in pairwise(attempts)]
        span = fold_idle_time(span, worked, magnified=len(every) > 1, ended=ended_between)
    path = CriticalPath()
    if execution.stop_ms is not None and past_ms is None:
        with _trace_of_attempt(execution, trace, attempts, chosen) as ended:
            path = critical_path(ended, *limits[:2])
    axis = TimeAxis(span, attempts, chosen, path, (begin, end) != limits[:2])
    return axis, {
        row.id: _drawing_order(row, _segments(row, axis, trace, retried)) for row in shown_rows
    }


@contextmanager
def _trace_of_attempt(
    execution: Execution, trace: Trace, attempts: Sequence[ExecutionAttempt], chosen: int
) -> Iterator[Trace]:
    """Yield the trace at the end of an attempt: a redrive reopens failed states."""
    if chosen in (0, len(attempts)):
        yield trace
        return
    with open_trace_at(execution, attempts[chosen - 1].last_event) as ended:
        yield ended


def _axis_limits(
    execution: Execution,
    attempts: Sequence[ExecutionAttempt],
    chosen: int,
    now_ms: int,
    past_ms: int | None,
) -> tuple[int, int, int]:
    """Return begin and end of the axis, and the time that counts as now."""
    end = now_ms if execution.stop_ms is None else execution.stop_ms
    now = end if past_ms is None else past_ms
    if not chosen:
        return execution.start_ms, end, now
    attempt = attempts[chosen - 1]
    return attempt.since, max(attempt.until, attempt.since + 1), min(now, attempt.until)


# -- when something worked -------------------------------------------------------------------------


def _is_busy(trace: Trace, begin: int, end: int, now: int) -> bool:
    """Whether there is surely no idle time to fold: a fast test for long loops."""
    edges = {begin, end, now}
    for visits in trace.visits.values():
        edges.update(visits.begins(), visits.ends(now))
    ordered = sorted(edges)
    return all(after - before < SHORTEST for before, after in pairwise(ordered))


def _busy_stretches(
    trace: Trace,
    attempts: Sequence[ExecutionAttempt],
    retried: dict[int, list[VisitEvent]],
    now: int,
) -> Iterator[tuple[int, int]]:
    """Yield the times of work: without waits and without containers of other states."""
    quiet = {node.id for node in trace.graph.nodes if node.type in ("Wait", "Map", "Parallel")}
    for attempt in attempts:
        yield attempt.since, attempt.since
        yield attempt.until, attempt.until
    for node, visits in trace.visits.items():
        if node in quiet:
            for stretch in visits.stays(now):
                yield from ((edge, edge) for edge in stretch)
        elif len(attempts) == 1 and retried.keys().isdisjoint(visits.numbers):
            yield from visits.stays(now)  # without further details
        else:
            for visit in visits:
                yield from _worked(visit, retried.get(visit.number, []), attempts, now)


def _future(every: Sequence[ExecutionAttempt], past_ms: int | None) -> Iterator[tuple[int, int]]:
    """Yield the times of attempts after a past moment, to leave them blank."""
    for attempt in every:
        if past_ms is not None and attempt.until > past_ms:
            yield max(attempt.since, past_ms), attempt.until


def _worked(
    visit: Visit, events: list[VisitEvent], attempts: Sequence[ExecutionAttempt], now: int
) -> Iterator[tuple[int, int]]:
    for piece in _pieces(visit, events, now):
        if piece.tone != "wait":
            yield from ((since, until) for _, since, until in clip_piece(piece, attempts))


# -- segments --------------------------------------------------------------------------------------


_ON_TOP = {"caught": 1, "failed": 2}


def _drawing_order(row: StepRow, segments: Iterator[Segment]) -> tuple[Segment, ...]:
    """Return a row's segments; failed parallel iterations are drawn on top."""
    if not row.visits_made or not row.visits_made[0].iteration:
        return tuple(segments)
    return tuple(sorted(segments, key=lambda each: (each.lane, _ON_TOP.get(each.tone, 0))))


def _segments(
    row: StepRow, axis: TimeAxis, trace: Trace, retried: dict[int, list[VisitEvent]]
) -> Iterator[Segment]:
    now = axis.span.now
    on_path = axis.critical.visits
    if row.iterations is not None:
        return  # it has lanes
    visits = row.visits_made
    if not row.iteration and len(visits) <= MOST_VISITS:
        for visit in visits:
            for piece in _pieces(visit, retried.get(visit.number, []), now):
                yield from _place_piece(replace(piece, critical=visit.number in on_path), axis)
    elif len(axis.attempts) > 1:
        yield from _segments_by_attempt(row, axis, trace)
    elif isinstance(visits, Visits) and not row.iteration:
        for piece in _close_pieces(visits, axis, trace, row.id):
            yield from _place_piece(piece, axis)
    elif visits:
        begin, end = _span_of_row(visits, now)
        critical = any(visit.number in on_path for visit in visits)
        text = row.status.word.lower()
        piece = BarPiece(begin, end, row.status.tone, text, critical=critical)
        yield from _place_piece(piece, axis)


def _close_pieces(
    visits: Visits, axis: TimeAxis, trace: Trace, row_id: str
) -> tuple[BarPiece, ...]:
    """Join visits without room for a gap between them to one piece."""
    limits = (axis.span.now, axis.span.least_ms, axis.critical.visits)
    return trace.derive(
        (_close_pieces, row_id), limits, lambda: tuple(_close_visits(visits, *limits))
    )


def _close_visits(
    visits: Visits, now: int, least: float, on_path: frozenset[int]
) -> Iterator[BarPiece]:
    """Yield joined pieces of many visits, from arrays: a loop may have ten thousand."""
    begins, ends = visits.begins(), visits.ends(now)
    statuses = visits.statuses()
    # All before a visit have ended if as many have ended as began before it, see ``covered_ms``.
    gaps: Iterable[int] = map(sub, islice(begins, 1, None), sorted(ends))
    cuts = [place for place, gap in enumerate(gaps, 1) if gap > least]
    for first, after in pairwise((0, *cuts, len(begins))):
        part = slice(first, after)
        stays = (begins[part], ends[part])
        critical = not on_path.isdisjoint(visits.numbers[part])
        yield _join_visits(*stays, statuses[part], critical=critical)


def _join_visits(
    begins: list[int], ends: list[int], statuses: list[VisitStatus], *, critical: bool
) -> BarPiece:
    """Return one piece for visits drawn together, in the order of their entries.

    It has the colour of the worst of them, and says how many have each status.
    """
    counts: Counter[str] = Counter(statuses)
    worst = formatting.STEP[min(counts, key=WORST_FIRST.index)]
    endings = endings_text(counts) if len(counts) > 1 else worst.word.lower()
    text = f"{len(begins):,} visits, {endings}" if len(begins) > 1 else worst.word.lower()
    worked = engine.covered_ms(begins, ends)
    return BarPiece(begins[0], max(ends), worst.tone, text, critical=critical, worked_ms=worked)


def _span_of_row(visits: Sequence[Visit], now: int) -> tuple[int, int]:
    """Return begin and end of a row drawn as one piece."""
    if isinstance(visits, Visits):
        return visits.span(now)
    ends = (now if visit.left_ms is None else visit.left_ms for visit in visits)
    return visits[0].entered_ms, max(ends)


def _segments_by_attempt(row: StepRow, axis: TimeAxis, trace: Trace) -> Iterator[Segment]:
    """Yield a segment per attempt for a row with many visits."""
    visits = row.visits_made
    numbers = visits.numbers if isinstance(visits, Visits) else [visit.number for visit in visits]
    for stay in stays_by_attempt(trace, numbers, axis, row.key if row.iteration else ""):
        status = formatting.STEP[stay.status]
        many = f"{stay.visits:,} visits, " if stay.visits > 1 and not row.iteration else ""
        text = many + status.word.lower()
        piece = BarPiece(stay.since, stay.until, status.tone, text, critical=stay.critical)
        yield from _place_segments(piece, axis, stay.attempt, stay.since, stay.until)


def _place_piece(piece: BarPiece, axis: TimeAxis) -> Iterator[Segment]:
    """Yield the segments of a piece, one per attempt of the execution."""
    for attempt, since, until in clip_piece(piece, axis.attempts):
        if piece.tone == "wait" and since == until:
            continue
        drawn = piece
        if until < piece.until:  # the execution ended, and was redriven in this state
            key = piece.interrupted.get(attempt.number)
            status = formatting.STEP[key] if key else attempt.status
            drawn = replace(piece, tone=status.tone, text=status.word.lower())
        yield from _place_segments(drawn, axis, attempt, since, until)


def _place_segments(
    piece: BarPiece, axis: TimeAxis, attempt: ExecutionAttempt, since: int, until: int
) -> Iterator[Segment]:
    """Yield the segment of a piece in an attempt, if displayed."""
    if attempt not in axis.shown:
        return
    if axis.zoomed and (until < axis.span.begin or since > axis.span.end):
        return
    name = f"{attempt.label}: " if len(axis.attempts) > 1 else ""
    path = ", on the critical path" if piece.critical else ""
    took = formatting.duration_text(until - since)
    if piece.worked_ms is not None and piece.worked_ms < until - since:
        took = f"{formatting.duration_text(piece.worked_ms)} active within {took}"
    words = f"{name}{piece.text}, {took}{path}"
    begin, end = max(since, axis.span.begin), min(until, axis.span.end)
    place = axis.span.place(begin, end)
    yield Segment(*place, piece.tone, words, axis.lane(attempt), piece.critical)


def _pieces(visit: Visit, events: list[VisitEvent], now: int) -> Iterator[BarPiece]:
    """Yield the pieces of a visit: its attempts and pauses, or a single piece."""
    end = now if visit.left_ms is None else visit.left_ms
    status = formatting.STEP[visit.status]
    if not events:
        cuts = visit.interrupted
        yield BarPiece(visit.entered_ms, end, status.tone, status.word.lower(), interrupted=cuts)
        return
    before = None
    for attempt in list_attempts(events, visit):
        if before is not None:
            yield BarPiece(before, attempt.at_ms, "wait", "waited")
        before = attempt.until_ms
        until = end if attempt.until_ms is None else attempt.until_ms
        text = f"attempt {attempt.number} {attempt.outcome.lower()}"
        cuts = visit.interrupted
        yield BarPiece(attempt.at_ms, until, attempt.tone, text, retry=True, interrupted=cuts)
    if before is not None and visit.left_ms is None:
        yield BarPiece(before, end, "wait", "waiting")


# -- what tells attempts apart ---------------------------------------------------------------------


def _retry_events(
    execution: Execution, trace: Trace, rows: list[StepRow]
) -> dict[int, list[VisitEvent]]:
    """Return first event -> the events that separate attempts, for visits with several."""
    retried = [
        visit
        for row in rows
        if len(row.visits_made) <= MOST_VISITS
        for visit in row.visits_made
        if visit.attempts > 1
    ]
    if not retried:
        return {}
    owner = {event: visit.number for visit in retried for event in visit.events}
    events_of: dict[int, list[VisitEvent]] = {visit.number: [] for visit in retried}
    for failed in _segment_text(execution, min(owner), max(owner)):
        if failed.id not in owner:
            continue
        events = events_of[owner[failed.id]]
        if events and events[-1].type == failed.type and failed.type in _FAILED_BEFORE:
            # A Parallel or Map that starts again has failed before, at the event it points back at.
            at_ms = trace.time_of(failed.previous)
            events.append(VisitEvent(failed.previous, at_ms, _FAILED_BEFORE[failed.type], {}, 0))
        events.append(failed)
    return events_of


def _segment_text(execution: Execution, first: int, last: int) -> Iterator[VisitEvent]:
    rows = (
        HistoryEvent.objects.filter(
            execution_id=execution.pk, event_id__range=(first, last), type__in=_KINDS
        )
        .order_by("event_id")
        .values_list("event_id", "at_ms", "type", "previous")
    )
    for number, at_ms, kind, previous in rows:
        yield VisitEvent(number, at_ms, kind, {}, previous)
