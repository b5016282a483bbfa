"""Read the log lines of function calls: their output with Lambda's START, END and REPORT lines.

A group ``/aws/lambda/NAME`` has a stream for each execution,
``YYYY/MM/DD/[$LATEST]MACHINE/EXECUTION``, because readers look for the lines of an execution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Q

from console.db import clock
from console.features.logs.models import FunctionLog
from console.functions.report import end_lines, start_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from django.db.models import QuerySet

    from console.models import Execution, Project

    MaskOutput = Callable[[FunctionLog], str]

GROUP = "/aws/lambda/"
_MOST_BYTES = 1024 * 1024
_ROWS = 200
_STATES_AT = 5  # arn:aws:states:REGION:ACCOUNT:kind:MACHINE:NAME

FunctionCursor = tuple[int, int, int]
"""Start of a call, key of its row, and how many of its lines were read."""


@dataclass(frozen=True, slots=True)
class FunctionLine:
    """A line of a function's log."""

    row: FunctionLog
    number: int
    at_ms: int
    text: str

    @property
    def event_id(self) -> str:
        """Return the unique id of the line."""
        return f"{self.at_ms:014d}{self.row.pk:020d}{self.number:08d}"

    @property
    def place(self) -> tuple[int, int]:
        """Return its position in the stream."""
        return self.row.pk, self.number

    @property
    def cursor(self) -> FunctionCursor:
        """Return the position of the next line."""
        return self.row.started_ms, self.row.pk, self.number + 1


@dataclass(frozen=True, slots=True)
class FunctionLogQuery:
    """A query. ``streams``: names, none for all; ``since``, ``until``: epoch ms, inclusive."""

    project: Project
    region: str
    function: str
    streams: Sequence[str] = ()
    prefix: str = ""
    since: int | None = None
    until: int | None = None


def stream_of(execution: Execution) -> str:
    """Return the name of an execution's stream in each called function's group."""
    day = clock.moment_of(execution.start_ms).strftime("%Y/%m/%d")
    machine = execution.arn.split(":")[_STATES_AT + 1]
    return f"{day}/[$LATEST]{machine}/{execution.name}"


def has_logs(project: Project, region: str, function: str) -> bool:
    """Whether a function has stored output."""
    return query_rows(FunctionLogQuery(project, region, function)).exists()


def function_lines(
    query: FunctionLogQuery, masks: MaskOutput, after: FunctionCursor | None
) -> Iterator[FunctionLine]:
    """Yield the lines of a function's log from a cursor on, in order of the calls."""
    started, key, begun = after or (-1, -1, 0)
    rows = query_rows(query).order_by("started_ms", "pk").select_related("execution__project")
    while True:
        beyond = Q(started_ms__gt=started) | Q(started_ms=started, pk__gte=key)
        page = list(rows.filter(beyond)[:_ROWS])
        for row in page:
            lines = lines_of_row(row, masks(row)) if _is_wanted(query, row) else ()
            yield from (line for line in lines if line.number >= begun or row.pk != key)
        if len(page) < _ROWS:
            return
        started, key, begun = page[-1].started_ms, page[-1].pk + 1, 0


def fitting(lines: Iterator[FunctionLine], limit: int) -> tuple[list[FunctionLine], bool]:
    """Return the first lines that fit into an answer, and whether there may be more."""
    page: list[FunctionLine] = []
    size = 0
    for line in lines:
        size += len(line.text.encode()) + 26
        if page and (size > _MOST_BYTES or len(page) >= limit):
            return page, True
        page.append(line)
    return page, False


def query_rows(query: FunctionLogQuery) -> QuerySet[FunctionLog]:
    """Return the calls that may have matching lines."""
    rows = FunctionLog.objects.filter(
        function=query.function,
        execution__project=query.project,
        execution__arn__contains=f":states:{query.region}:",
    )
    if query.since is not None:
        # a call lasts fifteen minutes at most: its last lines may be in the range
        rows = rows.filter(started_ms__gte=query.since - 900_000)
    if query.until is not None:
        rows = rows.filter(started_ms__lte=query.until)
    if query.streams:
        names = {stream.rpartition("/")[2] for stream in query.streams}
        rows = rows.filter(execution__name__in=names)
    return rows


def _is_wanted(query: FunctionLogQuery, row: FunctionLog) -> bool:
    stream = stream_of(row.execution)
    return stream.startswith(query.prefix) and (not query.streams or stream in query.streams)


def lines_of_row(row: FunctionLog, output: str) -> Iterator[FunctionLine]:
    """Yield the lines of a call: its output between Lambda's own lines."""
    ended_ms = row.started_ms + int(row.duration_ms)
    texts = [(row.started_ms, start_line(row))]
    texts += [(row.started_ms, line) for line in output.rstrip("\n").split("\n") if line]
    texts += [(ended_ms, line) for line in end_lines(row)]
    for number, (at_ms, text) in enumerate(texts):
        yield FunctionLine(row, number, at_ms, text)
