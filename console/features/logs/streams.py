"""Compute the log streams of a group from executions and their histories.

There is one stream per execution, ``states/<machine>/<minute>/<key>``. The state machine's log
settings at an execution's start decide the group and the level. This module only reads.
"""

from __future__ import annotations

import heapq
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import zip_longest
from operator import attrgetter
from typing import TYPE_CHECKING

from django.db.models import F, OuterRef, Q, Subquery

from console.db import clock
from console.features.logs import lines
from console.models import Execution, HistoryEvent, LogRoute

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from django.db.models import QuerySet

    from console.models import LogGroup

Place = tuple[int, int]
"""The position of an execution in order of time: start and key."""

_KEY = re.compile(r"([0-9a-f]{11})([0-9a-f]{10})")
_NAME = re.compile(r"states/(.+)/(\d{4}-\d\d-\d\d-\d\d-\d\d)/([0-9a-f]{21})")
_BATCH = 100
_DAY_MS = 24 * 3600 * 1000
_COLUMNS = ("arn", "state_machine_arn", "start_ms", "stop_ms", "redrive_count")


@dataclass(frozen=True, slots=True)
class Span:
    """Executions of a state machine with the same log settings: started in ``[since, until)``."""

    machine_arn: str
    since: int
    until: int | None
    level: str
    with_data: bool

    def holds(self, execution: Execution) -> bool:
        """Whether an execution belongs to it."""
        arn = execution.state_machine_arn
        return (
            (arn == self.machine_arn or arn.startswith(f"{self.machine_arn}/"))
            and self.since <= execution.start_ms
            and (self.until is None or execution.start_ms < self.until)
        )

    def condition(self) -> Q:
        """Return the same as a query condition."""
        arn = self.machine_arn
        condition = Q(state_machine_arn=arn) | Q(state_machine_arn__startswith=f"{arn}/")
        condition &= Q(start_ms__gte=self.since)
        return condition if self.until is None else condition & Q(start_ms__lt=self.until)


@dataclass(frozen=True, slots=True)
class Stream:
    """One execution's lines in one group.

    ``first_ms`` and ``last_ms``: the times of its first and last line so far. ``length``: the
    number of events in its history.
    """

    execution: Execution
    span: Span
    first_ms: int
    last_ms: int
    length: int

    @property
    def name(self) -> str:
        """Return the stream's name."""
        return stream_name(self.execution)

    @property
    def place(self) -> Place:
        """Return its position in order of time."""
        return self.execution.start_ms, self.execution.pk


def stream_name(execution: Execution) -> str:
    """Return the name of an execution's stream; names are in the order of their starts."""
    machine = execution.state_machine_arn.rsplit(":", 1)[-1]
    minute = clock.moment_of(execution.start_ms).strftime("%Y-%m-%d-%H-%M")
    return f"states/{machine}/{minute}/{execution.start_ms:011x}{execution.pk:010x}"


# -- which executions ------------------------------------------------------------------------------


def log_spans(group: LogGroup) -> list[Span]:
    """Return the spans of a group, by state machine and time."""
    region_routes = LogRoute.objects.filter(project_id=group.project_id, region=group.region)
    machines = region_routes.filter(group=group.name).values("machine_arn")
    routes = list(
        region_routes.filter(machine_arn__in=machines).order_by("machine_arn", "since_ms")
    )
    spans = []
    for route, following in zip_longest(routes, routes[1:]):
        if route.group != group.name or route.level == "OFF":
            continue
        same_machine = following is not None and following.machine_arn == route.machine_arn
        until = following.since_ms if same_machine and following else None
        spans.append(Span(route.machine_arn, route.since_ms, until, route.level, route.with_data))
    return spans


def _executions(group: LogGroup, spans: Iterable[Span]) -> QuerySet[Execution]:
    condition = Q(pk__in=[])
    for span in spans:
        condition |= span.condition()
    executions = Execution.objects.filter(condition, project_id=group.project_id)
    return executions.filter(Q(stop_ms=None) | Q(stop_ms__gte=group.created_ms)).only(*_COLUMNS)


def _after(place: Place | None, *, descending: bool) -> Q:
    if place is None:
        return Q()
    start, key = place
    if descending:
        return Q(start_ms__lt=start) | Q(start_ms=start, pk__lt=key)
    return Q(start_ms__gt=start) | Q(start_ms=start, pk__gt=key)


def _streams(rows: Sequence[Execution], spans: Sequence[Span]) -> Iterator[Stream]:
    for row in rows:
        span = next(span for span in spans if span.holds(row))
        first, last, following = attrgetter("first_ms", "last_ms", "following")(row)
        yield Stream(row, span, first, last, (following or 1) - 1)


