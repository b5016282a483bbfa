"""Answer the page of a Map Run, and change its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from console.errors import ServiceError
from console.masking import masked_execution
from console.statuses import MapRunStatus
from console.store.map_runs import map_runs as store
from console.web.core import formatting
from console.web.core.scope import actor_of, render, require, scope_of
from console.web.execution import child_counts
from console.web.map_runs import child_list, map_run_display, pace
from console.web.map_runs.stop_reason import stop_reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest

    from console.models import Execution, MapRun
    from console.web.core.scope import Scope


@require_http_methods(["GET", "POST"])
def map_run_page(
    request: HttpRequest, machine_name: str, execution_name: str, number: int
) -> HttpResponse:
    """Answer the page of the Map Run that a task began; a POST changes its settings."""
    scope = scope_of(request)
    run = map_run_display.find_map_run(scope, machine_name, execution_name, number)
    if request.method == "GET":
        return _render_page(request, scope, machine_name, run, map_run_display.setting_fields(run))
    require(scope, "UpdateMapRun")
    fields, changes = map_run_display.read_settings(run, map_run_display.SettingsForm(request.POST))
    if any(field.problem for field in fields):
        return _render_page(request, scope, machine_name, run, fields, status=422)
    try:
        if changes:
            store.update_map_run(run, actor_of(scope), **changes)
    except ServiceError as refused:
        messages.error(request, f"{refused.message}.")
    else:
        messages.success(request, "The settings were changed." if changes else "Nothing changed.")
    return redirect(request.get_full_path())


@require_safe
def map_run_changes(
    request: HttpRequest, machine_name: str, execution_name: str, number: int
) -> HttpResponse:
    """Answer the page's poll: nothing while nothing changed, else the counts and the children.

    ``ended``: the page knows that the Map Run has ended, with so many redrives.
    """
    scope = scope_of(request)
    run = map_run_display.find_map_run(scope, machine_name, execution_name, number)
    over = run.status != MapRunStatus.RUNNING
    if over and request.GET.get("ended") == str(run.redrive_count):
        return HttpResponse(status=204)
    context = _page_context(request, scope, machine_name, run)
    if "ended" in request.GET and not over:
        context |= {"redriven": True, "fields": map_run_display.setting_fields(run)}
    if request.GET.get("seen") == context["seen"] and not context["over"]:
        return HttpResponse(status=204)
    if request.GET.get("failed") != str(context["failed"]):  # to group them reads their causes
        failed = child_counts.failed_children(run)
        masks = masked_execution.masks_of(scope.project, [row.pk for row in failed])
        failures = child_counts.group_failures(run, failed, masks, child_list.MOST_KINDS)
        context |= {"failures": failures, "failures_changed": True}
    return render(request, "map_runs/_live_update.html", context)


def _render_page(
    request: HttpRequest,
    scope: Scope,
    machine_name: str,
    run: MapRun,
    fields: Sequence[map_run_display.Field],
    status: int = 200,
) -> HttpResponse:
    failed = child_counts.failed_children(run)
    context = _page_context(request, scope, machine_name, run, failed)
    masks = context["children"].masks
    failures = child_counts.group_failures(run, failed, masks, child_list.MOST_KINDS)
    context |= {"fields": fields, "failures": failures}
    context["wrong"] = any(field.problem for field in fields)
    return render(request, "map_runs/page.html", context, status=status)


def _page_context(
    request: HttpRequest,
    scope: Scope,
    machine_name: str,
    run: MapRun,
    failed: Sequence[Execution] = (),
) -> dict[str, Any]:
    names = [machine_name, run.parent.name]
    bad = run.status in (MapRunStatus.FAILED, MapRunStatus.ABORTED)
    context = {
        "section": "executions",
        "run": run,
        "state": map_run_display.state_name(run),
        "status": formatting.EXECUTION[run.status],
        "execution": run.parent,
        "machine_name": machine_name,
        "base": reverse("execution", args=names),
        "own": reverse("map-run", args=[*names, run.task]),
        "execution_status": formatting.EXECUTION[run.parent.status],
        "children": child_list.list_children(scope, run, request.GET, failed),
        "may_update": scope.may("UpdateMapRun") and run.status == MapRunStatus.RUNNING,
        "redrivable": bad,
        "refusal": map_run_display.redrive_refusal(run) if bad else "",
        "failed": run.failed + run.timed_out,
        "stop_reason": stop_reason(run),
        **map_run_display.count_children(run),
    }
    over, children = context["over"], context["of_children"]
    oldest_ms = child_list.oldest_running_ms(run) if children.pending and not over else None
    context["pace"] = pace.pace_facts(run, children, over=over, oldest_ms=oldest_ms)
    return context | {"seen": map_run_display.page_stamp(context)}
