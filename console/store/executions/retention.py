"""Delete old executions with all their rows, in batches.

An execution is deleted with the children of its Map Runs, once all of them have ended. Children go
before their parent. The parent's snapshot is emptied first of all, so a half-deleted execution
cannot be redriven, and the next pruning finishes it.

``STATEYARD_RETENTION_DAYS`` is the number of days; owners may set fewer for their project.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.conf import settings
from django.db.models import Q

from console.db import audit, clock, project_settings, signals
from console.db.writer import write
from console.errors import ValidationException
from console.models import Execution, MapItem, MapRun, Project, RunRow, TaskRow
from console.statuses import ExecutionStatus, MapRunStatus, TaskStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

KIND = "retention"
"""The kind of the owners' setting: a number of days, without a name."""
LEAST_DAYS, MOST_DAYS = 0.001, 36_500
DAY_MS = 24 * 3600 * 1000
BATCH = 500
_NOTHING_LEFT = '{"frames":[]}'  # a snapshot that cannot be redriven
EVENTS_AT_ONCE = 20_000
"""Executions with more events than this together are not removed in one transaction."""
_ITEMS_AT_ONCE = 5_000
_EXECUTION = re.compile(r"arn:[\w-]+:states:[\w-]+:\d+:(?:execution|express):[^\"\\]+")


@dataclass(frozen=True, slots=True)
class RetentionScope:
    """The executions to delete: ended before a moment, in a project or machine if given."""

    before_ms: int
    project: str = ""
    machine: str = ""

    def __str__(self) -> str:
        moment = dt.datetime.fromtimestamp(max(self.before_ms, 0) / 1000, dt.UTC)
        return f"ended before {moment:%Y-%m-%dT%H:%M:%SZ}"


@dataclass(frozen=True, slots=True)
class Pruned:
    """Deleted executions, children of Map Runs and events, and the number kept."""

    executions: int = 0
    children: int = 0
    events: int = 0
    needed: int = 0

    def plus(self, **more: int) -> Pruned:
        """Return the sums with more added."""
        return replace(self, **{name: getattr(self, name) + n for name, n in more.items()})

    def __str__(self) -> str:
        return f"{self.executions} executions, {self.children} children, {self.events} events"


def retention_days(project: str) -> float | None:
    """Return after how many days a project's ended executions are deleted; None: never."""
    most: float | None = settings.STATEYARD_RETENTION_DAYS
    if not project_settings.names_in_use(KIND):
        return most
    own: float | None = project_settings.read_value(project, KIND)
    return min((days for days in (own, most) if days is not None), default=None)


def is_anything_removed() -> bool:
    """Return whether any project deletes ended executions."""
    is_set = settings.STATEYARD_RETENTION_DAYS is not None
    return is_set or bool(project_settings.names_in_use(KIND))


def read_own_days(value: object) -> float:
    """Return the days of an owner's input; raise ValidationException above the maximum."""
    most = settings.STATEYARD_RETENTION_DAYS or MOST_DAYS
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not LEAST_DAYS <= float(str(value)) <= most:
        whose = ", the operator's ceiling" if settings.STATEYARD_RETENTION_DAYS else ""
        raise ValidationException(
            f"days: got {value!r}, wanted a number from {LEAST_DAYS:g} to {most:g}{whose}"
        )
    return float(str(value))


def count_older(project: Project, days: float) -> int:
    """Return how many executions of a project ended more than ``days`` days ago."""
    before_ms = clock.now_ms() - int(days * DAY_MS)
    ended = Execution.objects.filter(project=project, stop_ms__lt=before_ms, map_run=None)
    return ended.count()


def prune(
    scope: RetentionScope,
    *,
    batch: int = BATCH,
    dry_run: bool = False,
    actor: audit.Actor = audit.NOBODY,
    go_on: Callable[[Pruned], bool] = lambda _: True,
) -> Pruned:
    """Delete the executions of the scope that are not needed; return the numbers.

    ``go_on`` gets the sums so far after every transaction and returns whether to continue. An
    execution whose deletion has begun is deleted with all its children in any case.
    """
    total = Pruned()
    projects = Project.objects.filter(name=scope.project) if scope.project else Project.objects
    for project in projects.order_by("pk"):
        work = _Work(scope, project, actor, go_on, total, dry_run=dry_run)
        total = work.run(batch)
        if work.stopped:
            break
    return total