def _with_times(
    executions: QuerySet[Execution], group: LogGroup, types: frozenset[str] | None
) -> QuerySet[Execution]:
    """Annotate executions with the times of their first and last line; drop them without lines."""
    events = HistoryEvent.objects.filter(execution=OuterRef("pk"), at_ms__gte=group.created_ms)
    if types is not None:
        events = events.filter(type__in=types)
    first = events.order_by("event_id").values("at_ms")[:1]
    last = events.order_by("-event_id").values("at_ms")[:1]
    executions = executions.annotate(
        first_ms=Subquery(first), last_ms=Subquery(last), following=F("runrow__next_event")
    )
    return executions.filter(last_ms__isnull=False)


def streams_by_name(
    group: LogGroup,
    *,
    prefix: str = "",
    after: tuple[str, int, int] | None = None,
    descending: bool = False,
) -> Iterator[Stream]:
    """Yield the streams by name. ``after``: state machine ARN and position."""
    group_spans = [span for span in log_spans(group) if may_begin(span, prefix)]
    machines = {span.machine_arn for span in group_spans}
    for machine in sorted(machines, key=_start_of_name, reverse=descending):
        start, last = _start_of_name(machine), _start_of_name(after[0]) if after else ""
        if last and (start > last if descending else start < last):
            continue
        place = after[1:] if after and after[0] == machine else None
        spans = [span for span in group_spans if span.machine_arn == machine]
        streams = streams_by_time(
            group, spans, _day_filter(prefix, machine), place, descending=descending
        )
        yield from (stream for stream in streams if stream.name.startswith(prefix))


def streams_by_time(
    group: LogGroup,
    spans: Sequence[Span],
    also: Q | None = None,
    after: Place | None = None,
    *,
    descending: bool = False,
) -> Iterator[Stream]:
    """Yield the streams of some executions in order of their starts, after a position."""
    levels = sorted({span.level for span in spans})
    ways = [
        _walk(
            group, [span for span in spans if span.level == level], also or Q(), after, descending
        )
        for level in levels
    ]
    return heapq.merge(*ways, key=lambda stream: stream.place, reverse=descending)


def _walk(
    group: LogGroup,
    spans: Sequence[Span],
    also: Q,
    after: Place | None,
    descending: bool,
) -> Iterator[Stream]:
    """Yield the streams of executions with the same log level, read in batches."""
    types = None if spans[0].level == "ALL" else lines.logged_event_types(spans[0].level)
    executions = _with_times(_executions(group, spans), group, types).filter(also)
    executions = executions.order_by(*(("-start_ms", "-pk") if descending else ("start_ms", "pk")))
    while True:
        rows = list(executions.filter(_after(after, descending=descending))[:_BATCH])
        yield from _streams(rows, spans)
        if len(rows) < _BATCH:
            return
        after = rows[-1].start_ms, rows[-1].pk


def _start_of_name(machine_arn: str) -> str:
    return f"states/{machine_arn.rsplit(':', 1)[-1]}/"


def may_begin(span: Span, prefix: str) -> bool:
    """Whether stream names of these executions can have this prefix."""
    start = _start_of_name(span.machine_arn)
    return start.startswith(prefix) or prefix.startswith(start)


def _day_filter(prefix: str, machine_arn: str) -> Q:
    """Return the query condition on executions of the day in a prefix; empty if it has no day."""
    text = prefix.removeprefix(_start_of_name(machine_arn))[:10]
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        return Q()
    since = int(day.timestamp() * 1000)
    return Q(start_ms__gte=since, start_ms__lt=since + _DAY_MS)


def find_stream(group: LogGroup, name: str) -> Stream | None:
    """Return the stream of this name, None if the group has none."""
    matched = _NAME.fullmatch(name)
    key = _KEY.fullmatch(matched[3]) if matched else None
    if key is None:
        return None
    pk = int(key[2], 16)
    if pk > 2**63 - 1:
        return None
    row = Execution.objects.filter(pk=pk, project_id=group.project_id).only(*_COLUMNS).first()
    if row is None or stream_name(row) != name:
        return None
    span = next((span for span in log_spans(group) if span.holds(row)), None)
    if span is None:
        return None
    types = None if span.level == "ALL" else lines.logged_event_types(span.level)
    timed = _with_times(Execution.objects.filter(pk=pk), group, types).only(*_COLUMNS)
    return next(_streams(list(timed), [span]), None)
