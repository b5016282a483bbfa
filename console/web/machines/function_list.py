"""List the registered functions: the broken ones first, with what to do and who uses them."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from console.models import StateMachine
from console.statuses import MachineStatus
from console.web.machines import calls

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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
_OTHERWISE = "Correct the entry, or what it names."


@dataclass(frozen=True, slots=True)
class ListedFunction:
    """A function. ``source``: in which file it is registered, and under which names there.

    ``remedy``: what to do where it is broken. ``machines``: the first that name it in their
    definition; ``more``: how many others do.
    """

    function: calls.FunctionTarget
    source: str
    remedy: str
    machines: tuple[str, ...]
    more: int


def list_functions(scope: Scope) -> list[ListedFunction]:
    """Return those of a project and then of its samples, the broken ones first, else by name."""
    project = scope.project
    functions = calls.list_functions(project) + calls.list_sample_functions(project)
    users = _users(scope) if functions else {}
    rows = [_listed(each, project, users) for each in functions]
    return sorted(rows, key=_place)


def _place(row: ListedFunction) -> tuple[bool, bool, str, str]:
    function = row.function
    return not function.problem, function.sample, function.machine, function.name


def _listed(
    function: calls.FunctionTarget, project: Project, users: Mapping[tuple[str, str], set[str]]
) -> ListedFunction:
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
        return "the samples of Stepyard"
    if function.machine:
        return f"targets.json: machines: {function.machine}"
    return f"functions.json: projects: {project.name}" if function.own else "functions.json"


def _users_of(
    function: calls.FunctionTarget, users: Mapping[tuple[str, str], set[str]]
) -> list[str]:
    """Return the machines that name a function, by name; of one for a machine, that one only."""
    kind = "activity" if function.kind == "Activity" else "function"
    by_name: set[str] = set()
    for (called, name), machines in users.items():
        if called == kind and fnmatchcase(name, function.name):
            by_name |= machines
    return sorted(by_name & {function.machine} if function.machine else by_name)


def _users(scope: Scope) -> dict[tuple[str, str], set[str]]:
    """Return kind and name of what is called -> names of machines, read in one query."""
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
    """Yield kind and name of the functions and activities that a definition names."""
    for match in _NAMED.finditer(definition):
        written, kind, name = match.groups()
        if kind:
            yield kind, name
        elif ":function:" not in (text := json.loads(f'"{written}"')):
            yield "function", text.partition(":")[0]
        else:
            yield "function", text.partition(":function:")[2].partition(":")[0]