class _Work:
    """The deletion of a project's expired executions."""

    def __init__(
        self,
        scope: RetentionScope,
        project: Project,
        actor: audit.Actor,
        go_on: Callable[[Pruned], bool],
        done: Pruned,
        *,
        dry_run: bool,
    ) -> None:
        self._scope, self._project, self._actor = scope, project, actor
        self._go_on, self._done, self._before = go_on, done, done
        self._dry_run = dry_run
        self._noted = False
        self.stopped = False

    def run(self, batch: int) -> Pruned:
        """Delete the executions; return the sums, including the projects before."""
        awaited = _awaited_arns()
        try:
            for ended in _old_executions(self._scope, self._project, batch):
                free = [number for number, arn in ended if arn not in awaited]
                self._done = self._done.plus(needed=len(ended) - len(free))
                self._remove(free)
                if self.stopped:
                    break
        finally:
            self._note_end()
        return self._done

    def _remove(self, numbers: Sequence[int]) -> None:
        """Delete executions: in groups without Map Runs, else one by one."""
        parents = set(
            MapRun.objects.filter(parent__in=numbers).values_list("parent_id", flat=True).distinct()
        )
        for group in bounded_groups([number for number in numbers if number not in parents]):
            self._drop(group, "executions")
            if self.stopped:
                return
        for number in numbers:
            if number in parents and not self.stopped:
                self._remove_tree(number)

    def _remove_tree(self, root: int) -> None:
        """Remove an execution with the children of its Map Runs, the lowest first."""
        levels = _levels(root)
        if levels is None or not (self._dry_run or write(lambda: self._begin(levels))):
            self._done = self._done.plus(needed=1)
            return
        for level in reversed(levels[1:]):
            for group in bounded_groups(level):
                self._drop(group, "children")
        self._drop([root], "executions")

    def _begin(self, levels: Sequence[Sequence[int]]) -> bool:
        """Empty the snapshots of an execution and of all parents below it, in a transaction.

        False if it runs again.
        """
        if not _lock_ended(levels[0]):
            return False
        self._note_begin()
        for level in levels[:-1] or levels:
            for chunk in _chunks(level, BATCH):
                RunRow.objects.filter(pk__in=chunk).update(snapshot=_NOTHING_LEFT)
        return True

    def _drop(self, numbers: Sequence[int], kind: str) -> None:
        """Delete executions whose children are gone, in one transaction."""
        if self._dry_run:
            events = sum(next_event - 1 for next_event in _next_events(numbers).values())
            self._tell(kind, len(numbers), events)
            return
        for number in MapRun.objects.filter(parent__in=numbers).values_list("pk", flat=True):
            drop_map_items(number)

        def store() -> tuple[int, int]:
            locked = _lock_ended(numbers)
            if not locked:
                return 0, 0
            self._note_begin()
            _, counts = Execution.objects.filter(pk__in=locked).only("pk").delete()
            return len(locked), counts.get("console.HistoryEvent", 0)

        self._tell(kind, *write(store))

    def _tell(self, kind: str, executions: int, events: int) -> None:
        self._done = self._done.plus(**{kind: executions}, events=events)
        self.stopped = not self._go_on(self._done) or self.stopped

    # -- the audit: one row in the first transaction that removes something, one with the sums -----

    def _note_begin(self) -> None:
        """Write the audit entry until it is committed, because a transaction may be repeated."""
        if not self._noted:
            self._note(f"begin: {self._scope}")
            signals.after_commit(self._keep_in_mind)

    def _keep_in_mind(self) -> None:
        self._noted = True

    def _note_end(self) -> None:
        went = self._done.plus(
            executions=-self._before.executions,
            children=-self._before.children,
            events=-self._before.events,
        )
        if self._noted:
            write(lambda: self._note(f"end: {went}"))

    def _note(self, reason: str) -> None:
        target = self._scope.machine or self._project.name
        audit.record(self._project, self._actor, "PruneExecutions", target, reason)


