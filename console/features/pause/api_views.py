"""HTTP API to pause and resume executions: JSON, signed with a project's access key.

AWS has no status for a pause: its API shows paused executions as RUNNING; this API returns who
paused which execution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import JsonResponse

from console.awsapi import signed_calls
from console.db.rows import storable
from console.errors import ConflictException, ErrorCode, ServiceError
from console.models import Execution, Pause
from console.models.key_scope import KeyedResource
from console.statuses import BulkAction
from console.store.executions.refusals import refusal_of
from console.store.state import pause as store

if TYPE_CHECKING:
    from django.http import HttpRequest

    from console.access import Principal
    from console.db.audit import Actor
    from console.models import Project

_COLONS = 6
MOST = 1_000
"""The maximum number of listed executions: those paused longest."""


@signed_calls.signed_view("POST")
def pause(request: HttpRequest, principal: Principal, actor: Actor) -> JsonResponse:
    """Answer ``/api/executions/pause``: pause an execution; a dry run only checks that."""
    body = signed_calls.read_body(request, "executionArn", ("timers", "note", "dryRun"))
    arn = body["executionArn"]
    execution = _authorized_execution(request, principal, actor, "PauseExecution", arn)
    stops_clock = store.TIMERS[signed_calls.read_choice(body, "timers", tuple(store.TIMERS))]
    note = signed_calls.read_note(body)
    if signed_calls.read_dry_run(body):
        return _answer_dry_run(BulkAction.PAUSE, execution)
    row = store.pause_execution(execution, actor, stops_clock=stops_clock, note=note)
    return JsonResponse(_execution_members(execution.arn, execution.status, row))


@signed_calls.signed_view("POST")
def resume(request: HttpRequest, principal: Principal, actor: Actor) -> JsonResponse:
    """Answer ``/api/executions/resume``: resume an execution; a dry run only checks that."""
    body = signed_calls.read_body(request, "executionArn", ("dryRun",))
    arn = body["executionArn"]
    execution = _authorized_execution(request, principal, actor, "ResumeExecution", arn)
    if signed_calls.read_dry_run(body):
        return _answer_dry_run(BulkAction.RESUME, execution)
    store.resume_execution(execution, actor)
    return JsonResponse(_execution_members(execution.arn, execution.status, None))


@signed_calls.signed_view("GET", "HEAD")
def paused(request: HttpRequest, principal: Principal, actor: Actor) -> JsonResponse:
    """Answer ``/api/executions/paused``: list the paused executions of the project.

    With ``?execution=ARN``: only this execution, paused or not.
    """
    if "execution" in request.GET:
        arn = request.GET["execution"]
        execution = _authorized_execution(request, principal, actor, "DescribeExecution", arn)
        row = store.find_pause(execution.pk)
        return JsonResponse(_execution_members(execution.arn, execution.status, row))
    signed_calls.authorize(principal, actor, "ListExecutions", request.path)
    pauses = Pause.objects.filter(execution__project=principal.project)
    rows = list(pauses.select_related("execution").order_by("since_ms")[: MOST + 1])
    described = [
        _execution_members(row.execution.arn, row.execution.status, row) for row in rows[:MOST]
    ]
    return JsonResponse({"executions": described, "more": len(rows) > MOST})


def _authorized_execution(
    request: HttpRequest, principal: Principal, actor: Actor, action: str, arn: str
) -> Execution:
    """Return the execution of a call; raise an error without the right to it."""
    machine = arn.split(":")[6].partition("/")[0] if arn.count(":") >= _COLONS else ""
    resource = KeyedResource(arn[:256], machine)
    signed_calls.authorize(principal, actor, action, request.path, resource)
    return _find_execution(principal.project, arn)


def _find_execution(project: Project, arn: str) -> Execution:
    rows = Execution.objects.filter(project=project, arn=storable(arn))
    execution = rows.select_related("state_machine", "pause").first()
    if execution is None:
        raise ServiceError(
            ErrorCode.ExecutionDoesNotExist, f"Execution Does Not Exist: '{arn[:256]}'"
        )
    return execution


def _answer_dry_run(action: str, execution: Execution) -> JsonResponse:
    refusal = refusal_of(action, execution)
    if refusal:
        raise ConflictException(f"{refusal}.")
    return JsonResponse({"executionArn": execution.arn, "dryRun": True})


def _execution_members(arn: str, status: str, row: Pause | None) -> dict[str, Any]:
    """Return an execution; ``pause`` is null unless paused. Times: seconds since 1970."""
    if row is None:
        return {"executionArn": arn, "status": status, "pause": None}
    timers = "still" if row.stops_clock else "run"
    described = {"since": row.since_ms / 1000, "by": row.paused_by, "timers": timers}
    return {"executionArn": arn, "status": status, "pause": described | {"note": row.note}}
