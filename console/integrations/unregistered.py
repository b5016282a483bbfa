"""Find Lambda functions that a definition calls but nobody has registered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import engine
from console import arns
from console.integrations import targets

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.models import Project

_FUNCTION = ":function:"
_INVOKE = ":states:::lambda:invoke"


def may_call_functions(text: str) -> bool:
    """Whether a definition may call a function: a cheap test before the real search.

    Behind a backslash of JSON anything may stand.
    """
    return _FUNCTION in text or _INVOKE in text or "\\" in text


def unregistered_functions(text: str, project: Project, region: str) -> Iterator[tuple[str, str]]:
    """Yield state and name of each call of an unregistered function.

    Functions registered for any state machine of the project, and names that the execution
    computes, are not reported.
    """
    if not may_call_functions(text):
        return
    names = ["", *(name for name, _ in targets.sections_of(project.name) if name)]
    keys = [targets.MachineKey(project.name, name) for name in names]
    prefix = f"arn:{arns.partition_of(region)}:lambda:{region}:{project.account_id}{_FUNCTION}"
    try:
        nodes = engine.build_graph(engine.parse_stored(text, "STANDARD")).nodes
    except engine.DefinitionError:
        return
    for node in nodes:
        name = _function_of(json.loads(node.text))
        if name and not any(_has_place(name, f"{prefix}{name}", key) for key in keys):
            yield node.name, name


def _has_place(name: str, arn: str, machine: targets.MachineKey) -> bool:
    if targets.find_entry("lambda", machine) is not None:
        return True
    return targets.find_function(name, arn, machine) is not None


def _function_of(state: dict[str, Any]) -> str:
    """Return the name of the function that a state calls; "" if it is not a literal."""
    resource = str(state.get("Resource", ""))
    if _INVOKE in resource:
        parameters = state.get("Arguments", state.get("Parameters"))
        name_or_arn = parameters.get("FunctionName") if isinstance(parameters, dict) else None
        resource = (
            name_or_arn if isinstance(name_or_arn, str) and not name_or_arn.startswith("{%") else ""
        )
        if _FUNCTION not in resource:
            return resource.partition(":")[0]
    return resource.partition(_FUNCTION)[2].partition(":")[0]
