"""Read the states of a definition: one function per state type, from JSON to its dataclass.

A new ASL field is added to ``fields`` (the types that may have it), to ``model`` (its attribute)
and here (its reader).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from engine.data.expression import ABSENT, ROOT, Expression, Literal
from engine.data.jsonata import is_jsonata
from engine.data.paths import REPLACE, PathSyntaxError, ResultPath, compile_result_path
from engine.data.templates import (
    TemplateSyntaxError,
    compile_template,
    compile_value,
    find_collision,
)
from engine.language import fields, model
from engine.language.diagnostics import DiagnosticCode
from engine.language.maps import read_map
from engine.language.platform import current_platform
from engine.language.recovery import read_recovery
from engine.language.resources import is_arn, is_own, parse_resource
from engine.language.rules import check_timestamp, read_choice_rules
from engine.language.scopes import RESERVED_VARIABLE, variable_problem
from engine.language.wording import one_missing

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.language.builder import MachineBuilder
    from engine.language.node import DefinitionNode

_TEXT_FUNCTIONS = (
    "States.Format",
    "States.JsonToString",
    "States.ArrayGetItem",
    "States.Base64Encode",
    "States.Base64Decode",
    "States.Hash",
    "States.UUID",
)


def common_fields(node: DefinitionNode, name: str) -> dict[str, Any]:
    """Return the fields common to all states, as arguments for the dataclass."""
    comment = node.get("Comment")
    return {
        "name": name,
        "language": node.language,
        "comment": comment if isinstance(comment, str) else None,
        "pointer": node.pointer,
    }


def read_next(node: DefinitionNode) -> str | None:
    """Return the name of the next state, None for ``End: true``."""
    value = node.get("Next")
    return value if isinstance(value, str) else None


def read_data_flow(node: DefinitionNode) -> model.DataFlow:
    """Read all data fields.

    A field that the type may not have was noted before; reading it, too, does no harm.
    """
    return model.DataFlow(
        input_path=node.path("InputPath") or ROOT,
        parameters=node.template("Parameters"),
        result_selector=node.template("ResultSelector"),
        result_path=read_result_path(node),
        output_path=node.path("OutputPath") or ROOT,
        arguments=node.template("Arguments"),
        output=node.template("Output"),
        assign=read_assign(node),
    )


def read_result_path(node: DefinitionNode) -> ResultPath | None:
    """Read ResultPath; null discards the result."""
    value = node.get("ResultPath")
    if not node.has("ResultPath"):
        return REPLACE
    if value is None:
        return None
    try:
        if isinstance(value, str):
            return compile_result_path(value)
    except PathSyntaxError:
        pass
    node.error("ResultPath", "Value is not a Reference Path")
    return None


def read_assign(node: DefinitionNode) -> model.Assign | None:
    """Read Assign: only whole variables; ``states`` is reserved."""
    value = node.get("Assign")
    if not node.has("Assign"):
        return None
    if not isinstance(value, dict):
        node.error("Assign", "Expected value of type Object")
        return None
    if not node.jsonata and (problem := find_collision(value)):
        node.error("Assign", problem)
    targets: dict[str, Expression] = {}
    for key, assigned in value.items():
        name = key[:-2] if key.endswith(".$") and not node.jsonata else key
        _check_variable_name(node, key, name)
        single = replace(node, value={key: assigned}, pointer=node.at("Assign"))
        compiled = _compile_assignment(single, key, name)
        if compiled is not None:
            targets[name] = compiled
    return model.Assign(targets)


def _check_variable_name(node: DefinitionNode, key: str, name: str) -> None:
    place = node.at(f"Assign/{key}")
    if problem := variable_problem(name):
        is_reserved = name == RESERVED_VARIABLE
        code = DiagnosticCode.RESERVED_VARIABLE if is_reserved else DiagnosticCode.INVALID_VARIABLE
        node.problems.error(place, problem, code)


def _compile_assignment(single: DefinitionNode, key: str, name: str) -> Expression | None:
    """Compile one variable's value; its field is named ``Assign/x`` in JSONata errors."""
    try:
        if single.jsonata:
            return single.jsonata_template(key, field=f"Assign/{key}")
        if key.endswith(".$"):
            return compile_value(single.get(key), field=key)
        return compile_template(single.get(key), field=name)
    except (TemplateSyntaxError, PathSyntaxError):
        message = f"The value for the field '{key}' must be a valid JSONPath or a valid intrinsic"
        single.problems.error(single.pointer, f"{message} function call")
        return None


