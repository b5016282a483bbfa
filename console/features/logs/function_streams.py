"""List the log groups of functions and their streams, and read the lines of a stream.

A group exists while its function has stored output, as Lambda creates the group at the first call.
This module only reads.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING

from django.db.models import Exists, F, FloatField, Max, Min, OuterRef, Q

from console.arns import execution_arn, express_arn, state_machine_arn
from console.db import clock
from console.features.logs.function_lines import (
    GROUP,
    FunctionLine,
    FunctionLogQuery,
    lines_of_row,
    query_rows,
    stream_of,
)
from console.features.logs.models import FunctionLog
from console.models import Execution

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from django.db.models import QuerySet

    from console.features.logs.function_lines import MaskOutput
    from console.models import Project

_NAME = re.compile(r"(\d{4}/\d\d/\d\d)/\[\$LATEST\](.+)/([^/]+)")
_ROWS = 200
_DAY_MS = 24 * 3600 * 1000
_DAY_LENGTH = len("2026/01/31")

LinePlace = tuple[int, int]
"""Key of a row, and the number of a line in it."""


@dataclass(frozen=True, slots=True)
class FunctionGroup:
    """The log group of a function. ``created_ms``: time of the oldest stored call."""

    function: str
    created_ms: int

    @property
    def name(self) -> str:
        """Return the group's name."""
        return GROUP + self.function


@dataclass(frozen=True, slots=True)
class FunctionStream:
    """Output of the calls of one function by one execution.

    Express executions may share a name, and with it a stream. ``last_call``: start and key of it.
    """

    name: str
    executions: tuple[Execution, ...]
    last_call: tuple[int, int]
    first_ms: int
    last_ms: int

    @property
    def place(self) -> tuple[int, str]:
        """Return its position among the streams by name: day and ARN of the last execution."""
        last = self.executions[-1]
        return last.start_ms // _DAY_MS, last.arn


# -- groups ----------------------------------------------------------------------------------------


def function_groups(project: Project, region: str) -> list[FunctionGroup]:
    """Return the groups of all functions with stored output."""
    groups: list[FunctionGroup] = []
    names = FunctionLog.objects.order_by("function").values_list("function", flat=True)
    function = names.first()
    while function is not None:
        group = find_function_group(project, region, function)
        groups += [group] if group else []
        function = names.filter(function__gt=function).first()  # by the index, name by name
    return groups


def find_function_group(project: Project, region: str, function: str) -> FunctionGroup | None:
    """Return the group of a function, None without stored output."""
    rows = query_rows(FunctionLogQuery(project, region, function))
    first = rows.order_by("started_ms").values_list("started_ms", flat=True).first()
    return None if first is None else FunctionGroup(function, first)


# -- streams ---------------------------------------------------------------------------------------


def streams_by_time(
    query: FunctionLogQuery, after: LinePlace | None, *, descending: bool
) -> Iterator[FunctionStream]:
    """Yield the streams by their last calls. ``after``: start and key of a call."""
    later = FunctionLog.objects.filter(
        Q(started_ms__gt=OuterRef("started_ms"))
        | Q(started_ms=OuterRef("started_ms"), pk__gt=OuterRef("pk")),
        execution=OuterRef("execution_id"),
        function=query.function,
    )
    rows = query_rows(query).filter(~Exists(later)).select_related("execution")
    order = ("-started_ms", "-pk") if descending else ("started_ms", "pk")
    while True:
        page = list(rows.filter(_beyond(after, descending=descending)).order_by(*order)[:_ROWS])
        for row in page:
            yield from _streams(query, [row.execution])
        if len(page) < _ROWS:
            return
        after = page[-1].started_ms, page[-1].pk


def _beyond(after: LinePlace | None, *, descending: bool) -> Q:
    if after is None:
        return Q()
    started, key = after
    if descending:
        return Q(started_ms__lt=started) | Q(started_ms=started, pk__lt=key)
    return Q(started_ms__gt=started) | Q(started_ms=started, pk__gt=key)


def streams_by_name(
    query: FunctionLogQuery, after: tuple[int, str] | None, *, descending: bool
) -> Iterator[FunctionStream]:
    """Yield the streams by day, state machine and execution. ``after``: a position."""
    day = _day_of(query, after[0] if after else None, descending=descending, included=True)
    while day is not None:
        executions = _executions_of_day(query, day).order_by("-arn" if descending else "arn")
        if after and after[0] == day:
            bound = {"arn__lt" if descending else "arn__gt": after[1]}
            executions = executions.filter(**bound)
        if _may_have_day(query.prefix, day):
            streams = _streams(query, executions.iterator(chunk_size=_ROWS))
            yield from (stream for stream in streams if stream.name.startswith(query.prefix))
        day = _day_of(query, day, descending=descending, included=False)


