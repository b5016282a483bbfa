"""``elasticmapreduce:...``: translate the EMR integration's parameters to EMR's own API.

The integration takes one step instead of a list, ``ClusterId`` instead of ``JobFlowId``, and fleets
and groups by name. Source: "Create and manage Amazon EMR clusters with Step Functions" of the
documentation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import engine
from console.integrations import aws
from console.integrations import parameters as service_parameters
from console.integrations.outcome import Failed, Outcome, Succeeded, TaskAttempt

if TYPE_CHECKING:
    from engine import Resource

_RENAMED = {
    "createCluster": {"JobFlowId": "ClusterId"},
    "addStep": {"StepIds": "StepId"},
    "cancelStep": {"CancelStepsInfoList": "CancelStepsInfo"},
}
_LISTED = ("StepIds", "CancelStepsInfoList")
_BY_NAME = {
    "modifyInstanceFleetByName": ("InstanceFleet", "InstanceFleets", "InstanceFleetId"),
    "modifyInstanceGroupByName": ("InstanceGroup", "InstanceGroups", "InstanceGroupId"),
}


def call(task: TaskAttempt) -> Outcome:
    """Call the EMR operation of an integration's action."""
    parameters = engine.loads(task.input)
    if not isinstance(parameters, dict):
        return aws.call(task)  # which reports the error
    if task.action in _BY_NAME:
        return _modify(task, parameters)
    outcome = aws.call(
        replace(task, input=engine.dumps(to_emr_parameters(task.action, parameters)))
    )
    if not isinstance(outcome, Succeeded):
        return outcome
    return Succeeded(engine.dumps(_call_outcome(task.action, engine.loads(outcome.output))))


def parameter_problem(resource: Resource, parameters: Any) -> str:
    """Return why EMR would reject the parameters; "" if it accepts them."""
    if isinstance(parameters, dict):
        parameters = to_emr_parameters(resource.action, parameters)
    return service_parameters.model_problem(resource, parameters)


def to_emr_parameters(action: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters under EMR's names."""
    rest = dict(parameters)
    if action == "addStep" and "Step" in rest:
        rest["Steps"] = [rest.pop("Step")]
    if action == "addStep" and "ClusterId" in rest:
        rest["JobFlowId"] = rest.pop("ClusterId")
    if action in ("terminateCluster", "setClusterTerminationProtection") and "ClusterId" in rest:
        rest["JobFlowIds"] = [rest.pop("ClusterId")]
    if action == "cancelStep" and "StepId" in rest:
        rest["StepIds"] = [rest.pop("StepId")]
    return rest


def _call_outcome(action: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Return EMR's answer under the integration's names."""
    names = _RENAMED.get(action, {})
    return {names.get(name, name): _first_if_listed(name, value) for name, value in answer.items()}


def _first_if_listed(name: str, value: Any) -> Any:
    return value[0] if name in _LISTED and value else value


def _modify(task: TaskAttempt, parameters: dict[str, Any]) -> Outcome:
    """Change an instance fleet or group by name; EMR takes its id."""
    kind, listed, number = _BY_NAME[task.action]
    parameters_of_list = {"ClusterId": parameters.get("ClusterId")}
    outcome = aws.call(
        replace(task, action=f"list{listed}", input=engine.dumps(parameters_of_list))
    )
    if not isinstance(outcome, Succeeded):
        return outcome
    name, change = parameters.get(f"{kind}Name"), parameters.get(kind)
    every = engine.loads(outcome.output).get(listed, [])
    identifier = next((each.get("Id") for each in every if each.get("Name") == name), None)
    if identifier is None or not isinstance(change, dict):
        return Failed("States.Runtime", f"The cluster has no {kind} that is called '{name}'.")
    changed = {**change, number: identifier}
    one_alone = kind == "InstanceFleet"  # EMR changes one fleet, but a list of groups
    body = {kind: changed} if one_alone else {listed: [changed]}
    text = engine.dumps({**parameters_of_list, **body})
    return aws.call(replace(task, action=f"modify{kind if one_alone else listed}", input=text))
