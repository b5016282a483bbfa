"""View of the redrive: show what will run again, then redrive a failed execution."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.contrib import messages
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

import engine
from console.errors import ServiceError
from console.store.executions import redrive as store
from console.store.executions import replay
from console.web.core.scope import actor_of, render, require, scope_of
from console.web.execution import iterations, root_cause
from console.web.execution.header import base_context
from console.web.execution.only_fail import runs_only_fail
from console.web.execution.repeated_calls import calls_of_redrive
from console.web.history.traces import open_trace
from engine import VisitStatus

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from console.models import Execution
    from console.web.execution.repeated_calls import RepeatedCalls
    from engine import Graph


_ENDED_BADLY = (VisitStatus.FAILED, VisitStatus.TIMED_OUT, VisitStatus.ABORTED)


@dataclass(frozen=True, slots=True)
class ItemsAgain:
    """A redrive's effect on the iterations or child executions (``kind``) of a Map.

    ``bad``: how many run again, in words; ``not_started``: how many begin that had not.
    """

    owner: str
    kind: str
    bad: str
    not_started: int


@require_http_methods(["GET", "POST"])
def redrive_execution(request: HttpRequest, machine_name: str, execution_name: str) -> HttpResponse:
    """Show what a redrive would run again, or why it is refused; a POST redrives."""
    scope = scope_of(request)
    require(scope, "RedriveExecution")
    execution = scope.own_execution(machine_name, execution_name)
    status = 200
    refused = store.api_refusal(execution)
    if request.method == "POST":
        try:
            store.redrive_execution(execution, actor=actor_of(scope))
        except ServiceError as error:
            refused, status = error.message, 422
        else:
            messages.success(request, "The execution was redriven and continues.")
            return redirect("execution", machine_name, execution.name)
    context = {
        **base_context(execution, machine_name),
        "refused": refused,
        **({"again": []} if refused else _preview(execution)),
    }
    return render(request, "execution/redrive.html", context, status=status)


def _preview(execution: Execution) -> dict[str, Any]:
    """Return the states that would run again, and whether these are only Fail states."""
    again = store.again(execution)
    try:
        graph = engine.build_graph(engine.parse_stored(execution.definition.text))
    except engine.DefinitionError:  # stored by a version that checked less
        return {"again": again}
    only_fail = runs_only_fail(graph, again)
    return {
        "again": again,
        "items_again": _items_again(execution),
        "calls": _calls_again(execution, again),
        "replays": _replays(execution, graph, again),
        "only_fail": only_fail,
        "root": root_cause.root_cause_of(execution) if only_fail else None,
    }


def _calls_again(execution: Execution, again: list[str]) -> RepeatedCalls:
    """Return the recorded calls of the states that run again."""
    with open_trace(execution) as trace:
        return calls_of_redrive(trace, again)


def _replays(execution: Execution, graph: Graph, again: list[str]) -> list[str]:
    """Return the states where a replay with a changed definition can begin."""
    machine = execution.state_machine
    if machine is None or not replay.has_changed(execution):
        return []
    nodes = [graph.by_id[graph.by_name[name]] for name in again if name in graph.by_name]
    text = machine.definition.text
    return [
        node.name
        for node in nodes
        if node.group == engine.TOP and node.type != "Fail" and replay.begins_in(text, node.name)
    ]


def _items_again(execution: Execution) -> list[ItemsAgain]:
    """Return the items that run again of each unsuccessful Map, outer ones first."""
    every = []
    with open_trace(execution) as trace:
        maps = iterations.map_runs_of_execution(execution, trace)
        for node in trace.graph.nodes:
            visits = trace.visits_of(node.id)
            if node.type != "Map" or not visits or visits[-1].status not in _ENDED_BADLY:
                continue
            counted = maps.of_node(node.id) if maps is not None else None
            picker = None if node.distributed else iterations.iteration_picker(trace, node)
            if counted is not None:
                bad = iterations.endings_text(counted.bad)
                every.append(ItemsAgain(node.name, "child executions", bad, counted.pending))
            elif picker is not None:
                bad = iterations.endings_text(
                    (group.count, group.status.word.lower())
                    for group in picker.groups
                    if group.status.tone not in ("succeeded", "caught")
                )
                every.append(ItemsAgain(node.name, "iterations", bad, picker.not_started))
    return [items for items in every if items.bad or items.not_started]
