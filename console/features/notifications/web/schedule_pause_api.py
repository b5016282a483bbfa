"""HTTP API that pauses and resumes all schedules of a project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.http import JsonResponse

from console.awsapi import signed_calls
from console.features.notifications.store import schedule_pause

if TYPE_CHECKING:
    from django.http import HttpRequest

    from console.access import Principal
    from console.db.audit import Actor
    from console.models import Project, SchedulePause


@signed_calls.signed_view("POST")
def pause(request: HttpRequest, principal: Principal, actor: Actor) -> JsonResponse:
    """Answer ``/api/schedules/pause``: pause all schedules; a dry run lists them."""
    signed_calls.authorize(principal, actor, "PauseSchedules", request.path)
    body = signed_calls.read_body(request, optional=("dryRun", "note"))
    note = signed_calls.read_note(body)
    if signed_calls.read_dry_run(body):
        return JsonResponse(_plan(principal.project))
    schedule_pause.pause_schedules(principal.project, actor, note)
    return JsonResponse(_state(principal))


@signed_calls.signed_view("POST")
def resume(request: HttpRequest, principal: Principal, actor: Actor) -> JsonResponse:
    """Answer ``/api/schedules/resume``: resume all schedules; a dry run lists them."""
    signed_calls.authorize(principal, actor, "ResumeSchedules", request.path)
    body = signed_calls.read_body(request, optional=("dryRun",))
    if signed_calls.read_dry_run(body):
        return JsonResponse(_plan(principal.project))
    count = schedule_pause.resume_schedules(principal.project, actor)
    return JsonResponse(_state(principal) | {"startedInWindows": count})


@signed_calls.signed_view("GET", "HEAD")
def paused(request: HttpRequest, principal: Principal, actor: Actor) -> JsonResponse:
    """Answer ``/api/schedules/paused``: since when and by whom all schedules are paused."""
    signed_calls.authorize(principal, actor, "scheduler:ListSchedules", request.path)
    return JsonResponse(_state(principal))


def _state(principal: Principal) -> dict[str, Any]:
    row = schedule_pause.find_pause(principal.project)
    return {"pause": None if row is None else _described(row)}


def _described(row: SchedulePause) -> dict[str, Any]:
    return {"since": row.since_ms / 1000, "by": row.paused_by, "note": row.note}


def _plan(project: Project) -> dict[str, Any]:
    """Return the changes of a pause or resume. Times: seconds since 1970."""
    plan = schedule_pause.plan_change(project)
    rows = [
        {
            "arn": rule.arn,
            "expression": rule.schedule,
            "nextAt": (rule.next_ms or rule.due_ms or 0) / 1000,
        }
        for rule in plan.rules
    ]
    return {"schedules": rows, "total": plan.total, "startsInWindows": len(plan.missed)}
