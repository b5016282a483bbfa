"""Views of the Map Run page: show it, poll it, change its settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_safe

from console.db import clock
from console.errors import ServiceError
from console.masking import masked_execution
from console.statuses import ExecutionStatus, MapRunStatus
from console.store.map_runs import map_runs as store
from console.web.core import formatting
from console.web.core.scope import actor_of, render, require, scope_of
from console.web.execution import audit_trail, child_counts
from console.web.map_runs import child_list, map_run_display

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest

    from console.models import Execution, MapRun
    from console.store.map_runs.map_counts import Counts
    from console.web.core.scope import Scope
    from console.web.execution.audit_trail import AuditedAction


_SURE = 10
"""How many children must have ended before the time that is left is estimated."""
_STUCK = 2
"""Where a child runs so many times longer than usual, nobody knows how long the others take."""
_UNITS = ((formatting.SECOND, "second"), (formatting.MINUTE, "minute"), (formatting.HOUR, "hour"))


@require_http_methods(["GET", "POST"])
def map_run_page(
    request: HttpRequest, machine_name: str, execution_name: str, number: int
) -> HttpResponse:
    """Show the Map Run of a task; a POST changes its settings."""
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
    """Answer a poll: nothing without a change, else counts and children.

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
    context["pace"] = pace_facts(run, children, over=over, oldest_ms=oldest_ms)
    return context | {"seen": map_run_display.page_stamp(context)}


@dataclass(frozen=True, slots=True)
class StopReason:
    """Why a Map Run was aborted. ``stop``: its execution's stop, None for another reason."""

    words: str
    stop: AuditedAction | None = None


def stop_reason(run: MapRun) -> StopReason | None:
    """Return why a Map Run was aborted, None if it was not or if unknown."""
    if run.status != MapRunStatus.ABORTED:
        return None
    if run.parent.status == ExecutionStatus.ABORTED:
        return StopReason("Its execution was stopped", audit_trail.audit_trail_of(run.parent).stop)
    if run.parent.status == ExecutionStatus.TIMED_OUT:
        return StopReason("Its execution timed out")
    if run.parent.redrive_count:
        return None
    return StopReason("Stopped by the failure of a parallel state")


@dataclass(frozen=True, slots=True)
class PaceFact:
    """A fact. ``value``: the figure; ``rest``: following words; ``bad``: beyond a limit."""

    word: str
    value: str
    rest: str = ""
    bad: bool = False


def pace_facts(
    run: MapRun, children: Counts, *, over: bool, oldest_ms: int | None = None
) -> list[PaceFact]:
    """Return concurrency, tolerated failures and throughput, in words.

    ``oldest_ms``: when the child that has been running longest began, None if that is not known.
    """
    facts = [_concurrency(run, children, over=over), _tolerated(run, children)]
    if not run.redrive_count:  # the time before a redrive is not run time
        facts.append(_throughput(run, children, over=over, oldest_ms=oldest_ms))
    return facts


def _concurrency(run: MapRun, children: Counts, *, over: bool) -> PaceFact:
    limit = f"at most {run.max_concurrency:,}" if run.max_concurrency else "no limit"
    if over:
        return PaceFact("Concurrency", limit)
    return PaceFact("Concurrency", f"{children.running:,} running", f"of {limit}")


def _tolerated(run: MapRun, children: Counts) -> PaceFact:
    """Return actual and tolerated failures in words; AWS counts aborted ones, too.

    The two stand apart: once the limit is passed, the Map Run aborts the children that run.
    """
    failed = children.failed + children.timed_out
    bad = failed + children.aborted
    count, percentage = run.tolerated_count, run.tolerated_percentage
    word = "Tolerated failures"
    if count is None and percentage is None:
        return PaceFact(word, "none", "the first failure ends the Map Run", bad=bad > 0)
    if percentage is not None and run.reading:  # of a total that is not known
        return PaceFact(word, f"{percentage:g} %", "of the items (still reading)")
    limits, words = [], []
    if count is not None:
        limits.append(count)
        words.append(f"{count:,}")
    if percentage is not None:
        limits.append(int(percentage * run.total / 100))
        words.append(f"{percentage:g} %")
    most = min(limits)
    limit = f"{most:,} tolerated" + (f" ({' or '.join(words)})" if percentage is not None else "")
    kinds = "failed or timed out" if children.timed_out else "failed"
    aborted = f", {children.aborted:,} aborted" if children.aborted else ""
    return PaceFact(word, f"{failed:,}", f"{kinds}{aborted}; {limit}", bad=bad > most)


def _throughput(run: MapRun, children: Counts, *, over: bool, oldest_ms: int | None) -> PaceFact:
    now = run.stop_ms or clock.now_ms()
    took_ms = max(now - run.start_ms, 1)
    if not children.ended:
        return PaceFact("Throughput", "none yet" if not over else "none")
    unit_ms, name = next(
        (unit for unit in _UNITS if children.ended * unit[0] >= took_ms), _UNITS[-1]
    )
    rate = children.ended * unit_ms / took_ms
    shown = f"{rate:,.0f}" if rate >= _SURE else f"{rate:.1f}"
    remaining = children.pending + children.running
    rest = f"child execution{'' if shown == '1.0' else 's'} a {name}"
    usual_ms = took_ms * max(children.running, 1) // children.ended  # by Little's law
    stuck = oldest_ms is not None and now - oldest_ms > _STUCK * usual_ms
    sure = children.ended >= _SURE and not stuck
    if children.pending and not over and not run.reading and sure:
        left_ms = remaining * took_ms // children.ended
        rest += f", about {formatting.rough_duration(left_ms)} left"
    return PaceFact("Throughput", shown, rest)