# -- one function a type ---------------------------------------------------------------------------


def read_pass(builder: MachineBuilder, node: DefinitionNode, name: str) -> model.Pass:
    """Read a Pass."""
    del builder
    result = node.get("Result") if node.has("Result") else ABSENT
    if isinstance(result, dict) and any(key.endswith(".$") for key in result):
        message = "The content of 'Result' is not evaluated: use 'Parameters' for paths"
        node.problems.warning(node.at("Result"), message, DiagnosticCode.STATIC_RESULT)
    return model.Pass(
        **common_fields(node, name), data=read_data_flow(node), result=result, next=read_next(node)
    )


def read_succeed(builder: MachineBuilder, node: DefinitionNode, name: str) -> model.Succeed:
    """Read a Succeed."""
    del builder
    return model.Succeed(**common_fields(node, name), data=read_data_flow(node))


def read_fail(builder: MachineBuilder, node: DefinitionNode, name: str) -> model.Fail:
    """Read a Fail."""
    del builder
    return model.Fail(
        **common_fields(node, name),
        error=_read_fail_text(node, "Error"),
        cause=_read_fail_text(node, "Cause"),
    )


def _read_fail_text(node: DefinitionNode, name: str) -> Expression | None:
    if node.has(f"{name}Path"):
        return node.path_or_call(f"{name}Path", _TEXT_FUNCTIONS)
    value = node.get(name)
    if node.jsonata and is_jsonata(value):
        return node.expression(name)
    text = node.text(name)
    return None if text is None else Literal(text)


def read_wait(builder: MachineBuilder, node: DefinitionNode, name: str) -> model.Wait:
    """Read a Wait: exactly one of four fields."""
    del builder
    present = [name for name in fields.EXCLUSIVE["Wait"][0] if node.has(name)]
    if not present:
        node.error("", one_missing(fields.EXCLUSIVE["Wait"][0]))
        present = ["Seconds"]
    which: Any = present[0]
    return model.Wait(
        **common_fields(node, name),
        field=which,
        until=_read_until(node, which) or Literal(0),
        path=node.get(which) if which.endswith("Path") else None,
        data=read_data_flow(node),
        next=read_next(node),
    )


def _read_until(node: DefinitionNode, which: str) -> Expression | None:
    if which.endswith("Path"):
        return node.path(which)
    if which == "Seconds":
        return node.scalar(which, 0)
    value = node.get(which)
    if node.jsonata and is_jsonata(value):
        return node.expression(which)
    check_timestamp(node, which)
    return Literal(value)


def read_task(builder: MachineBuilder, node: DefinitionNode, name: str) -> model.Task:
    """Read a Task."""
    return model.Task(
        **common_fields(node, name),
        resource=_read_resource(builder, node),
        data=read_data_flow(node),
        recovery=read_recovery(node, read_data_flow),
        timeout_seconds=_read_seconds(node, "TimeoutSeconds"),
        heartbeat_seconds=_read_seconds(node, "HeartbeatSeconds"),
        credentials=_read_credentials(node),
        next=read_next(node),
    )


def _read_resource(builder: MachineBuilder, node: DefinitionNode) -> model.Resource:
    arn = node.text("Resource")
    if arn is None:
        return model.Resource("", model.TaskKind.SERVICE)
    resource = parse_resource(arn)
    if resource is None or not _is_callable(resource):
        _refuse_resource(node, arn)
        return model.Resource(arn, model.TaskKind.SERVICE)
    if resource.kind is model.TaskKind.ACTIVITY:
        builder.activities.add(arn)
    if problem := _express_problem(resource):
        if builder.express:
            node.error("Resource", problem)
        elif builder.express_child:
            node.newer_error("Resource", problem)
    return resource


