"""Views of call targets: of the whole project, and of each Task of a state machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib import messages
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

import engine
from console.errors import ServiceError
from console.store.machines import machine_options, tags
from console.web.core import formatting
from console.web.core.scope import actor_of, render, require, scope_of
from console.web.machines import calls, function_list, insights, past_executions
from console.web.machines.forms import OptionsForm
from console.web.machines.machine_views import machine_context

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from console.models import Execution, StateMachine
    from console.web.machines.insights import Insight

_LABELS = {
    machine_options.CHILD_POLICY: "Child executions when the parent ends",
    machine_options.ON_WORKER_LOSS: "Calls with an unknown outcome after a worker died",
}
_WORDS = {
    machine_options.REQUEST_CANCEL: "stop children with a waiting Task (AWS default)",
    machine_options.TERMINATE: "stop all",
    machine_options.ABANDON: "let all continue",
    machine_options.REDISPATCH: "call again",
    machine_options.FAIL: "fail the task",
}
"""What each choice of an option means."""

_BROKEN = formatting.StatusLabel("failed", "Broken")
"""A registered function that cannot be called."""
_DENIED = formatting.StatusLabel("failed", "Denied")
"""A call that the role of the state machine is denied."""
MOST_EXECUTIONS = 20
"""How many of the last executions count."""


@require_safe
def target_list(request: HttpRequest) -> HttpResponse:
    """Show ``/targets/``: configured services, functions and addresses."""
    scope = scope_of(request)
    project = scope.project
    users = function_list.read_users(scope)
    functions = function_list.list_functions(scope, users)
    services = calls.list_services(project)
    changed, targets_problem = settings.STATEYARD_TARGETS_FILE.find_change()
    context = {
        "section": "tasks",
        "tab": "targets",
        "services": services,
        "own_services": calls.list_own_services(project),
        "functions": functions,
        "missing": function_list.list_missing(functions, services, users),
        "broken_count": sum(bool(each.function.problem) for each in functions),
        "functions_problem": calls.functions_problem(),
        "targets_changed": changed,
        "targets_problem": targets_problem,
        "broken": _BROKEN,
        "origins": calls.list_origins(project),
    }
    return render(request, "machines/target_list.html", context)


@require_http_methods(["GET", "POST"])
def calls_page(request: HttpRequest, machine_name: str) -> HttpResponse:
    """Show ``/machines/<name>/calls/``: what each Task would call; nothing is called.

    An editor sets the machine's switches.
    """
    scope = scope_of(request)
    machine = scope.machine(machine_name)
    problem = ""
    if request.method == "POST":
        require(scope, "TagResource")
        try:
            tags.put_own_tags(
                scope.project, machine.arn, OptionsForm(request.POST).values, actor_of(scope)
            )
        except ServiceError as refused:
            problem = refused.message
        else:
            messages.success(request, f"The options of {machine.name} were saved.")
            return redirect(request.get_full_path())
    try:
        task_calls = calls.calls_of_machine(machine)
        looked_at, records = call_records(machine) if task_calls else (0, {})
    except engine.DefinitionError:  # stored by a version that checked less
        task_calls, looked_at, records = None, 0, {}
    context = machine_context(machine) | {
        "tab": "calls",
        "calls": task_calls,
        "records": records,
        "looked_at": looked_at,
        "nothing": formatting.StatusLabel("caught", "Nothing"),
        "broken": _BROKEN,
        "denied": _DENIED,
        "switches": [
            (key, _LABELS[key], value, {each: _WORDS[each] for each in machine_options.VALUES[key]})
            for key, value in machine_options.of_machine(machine.arn).items()
        ],
        "problem": problem,
    }
    return render(request, "machines/calls.html", context, status=422 if problem else 200)


@dataclass(frozen=True, slots=True)
class RecentCalls:
    """A Task's calls in recent executions. ``last``: the latest one that entered it, or None.

    The step of that execution shows what was sent and answered.
    """

    insight: Insight
    last: Execution | None


def call_records(machine: StateMachine) -> tuple[int, dict[str, RecentCalls]]:
    """Return the number of executions read, and node -> its calls; raise DefinitionError.

    A state inside a distributed Map runs in child executions; the latest of these count.
    """
    graph = engine.build_graph(engine.parse_stored(machine.definition.text, machine.type))
    executions = past_executions.last_executions(machine, MOST_EXECUTIONS)
    apart = insights.states_elsewhere(graph)
    inner = past_executions.child_executions(executions) if apart else []
    records = {}
    for node, insight in insights.list_insights(graph, executions, inner).items():
        name = insight.node.name
        entered = (run for run in (inner if name in apart else executions) if name in run.cells)
        run = next(entered, None)
        records[node] = RecentCalls(insight, run.execution if run else None)
    return len(executions), records
