"""Views of call targets: registered Lambda functions with callers, and the calls of a machine."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib import messages
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods, require_safe

import engine
from console.db.branch_names import parent_name
from console.errors import ServiceError
from console.features.insights import insights, past_executions
from console.features.targets import calls
from console.features.targets.forms import OptionsForm
from console.models import StateMachine
from console.statuses import MachineStatus
from console.store.machines import machine_options, tags
from console.web.core import formatting
from console.web.core.scope import actor_of, render, require, scope_of
from console.web.machines.views import machine_context

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.http import HttpRequest, HttpResponse

    from console.features.insights.insights import Insight
    from console.models import Execution, Project
    from console.web.core.scope import Scope


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
"""The meaning of each choice of an option."""

_BROKEN = formatting.StatusLabel("failed", "Broken")
"""A registered function that cannot be called."""
_DENIED = formatting.StatusLabel("failed", "Denied")
"""A call that the role of the state machine is denied."""
MOST_EXECUTIONS = 20
"""The number of latest executions that count."""


@require_safe
def target_list(request: HttpRequest) -> HttpResponse:
    """Show ``/targets/``: configured services, functions and addresses."""
    scope = scope_of(request)
    project = scope.project
    users = read_users(scope)
    functions = list_functions(scope, users)
    services = calls.list_services(project)
    changed, targets_problem = settings.STATEYARD_TARGETS_FILE.find_change()
    context = {
        "section": "tasks",
        "tab": "targets",
        "services": services,
        "own_services": calls.list_own_services(project),
        "functions": functions,
        "missing": list_missing(functions, services, users),
        "broken_count": sum(bool(each.function.problem) for each in functions),
        "functions_problem": calls.functions_problem(),
        "targets_changed": changed,
        "targets_problem": targets_problem,
        "broken": _BROKEN,
        "origins": calls.list_origins(project),
    }
    return render(request, "targets/target_list.html", context)


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
    return render(request, "targets/calls.html", context, status=422 if problem else 200)


@dataclass(frozen=True, slots=True)
class RecentCalls:
    """A Task's calls in recent executions. ``last``: the latest execution with the Task, or None.

    The page of that execution shows the input and output of the call.
    """

    insight: Insight
    last: Execution | None


def call_records(machine: StateMachine) -> tuple[int, dict[str, RecentCalls]]:
    """Return the number of executions read, and node -> its calls; raise DefinitionError.

    A state inside a distributed Map runs in child executions; the latest of these count.
    """
    graph = engine.build_graph(engine.parse_stored(machine.definition.text, machine.type))
    executions = past_executions.last_executions(machine, MOST_EXECUTIONS)
    distributed_states = insights.states_in_children(graph)
    inner = past_executions.child_executions(executions) if distributed_states else []
    records = {}
    for node, insight in insights.list_insights(graph, executions, inner).items():
        name = insight.node.name
        entered = (
            run
            for run in (inner if name in distributed_states else executions)
            if name in run.cells
        )
        run = next(entered, None)
        records[node] = RecentCalls(insight, run.execution if run else None)
    return len(executions), records


MOST_MACHINES = 500
"""The number of definitions, by name, that the page searches for users of a function."""
_LISTED = 5
_NAMED = re.compile(r'"FunctionName"\s*:\s*"((?:[^"\\]|\\.)*)"|:(function|activity):([\w-]+)')
_REMEDIES = {
    "Runtime.ImportModuleError": (
        "Install the module for the function's Python, or put its file into the function's folder "
        "or the data folder."
    ),
    "Runtime.UserCodeSyntaxError": "Correct the source.",
    "Runtime.HandlerNotFound": "Correct the name after the colon, or define it in the module.",
    "Runtime.InvalidWorkingDir": "Create the folder, or correct “folder” in the entry.",
}
_OTHERWISE = "Correct the entry or its target."


@dataclass(frozen=True, slots=True)
class ListedFunction:
    """A function. ``source``: its file, and its names in that file.

    ``remedy``: how to repair it, "" if it works. ``machines``: the first that name it in their
    definition; ``more``: how many others do.
    """

    function: calls.FunctionTarget
    source: str
    remedy: str
    machines: tuple[str, ...]
    more: int


@dataclass(frozen=True, slots=True)
class MissingFunction:
    """A function without an implementation. ``machines``: its first callers.

    ``more``: how many others do.
    """

    name: str
    machines: tuple[str, ...]
    more: int


Users = Mapping[tuple[str, str], set[str]]
"""(kind, name) of a function or activity -> names of the state machines that call it."""


def list_missing(
    functions: Iterable[ListedFunction], services: Iterable[calls.ServiceTarget], users: Users
) -> list[MissingFunction]:
    """Return unregistered functions that state machines call, by name.

    A target for ``lambda`` or for every service may have them, so there are none then.
    """
    if any(service.name in ("lambda", "*") for service in services):
        return []
    patterns = [
        _name_pattern(each.function.name) for each in functions if each.function.kind == "Function"
    ]
    ordered = [(kind, name, sorted(users[kind, name])) for kind, name in sorted(users)]
    return [
        MissingFunction(name, tuple(machines[:_LISTED]), len(machines[_LISTED:]))
        for kind, name, machines in ordered
        if kind == "function"
        and not name.startswith("{%")
        and not any(fnmatchcase(name, pattern) for pattern in patterns)
    ]


def _name_pattern(registered: str) -> str:
    """Return the name pattern of a registered name, which may be a pattern of ARNs."""
    _, separator, name = registered.rpartition(":function:")
    if separator:
        return name.partition(":")[0]
    return "*" if registered.startswith("arn") else registered


def list_functions(scope: Scope, users: Users) -> list[ListedFunction]:
    """Return a project's functions, then its samples'; broken ones first, else by name."""
    project = scope.project
    functions = calls.list_functions(project) + calls.list_sample_functions(project)
    rows = [_listed(each, project, users) for each in functions]
    return sorted(rows, key=_place)


def _place(row: ListedFunction) -> tuple[bool, bool, str, str]:
    function = row.function
    return not function.problem, function.sample, function.machine, function.name


def _listed(function: calls.FunctionTarget, project: Project, users: Users) -> ListedFunction:
    machines = _users_of(function, users)
    remedy = _REMEDIES.get(function.problem.partition(":")[0], _OTHERWISE)
    return ListedFunction(
        function,
        _source(function, project),
        remedy if function.problem else "",
        tuple(machines[:_LISTED]),
        len(machines[_LISTED:]),
    )


def _source(function: calls.FunctionTarget, project: Project) -> str:
    if function.sample:
        return "the samples of Stateyard"
    if function.machine:
        return f"targets.json: machines: {function.machine}"
    own = f"functions.json: projects: {parent_name(project.name)}"
    return own if function.own else "functions.json"


def _users_of(function: calls.FunctionTarget, users: Users) -> list[str]:
    """Return the state machines that use a function, by name; a machine's own has one user."""
    kind = "activity" if function.kind == "Activity" else "function"
    by_name: set[str] = set()
    for (called, name), machines in users.items():
        if called == kind and fnmatchcase(name, function.name):
            by_name |= machines
    return sorted(by_name & {function.machine} if function.machine else by_name)


def read_users(scope: Scope) -> Users:
    """Return called functions and activities -> calling machines, in one query."""
    machines = StateMachine.objects.filter(
        project=scope.project, region=scope.region, status=MachineStatus.ACTIVE
    )
    rows = machines.order_by("name").values_list("name", "definition__text")[:MOST_MACHINES]
    users: dict[tuple[str, str], set[str]] = defaultdict(set)
    for machine, definition in rows:
        for called in _called_functions(definition):
            users[called].add(machine)
    return users


def _called_functions(definition: str) -> Iterable[tuple[str, str]]:
    """Yield kind and name of the functions and activities in a definition."""
    for match in _NAMED.finditer(definition):
        written, kind, name = match.groups()
        if kind:
            yield kind, name
        elif ":function:" not in (text := json.loads(f'"{written}"')):
            yield "function", text.partition(":")[0]
        else:
            yield "function", text.partition(":function:")[2].partition(":")[0]
