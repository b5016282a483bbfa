"""How does the text of each state type become its compiled form?

One function a type. A field that is new in ASL is added to ``fields`` (who may have it), to
``model`` (where it is kept) and here (how it is read).

(Above 300 lines: one table of small functions.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.data.expression import ABSENT, ROOT, Expression, Literal
from engine.data.jsonata import is_jsonata
from engine.data.paths import REPLACE, PathSyntaxError, ResultPath, compile_result_path
from engine.data.templates import (
    TemplateSyntaxError,
    collision,
    compile_template,
    compile_value,
)
from engine.language import fields, model
from engine.language.choice import timestamp
from engine.language.diagnostics import STATIC_RESULT, UNKNOWN_RESOURCE
from engine.language.maps import map_state
from engine.language.recovery import recovery
from engine.language.resources import is_own, parse_resource
from engine.language.rules import choice_rules

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.language.build import Builder
    from engine.language.node import Node

_TEXT_FUNCTIONS = (
    "States.Format",
    "States.JsonToString",
    "States.ArrayGetItem",
    "States.Base64Encode",
    "States.Base64Decode",
    "States.Hash",
    "States.UUID",
)


def common(node: Node, name: str) -> dict[str, Any]:
    """Return what every state has."""
    comment = node.get("Comment")
    return {
        "name": name,
        "language": node.language,
        "comment": comment if isinstance(comment, str) else None,
        "pointer": node.pointer,
    }


def following(node: Node) -> str | None:
    """Return the name of the next state, None for the end."""
    value = node.get("Next")
    return value if isinstance(value, str) else None


def data_flow(node: Node) -> model.DataFlow:
    """Read all data fields; those a type does not have were noted before and do no harm."""
    return model.DataFlow(
        input_path=node.path("InputPath") or ROOT,
        parameters=node.template("Parameters"),
        result_selector=node.template("ResultSelector"),
        result_path=result_path(node),
        output_path=node.path("OutputPath") or ROOT,
        arguments=node.template("Arguments"),
        output=node.template("Output"),
        assign=assign(node),
    )


def result_path(node: Node) -> ResultPath | None:
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
    node.error("ResultPath", f"Value is not a Reference Path: {value!r}")
    return None


def assign(node: Node) -> model.Assign | None:
    """Read Assign: whole variables only, ``states`` is reserved."""
    value = node.get("Assign")
    if not node.has("Assign"):
        return None
    if not isinstance(value, dict):
        node.error("Assign", "Expected value of type Object")
        return None
    if not node.jsonata and (problem := collision(value)):
        node.error("Assign", problem)
    targets: dict[str, Expression] = {}
    for key, one in value.items():
        name = key[:-2] if key.endswith(".$") and not node.jsonata else key
        if not name.isidentifier() or len(name) > 80 or name == "states":  # noqa: PLR2004
            node.error(f"Assign/{key}", f"'{name}' is not a valid variable name")
        single = type(node)({key: one}, node.at("Assign"), node.language, node.problems)
        compiled = _assigned(single, key, name)
        if compiled is not None:
            targets[name] = compiled
    return model.Assign(targets)


def _assigned(single: Node, key: str, name: str) -> Expression | None:
    """Compile one variable's value; its field is named ``Assign/x`` in JSONata errors."""
    try:
        if single.jsonata:
            return single.jsonata_template(key, field=f"Assign/{key}")
        if key.endswith(".$"):
            return compile_value(single.get(key), field=key)
        return compile_template(single.get(key), field=name)
    except (TemplateSyntaxError, PathSyntaxError):
        what = f"The value for the field '{key}' must be a valid JSONPath or a valid intrinsic"
        single.problems.error(single.pointer, f"{what} function call")
        return None


# -- one function a type ---------------------------------------------------------------------------


def pass_state(builder: Builder, node: Node, name: str) -> model.Pass:
    """Read a Pass."""
    del builder
    result = node.get("Result") if node.has("Result") else ABSENT
    if isinstance(result, dict) and any(key.endswith(".$") for key in result):
        what = "The content of 'Result' is not evaluated: use 'Parameters' for paths"
        node.problems.warning(node.at("Result"), what, STATIC_RESULT)
    return model.Pass(
        **common(node, name), data=data_flow(node), result=result, next=following(node)
    )


def succeed_state(builder: Builder, node: Node, name: str) -> model.Succeed:
    """Read a Succeed."""
    del builder
    return model.Succeed(**common(node, name), data=data_flow(node))


def fail_state(builder: Builder, node: Node, name: str) -> model.Fail:
    """Read a Fail."""
    del builder
    return model.Fail(
        **common(node, name), error=_words(node, "Error"), cause=_words(node, "Cause")
    )


def _words(node: Node, name: str) -> Expression | None:
    if node.has(f"{name}Path"):
        return node.path_or_call(f"{name}Path", _TEXT_FUNCTIONS)
    value = node.get(name)
    if node.jsonata and is_jsonata(value):
        return node.expression(name)
    text = node.text(name)
    return None if text is None else Literal(text)


