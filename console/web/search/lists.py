"""List state machines and executions, and find what changed in a list of executions.

Pages are cut by key, not by number, so nothing repeats or is skipped while new executions start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Count, OuterRef, Q, Subquery, Window

from console import clock
from console.masking import masked_execution
from console.models import Execution, StateMachine
from console.statuses import ExecutionStatus, MachineStatus
from console.web.core.formatting import DAY
from console.web.execution.note_stamp import note_stamp
from console.web.search.scan import BARE, PAGE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.db.models import QuerySet

    from console.web.core.scope import Scope

_OFFERED = 200
FAILURES: tuple[str, ...] = (ExecutionStatus.FAILED, ExecutionStatus.TIMED_OUT)
_BARE_BUT_ERROR = ("input", "output", "cause", "definition")


@dataclass(frozen=True, slots=True)
class MachineRow:
    """One machine with what a list says of it; ``last`` is its newest execution's status."""

    machine: StateMachine
    running: int
    failed: int
    last: str | None
    last_ms: int | None


@dataclass(frozen=True, slots=True)
class MachinePage:
    """A page of machines; ``after`` is the key of the next one, "" at the end."""

    rows: tuple[MachineRow, ...]
    total: int
    after: str


def list_machines(
    scope: Scope, *, search: str = "", after: str = "", most: int = PAGE
) -> MachinePage:
    """Return machines by name. ``search``: a part of the name."""
    every = StateMachine.objects.filter(project=scope.project, region=scope.region)
    matching = every.filter(name__icontains=search) if search else every
    newest = Execution.objects.filter(state_machine=OuterRef("pk")).order_by("-start_ms", "-id")
    rows = list(
        matching.filter(name__gt=after)
        .defer("definition", "logging", "tracing", "encryption")
        .annotate(
            last=Subquery(newest.values("status")[:1]),
            last_ms=Subquery(newest.values("start_ms")[:1]),
            total=Window(Count("*")),
        )
        .order_by("name")[: most + 1]
    )
    running = _counts(rows, Q(status=ExecutionStatus.RUNNING))
    failed = _counts(rows, Q(status__in=FAILURES, start_ms__gte=clock.now_ms() - DAY))
    shown = tuple(
        MachineRow(row, running.get(row.pk, 0), failed.get(row.pk, 0), row.last, row.last_ms)
        for row in rows[:most]
    )
    total = rows[0].total if rows and not after else matching.count()
    return MachinePage(shown, total, shown[-1].machine.name if len(rows) > most else "")


def machine_names(scope: Scope) -> list[str]:
    """Return the names to offer where a machine is asked for, newest first."""
    rows = StateMachine.objects.filter(
        project=scope.project, region=scope.region, status=MachineStatus.ACTIVE
    )
    return list(rows.order_by("-pk").values_list("name", flat=True)[:_OFFERED])


def _counts(rows: Sequence[StateMachine], which: Q) -> dict[int, int]:
    pairs = (
        Execution.objects.filter(which, state_machine__in=[row.pk for row in rows])
        .order_by()
        .values_list("state_machine")
        .annotate(Count("id"))
    )
    return {machine: count for machine, count in pairs if machine is not None}


def changed_executions(
    scope: Scope, running: Sequence[int], stamps: Mapping[int, str]
) -> list[Execution]:
    """Return those rows of a list that no longer show what is.

    ``running``: numbers of those that were; ``stamps``: number -> its ``note_stamp``.
    """
    numbers = [*running[:PAGE], *list(stamps)[:PAGE]]
    rows = Execution.objects.filter(project=scope.project, pk__in=numbers)
    executions = rows.select_related("note").defer(*BARE)
    ended = set(running)
    return [
        execution
        for execution in executions
        if (execution.pk in ended and execution.status != ExecutionStatus.RUNNING)
        or (execution.pk in stamps and note_stamp(execution) != stamps[execution.pk])
    ]


def latest_executions(scope: Scope, statuses: Sequence[str], most: int) -> list[Execution]:
    """Return the newest executions with one of these statuses."""
    unread = ("definition",) if scope.project.masked else _BARE_BUT_ERROR
    rows = _rows_of(scope, None).filter(status__in=statuses).defer(*unread)
    return masked_execution.mask_list(scope.project, list(rows.order_by("-start_ms", "-pk")[:most]))


def status_counts(scope: Scope) -> dict[str, int]:
    """Return how many run now, and how many ended how in the last 24 hours."""
    since = clock.now_ms() - DAY
    rows = (
        _rows_of(scope, None)
        .filter(Q(status=ExecutionStatus.RUNNING) | Q(start_ms__gte=since))
        .order_by()
        .values_list("status")
        .annotate(Count("id"))
    )
    return dict(rows)


def _rows_of(scope: Scope, machine: StateMachine | None) -> QuerySet[Execution]:
    # children of Map Runs belong to their run, as in the service's own lists
    rows = Execution.objects.filter(project=scope.project, map_run=None)
    if machine is not None:
        return rows.filter(state_machine=machine)
    return rows.filter(arn__startswith=scope.arn("execution", ""))
