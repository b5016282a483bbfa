"""Pages of hot states: where executions fail, retry, take long or cost most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Count, Max, Q
from django.http import Http404
from django.views.decorators.http import require_safe

from console.features.hot_states import figures
from console.features.insights import past_executions
from console.features.insights import views as insight_views
from console.models import Definition
from console.statuses import MachineType
from console.store.machines import versions
from console.web.core.scope import choose, render, scope_of
from console.web.graph.definition_text import picture_context
from console.web.graph.graph_view import graph_view_of
from console.web.machines.views import machine_context

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest, HttpResponse

    from console.features.hot_states.figures import HotState
    from console.models import StateMachine


SIZES = (20, 100, 500)
MOST_LINES = 1000
_BEHIND = {"ran": "Executions that entered it", **figures.FIGURES}
"""Figure -> the heading of the page with the executions that it counts."""
_MOST_VERSIONS = 50


@dataclass(frozen=True, slots=True)
class _Asked:
    """The parameters of a URL."""

    most: int
    source: ExecutionSource
    offered: list[ExecutionSource]
    painted: str
    sort: str


def _asked_of(request: HttpRequest, machine: StateMachine) -> _Asked:
    query = request.GET
    painted = choose(query, "by", figures.FIGURES, "failures")
    offered = list_sources(machine)
    return _Asked(
        int(choose(query, "last", map(str, SIZES), str(SIZES[1]))),
        chosen_source(offered, query.get("of", "")),
        offered,
        painted,
        choose(query, "sort", figures.SORTS, painted),
    )


@require_safe
def hot_states_page(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Show ``/machines/<name>/hot-states/``: the graph coloured by a figure, and the table."""
    machine = scope_of(request).machine(machine_name)
    choice = _asked_of(request, machine)
    text = Definition.objects.get(pk=choice.source.sha256).text
    context = machine_context(machine) | picture_context(text, machine.type, graph_view_of(request))
    context |= {
        "tab": "hot-states",
        "most": choice.most,
        "sizes": SIZES,
        "sources": choice.offered,
        "source": choice.source,
        "figures": figures.FIGURES,
        "painted": choice.painted,
        "sort": choice.sort,
    }
    if context["picture"] is not None and choice.source.executions:
        context |= _states(machine, choice, context)
    return render(request, "hot_states/page.html", context)


def _states(machine: StateMachine, choice: _Asked, picture: dict[str, Any]) -> dict[str, Any]:
    graph, source = picture["graph"], choice.source
    executions = past_executions.last_executions(
        machine, choice.most, definition=source.sha256, among=source.among
    )
    runs = figures.read_runs(graph, executions)
    express = machine.type == MachineType.EXPRESS
    states = figures.list_states(graph, runs, choice.painted, express=express)
    summaries: dict[str, Any] = {state.node.id: state for state in states}
    folded = figures.fold_states(graph, states)
    rows = figures.sort_states(states, choice.sort)
    return {
        "runs": len(executions),
        "inner": len(runs.inner),
        "left_out": min(source.executions, choice.most) - len(executions),
        "most_events": past_executions.MOST_EVENTS,
        "states": [(state, _texts(state)) for state in rows[:MOST_LINES]],
        "more_states": max(len(rows) - MOST_LINES, 0),
        "legend": figures.list_legend(states, choice.painted),
        "express": express,
        "summaries": {
            box.node.id: (folded if box.folded else summaries)[box.node.id]
            for box in picture["picture"].boxes
        },
    }


def _texts(state: HotState) -> dict[str, str]:
    """Return figure -> text, without empty figures."""
    values = {figure: getattr(state, figure) for figure in figures.FIGURES}
    return {
        figure: figures.figure_text(figure, value)
        for figure, value in values.items()
        if value is not None and (value or figure in ("p95", "cost"))
    }


@require_safe
def state_executions(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Show ``/machines/<name>/hot-states/executions/``: the executions that a figure counts."""
    machine = scope_of(request).machine(machine_name)
    choice = _asked_of(request, machine)
    state, figure = request.GET.get("state", "")[:80], request.GET.get("figure", "")
    text = Definition.objects.get(pk=choice.source.sha256).text
    graph = picture_context(text, machine.type, graph_view_of(request)).get("graph")
    if graph is None or state not in graph.by_name or figure not in _BEHIND:
        raise Http404("This address needs a state of the definition and a figure.")
    executions = past_executions.last_executions(
        machine, choice.most, definition=choice.source.sha256, among=choice.source.among
    )
    runs = figures.read_runs(graph, executions)
    context = machine_context(machine) | {
        "tab": "hot-states",
        "most": choice.most,
        "source": choice.source,
        "state": state,
        "figure": figure,
        "figure_heading": _BEHIND[figure],
        "in_children": state in runs.apart,
        "counted": figures.list_counted(runs, state, figure),
    }
    return render(request, "hot_states/executions.html", context)


# -- executions of a revision, a version or an alias -----------------------------------------------


@dataclass(frozen=True, slots=True)
class ExecutionSource:
    """Executions with the same definition. ``key``: in URLs.

    ``executions``: their number among the state machine's last ``past_executions.LOOKED_AT``
    executions. ``among``: a further condition on the executions; None for all with the definition
    ``sha256``.
    """

    key: str
    label: str
    sha256: str
    executions: int
    among: Q | None = None


def list_sources(machine: StateMachine) -> list[ExecutionSource]:
    """Return revisions, current first, then aliases and versions with executions."""
    ran = insight_views.ran_definitions(machine)
    revisions = [
        ExecutionSource(f"revision-{each.key}", each.name, each.sha256, each.executions)
        for each in ran
    ]
    return [*revisions, *_aliases(machine), *_versions(machine)]


def chosen_source(sources: Sequence[ExecutionSource], key: str) -> ExecutionSource:
    """Return the source in the URL, else the current revision if executed, else the last used."""
    with_key = (each for each in sources if each.key == key)
    with_executions = (each for each in sources if each.executions)
    return next(with_key, None) or next(with_executions, sources[0])


def _aliases(machine: StateMachine) -> list[ExecutionSource]:
    """Return each alias with the definition of its latest execution."""
    named = {row.arn: row.name for row in versions.list_aliases(versions.Target(machine))}
    counted = _counts(machine, "alias_arn", list(named)) if named else {}
    return [
        ExecutionSource(f"alias-{named[arn]}", f"alias {named[arn]}", *counts, Q(alias_arn=arn))
        for arn, counts in counted.items()
    ]


def _versions(machine: StateMachine) -> list[ExecutionSource]:
    listed = versions.list_versions(machine, limit=_MOST_VERSIONS)
    numbers = {row.arn: row.number for row in listed}  # the newest first
    counted = _counts(machine, "version_arn", list(numbers)) if numbers else {}
    return [
        ExecutionSource(
            f"version-{numbers[arn]}", f"version {numbers[arn]}", *counts, Q(version_arn=arn)
        )
        for arn, counts in counted.items()
    ]


def _counts(machine: StateMachine, column: str, arns: list[str]) -> dict[str, tuple[str, int]]:
    """Return ARN -> definition of its latest execution, and the executions with it."""
    recent = past_executions.recent_executions(machine, among=Q(**{f"{column}__in": arns}))
    counted = (
        recent.values(column, "definition_id")
        .annotate(executions=Count("pk"), newest=Max("start_ms"))
        .order_by("-newest")
    )
    last: dict[str, tuple[str, int]] = {}
    for row in counted:
        last.setdefault(row[column], (row["definition_id"], row["executions"]))
    return {arn: last[arn] for arn in arns if arn in last}
