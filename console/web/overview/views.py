"""Views of the overview: running executions, recent failures, latest state machines."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_safe
from django_htmx.http import HttpResponseClientRefresh

from console.db import clock
from console.feature import Hook, hooked
from console.statuses import ExecutionStatus
from console.store.executions.open_states import open_states
from console.web.core.formatting import DAY
from console.web.core.scope import Scope, render, scope_of
from console.web.execution import waiting
from console.web.machines import sample_views
from console.web.map_runs import map_run_display
from console.web.overview import first_calls, machine_trends
from console.web.search import failure_groups, failure_trends, lists, scan
from console.web.search.filters import ExecutionFilters

if TYPE_CHECKING:
    from django.http import HttpRequest

    from console.web.core.scope import Scope
    from console.web.search.failure_trends import TrendingFailure

MOST = 8
MOST_TASKS = 3
MOST_GROUPED = 500
"""How many of the newest failures are grouped: the page asks for them again every few seconds."""
MOST_SHOWN = 6


@require_safe
def overview_page(request: HttpRequest) -> HttpResponse:
    """Show ``/``."""
    scope = scope_of(request)
    context = _page_context(scope)
    context |= _failure_context(scope, context)
    for add in hooked(Hook.OVERVIEW):
        context |= add(scope, request.GET)
    context["trends"] = machine_trends.machine_trends(scope, context["machines"])
    # below the shorter list, and there as long as the page is open
    left_count = len(context["running"]) + len(context["tasks"])
    context["trends_left"] = left_count < len(context["kinds"])
    context["first_sample"] = sample_views.first_sample()
    if not context["machines"].rows:
        context |= first_calls.first_calls_context(request, scope)
    return render(request, "overview/page.html", context)


@require_safe
def connect_page(request: HttpRequest) -> HttpResponse:
    """Show ``/connect/``: how shells and programs reach the server."""
    scope = scope_of(request)
    context = first_calls.first_calls_context(request, scope)
    return render(request, "overview/connect.html", context | {"section": "overview"})


@require_safe
def overview_changes(request: HttpRequest) -> HttpResponse:
    """Answer a poll: nothing without a change, else new lists."""
    scope = scope_of(request)
    context = _page_context(scope)
    if request.GET.get("seen") == context["seen"]:
        return HttpResponse(status=204)
    if "empty" in request.GET:  # the page of an empty yard is another one
        rows = context["machines"].rows
        return HttpResponseClientRefresh() if rows else HttpResponse(status=204)
    context |= _failure_context(scope, context)
    return render(request, "overview/_live_update.html", context)


def _page_context(scope: Scope) -> dict[str, Any]:
    machines = lists.list_machines(scope, most=MOST, sort="-started")
    tally = lists.status_counts(scope)
    counted = tally.get(ExecutionStatus.RUNNING)  # without any, skip the query
    running = lists.latest_executions(scope, (ExecutionStatus.RUNNING,), MOST) if counted else []
    added = [add(scope, MOST) for add in hooked(Hook.OVERVIEW_LIVE)]
    states = open_states([execution.pk for execution in running])
    open_tasks = tally.get(lists.OPEN_TASKS, 0)
    tasks = waiting.oldest_open_tasks(scope, MOST_TASKS) if open_tasks else ()
    parts = [
        [context["seen"] for context in added],
        sorted(tally.items()),
        [execution.pk for execution in running],
        sorted(states.items()),
        [(task.row.execution_id, task.row.task) for task in tasks],
        [(row.machine.pk, row.running, row.failed, row.last_ms) for row in machines.rows],
    ]
    context = {name: value for each in added for name, value in each.items()}
    return context | {
        "section": "overview",
        "day": "started > 24 h ago",
        "machines": machines,
        "running": running,
        "states": states,
        "open_tasks": open_tasks,
        "halted_count": tally.get(lists.HALTED, 0),
        "tasks": tasks,
        "tally": {
            "running": tally.get(ExecutionStatus.RUNNING, 0),
            "succeeded": tally.get(ExecutionStatus.SUCCEEDED, 0),
            "failed": tally.get(ExecutionStatus.FAILED, 0)
            + tally.get(ExecutionStatus.TIMED_OUT, 0),
            "aborted": tally.get(ExecutionStatus.ABORTED, 0),
        },
        "seen": hashlib.sha256(repr(parts).encode()).hexdigest()[:16],
    }


def _failure_context(scope: Scope, context: dict[str, Any]) -> dict[str, Any]:
    """Return the kinds of the counted failures; no query without failures."""
    failed = context["tally"]["failed"]
    kinds = failure_kinds(scope) if failed else NO_FAILURES
    return {"kinds": kinds.rows, "kind_count": kinds.count, "kinds_cut": kinds.cut}


_ARN = re.compile(
    r"arn:aws[a-z-]*:states:([a-z0-9-]+):\d{12}:(stateMachine|execution|express|activity):([^:]+)"
    r"(?::([^:]+)(?::[0-9a-f-]+)?)?"
)


@require_safe
def redirect_arn(request: HttpRequest, arn: str) -> HttpResponse:
    """Redirect from an ARN to its page."""
    if ":mapRun:" in arn:
        return redirect(map_run_display.map_run_address(scope_of(request), arn))
    for find in hooked(Hook.ARN_ADDRESS):
        if address := find(scope_of(request), arn):
            return redirect(address)
    match = _ARN.fullmatch(arn)
    if match is None:
        raise Http404(f"No page belongs to “{arn}”.")
    region, kind, machine, execution = match.groups()
    if kind == "activity" and execution is None:
        return redirect(f"{reverse('activity', args=[machine])}?region={region}")
    if kind == "stateMachine" and execution is not None:  # the number of a version, or an alias
        return redirect(f"{reverse('versions', args=[machine])}?region={region}")
    if kind != "stateMachine" and execution is None:
        raise Http404(f"No page belongs to “{arn}”.")
    machine = machine.replace("/", "~")  # a child of a Map Run
    names = (machine,) if execution is None else (machine, execution)
    view = "machine" if execution is None else "execution"
    return redirect(f"{reverse(view, args=names)}?region={region}")


@dataclass(frozen=True, slots=True)
class FailureKinds:
    """The most frequent kinds of failures. ``count``: of all kinds.

    ``cut``: among how many of the newest failures, where there are more; else 0.
    """

    rows: list[TrendingFailure]
    count: int
    cut: int


NO_FAILURES = FailureKinds([], 0, 0)


def failure_kinds(scope: Scope) -> FailureKinds:
    """Return the kinds of failures of executions started in the last 24 hours."""
    now = clock.now_ms()
    filters = ExecutionFilters(statuses=failure_groups.STATUSES, since=now - DAY)
    part = scan.find_keys(scope, None, filters, None, MOST_GROUPED)
    numbers = [number for _, number in part.keys]
    groups = failure_groups.group_failures(failure_groups.list_failures(scope.project, numbers))
    rows = failure_trends.trending_failures(groups[:MOST_SHOWN], DAY, now)
    return FailureKinds(rows, len(groups), MOST_GROUPED if len(numbers) == MOST_GROUPED else 0)
