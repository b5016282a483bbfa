"""The tree of an execution: its ancestors, its child executions, and its replays.

Each level takes a query or two, and a page reads at most ``MOST_RELATIVES`` executions. Only the
rows shown on the page are read with their names.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db.models import Q

from console.masking import masked_execution
from console.models import Execution, MapRun, TaskRow
from console.statuses import ExecutionStatus
from console.store.executions import replay
from console.web.core import formatting
from console.web.execution import child_signs

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from console.models import Project

MOST_RELATIVES = 10_000
"""The maximum number of counted descendants, level by level."""
MOST_ABOVE = 30
"""The maximum number of shown ancestors."""
MOST_ROWS = 200
"""The maximum number of rows below the execution on a page."""
PAGE_ROWS = 25
"""The number of children of an execution, or failed children of a Map Run, shown at once."""
MOST_REPLAYS = 1_000
"""The number of newer executions of the machine that are searched for replays of an execution."""
_AT_ONCE = 5_000
_BAD = (ExecutionStatus.FAILED, ExecutionStatus.TIMED_OUT, ExecutionStatus.ABORTED)
_ROW = (
    *("arn", "name", "state_machine_arn", "status", "start_ms", "stop_ms", "redrive_count"),
    *("redrive_ms", "item_index", "imported_ms", "parent", "parent_task", "map_run", "error"),
)


class _Relative(NamedTuple):
    """A descendant execution. ``map_run``: its Map Run, or None."""

    number: int
    above: int
    map_run: int | None
    status: str
    start_ms: int


@dataclass(slots=True)
class StatusBelow:
    """Number of descendants by status, at any depth."""

    counts: Counter[str] = field(default_factory=Counter)

    @property
    def tone(self) -> str:
        """Return the tone of the worst problem, "" without one."""
        if any(self.counts[status] for status in _BAD):
            return "failed"
        return "running" if self.counts[ExecutionStatus.RUNNING] else ""

    @property
    def words(self) -> str:
        """Return the numbers of problems and of running executions: ``2 failed, 1 running``."""
        parts = [
            f"{self.counts[status]:,} {formatting.EXECUTION[status].word.lower()}"
            for status in (*_BAD, ExecutionStatus.RUNNING)
            if self.counts[status]
        ]
        return ", ".join(parts)

    @property
    def text(self) -> str:
        """Return the same with the place: ``2 failed, 1 running below``."""
        return f"{self.words} below" if self.words else ""

    @property
    def succeeded_text(self) -> str:
        """Return how many succeeded beside problems, "" if none."""
        succeeded = self.counts[ExecutionStatus.SUCCEEDED]
        return f"{succeeded:,} succeeded" if succeeded and self.words else ""

    @property
    def calm_text(self) -> str:
        """Return the count if there are no problems: ``4 succeeded``, "" if none."""
        succeeded = self.counts[ExecutionStatus.SUCCEEDED]
        return f"{succeeded:,} succeeded" if succeeded and not self.words else ""


@dataclass(frozen=True, slots=True)
class FamilyRow:
    """One row of the tree: an execution, or a Map Run with its counts.

    ``state``: the state of the parent execution whose task started it. ``error``: the error as the
    reader may see it. ``more``: how many of its children are not shown; its own family page shows
    them. ``next_page``: the query of the next page, "" if none.
    """

    depth: int
    execution: Execution | None = None
    run: MapRun | None = None
    status: formatting.StatusLabel | None = None
    below: StatusBelow = field(default_factory=StatusBelow)
    error: str = ""
    chosen: bool = False
    more: int = 0
    next_page: str = ""
    state: str = ""

    @property
    def started_by(self) -> tuple[int, int] | None:
        """Return the execution and task that started this execution, None if no task did."""
        if self.run is not None:
            return self.run.parent_id, self.run.task
        row = self.execution
        if row is None or row.map_run_id or row.parent is None or row.parent_task is None:
            return None
        return row.parent, row.parent_task


@dataclass(frozen=True, slots=True)
class ExecutionFamily:
    """The tree of an execution, from the first ancestor to the last descendant.

    ``cut``: there are more executions below it than were counted; ``total``: how many were.
    ``replays``: newest first; ``older_replays``: there may be further executions that were not
    read.
    """

    rows: tuple[FamilyRow, ...]
    total: int
    cut: bool
    below: StatusBelow
    origin: Execution | None
    replays: tuple[Execution, ...]
    older_replays: bool


@dataclass(frozen=True, slots=True)
class FamilyPage:
    """The position of each list: ``after`` a nested execution or an item of a Map Run."""

    after: int = 0
    run: int = 0
    item: int = -1

    @classmethod
    def of(cls, query: Any) -> FamilyPage:
        """Read the query string; invalid values are ignored."""

        def number(name: str, usual: int) -> int:
            text = query.get(name, "")
            return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else usual  # noqa: PLR2004

        return cls(number("after", 0), number("run", 0), number("item", -1))


def family_of(execution: Execution, page: FamilyPage) -> ExecutionFamily:
    """Return the tree of an execution, masked for its reader."""
    above = _above(execution)
    relatives, cut = _below([execution.pk])
    tree = _Tree(execution, relatives, page)
    below = tree.below[execution.pk]
    rows = [*_ancestor_rows(execution, above, below), *tree.rows(len(above))]
    replays, older = _replays_of(execution)
    return ExecutionFamily(
        rows=tuple(_with_errors(execution.project, _with_states(rows))),
        total=len(relatives),
        cut=cut,
        below=below,
        origin=_origin(execution),
        replays=tuple(replays),
        older_replays=older,
    )


def _above(execution: Execution) -> list[tuple[Execution, MapRun | None]]:
    """Return the ancestors, the first one first, each with the Map Run between."""
    above: list[tuple[Execution, MapRun | None]] = []
    current = execution
    seen = {execution.pk}
    while len(above) < MOST_ABOVE:
        run = MapRun.objects.filter(pk=current.map_run_id).first() if current.map_run_id else None
        number = run.parent_id if run else current.parent
        rows = Execution.stored.filter(project=execution.project_id, pk=number or 0)
        parent = rows.only(*_ROW).first()
        if parent is None or parent.pk in seen:
            break
        seen.add(parent.pk)
        above.insert(0, (parent, run))
        current = parent
    return above


def _ancestor_rows(
    execution: Execution, above: Sequence[tuple[Execution, MapRun | None]], below: StatusBelow
) -> list[FamilyRow]:
    """Return the rows of the direct ancestors, without their other children."""
    numbers = [parent.pk for parent, _ in above]
    nested = Counter(
        Execution.objects.filter(parent__in=numbers, parent__isnull=False)
        .order_by()
        .values_list("parent", flat=True)[:MOST_RELATIVES]
    )
    rows: list[FamilyRow] = []
    child, counts = execution, Counter(below.counts)
    for depth, (parent, run) in reversed(list(enumerate(above))):
        counts[child.status] += 1
        others = nested[parent.pk] - (run is None)
        if run is not None:
            rows.insert(0, FamilyRow(depth, None, run, _run_label(run), _of_run(run)))
        on_the_way = StatusBelow(Counter(counts))
        rows.insert(0, FamilyRow(depth, parent, None, _label(parent), on_the_way, more=others))
        child = parent
    return rows


def _below(numbers: Sequence[int]) -> tuple[list[_Relative], bool]:
    """Return all descendants level by level, and whether there are more."""
    relatives: list[_Relative] = []
    level = list(numbers)
    seen = set(level)
    while level:
        room = MOST_RELATIVES - len(relatives)
        below = [each for each in _children(level, room + 1) if each.number not in seen]
        relatives += below[:room]
        if len(below) > room:
            return relatives, True
        level = [each.number for each in below]
        seen.update(level)
    return relatives, False


def _children(numbers: Sequence[int], most: int) -> Iterator[_Relative]:
    """Yield the executions started by Tasks and Map Runs of executions."""
    budget = most
    for place in range(0, len(numbers), _AT_ONCE):
        part = numbers[place : place + _AT_ONCE]
        nested = Execution.objects.filter(parent__in=part, parent__isnull=False, map_run=None)
        rows = [
            _Relative(number, above, None, status, start_ms)
            for number, above, status, start_ms in nested.order_by("pk").values_list(
                "pk", "parent", "status", "start_ms"
            )[:budget]
            if above is not None
        ]
        budget -= len(rows)
        of_runs = Execution.objects.filter(map_run__parent__in=part).order_by(
            "map_run", "item_index"
        )
        columns = of_runs.values_list(
            "pk", "map_run__parent_id", "map_run_id", "status", "start_ms"
        )
        rows += [_Relative(*row) for row in columns[: max(budget, 0)]]
        budget = most - len(rows)
        yield from rows
        if budget <= 0:
            return


class _Tree:
    """The rows below one execution. ``below``: by execution; ``runs``: by parent execution."""

    def __init__(
        self, execution: Execution, relatives: Sequence[_Relative], page: FamilyPage
    ) -> None:
        self.execution = execution
        self.page = page
        self.nested: dict[int, list[_Relative]] = {}
        self.failed: dict[int, list[_Relative]] = {}
        self.below: dict[int, StatusBelow] = {execution.pk: StatusBelow()}
        for each in relatives:
            self.below[each.number] = StatusBelow()
            if each.map_run is None:
                self.nested.setdefault(each.above, []).append(each)
        for each in reversed(relatives):  # from the last level up
            counts = self.below[each.above].counts
            counts.update(self.below[each.number].counts)
            counts[each.status] += 1
        for each in relatives:
            if each.map_run is not None and (each.status in _BAD or self.below[each.number].tone):
                self.failed.setdefault(each.map_run, []).append(each)
        above = [execution.pk, *(each.number for each in relatives)]
        self.runs = _runs_of(above if len(above) <= _AT_ONCE else above[:_AT_ONCE])

    def rows(self, depth: int) -> list[FamilyRow]:
        """Return the rows from the execution down."""
        plan: list[tuple[int, int | MapRun, int, str]] = []
        self._plan(self.execution.pk, depth, plan)
        numbers = [line for _, line, _, _ in plan if isinstance(line, int)]
        read = {row.pk: row for row in Execution.objects.filter(pk__in=numbers).only(*_ROW)}
        read[self.execution.pk] = self.execution
        return [
            row
            for place, line, more, next_page in plan
            if (row := self._row(place, line, more, next_page, read)) is not None
        ]

    def _row(
        self, depth: int, line: int | MapRun, more: int, next_page: str, read: dict[int, Execution]
    ) -> FamilyRow | None:
        if isinstance(line, MapRun):
            label = _run_label(line)
            return FamilyRow(depth, None, line, label, _of_run(line), "", False, more, next_page)
        execution = read.get(line)
        if execution is None:  # deleted since
            return None
        chosen = line == self.execution.pk
        below, label = self.below[line], _label(execution)
        return FamilyRow(depth, execution, None, label, below, "", chosen, more, next_page)

    def _plan(
        self, number: int, depth: int, plan: list[tuple[int, int | MapRun, int, str]]
    ) -> None:
        """Choose the rows of an execution and its descendants that fit on the page."""
        place = len(plan)
        plan.append((depth, number, 0, ""))
        own = number == self.execution.pk
        nested = self._by_need(self.nested.get(number, ()))
        begun = self.page.after if own else 0
        drawn = 0
        for each in self._as_started(number, nested[begun : begun + PAGE_ROWS]):
            if len(plan) >= MOST_ROWS:
                break
            if isinstance(each, MapRun):
                self._plan_run(each, depth + 1, plan, own=own)
            else:
                self._plan(each.number, depth + 1, plan)
                drawn += 1
        more = len(nested) - begun - drawn
        next_page = f"after={begun + drawn}" if own and more and drawn else ""
        plan[place] = (depth, number, max(more, 0), next_page)

    def _plan_run(
        self, run: MapRun, depth: int, plan: list[tuple[int, int | MapRun, int, str]], *, own: bool
    ) -> None:
        failed = self.failed.get(run.pk, [])
        begun = self.page.item if own and self.page.run == run.task else 0
        begun = max(begun, 0)
        place = len(plan)
        plan.append((depth, run, 0, ""))
        drawn = 0
        for each in failed[begun : begun + PAGE_ROWS]:
            if len(plan) < MOST_ROWS:
                self._plan(each.number, depth + 1, plan)
                drawn += 1
        more = len(failed) - begun - drawn
        next_page = f"run={run.task}&item={begun + drawn}" if own and more and drawn else ""
        plan[place] = (depth, run, max(more, 0), next_page)

    def _as_started(self, number: int, nested: Sequence[_Relative]) -> list[_Relative | MapRun]:
        """Return the children of an execution, oldest first: Map Runs and executions."""
        placed: list[tuple[int, int, _Relative | MapRun]] = [
            (run.start_ms, run.task, run) for run in self.runs.get(number, ())
        ]
        placed += [(each.start_ms, each.number, each) for each in nested]
        return [each for *_, each in sorted(placed, key=lambda place: place[:2])]

    def _by_need(self, relatives: Sequence[_Relative]) -> list[_Relative]:
        """Return failed children first, then running children, each sorted by start.

        That decides which of many stand on the first page, not in which order.
        """

        def rank(each: _Relative) -> tuple[int, int]:
            tone = self.below[each.number].tone
            bad = each.status in _BAD or tone == "failed"
            runs = each.status == ExecutionStatus.RUNNING or tone == "running"
            return (0 if bad else 1 if runs else 2, each.number)

        return sorted(relatives, key=rank)


def _runs_of(numbers: Collection[int]) -> dict[int, list[MapRun]]:
    runs: dict[int, list[MapRun]] = {}
    for run in MapRun.objects.filter(parent__in=numbers).order_by("parent", "task")[:MOST_ROWS]:
        runs.setdefault(run.parent_id, []).append(run)
    return runs


def _of_run(run: MapRun) -> StatusBelow:
    over = run.succeeded + run.failed + run.timed_out + run.aborted
    return StatusBelow(
        Counter(
            {
                ExecutionStatus.SUCCEEDED: run.succeeded,
                ExecutionStatus.FAILED: run.failed,
                ExecutionStatus.TIMED_OUT: run.timed_out,
                ExecutionStatus.ABORTED: run.aborted,
                ExecutionStatus.RUNNING: max(run.started - over, 0),
            }
        )
    )


def _label(execution: Execution) -> formatting.StatusLabel:
    return formatting.EXECUTION[execution.status]


def _run_label(run: MapRun) -> formatting.StatusLabel:
    return formatting.EXECUTION[run.status]


def _with_states(rows: Sequence[FamilyRow]) -> list[FamilyRow]:
    """Return the rows with the names of the states that started them."""
    tasks = {row.started_by for row in rows} - {None}
    states = {
        (execution, task): state
        for execution, task, state in TaskRow.objects.filter(
            execution_id__in={task[0] for task in tasks if task},
            task__in={task[1] for task in tasks if task},
        ).values_list("execution_id", "task", "state")
    }
    loose = _states_that_did_not_wait(rows)
    return [
        replace(row, state=states.get(row.started_by, ""))
        if row.started_by
        else replace(row, state=loose.get(row.execution.pk, ""))
        if row.execution is not None
        else row
        for row in rows
    ]


def _states_that_did_not_wait(rows: Sequence[FamilyRow]) -> dict[int, str]:
    """Return execution id -> the state that started it without waiting for its end."""
    children = [
        row.execution
        for row in rows
        if row.execution is not None
        and row.execution.parent is not None
        and row.execution.parent_task is None
        and not row.execution.map_run_id
    ]
    calls = child_signs.calls_that_did_not_wait({child.parent or 0 for child in children})
    return {
        child.pk: child_signs.only_state_at(calls.get(child.parent or 0, ()), child.start_ms)
        for child in children
    }


def _with_errors(project: Project, rows: Sequence[FamilyRow]) -> Iterator[FamilyRow]:
    """Yield the rows with the masked errors of their executions."""
    failed = {
        row.execution.pk: row.execution.error or "" for row in rows if row.execution is not None
    }
    failed = {number: error for number, error in failed.items() if error}
    masks = masked_execution.masks_of(project, failed.keys()) if failed else {}
    for row in rows:
        number = row.execution.pk if row.execution is not None else 0
        if number not in failed:
            yield row
            continue
        yield replace(row, error=masks[number].words(failed[number]))


# -- replays ---------------------------------------------------------------------------------------


def _origin(execution: Execution) -> Execution | None:
    """Return the replayed execution; None for no replay, or if it was deleted."""
    origin = replay.origin_of(execution)
    if origin is None:
        return None
    return Execution.stored.filter(project=execution.project_id, arn=origin.arn).only(*_ROW).first()


def _replays_of(execution: Execution) -> tuple[list[Execution], bool]:
    """Return the latest replays of an execution, newest first, and whether there are more."""
    if execution.state_machine_id is None or execution.imported_ms is not None:
        return [], False
    newer = Execution.objects.filter(
        Q(start_ms__gte=execution.start_ms),
        state_machine=execution.state_machine_id,
        map_run=None,
    ).order_by("-start_ms", "-pk")
    numbers = list(newer.values_list("pk", flat=True)[: MOST_REPLAYS + 1])
    named = f'"origin":"{execution.arn}"'
    rows = Execution.objects.filter(pk__in=numbers[:MOST_REPLAYS], runrow__snapshot__contains=named)
    replays = rows.order_by("-start_ms", "-pk").only(*_ROW)[:PAGE_ROWS]
    return list(replays), len(numbers) > MOST_REPLAYS
