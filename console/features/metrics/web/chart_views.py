"""Views of metric charts, and of the executions counted in a bar."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING, Any

from django.db.models import Q
from django.http import Http404, HttpResponse
from django.views.decorators.http import require_safe

from console.features.metrics import cost, family_cost, read
from console.features.metrics.names import METRICS, REDRIVEN_ENDS, STATUS_OF, Metric
from console.features.metrics.web import charts, span
from console.models import Execution, StateMachine
from console.statuses import MachineType
from console.web.core import formatting
from console.web.core.scope import Scope, render, scope_of
from console.web.machines.views import machine_context
from console.web.search.row_facts import read_row_facts

if TYPE_CHECKING:
    from django.http import HttpRequest

_PAGE = 50
_BARE = ("input", "output", "cause", "error", "trace_header", "definition")


@require_safe
def charts_page(request: HttpRequest) -> HttpResponse:
    """Show ``/charts/``: all state machines."""
    context = {"section": "charts"} | charts.charts_context(scope_of(request), request.GET, None)
    return render(request, "metrics/page.html", context)


@require_safe
def machine_charts(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Show ``/machines/<name>/metrics/``."""
    scope = scope_of(request)
    machine = scope.machine(machine_name)
    context = (
        machine_context(machine)
        | {"tab": "metrics"}
        | charts.charts_context(scope, request.GET, machine)
    )
    chosen: span.ChartSpan = context["span"]
    context["cost"], month, looked_at = family_cost.costs_of_machine(
        machine, chosen.since, chosen.shown_until
    )
    context["month"] = month if month.pace_ms >= cost.SHORTEST_PACE_MS else None
    context["pace"] = formatting.rough_duration(month.pace_ms)
    context["sampled"] = looked_at if looked_at == cost.MOST else 0
    return render(request, "metrics/machine.html", context)


@require_safe
def charts_changes(request: HttpRequest) -> HttpResponse:
    """Answer a poll: changed charts, nothing without a change."""
    scope = scope_of(request)
    context = charts.charts_context(scope, request.GET, _asked_machine(scope, request))
    marks = set(request.GET.get("seen", "").split(","))
    changed = [chart for chart in context["charts"] if f"{chart.name}:{chart.mark}" not in marks]
    combined_charts = [
        chart for chart in context["combined"] if f"{chart.key}:{chart.mark}" not in marks
    ]
    if not changed and not combined_charts:
        return HttpResponse(status=204)
    context |= {"charts": changed, "combined": combined_charts}
    return render(request, "metrics/_live_update.html", context)


@require_safe
def charts_csv(request: HttpRequest) -> HttpResponse:
    """Return ``/charts.csv``: the values of the charts."""
    scope = scope_of(request)
    context = charts.charts_context(scope, request.GET, _asked_machine(scope, request))
    headers = {
        "Cache-Control": "no-store",
        "Content-Disposition": 'attachment; filename="metrics.csv"',
    }
    response = HttpResponse(content_type="text/csv; charset=utf-8", headers=headers)
    rows = csv.writer(response)
    rows.writerow(["metric", "statistic", "unit", "from", "seconds", "value"])
    for chart in context["charts"]:
        for bar in chart.bars:
            start, seconds = formatting.iso_text(bar.start), context["span"].period // 1000
            rows.writerow(
                [chart.name, chart.statistic, chart.unit, start, seconds, f"{bar.value:.10g}"]
            )
    return response


# -- behind a bar ----------------------------------------------------------------------------------


@require_safe
def chart_executions(request: HttpRequest) -> HttpResponse:
    """Show ``/charts/executions/``: the executions counted in a bar."""
    scope, query = scope_of(request), request.GET
    metric = METRICS.get(query.get("metric", ""))
    since, until = (span.minute_of(query.get(name, "")) for name in ("from", "to"))
    if metric is None or metric.group != "executions" or since is None or until is None:
        raise Http404("This address needs a metric, from and to.")
    machine = _asked_machine(scope, request)
    column, executions = _found_executions(scope, metric, since, until, machine)
    total = executions.count()
    counted = _metric_of_bar(scope, metric, since, until, machine)
    page = re.fullmatch(r"(\d{1,15})-(\d{1,15})", query.get("after", ""))
    if page is not None:
        at_ms, number = int(page[1]), int(page[2])
        executions = executions.filter(
            Q(**{f"{column}__lt": at_ms}) | Q(**{column: at_ms}, pk__lt=number)
        )
    rows = list(executions.defer(*_BARE).order_by(f"-{column}", "-pk")[: _PAGE + 1])
    last = rows[_PAGE - 1] if len(rows) > _PAGE else None
    context = {
        "section": "charts",
        "metric": metric,
        "machine": machine,
        "since": since,
        "until": until,
        "total": total,
        "counted": counted,
        "gone": max((counted or 0) - total, 0),
        "rows": rows[:_PAGE],
        "facts": read_row_facts(scope.project, rows[:_PAGE]),
        "after": f"{getattr(last, column)}-{last.pk}" if last else "",
    }
    return render(request, "metrics/executions.html", context)


def _metric_of_bar(
    scope: Scope, metric: Metric, since: int, until: int, machine: StateMachine | None
) -> int | None:
    """Return the metric that a bar counts, None if it is not a count of executions."""
    if metric.unit != "Count" or metric.usual != "Sum" or metric.name == "ExecutionThrottled":
        return None
    question = read.MetricQuery(
        *(scope.project.pk, scope.region, (metric.name,), since, until, until - since),
        resource=None if machine is None else machine.arn,
    )
    buckets = read.read_buckets(question)[metric.name]
    return round(sum(values.statistic("Sum") for values in buckets.values()))


_EXPRESS = (
    *("ExpressExecutionBilledDuration", "ExpressExecutionBilledMemory", "ExpressExecutionMemory"),
)
"""The metrics that only Express executions have."""


def _found_executions(
    scope: Scope, metric: Metric, since: int, until: int, machine: StateMachine | None
) -> tuple[str, Any]:
    """Return the metric's executions, and their time column."""
    starts = {"ExecutionsStarted": "start_ms", "ExecutionsRedriven": "redrive_ms"}
    column = starts.get(metric.name, "stop_ms")
    which: dict[str, Any] = {f"{column}__range": (since, until - 1)}
    if metric.name in STATUS_OF:
        which["status"] = STATUS_OF[metric.name]
    if metric.name in REDRIVEN_ENDS.values():
        which["redrive_count__gt"] = 0
    if metric.name in _EXPRESS:
        which["state_machine__type"] = MachineType.EXPRESS
    if metric.name == "ExecutionThrottled":  # counts what waited, which no execution keeps
        which["pk"] = 0
    rows = Execution.objects.filter(project=scope.project, map_run=None, **which)
    if machine is not None:
        return column, rows.filter(state_machine_arn=machine.arn)
    return column, rows.filter(scope.own_executions)


def _asked_machine(scope: Scope, request: HttpRequest) -> StateMachine | None:
    name = request.GET.get("machine", "")
    return scope.machine(name) if name else None