def _is_callable(resource: model.Resource) -> bool:
    """Return whether the platform supports the action of an aws-sdk Resource."""
    _, sdk, service = resource.service.rpartition("aws-sdk:")
    return not sdk or current_platform().knows_action(service, resource.action)


def _refuse_resource(node: DefinitionNode, arn: str) -> None:
    """Report a Resource that is not an ARN, or that the service does not know.

    ASL takes any URI as a Resource, and so do linters; the service does not.
    """
    if not is_arn(arn):
        node.newer_error("Resource", "Value is not a valid resource ARN")
        return
    message = (
        f"The resource provided {arn} is not recognized. The value is not a valid resource "
        "ARN, or the resource is not available in this region."
    )
    if is_own(arn) and parse_resource(arn) is None:
        node.error("Resource", message)
    else:
        node.newer_error("Resource", message)


def _express_problem(resource: model.Resource) -> str:
    """Return why an Express execution cannot call the resource, "" if it can."""
    if resource.kind is model.TaskKind.ACTIVITY:
        return "Express state machine does not support Activity ARN"
    if resource.pattern is model.IntegrationPattern.WAIT_FOR_TASK_TOKEN:
        # The service's own message ends with a blank.
        return "Express state machine does not support '.waitForTaskToken' service integration "
    if resource.pattern:
        return "Express state machine does not support '.sync' service integration"
    return ""


def _read_seconds(node: DefinitionNode, name: str) -> Expression | None:
    seconds = node.scalar(name, 1) if node.has(name) else node.path(f"{name}Path")
    timeout = node.get("TimeoutSeconds")
    both = name == "HeartbeatSeconds" and isinstance(timeout, int)
    # ASL: HeartbeatSeconds must be smaller than TimeoutSeconds; the service takes an equal one, too
    # (docs/explanation/fidelity.md). Only literals can be compared now.
    if both and isinstance(seconds, Literal) and seconds.value > timeout:
        node.error(name, f"The value for the field '{name}' must be smaller than 'TimeoutSeconds'")
    return seconds


def _read_credentials(node: DefinitionNode) -> Expression | None:
    credentials = node.child("Credentials")
    if credentials is None:
        return None
    if not credentials.has("RoleArn") and not credentials.has("RoleArn.$"):
        credentials.error("", "The field 'RoleArn' is required but was missing")
    resource = parse_resource(str(node.get("Resource")))
    if resource is not None and resource.kind is model.TaskKind.ACTIVITY:
        credentials.newer_error("", "The field 'Credentials' is not supported for activities")
    return node.template("Credentials")


def read_parallel(builder: MachineBuilder, node: DefinitionNode, name: str) -> model.Parallel:
    """Read a Parallel."""
    branches = node.objects("Branches")
    if node.has("Branches") and node.get("Branches") == []:
        node.error("Branches", "Value cannot be empty")
    return model.Parallel(
        **common_fields(node, name),
        branches=tuple(builder.nested(branch, fields.BRANCH) for branch in branches),
        data=read_data_flow(node),
        recovery=read_recovery(node, read_data_flow),
        next=read_next(node),
    )


def read_choice(builder: MachineBuilder, node: DefinitionNode, name: str) -> model.Choice:
    """Read a Choice."""
    del builder
    return model.Choice(
        **common_fields(node, name),
        rules=read_choice_rules(node, read_data_flow),
        default=node.text("Default"),
        data=read_data_flow(node),
    )


def _read_map(builder: MachineBuilder, node: DefinitionNode, name: str) -> model.Map:
    return read_map(
        builder,
        node,
        {**common_fields(node, name), "next": read_next(node)},
        read_data_flow(node),
        read_data_flow,
    )


BUILDERS: dict[str, Callable[[MachineBuilder, DefinitionNode, str], Any]] = {
    "Pass": read_pass,
    "Task": read_task,
    "Choice": read_choice,
    "Wait": read_wait,
    "Succeed": read_succeed,
    "Fail": read_fail,
    "Parallel": read_parallel,
    "Map": _read_map,
}