def wait_state(builder: Builder, node: Node, name: str) -> model.Wait:
    """Read a Wait: exactly one of four fields."""
    del builder
    given = [one for one in fields.EXCLUSIVE["Wait"][0] if node.has(one)]
    if not given:
        choices = ", ".join(fields.EXCLUSIVE["Wait"][0])
        node.error("", f"One of these fields is required: [{choices}]")
        given = ["Seconds"]
    which: Any = given[0]
    return model.Wait(
        **common(node, name),
        field=which,
        until=_until(node, which) or Literal(0),
        path=node.get(which) if which.endswith("Path") else None,
        data=data_flow(node),
        next=following(node),
    )


def _until(node: Node, which: str) -> Expression | None:
    if which.endswith("Path"):
        return node.path(which)
    if which == "Seconds":
        return node.scalar(which, 0)
    value = node.get(which)
    if node.jsonata and is_jsonata(value):
        return node.expression(which)
    if timestamp(value) is None:
        node.error(which, "String does not match RFC3339 timestamp")
    return Literal(value)


def task_state(builder: Builder, node: Node, name: str) -> model.Task:
    """Read a Task."""
    return model.Task(
        **common(node, name),
        resource=_resource(builder, node),
        data=data_flow(node),
        recovery=recovery(node, data_flow),
        timeout_seconds=_seconds(node, "TimeoutSeconds"),
        heartbeat_seconds=_seconds(node, "HeartbeatSeconds"),
        credentials=_credentials(node),
        next=following(node),
    )


def _resource(builder: Builder, node: Node) -> model.Resource:
    arn = node.text("Resource")
    if arn is None:
        return model.Resource("", "service")
    resource = parse_resource(arn)
    if resource is None:
        _unknown_resource(node, arn)
        return model.Resource(arn, "service")
    if resource.kind == "activity":
        builder.activities.add(arn)
    if builder.express:
        _check_express(node, resource)
    return resource


def _unknown_resource(node: Node, arn: str) -> None:
    """Refuse what the service's own names do not hold; of others' names only warn.

    ASL takes any URI as a Resource, and the service's linters do, too.
    """
    what = (
        f"The resource provided {arn} is not recognized. The value is not a valid resource "
        "ARN, or the resource is not available in this region."
    )
    if is_own(arn) or not arn:
        node.error("Resource", what)
    else:
        node.problems.warning(node.at("Resource"), what, UNKNOWN_RESOURCE)


def _check_express(node: Node, resource: model.Resource) -> None:
    if resource.kind == "activity":
        node.error("Resource", "Express state machine does not support Activity ARN")
    elif resource.pattern is model.Pattern.WAIT_FOR_TASK_TOKEN:
        # the blank at the end is the service's own [recorded]
        what = "Express state machine does not support '.waitForTaskToken' service integration "
        node.error("Resource", what)
    elif resource.pattern:
        what = "Express state machine does not support '.sync' service integration"
        node.error("Resource", what)


def _seconds(node: Node, name: str) -> Expression | None:
    seconds = node.scalar(name, 1) if node.has(name) else node.path(f"{name}Path")
    timeout = node.get("TimeoutSeconds")
    both = name == "HeartbeatSeconds" and isinstance(timeout, int)
    if both and isinstance(seconds, Literal) and seconds.value >= timeout:
        node.error(name, f"The value for the field '{name}' must be smaller than 'TimeoutSeconds'")
    return seconds


def _credentials(node: Node) -> Expression | None:
    credentials = node.child("Credentials")
    if credentials is None:
        return None
    if not credentials.has("RoleArn") and not credentials.has("RoleArn.$"):
        credentials.error("", "The field 'RoleArn' is required but was missing")
    return node.template("Credentials")


def parallel_state(builder: Builder, node: Node, name: str) -> model.Parallel:
    """Read a Parallel."""
    branches = node.objects("Branches")
    if node.has("Branches") and node.get("Branches") == []:
        node.error("Branches", "Value cannot be empty")
    return model.Parallel(
        **common(node, name),
        branches=tuple(builder.nested(branch, fields.BRANCH) for branch in branches),
        data=data_flow(node),
        recovery=recovery(node, data_flow),
        next=following(node),
    )


def choice_state(builder: Builder, node: Node, name: str) -> model.Choice:
    """Read a Choice."""
    del builder
    return model.Choice(
        **common(node, name),
        rules=choice_rules(node, data_flow),
        default=node.text("Default"),
        data=data_flow(node),
    )


def _map(builder: Builder, node: Node, name: str) -> model.Map:
    return map_state(
        builder, node, {**common(node, name), "next": following(node)}, data_flow(node), data_flow
    )


BUILDERS: dict[str, Callable[[Builder, Node, str], Any]] = {
    "Pass": pass_state,
    "Task": task_state,
    "Choice": choice_state,
    "Wait": wait_state,
    "Succeed": succeed_state,
    "Fail": fail_state,
    "Parallel": parallel_state,
    "Map": _map,
}
