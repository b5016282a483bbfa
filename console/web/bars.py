"""When did each step work?  The bars of the timeline, one segment for each attempt.

A bar is a stretched SVG of 1,000 units; each segment has its words, so nothing hangs on colour.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.models import HistoryEvent
from console.web import words
from console.web.seen import Seen
from console.web.tries import tries

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from console.models import Execution
    from console.web.tree import Row
    from engine import Trace, Visit

WIDTH = 1000
LEAST = 10  # units: nothing that happened is too short to be seen
MOST_VISITS = 50
"""Above this a state's visits are drawn as one segment."""
_WORK = ("Task", "LambdaFunction", "Activity")
_GROUPS = ("Map", "Parallel")
_KINDS = (
    *(f"{one}{end}" for one in _WORK for end in ("Scheduled", "Succeeded", "Failed", "TimedOut")),
    "TaskSubmitFailed",
    *(f"{one}State{end}" for one in _GROUPS for end in ("Started", "Succeeded", "Failed")),
)


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a bar. ``tone``: a status's, or ``wait`` for the pause before an attempt."""

    x: float
    width: float
    tone: str
    text: str


@dataclass(frozen=True, slots=True)
class Span:
    """What the whole width stands for, in epoch milliseconds. ``now``: where what runs ends."""

    begin: int
    end: int
    now: int

    def place(self, since: int, until: int) -> tuple[float, float]:
        """Return x and width of a stretch of time."""
        total = max(1, self.end - self.begin)
        x = min(max(0.0, (since - self.begin) / total * WIDTH), WIDTH - LEAST)
        width = max(LEAST, (until - since) / total * WIDTH)
        return round(x, 1), round(min(width, WIDTH - x), 1)


def bars(
    execution: Execution, trace: Trace, rows: Iterable[Row], now_ms: int, past_ms: int | None = None
) -> tuple[Span, dict[str, tuple[Segment, ...]]]:
    """Return the span and row id -> segments; ``past_ms``: as it was at that moment."""
    shown = list(rows)
    stop = execution.stop_ms
    end = now_ms if stop is None else stop
    span = Span(execution.start_ms, end, end if past_ms is None else past_ms)
    retried = _retried(execution, trace, shown)
    return span, {row.id: tuple(_segments(row, span, retried)) for row in shown}


def _segments(row: Row, span: Span, retried: dict[int, list[Seen]]) -> Iterable[Segment]:
    if row.iteration or len(row.visits_made) > MOST_VISITS:
        begin = row.visits_made[0].entered_ms if row.visits_made else row.entered_ms
        if begin is not None:
            end = span.now if row.left_ms is None else row.left_ms
            many = f"{row.visits:,} visits, " if row.visits > 1 else ""
            yield _segment(span, begin, end, row.status.tone, many + row.status.word.lower())
        return
    for visit in row.visits_made:
        yield from _of_visit(visit, span, retried.get(visit.events[0], []))


def _of_visit(visit: Visit, span: Span, events: list[Seen]) -> Iterable[Segment]:
    end = span.now if visit.left_ms is None else visit.left_ms
    status = words.STEP[visit.status]
    if not events:
        yield _segment(span, visit.entered_ms, end, status.tone, status.word.lower())
        return
    before = None
    for one in tries(events, visit.left_ms if visit.status == "aborted" else None):
        if before is not None:
            yield _segment(span, before, one.at_ms, "wait", "waited")
        before = one.until_ms
        until = end if one.until_ms is None else one.until_ms
        said = f"attempt {one.number} {one.outcome.lower()}"
        yield _segment(span, one.at_ms, until, one.tone, said)
    if before is not None and visit.left_ms is None:
        yield _segment(span, before, end, "wait", "waiting")


def _segment(span: Span, since: int, until: int, tone: str, said: str) -> Segment:
    x, width = span.place(since, until)
    return Segment(x, width, tone, f"{said}, {words.duration(until - since)}")


def _retried(execution: Execution, trace: Trace, rows: list[Row]) -> dict[int, list[Seen]]:
    """Return first event -> the events that tell attempts apart, of visits with more than one."""
    wanted = [
        visit
        for row in rows
        if len(row.visits_made) <= MOST_VISITS
        for visit in row.visits_made
        if visit.tries > 1
    ]
    if not wanted:
        return {}
    owner = {event: visit.events[0] for visit in wanted for event in visit.events}
    found: dict[int, list[Seen]] = {visit.events[0]: [] for visit in wanted}
    for one in _told(execution, min(owner), max(owner)):
        if one.id not in owner:
            continue
        events = found[owner[one.id]]
        if events and events[-1].type == one.type:
            # A Parallel or Map that starts again has failed before, at the event it points back at.
            at_ms = trace.time_of(one.previous)
            events.append(Seen(one.previous, at_ms, "StateFailed", {}, 0))
        events.append(one)
    return found


def _told(execution: Execution, first: int, last: int) -> Iterator[Seen]:
    rows = (
        HistoryEvent.objects.filter(
            execution_id=execution.pk, event_id__range=(first, last), type__in=_KINDS
        )
        .order_by("event_id")
        .values_list("event_id", "at_ms", "type", "previous")
    )
    for number, at_ms, kind, previous in rows:
        yield Seen(number, at_ms, kind, {}, previous)