def is_begun(execution_id: int) -> bool:
    """Return whether an execution is being deleted; some children may be gone already."""
    return RunRow.objects.filter(pk=execution_id, snapshot=_NOTHING_LEFT).exists()


# -- what may go -----------------------------------------------------------------------------------


def _old_executions(
    scope: RetentionScope, project: Project, batch: int
) -> Iterator[list[tuple[int, str]]]:
    """Yield (number, ARN) of executions that ended in time, the oldest first.

    Children of Map Runs are not among them: they go with their parent.
    """
    executions = Execution.objects.filter(
        project=project, stop_ms__lt=scope.before_ms, map_run__isnull=True
    ).exclude(status=ExecutionStatus.RUNNING)
    machine = f":stateMachine:{scope.machine}" if scope.machine else ""
    executions = executions.filter(state_machine_arn__endswith=machine).order_by("stop_ms", "pk")
    rows = executions.values_list("pk", "arn", "state_machine_arn", "stop_ms")
    after = Q()
    while page := list(rows.filter(after)[:batch]):
        number, _, _, stop_ms = page[-1]
        # compared again: SQLite's LIKE ignores case
        yield [(pk, arn) for pk, arn, owner, _ in page if owner.endswith(machine)]
        after = Q(stop_ms__gt=stop_ms) | Q(stop_ms=stop_ms, pk__gt=number)


def _awaited_arns() -> set[str]:
    """Return the ARNs of nested executions that a task still waits for."""
    waiting = TaskRow.objects.filter(status=TaskStatus.WAITING, service="states").exclude(job="")
    jobs = waiting.values_list("job", flat=True).iterator()
    return {arn for job in jobs for arn in _EXECUTION.findall(job)}


def _levels(root: int) -> list[list[int]] | None:
    """Return the levels of an execution's tree of children; None while one runs."""
    levels = [[root]]
    while True:
        below: list[int] = []
        for chunk in _chunks(levels[-1], BATCH):
            runs = MapRun.objects.filter(parent__in=chunk)
            children = Execution.objects.filter(map_run__parent__in=chunk)
            if (
                runs.filter(status=MapRunStatus.RUNNING).exists()
                or children.filter(status=ExecutionStatus.RUNNING).exists()
            ):
                return None
            below += children.values_list("pk", flat=True)
        if not below:
            return levels
        levels.append(below)


def _lock_ended(numbers: Iterable[int]) -> list[int]:
    """Lock executions and return the ended ones, without those redriven meanwhile."""
    rows = Execution.objects.select_for_update().filter(pk__in=list(numbers))
    return [
        number
        for number, status in rows.values_list("pk", "status")
        if status != ExecutionStatus.RUNNING
    ]


# -- some at a time --------------------------------------------------------------------------------


def bounded_groups(numbers: Sequence[int]) -> Iterator[list[int]]:
    """Split executions into groups with a limited number of events."""
    for chunk in _chunks(numbers, BATCH):
        events = _next_events(chunk)
        group: list[int] = []
        size = 0
        for number in chunk:
            more = events.get(number, 0)
            if group and size + more > EVENTS_AT_ONCE:
                yield group
                group, size = [], 0
            group.append(number)
            size += more
        yield group


def _next_events(numbers: Sequence[int]) -> dict[int, int]:
    return dict(RunRow.objects.filter(pk__in=numbers).values_list("pk", "next_event"))


def _chunks(numbers: Sequence[int], size: int) -> Iterator[list[int]]:
    for start in range(0, len(numbers), size):
        yield list(numbers[start : start + size])


def drop_map_items(map_run: int) -> None:
    """Delete the inputs of children that never started; there may be millions."""
    items = MapItem.objects.filter(map_run_id=map_run)
    while (first := items.order_by("item_index").first()) is not None:
        batch = items.filter(item_index__lt=first.item_index + _ITEMS_AT_ONCE)
        write(batch.delete)
