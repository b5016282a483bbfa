"""Find executions: by ARN, by primary key, by machine or Map Run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Case, Q, When

from console import arns
from console.db import rows
from console.errors import ErrorCode, ServiceError
from console.models import Alias, Execution, MapRun, StateMachine, Version
from console.models.executions import listed_ms
from console.statuses import ExecutionStatus
from console.store.executions import redrive

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from console.models import Project

_STATUSES = (
    *(ExecutionStatus.RUNNING, ExecutionStatus.SUCCEEDED, ExecutionStatus.FAILED),
    *(ExecutionStatus.TIMED_OUT, ExecutionStatus.ABORTED),
)
"""Statuses of executions that ran here."""


def get_execution(project: Project, arn: str, *, express_child: bool = False) -> Execution:
    """Return an execution of the project; raise InvalidArn or ExecutionDoesNotExist.

    ``express_child``: also find an Express child of a Map Run.
    """
    with_express = express_child and arns.is_labelled(arn)
    parsed = arns.parse_arn(arn, "execution", *(["express"] if with_express else []))
    execution = rows.fetch_one(Execution, "arn = %s AND project_id = %s", [parsed.text, project.pk])
    if execution is None:
        raise ServiceError(ErrorCode.ExecutionDoesNotExist, f"Execution Does Not Exist: '{arn}'")
    execution.project = project
    if execution.map_run_id is not None:
        execution.map_run = MapRun.objects.get(pk=execution.map_run_id)
    return execution


def with_project(number: int) -> Execution:
    """Return an execution by its primary key, with its project and without payloads."""
    executions = Execution.objects.select_related("project").defer("input", "output", "cause")
    return executions.get(pk=number)


def list_executions(
    owner: StateMachine | Version | Alias | MapRun,
    *,
    status: str | None = None,
    redriven: bool | None = None,
    after: tuple[int, int] | None = None,
    limit: int = 100,
) -> list[Execution]:
    """Return up to ``limit`` executions of a machine or Map Run, newest first, without payloads.

    Running executions are sorted by their start or redrive, the others by their end. Children that
    wait for a redrive of their Map Run have the status PENDING_REDRIVE; these rows are never saved.
    ``after``: the ``listing_place`` of the last row of the previous page.
    """
    redrives = {None: Q(), True: Q(redrive_count__gt=0), False: Q(redrive_count=0)}[redriven]
    if isinstance(owner, MapRun):
        return _newest(_children(owner, status).filter(redrives), after, limit)
    # One query per status, because the index has machine, status and time. An execution that ends
    # between two of these queries may be found twice, a redriven one not at all. An execution that
    # ends or is redriven between two pages moves before the token, and is on no later page.
    newest: dict[int, Execution] = {}
    for each in [status] if status else _STATUSES:
        executions = _executions_of(owner).filter(redrives, status=each)
        newest |= {row.pk: row for row in _newest(executions, after, limit)}
    return sorted(newest.values(), key=listing_place, reverse=True)[:limit]


def listing_place(execution: Execution) -> tuple[int, int]:
    """Return the sort key of lists: ``listed_ms``, and the primary key."""
    times = (execution.stop_ms, execution.redrive_ms, execution.start_ms)
    return next(time_ms for time_ms in times if time_ms is not None), execution.pk


def _executions_of(owner: StateMachine | Version | Alias) -> QuerySet[Execution]:
    """Return the query of a machine's executions, including those of its versions."""
    if isinstance(owner, StateMachine):
        return Execution.objects.filter(state_machine=owner, map_run=None)
    executions = Execution.objects.filter(state_machine=owner.state_machine, map_run=None)
    if isinstance(owner, Version):
        return executions.filter(version_arn=owner.arn)
    return executions.filter(alias_arn=owner.arn)


def _children(run: MapRun, status: str | None) -> QuerySet[Execution]:
    """Return the children of a Map Run with a status, perhaps PENDING_REDRIVE."""
    children = Execution.objects.filter(map_run=run)
    waiting = redrive.waiting_children(run)
    if status == ExecutionStatus.PENDING_REDRIVE:
        children = children.filter(waiting)
    elif status:
        children = children.filter(~waiting, status=status)
    return children.annotate(waits=Case(When(waiting, then=True), default=False))


def _newest(
    executions: QuerySet[Execution], after: tuple[int, int] | None, limit: int
) -> list[Execution]:
    executions = executions.alias(listed_ms=listed_ms())
    if after:
        time_ms, number = after
        executions = executions.filter(
            Q(listed_ms__lt=time_ms) | Q(listed_ms=time_ms, id__lt=number), listed_ms__lte=time_ms
        )
    shown = executions.select_related("map_run").defer("input", "output", "cause")
    listed: list[Execution] = list(shown.order_by(listed_ms().desc(), "-id")[:limit])
    for execution in listed:
        if getattr(execution, "waits", False):
            execution.status = ExecutionStatus.PENDING_REDRIVE
    return listed
