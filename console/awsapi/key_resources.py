"""Find the resource (state machine) of an API call, for access keys limited to state machines.

As with IAM, a limited key cannot use actions without a state machine: lists of all state machines,
actions on activities, actions of other services. Nothing is filtered. Unlike with IAM, SendTask*
calls belong to the state machine whose execution waits for the task.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console import arns
from console.awsapi import services
from console.models.key_scope import UNNAMED, KeyedResource
from console.store.tasks import complete

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.models import Project

_ARN_MEMBERS = (
    "stateMachineArn",
    "stateMachineVersionArn",
    "stateMachineAliasArn",
    "executionArn",
    "mapRunArn",
    "resourceArn",
    "activityArn",
)
_OF_MACHINES = {"stateMachine", "execution", "express", "mapRun"}
_KIND, _NAME, _PARTS = 5, 6, 7
_LONGEST = 300
_ANSWERS = {"SendTaskFailure", "SendTaskHeartbeat", "SendTaskSuccess"}
_LISTED = {"ListActivities": "activity", "ListStateMachines": "stateMachine"}


def resources_of(
    service: services.ApiService,
    action: str,
    params: Mapping[str, Any],
    project: Project,
    region: str,
) -> tuple[KeyedResource, ...]:
    """Return the resources of a call. ``params``: as sent, not yet checked."""
    if service is not services.STATES:
        return (UNNAMED,)
    if action in _ANSWERS:
        return (_resource_of_token(params.get("taskToken"), project),)
    shape = service.operation(action).input_shape
    members = {} if shape is None else shape.members
    arns = [params[name] for name in _ARN_MEMBERS if name in members and params.get(name)]
    if "routingConfiguration" in members:
        routes = params.get("routingConfiguration")
        arns += [
            route.get("stateMachineVersionArn") if isinstance(route, dict) else None
            for route in (routes if isinstance(routes, list) else ())
        ]
    resources = tuple(_resource_of_arn(arn) for arn in arns)
    return resources or (_resource_without_arn(action, params, project, region),)


def _resource_of_arn(arn: object) -> KeyedResource:
    if not isinstance(arn, str):
        return UNNAMED
    parts = arn.partition("#")[0].split(":", _PARTS)
    is_of_machine = len(parts) > _NAME and parts[_KIND] in _OF_MACHINES
    machine = parts[_NAME].partition("/")[0] if is_of_machine else ""
    return KeyedResource(arn[:_LONGEST], machine)


def _resource_of_token(token: object, project: Project) -> KeyedResource:
    arn = complete.execution_of_token(token, project) if isinstance(token, str) else ""
    return _resource_of_arn(arn) if arn else UNNAMED


def _resource_without_arn(
    action: str, params: Mapping[str, Any], project: Project, region: str
) -> KeyedResource:
    name = params.get("name")
    if action == "CreateStateMachine" and isinstance(name, str):
        arn = arns.state_machine_arn(region, project.account_id, name)
        return KeyedResource(arn[:_LONGEST], name)
    if action == "CreateActivity" and isinstance(name, str):
        return KeyedResource(arns.activity_arn(region, project.account_id, name)[:_LONGEST])
    if action in _LISTED:
        partition = arns.partition_of(region)
        place = f"arn:{partition}:states:{region}:{project.account_id}"
        return KeyedResource(f"{place}:{_LISTED[action]}:*")
    return UNNAMED
