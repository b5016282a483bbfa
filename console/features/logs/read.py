"""Read log lines: of a stream from either end, or of a group by a filter pattern."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Q

from console.features.logs import lines, streams
from console.models import HistoryEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from django.db.models import QuerySet

    from console.features.logs.streams import Stream
    from console.models import LogGroup

    Hide = Callable[[HistoryEvent], HistoryEvent]
    MaskLines = Callable[[Sequence[Stream]], Mapping[int, Hide]]

PAGE_BYTES = 1024 * 1024
_OVERHEAD = 26
_CHUNK = 500
_MOST_READ = 20_000
_MOST_STREAMS = 1_000


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a stream. ``number``: the event's id; ``state``: its state, or ""."""

    stream: Stream
    number: int
    at_ms: int
    text: str
    state: str = ""

    @property
    def event_id(self) -> str:
        """Return the unique id of the line."""
        return f"{self.at_ms:014d}{self.stream.execution.pk:020d}{self.number:08d}"

    @property
    def size(self) -> int:
        """Return its size for the limit of a page."""
        return len(self.text.encode()) + _OVERHEAD


@dataclass(frozen=True, slots=True)
class Range:
    """A period from ``since`` to before ``until`` (epoch ms); None: no limit."""

    since: int | None = None
    until: int | None = None

    def condition(self) -> Q:
        """Return the query condition on events."""
        condition = Q() if self.since is None else Q(at_ms__gte=self.since)
        return condition if self.until is None else condition & Q(at_ms__lt=self.until)

    def executions(self) -> Q:
        """Return the query condition on executions that may have lines in the period."""
        condition = Q() if self.since is None else Q(stop_ms=None) | Q(stop_ms__gte=self.since)
        return condition if self.until is None else condition & Q(start_ms__lt=self.until)


def stream_lines(
    group: LogGroup,
    stream: Stream,
    period: Range,
    limit: int,
    *,
    after: int = 0,
    before: int = 0,
    hide: MaskLines | None = None,
) -> list[Line]:
    """Return up to ``limit`` lines within a page's bytes, in order.

    The first lines after event ``after``, or with ``before`` the last lines before that event.
    """
    events = _events(group, [stream], period)
    if before:
        rows = events.filter(event_id__lt=before).order_by("-event_id")
    else:
        rows = events.filter(event_id__gt=after).order_by("event_id")
    asked = _mask_events(stream, rows[:limit].iterator(chunk_size=_CHUNK), hide and hide([stream]))
    fitting = _first_lines(_lines(stream, asked, _redrives([stream])))
    return fitting[::-1] if before else fitting


def _first_lines(candidates: Iterator[Line]) -> list[Line]:
    """Return the first lines that fit into a page, at least one."""
    page: list[Line] = []
    size = 0
    for line in candidates:
        size += line.size
        if page and size > PAGE_BYTES:
            break
        page.append(line)
    return page


def _events(
    group: LogGroup, log_streams: Sequence[Stream], period: Range
) -> QuerySet[HistoryEvent]:
    """Return the events that are lines of a group."""
    condition = Q(pk__in=[])
    for level in {stream.span.level for stream in log_streams}:
        at_level = Q(
            execution_id__in=[
                stream.place[1] for stream in log_streams if stream.span.level == level
            ]
        )
        condition |= (
            at_level if level == "ALL" else at_level & Q(type__in=lines.logged_event_types(level))
        )
    return HistoryEvent.objects.filter(condition, period.condition(), at_ms__gte=group.created_ms)


def _lines(
    stream: Stream, rows: Iterable[HistoryEvent], redrives: Mapping[int, list[int]]
) -> Iterator[Line]:
    for row in rows:
        count = bisect_right(redrives.get(row.execution_id, ()), row.event_id)
        text = lines.log_line(row, stream.execution.arn, count, with_data=stream.span.with_data)
        yield Line(stream, row.event_id, row.at_ms, text, row.state)


def _mask_events(
    stream: Stream, rows: Iterable[HistoryEvent], hides: Mapping[int, Hide] | None
) -> Iterable[HistoryEvent]:
    """Return masked events; masking precedes the truncation of payloads."""
    return rows if hides is None else map(hides[stream.place[1]], rows)


def _redrives(log_streams: Iterable[Stream]) -> dict[int, list[int]]:
    """Return execution -> ids of its redrive events, for redriven executions."""
    again = [stream.place[1] for stream in log_streams if stream.execution.redrive_count]
    redrives: dict[int, list[int]] = {}
    if again:
        events = HistoryEvent.objects.filter(execution_id__in=again, type="ExecutionRedriven")
        pairs = events.order_by("event_id").values_list("execution_id", "event_id")
        for execution, number in pairs:
            redrives.setdefault(execution, []).append(number)
    return redrives


