"""Views that pause and resume all schedules of a project, each after a dry run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from console.errors import ServiceError
from console.features.notifications.store import schedule_pause
from console.features.notifications.web import rule_display
from console.features.notifications.web.forms import SchedulePauseForm
from console.web.core.addresses import page_address
from console.web.core.scope import actor_of, render, require, scope_of

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse, QueryDict

    from console.web.core.scope import Scope


def schedule_pause_context(scope: Scope) -> dict[str, Any]:
    """Return the pause for the pages of rules and schedules, with the reader's rights."""
    return {
        "schedule_pause": schedule_pause.find_pause(scope.project),
        "may_pause_schedules": scope.may("PauseSchedules"),
        "may_resume_schedules": scope.may("ResumeSchedules"),
    }


def overview_context(scope: Scope, _query: QueryDict) -> dict[str, Any]:
    """Return the pause for the overview."""
    return schedule_pause_context(scope)


@require_http_methods(["GET", "POST"])
def pause_page(request: HttpRequest) -> HttpResponse:
    """Show ``/schedules/pause/``: the affected schedules; a POST pauses them."""
    scope = scope_of(request)
    require(scope, "PauseSchedules")
    if request.method == "GET":
        return _render_dry_run(request, scope, "notifications/pause_schedules.html")
    note = SchedulePauseForm(request.POST).values["note"]
    try:
        schedule_pause.pause_schedules(scope.project, actor_of(scope), note)
    except ServiceError as refused:
        messages.error(request, refused.message)
    else:
        messages.success(request, "All schedules are paused.")
    return redirect(page_address(scope, "schedules"))


@require_http_methods(["GET", "POST"])
def resume_page(request: HttpRequest) -> HttpResponse:
    """Show ``/schedules/resume/``: the next starts; a POST resumes the schedules."""
    scope = scope_of(request)
    require(scope, "ResumeSchedules")
    if request.method == "GET":
        return _render_dry_run(request, scope, "notifications/resume_schedules.html")
    try:
        count = schedule_pause.resume_schedules(scope.project, actor_of(scope))
    except ServiceError as refused:
        messages.error(request, refused.message)
    else:
        late = f" {count} missed runs start within their time windows." if count else ""
        messages.success(request, f"All schedules are resumed.{late}")
    return redirect(page_address(scope, "schedules"))


def _render_dry_run(request: HttpRequest, scope: Scope, template: str) -> HttpResponse:
    plan = schedule_pause.plan_change(scope.project)
    context = schedule_pause_context(scope) | {
        "section": "schedules",
        "plan": plan,
        "rows": [
            (
                rule,
                rule.next_ms or rule.due_ms,
                rule_display.sent_targets(rule),
                rule.pk in plan.missed,
            )
            for rule in plan.rules
        ],
        "many_regions": len({rule.region for rule in plan.rules}) > 1,
    }
    return render(request, template, context)
