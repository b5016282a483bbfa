"""Find matching executions page by page, at a cost independent of their total number.

Indexes answer conditions on state machine, status and start. For other conditions a page examines
up to ``WINDOW`` executions and reports how far it got; the next page continues there. So no page
costs more with a million executions than with twenty thousand.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from django.db import connection
from django.db.models import BigIntegerField, Q, Value
from django.db.models.functions import Coalesce

from console import execution_rights
from console.db import clock
from console.db.prepared import read_models, read_rows
from console.models import Execution, StateMachine
from console.models.executions import NAMED
from console.statuses import ExecutionStatus
from console.web.search import failures, verify
from console.web.search.filters import BAD_ENDS, NEWEST_FIRST, STATUSES, ExecutionFilters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet

    from console.models import Project
    from console.web.core.scope import Scope
    from console.web.search.filters import ExecutionFilters, Key, KeyOrder

PAGE = 50
WINDOW = 20_000
"""The number of executions (of each status in the filter) that one page examines."""
FIND_WINDOW = 10_000
"""The same for searches in payloads and for groups of failures."""
MOST_EXACT = 1_000
"""The number of executions (of each status in the filter) examined to count a list."""
EVERY_S = 20.0
"""The time in seconds for which a bulk action searches for matching executions."""
COUNTED, MOST_COUNTED = 2_000, 99
"""The number of executions (of each status in the filter) examined for a count; its maximum."""
MOST_NEW = 200
"""The number of new executions that a poll of a list counts if it has to read payloads."""
_OWN = Q(imported_ms=None)
BARE = (
    *("input", "output", "cause", "error", "trace_header", "definition"),
    *("state_machine__logging", "state_machine__tracing", "state_machine__encryption"),
    "state_machine__next_starts",  # up to 64 KiB in each row
)
"""Columns of executions and their state machines that lists do not read."""
MOST_NAMES = 200
"""The number of error names that are read. There are more if names contain numbers."""
_ERROR = f"SUBSTR(error, 1, {NAMED})"
_FIRST = f"""SELECT {_ERROR} FROM console_execution
    WHERE project_id = %s AND error IS NOT NULL AND map_run_id IS NULL {{}}
    ORDER BY {_ERROR} LIMIT 1"""
_ERROR_NAMES = f"""
WITH RECURSIVE found(name) AS (
    SELECT ({_FIRST.format("")})
    UNION ALL
    SELECT ({_FIRST.format(f"AND {_ERROR} > found.name")}) FROM found WHERE found.name IS NOT NULL
)
SELECT name FROM found WHERE name IS NOT NULL LIMIT %s
"""


@dataclass(frozen=True, slots=True)
class FoundPart:
    """A part of the matches. ``floor``: the key at which the search stopped, None: the end."""

    keys: tuple[Key, ...]
    floor: Key | None


@dataclass(frozen=True, slots=True)
class ExecutionPage:
    """A page of executions, in the order of its filters.

    ``before``: the key of the next page, "" at the end. ``looked``: if the search stopped early,
    the start time of the last examined execution, epoch ms; else None. ``newest``: the highest id
    among the last started executions of the project; a poll finds executions with higher ids.
    """

    rows: tuple[Execution, ...]
    filters: ExecutionFilters
    before: str
    looked: int | None
    newest: int


_LAST_STARTED = 50
"""The number of executions read for the highest id: ids are not committed in strict order."""


def _read_last_started(project: int) -> QuerySet[Execution, tuple[int]]:
    # not the highest id of the server: it would reveal that other projects start executions
    rows = Execution.objects.filter(project=project)
    return rows.order_by("-start_ms", "-pk").values_list("pk")[:_LAST_STARTED]


def _read_executions(numbers: Sequence[int]) -> QuerySet[Execution]:
    executions = Execution.objects.filter(pk__in=numbers)
    return executions.select_related("note", "pause", "halted", "state_machine").defer(*BARE)


def find_executions(
    scope: Scope, machine: StateMachine | None, filters: ExecutionFilters
) -> ExecutionPage:
    """Return a page of the executions of a state machine, or of all state machines."""
    last_started = read_rows("last started", _read_last_started, scope.project.pk)
    newest = max((number for (number,) in last_started), default=0)
    filters = check_machine_name(scope, machine, filters)
    if filters.problems:
        return ExecutionPage((), filters, "", None, newest)
    part = find_keys(scope, machine, filters, _parse_key(filters.before), PAGE + 1)
    shown = part.keys[:PAGE]
    full = len(part.keys) > PAGE
    before = shown[-1] if full else part.floor
    looked = part.floor[0] if part.floor and not full else None
    numbers = tuple(number for _, number in shown)
    executions = read_models("listed executions", _read_executions, numbers) if numbers else []
    by_key = {(execution.start_ms, execution.pk): execution for execution in executions}
    rows = [by_key[key] for key in filters.order.sort(by_key)]
    address = f"{before[0]}-{before[1]}" if before else ""
    return ExecutionPage(tuple(rows), filters, address, looked, newest)


def check_machine_name(
    scope: Scope, machine: StateMachine | None, filters: ExecutionFilters
) -> ExecutionFilters:
    """Check that the state machine in the filter exists."""
    if machine is not None or not filters.machine or _find_machine(scope, filters.machine):
        return filters
    problem = f"There is no state machine “{filters.machine}” in {scope.region}."
    return replace(filters, problems={**filters.problems, "machine": problem})


def all_keys(
    scope: Scope, machine: StateMachine | None, filters: ExecutionFilters, most: int
) -> tuple[list[Key], bool]:
    """Return the keys of up to ``most`` matches, and whether there may be more."""
    keys: list[Key] = []
    before: Key | None = None
    until = time.monotonic() + EVERY_S
    while True:
        part = find_keys(scope, machine, filters, before, most + 1 - len(keys))
        keys += part.keys
        if len(keys) > most or time.monotonic() > until:
            return keys[:most], True
        if part.floor is None:
            return keys, False
        before = part.floor


def count_newer(
    scope: Scope, machine: StateMachine | None, filters: ExecutionFilters, than: int
) -> int:
    """Count newer matches, as far as the database can decide."""
    conditions = _conditions_beside_index(scope, machine, filters)
    newer = [stream.filter(conditions, pk__gt=than) for stream in _streams(scope, machine, filters)]
    if verify.reads_masked(scope.project, filters):
        keys = _keys([filters.order.keys_of(rows)[:MOST_NEW] for rows in newer]) if newer else []
        ordered = filters.order.sort(keys)
        return len(verify.verify_matches(scope.project, filters, ordered, MOST_NEW)[0])
    return sum(stream.count() for stream in newer)


@dataclass(frozen=True, slots=True)
class MatchCount:
    """The number of executions on all pages of a list. ``more``: it is a lower bound."""

    count: int
    more: bool


def count_matching(
    scope: Scope, machine: StateMachine | None, page: ExecutionPage
) -> MatchCount | None:
    """Count all matches, among the latest ``MOST_EXACT`` of each status.

    None if there are more pages and the filter has conditions beside state machine, status and
    start: no index answers these, so each execution would have to be read.
    """
    filters = page.filters
    if not (filters.problems or filters.before or page.before):
        return MatchCount(len(page.rows), more=False)
    streams = _streams(scope, machine, filters) if filters.is_of_indexes else []
    if filters.problems or not streams:
        return None
    order = NEWEST_FIRST
    floor = order.nearest(
        _keys([order.keys_of(stream)[MOST_EXACT : MOST_EXACT + 1] for stream in streams])
    )
    conditions = _OWN if machine or filters.machine else _OWN & scope.own_executions
    first, *others = [
        order.up_to(stream, floor).filter(conditions).order_by().values("pk") for stream in streams
    ]
    count = first.union(*others, all=True).count()
    if floor is None:
        return MatchCount(count, more=False)
    return MatchCount(max(count - 1, 0), more=True)  # without the one at the floor


def find_keys(
    scope: Scope,
    machine: StateMachine | None,
    filters: ExecutionFilters,
    before: Key | None,
    most: int,
) -> FoundPart:
    """Search one window for up to ``most`` matches, in five queries.

    A small window is tried first, because most often it contains enough matches.
    """
    streams = [filters.order.after(stream, before) for stream in _streams(scope, machine, filters)]
    if not streams or not may_have_error(scope.project, filters):
        return FoundPart((), None)
    needs_check = verify.needs_verifying(scope.project, filters)
    if not needs_check and _conditions_beside_index(scope, machine, filters) == _OWN:
        return _first_matches(streams, filters.order, _OWN, None, most)
    full = FIND_WINDOW if filters.find or filters.failure else WINDOW
    for window in (full,) if needs_check else (min(4 * most, full), full):
        part = _look_through(scope, machine, filters, streams, window, most)
        if len(part.keys) >= most or part.floor is None:
            break
    return part


def _look_through(
    scope: Scope,
    machine: StateMachine | None,
    filters: ExecutionFilters,
    streams: Sequence[QuerySet[Execution]],
    window: int,
    most: int,
) -> FoundPart:
    """Search a window of each stream, down to the end of the first one."""
    order = filters.order
    floor = order.nearest(_keys([order.keys_of(rows)[window : window + 1] for rows in streams]))
    conditions = _conditions_beside_index(scope, machine, filters)
    if not verify.needs_verifying(scope.project, filters):
        return _first_matches(streams, order, conditions, floor, most)
    matching = [order.keys_of(order.up_to(rows, floor).filter(conditions)) for rows in streams]
    every = order.sort(_keys(matching))
    passed, looked = verify.verify_matches(scope.project, filters, every, most)
    return FoundPart(tuple(passed), looked or floor)


def _first_matches(
    streams: Sequence[QuerySet[Execution]],
    order: KeyOrder,
    conditions: Q,
    floor: Key | None,
    most: int,
) -> FoundPart:
    """Return the first matches of the database, up to a floor."""
    matching = [order.up_to(stream, floor).filter(conditions) for stream in streams]
    keys = _keys([order.keys_of(rows)[:most] for rows in matching])
    return FoundPart(tuple(order.sort(keys)[:most]), floor)


def count_lists(
    scope: Scope, lists: Sequence[tuple[StateMachine | None, ExecutionFilters]]
) -> dict[int, tuple[int, bool]]:
    """Count the matches of several lists, each with whether there may be more: two queries.

    The key is the index in ``lists``. Lists that the database alone cannot count are missing.
    """
    streams = [
        (place, rows)
        for place, (machine, filters) in enumerate(lists)
        if not verify.needs_verifying(scope.project, filters)
        for rows in _streams(scope, machine, filters)
    ]
    order = NEWEST_FIRST
    ends = [(place, order.keys_of(rows)[COUNTED : COUNTED + 1]) for place, rows in streams]
    floors: dict[int, Key] = {}
    for place, start, number in _run_labelled(ends) if ends else ():
        floors[place] = max((start, number), floors.get(place, (0, 0)))
    counted = []
    for place, rows in streams:
        machine, filters = lists[place]
        conditions = _conditions_beside_index(scope, machine, filters)
        matching = order.up_to(rows, floors.get(place)).filter(conditions)
        counted.append((place, order.keys_of(matching)[: MOST_COUNTED + 1]))
    matches = Counter(place for place, *_ in _run_labelled(counted)) if counted else Counter()
    return {
        place: (min(matches[place], MOST_COUNTED), place in floors or matches[place] > MOST_COUNTED)
        for place in {place for place, _ in streams}
    }


def _streams(
    scope: Scope, machine: StateMachine | None, filters: ExecutionFilters
) -> list[QuerySet[Execution]]:
    """Return query sets in index order, which together cover the indexed conditions.

    They include imported executions, which no index can exclude.
    """
    rows = Execution.stored.filter(project=scope.project)
    narrowed = machine or (_find_machine(scope, filters.machine) if filters.machine else None)
    if filters.children:
        rows = rows.filter(map_run__isnull=False) if filters.children == "only" else rows
        if narrowed is not None:
            rows = rows.filter(
                Q(state_machine=narrowed) | Q(state_machine_arn__startswith=narrowed.arn + "/")
            )
    elif narrowed is not None:
        rows = Execution.stored.filter(state_machine=narrowed, map_run=None)
    else:
        rows = rows.filter(map_run=None)
    if filters.since is not None:
        rows = rows.filter(start_ms__gte=filters.since)
    if filters.until is not None:
        rows = rows.filter(start_ms__lte=filters.until)
    if filters.paused:
        rows = rows.filter(pause__isnull=False)
    rows = rows.filter(filters.find.started)
    statuses = _statuses(filters)
    return [rows] if statuses == STATUSES else [rows.filter(status=status) for status in statuses]


def _statuses(filters: ExecutionFilters) -> tuple[str, ...]:
    """Return the statuses that can match.

    Only unsuccessful executions have an error, and only running ones have a state or a pause.
    """
    possible: tuple[str, ...] = filters.statuses or STATUSES
    possible = tuple(status for status in possible if filters.find.may_have_status(status))
    if filters.failure:
        possible = tuple(status for status in possible if status in failures.STATUSES)
    if filters.error or filters.find.asks("error") or filters.find.asks("cause"):
        possible = tuple(status for status in possible if status in BAD_ENDS)
    if filters.paused or filters.find.asks("state"):
        possible = tuple(status for status in possible if status == ExecutionStatus.RUNNING)
    return possible


def _conditions_beside_index(
    scope: Scope, machine: StateMachine | None, filters: ExecutionFilters
) -> Q:
    """Return the conditions without an index."""
    if machine or filters.machine:
        return _conditions(filters)
    return _conditions(filters) & scope.own_executions


def _conditions(filters: ExecutionFilters) -> Q:
    condition = _OWN
    if filters.search:
        condition &= Q(name__icontains=filters.search)
    if filters.error:
        condition &= Q(error__icontains=filters.error)
    if filters.started_by:
        condition &= execution_rights.started_through(filters.started_by)
    if filters.redriven is not None:
        condition &= Q(redrive_count__gt=0) if filters.redriven else Q(redrive_count=0)
    if filters.version:
        condition &= Q(version_arn__endswith=f":{filters.version}") | Q(
            alias_arn__endswith=f":{filters.version}"
        )
    return condition & _duration_conditions(filters) & filters.find.sieve


def _duration_conditions(filters: ExecutionFilters) -> Q:
    """Return conditions on the duration, or on the running time so far."""
    condition = Q()
    until = Coalesce("stop_ms", Value(clock.now_ms(), BigIntegerField()))
    if filters.shortest is not None:
        condition &= Q(start_ms__lte=until - filters.shortest)
    if filters.longest is not None:
        condition &= Q(start_ms__gte=until - filters.longest)
    return condition


# -- keys ------------------------------------------------------------------------------------------


def _parse_key(text: str) -> Key | None:
    start, _, number = text.partition("-")
    return (int(start), int(number)) if number else None


def _keys(queries: Sequence[QuerySet[Execution, Key]]) -> list[Key]:
    """Combine several limited queries into one."""
    rows = _run_labelled([(0, query) for query in queries])
    return [(start, number) for _, start, number in rows]


def _run_labelled(
    queries: Sequence[tuple[int, QuerySet[Execution, Key]]],
) -> list[tuple[int, int, int]]:
    """Combine several limited queries into one: (label, start, id) of each row."""
    parts: list[str] = []
    values: list[Any] = []
    for place, (label, query) in enumerate(queries):
        sql, params = query.query.sql_with_params()
        parts.append(f"SELECT {label}, part{place}.* FROM ({sql}) AS part{place}")
        values += params
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(parts), values)
        return [(label, start, number) for label, start, number in cursor.fetchall()]


def _find_machine(scope: Scope, name: str) -> StateMachine | None:
    arn = scope.arn("stateMachine", name)
    return StateMachine.objects.filter(project=scope.project, arn=arn).first()


def may_have_error(project: Project, filters: ExecutionFilters) -> bool:
    """Whether any execution may have the error; unknown for children and masked values."""
    if not filters.error or filters.children or verify.reads_masked(project, filters):
        return True
    with connection.cursor() as cursor:
        cursor.execute(_ERROR_NAMES, [project.pk, project.pk, MOST_NAMES + 1])
        names = [name for (name,) in cursor.fetchall()]
    return len(names) > MOST_NAMES or any(_may_hold(name, filters.error) for name in names)


def _may_hold(name: str, text: str) -> bool:
    """Whether the database can find the text in an error with this beginning."""
    cut = len(name) >= NAMED
    return cut or text.upper() in name.upper() or text.casefold() in name.casefold()