def newest_lines(
    group: LogGroup,
    log_streams: Sequence[Stream],
    limit: int,
    period: Range | None = None,
    also: Q | None = None,
) -> list[Line]:
    """Return up to ``limit`` of the latest lines of some streams, newest first, in one query.

    ``also``: a further condition on the events.
    """
    by_execution = {stream.place[1]: stream for stream in log_streams}
    rows = _events(group, log_streams, period or Range()).filter(also or Q())
    rows = rows.order_by("-at_ms", "-execution_id", "-event_id")
    redrives = _redrives(log_streams)
    return [next(_lines(by_execution[row.execution_id], [row], redrives)) for row in rows[:limit]]


# -- of a group ------------------------------------------------------------------------------------

Cursor = tuple[int, int, int]
"""Start and key of an execution, and the id of its last event that was looked at."""


@dataclass(slots=True)
class Search:
    """One page of a search: matching lines, and the next position if there may be more."""

    lines: list[Line]
    cursor: Cursor | None = None
    read: int = 0
    size: int = 0


def search_lines(
    group: LogGroup,
    log_streams: Iterator[Stream],
    period: Range,
    matches: Callable[[str], bool],
    limit: int,
    after: Cursor | None = None,
    hide: MaskLines | None = None,
) -> Search:
    """Search streams in order of their starts, up to 20,000 lines or 1,000 streams a call.

    Lines of one page are in order of time. ``log_streams``: the streams to search, beginning with
    the stream of ``after``. ``hide``: returns the masks for the events of some streams. Events are
    masked before they are matched, so that no pattern can find out a masked value.
    """
    page = Search([])
    for seen, (stream, log_lines) in enumerate(_by_stream(group, log_streams, period, after, hide)):
        begun = after[2] if after and stream.place == after[:2] else 0
        if not _search_one(page, stream, log_lines, matches, limit, begun):
            break
        if seen >= _MOST_STREAMS:
            page.cursor = (*stream.place, 2**31 - 1)
            break
    page.lines.sort(key=lambda line: (line.at_ms, line.stream.place, line.number))
    return page


def _by_stream(
    group: LogGroup,
    log_streams: Iterator[Stream],
    period: Range,
    after: Cursor | None,
    hide: MaskLines | None,
) -> Iterator[tuple[Stream, Iterator[Line]]]:
    """Yield each stream with its lines; short streams are read in batches."""
    for batch in _batches(log_streams):
        redrives = _redrives(batch)
        rows = _events(group, batch, period).order_by("execution_id", "event_id")
        if len(batch) == 1:
            if after and batch[0].place == after[:2]:
                rows = rows.filter(event_id__gt=after[2])
            asked = _mask_events(batch[0], rows.iterator(chunk_size=_CHUNK), hide and hide(batch))
            yield batch[0], _lines(batch[0], asked, redrives)
            continue
        read: dict[int, list[HistoryEvent]] = {}
        for row in rows:
            read.setdefault(row.execution_id, []).append(row)
        hides = hide and hide(batch)
        for stream in batch:
            asked = _mask_events(stream, read.get(stream.place[1], []), hides)
            yield stream, _lines(stream, asked, redrives)


def _batches(log_streams: Iterator[Stream]) -> Iterator[list[Stream]]:
    """Group streams whose histories together fit into a chunk."""
    batch: list[Stream] = []
    for stream in log_streams:
        if batch and sum(queued.length for queued in batch) + stream.length > _CHUNK:
            yield batch
            batch = []
        batch.append(stream)
    if batch:
        yield batch


def _search_one(
    page: Search,
    stream: Stream,
    log_lines: Iterator[Line],
    matches: Callable[[str], bool],
    limit: int,
    begun: int,
) -> bool:
    """Add a stream's lines after an event to a page; return whether the page has room for more."""
    last = begun
    for line in log_lines:
        if line.number <= begun:
            continue
        fits = not page.lines or page.size + line.size <= PAGE_BYTES
        hit = matches(line.text)
        if page.read >= _MOST_READ or (hit and (len(page.lines) >= limit or not fits)):
            page.cursor = (*stream.place, last)
            return False
        page.read += 1
        last = line.number
        if hit:
            page.lines.append(line)
            page.size += line.size
    return True


def streams_from(
    group: LogGroup, period: Range, prefix: str, after: Cursor | None
) -> Iterator[Stream]:
    """Yield the streams with possible lines in a period, from a cursor's stream on."""
    spans = [
        log_span for log_span in streams.log_spans(group) if streams.may_begin(log_span, prefix)
    ]
    place = None if after is None else (after[0], after[1] - 1)
    log_streams = streams.streams_by_time(group, spans, period.executions(), place)
    return (stream for stream in log_streams if stream.name.startswith(prefix))