def _executions_of_day(query: FunctionLogQuery, day: int) -> QuerySet[Execution]:
    return Execution.objects.filter(
        pk__in=query_rows(query).values("execution_id"),
        start_ms__gte=day * _DAY_MS,
        start_ms__lt=(day + 1) * _DAY_MS,
    )


def _day_of(
    query: FunctionLogQuery, bound: int | None, *, descending: bool, included: bool
) -> int | None:
    """Return the next day (since 1970) on which an execution with lines started."""
    rows = query_rows(query)
    if bound is not None and descending:
        rows = rows.filter(execution__start_ms__lt=(bound + included) * _DAY_MS)
    elif bound is not None:
        rows = rows.filter(execution__start_ms__gte=(bound + (not included)) * _DAY_MS)
    start = rows.aggregate(start=(Max if descending else Min)("execution__start_ms"))["start"]
    return None if start is None else start // _DAY_MS


def _may_have_day(prefix: str, day: int) -> bool:
    text = clock.moment_of(day * _DAY_MS).strftime("%Y/%m/%d")
    return text.startswith(prefix[:_DAY_LENGTH])


def _streams(query: FunctionLogQuery, executions: Iterable[Execution]) -> Iterator[FunctionStream]:
    """Merge adjacent streams of the same name."""
    for name, group in groupby(executions, key=stream_of):
        members = tuple(group)
        times = FunctionLog.objects.filter(
            execution__in=[member.pk for member in members], function=query.function
        ).aggregate(
            first=Min("started_ms"),
            last=Max("started_ms"),
            end=Max(F("started_ms") + F("duration_ms"), output_field=FloatField()),
            key=Max("pk"),
        )
        if times["key"] is not None:
            last_call = times["last"], times["key"]
            yield FunctionStream(name, members, last_call, times["first"], int(times["end"]))


def find_stream(query: FunctionLogQuery, name: str) -> tuple[Execution, ...]:
    """Return the executions of a stream, none if it does not exist."""
    matched = _NAME.fullmatch(name)
    if matched is None:
        return ()
    try:
        day = datetime.strptime(matched[1], "%Y/%m/%d").replace(tzinfo=UTC)
    except ValueError:
        return ()
    since = int(day.timestamp() * 1000)
    project, machine = query.project, matched[2]
    ours = state_machine_arn(query.region, project.account_id, machine)
    of_name = Q(arn=execution_arn(ours, matched[3]))
    of_name |= Q(arn__startswith=express_arn(ours, matched[3], ""))
    executions = Execution.objects.filter(
        of_name, project=project, start_ms__gte=since, start_ms__lt=since + _DAY_MS
    ).select_related("project")
    logs = FunctionLog.objects.filter(execution=OuterRef("pk"), function=query.function)
    return tuple(executions.filter(Exists(logs)))


# -- lines of a stream -----------------------------------------------------------------------------


def stream_lines(
    function: str,
    executions: Sequence[Execution],
    masks: MaskOutput,
    place: LinePlace | None,
    *,
    backward: bool,
) -> Iterator[FunctionLine]:
    """Yield the lines of a stream beyond a position, from either end.

    They come in the order in which the calls have ended: the lines of a call that ends later come
    after all earlier lines, whenever it began.
    """
    rows = FunctionLog.objects.filter(
        function=function, execution__in=[execution.pk for execution in executions]
    ).select_related("execution__project")
    rows = rows.order_by("-pk" if backward else "pk")
    bound = "pk__lte" if backward else "pk__gte"
    key, number = place or (None, None)
    while True:
        page = list((rows if key is None else rows.filter(**{bound: key}))[:_ROWS])
        for row in page:
            last_line = number if row.pk == key else None
            yield from _beyond_line(
                list(lines_of_row(row, masks(row))), last_line, backward=backward
            )
        if len(page) < _ROWS:
            return
        key, number = page[-1].pk + (-1 if backward else 1), None


def _beyond_line(
    lines: list[FunctionLine], number: int | None, *, backward: bool
) -> Iterable[FunctionLine]:
    """Return the lines beyond a line number, all without one."""
    if backward:
        return reversed(lines[:number])
    return lines if number is None else lines[number + 1 :]
