"""HTTP API that pauses or resumes all executions of a state machine, as a bulk job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import JsonResponse

from console.awsapi import signed_calls
from console.db.rows import storable
from console.errors import ErrorCode, ServiceError
from console.feature import has_feature
from console.features.bulk import store
from console.models import Execution, StateMachine
from console.models.key_scope import KeyedResource
from console.statuses import BulkAction, ExecutionStatus
from console.store.executions.refusals import ACTIONS
from console.store.state.pause import TIMERS

if TYPE_CHECKING:
    from django.http import HttpRequest

    from console.access import Principal
    from console.db.audit import Actor
    from console.models import Project


@signed_calls.signed_view("POST")
def pause(request: HttpRequest, principal: Principal, actor: Actor) -> JsonResponse:
    """Answer ``/api/machines/pause``: pause the running executions of a state machine."""
    _check_feature()
    body = signed_calls.read_body(request, "machine", ("timers", "note", "dryRun"))
    timers = signed_calls.read_choice(body, "timers", tuple(TIMERS))
    options = {"stops_clock": TIMERS[timers], "note": signed_calls.read_note(body)}
    return _answer(request, principal, actor, BulkAction.PAUSE, body, **options)


@signed_calls.signed_view("POST")
def resume(request: HttpRequest, principal: Principal, actor: Actor) -> JsonResponse:
    """Answer ``/api/machines/resume``: resume the paused executions of a state machine."""
    _check_feature()
    body = signed_calls.read_body(request, "machine", ("dryRun",))
    return _answer(request, principal, actor, BulkAction.RESUME, body)


def _answer(
    request: HttpRequest,
    principal: Principal,
    actor: Actor,
    action: BulkAction,
    body: signed_calls.Body,
    **options: Any,
) -> JsonResponse:
    """Plan a job and, unless it is a dry run, create it. ``options``: of ``create_job``."""
    resource = KeyedResource(body["machine"], body["machine"].rpartition(":")[2])
    signed_calls.authorize(principal, actor, ACTIONS[action], request.path, resource)
    is_dry_run = signed_calls.read_dry_run(body)
    machine = _find_machine(principal.project, body["machine"])
    plan = store.plan_job(principal.project, action, _numbers(machine, action))
    answer = {"eligible": len(plan.eligible), "excluded": dict(plan.reasons), "job": None}
    if plan.eligible and not is_dry_run:
        answer["job"] = store.create_job(plan, principal.project, actor, **options).pk
    return JsonResponse(answer)


def _check_feature() -> None:
    if not has_feature("pause"):
        raise ServiceError(ErrorCode.ResourceNotFound, "This server pauses no executions.")


def _find_machine(project: Project, arn: str) -> StateMachine:
    machine = StateMachine.objects.filter(project=project, arn=storable(arn)).first()
    if machine is None:
        code = ErrorCode.StateMachineDoesNotExist
        raise ServiceError(code, f"State Machine Does Not Exist: '{arn[:256]}'")
    return machine


def _numbers(machine: StateMachine, action: BulkAction) -> list[int]:
    """Return the executions of a state machine to act on, newest first."""
    rows = Execution.objects.filter(
        state_machine=machine, map_run=None, status=ExecutionStatus.RUNNING
    )
    if action == BulkAction.RESUME:
        rows = rows.filter(pause__isnull=False)
    return list(rows.order_by("-start_ms", "-pk").values_list("pk", flat=True)[: store.MOST])
