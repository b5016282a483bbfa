"""Validate a Task's parameters before the task is scheduled, as AWS does.

Nothing is called, and of the settings only mocked states matter, so that the same parameters always
get the same result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.integrations import jobs, mocks, names, shapes, web, web_parameters

if TYPE_CHECKING:
    from engine import Resource

_OWN_FIELDS = ("eks", "elasticmapreduce", "bedrockagentcore")
"""Services whose Tasks have fields that are not fields of an API request."""
_WEB = ("http", "apigateway")


def parameter_problem(resource: Resource, state: str, parameters: Any) -> str:
    """Return why the service would reject the parameters; "" if it accepts them."""
    if mocks.mentions_state(state):
        return ""
    if resource.service in _WEB:
        return web.find_problem(resource.service, parameters)
    find_problem = jobs.service_jobs().problems.get(resource.service)
    if find_problem is not None:
        return find_problem(resource, parameters)
    if jobs.left_out(resource.service, resource.action, resource.pattern):
        return ""  # the call says so
    return model_problem(resource, parameters)


def model_problem(resource: Resource, parameters: Any) -> str:
    """Return why an operation's model rejects the parameters; "" if it accepts them."""
    operation = names.find_operation(resource.service, resource.action)
    if operation is None:
        return ""  # the call says so
    added, parameters = names.split_added_fields(resource.service, resource.action, parameters)
    problems = [
        *_added_problems(resource, added),
        *shapes.find_problems(operation.model.input_shape, parameters, operation.field_name),
    ]
    return ", ".join(problems)


def unsupported_fields(resource: Resource, template: Any) -> list[str]:
    """Return the field names in Parameters or Arguments that the action does not have.

    ``template``: the field of a definition, whose values may be paths and expressions.
    """
    if resource.service in _OWN_FIELDS:
        return []
    if resource.service in _WEB:
        return web_parameters.unknown_names(resource.service, template)
    operation = names.find_operation(resource.service, resource.action)
    if operation is None or operation.model.input_shape is None:
        return []
    added, template = names.split_added_fields(resource.service, resource.action, template)
    members = names.ADDED_FIELDS.get((resource.service, resource.action), {})
    unknown = [
        key
        for name, value in added.items()
        if isinstance(value, dict)
        for key in value
        if key.removesuffix(".$") not in members[name]
    ]
    shape = operation.model.input_shape
    return [*unknown, *shapes.unknown_names(shape, template, operation.field_name)]


def wrong_values(resource: Resource, template: Any) -> list[str]:
    """Return the errors in literal values of a Task's Parameters or Arguments."""
    if resource.service in _WEB:
        return web_parameters.find_wrong_values(resource.service, template)
    return []


def _added_problems(resource: Resource, added: dict[str, Any]) -> list[str]:
    members = names.ADDED_FIELDS.get((resource.service, resource.action), {})
    problems: list[str] = []
    for name, value in added.items():
        if value is None:
            continue
        if not isinstance(value, dict):
            problems.append(f"The value for the field '{name}' must be an OBJECT")
            continue
        problems += [
            f'The field "{name}.{key}" is not supported by Step Functions'
            if key not in members[name]
            else f"The value for the field '{name}.{key}' must be a STRING"
            for key, member in value.items()
            if key not in members[name] or not isinstance(member, str | None)
        ]
    return problems
