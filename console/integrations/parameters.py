"""Validate a Task's parameters as a request before anything is scheduled, as AWS does.

Nothing is called and nothing of the settings matters but which states are mocked: the same
parameters are always judged the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.integrations import emr, kubernetes, mocks, names, shapes, web

if TYPE_CHECKING:
    from engine import Resource

_OWN_FIELDS = ("http", "apigateway", "eks", "elasticmapreduce", "bedrockagentcore")
"""Services whose Tasks have fields that are not those of one action's request."""


def parameter_problem(resource: Resource, state: str, given: Any) -> str:
    """Return why a service would take these parameters for no request, "" if it would not."""
    if mocks.mentions_state(state):
        return ""
    if resource.service in ("http", "apigateway"):
        return web.find_problem(resource.service, given)
    if resource.service == "eks" and resource.action in kubernetes.ACTIONS:
        return kubernetes.find_problem(resource.action, given)
    if resource.service == "elasticmapreduce" and isinstance(given, dict):
        given = emr.to_emr_parameters(resource.action, given)
    operation = names.find_operation(resource.service, resource.action)
    if operation is None:
        return ""  # the call says so
    found = shapes.find_problems(operation.model.input_shape, given, operation.field_name)
    return ", ".join(found)


def unsupported_fields(resource: Resource, template: Any) -> list[str]:
    """Return the names in a Task's Parameters or Arguments that its action has no field for.

    ``template``: as a definition has it, so that values may be paths and expressions.
    """
    if resource.service in _OWN_FIELDS:
        return []
    operation = names.find_operation(resource.service, resource.action)
    if operation is None or operation.model.input_shape is None:
        return []
    return list(shapes.unknown_names(operation.model.input_shape, template, operation.field_name))
