"""List the registered Lambda functions with their callers; broken ones first, with the fix."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from console.db.branch_names import parent_name
from console.models import StateMachine
from console.statuses import MachineStatus
from console.web.machines import calls

if TYPE_CHECKING:
    from collections.abc import Iterable

    from console.models import Project
    from console.web.core.scope import Scope

MOST_MACHINES = 500
"""In how many definitions, by name, the page looks for who uses a function."""
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

    ``remedy``: what to do where it is broken. ``machines``: the first that name it in their
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
"""Kind and name of what is called -> names of machines."""


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
        for called in _called(definition):
            users[called].add(machine)
    return users


def _called(definition: str) -> Iterable[tuple[str, str]]:
    """Yield kind and name of the functions and activities in a definition."""
    for match in _NAMED.finditer(definition):
        written, kind, name = match.groups()
        if kind:
            yield kind, name
        elif ":function:" not in (text := json.loads(f'"{written}"')):
            yield "function", text.partition(":")[0]
        else:
            yield "function", text.partition(":function:")[2].partition(":")[0]
