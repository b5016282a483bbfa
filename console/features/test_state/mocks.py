"""Validate the mock of a TestState request against the service model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import engine
from console.errors import ValidationException
from console.integrations import items, names

if TYPE_CHECKING:
    from console.integrations.sdk_names import FieldName

_CONTEXT = {
    "Execution": ("Id", "Input", "Name", "RoleArn", "StartTime", "RedriveCount", "RedriveTime"),
    "State": ("EnteredTime", "Name", "RetryCount"),
    "StateMachine": ("Id", "Name"),
    "Task": ("Token",),
}
_NOT_TEXTS = ("Input", "RedriveCount", "RetryCount")
_RECORDED_MAXIMUM = {"MemorySize": 10_240}
"""Shape -> the maximum that TestState was recorded with, where botocore's model has a newer one."""
_PARSED = {("lambda", "invoke"): "Payload"}
"""Integration -> the optional field that it hands on as JSON, where the service has bytes."""
_SCHEMA = "Mock result schema validation error: "
_WORDS: dict[str, tuple[Any, str]] = {
    "string": (str, "a string"),
    "timestamp": (str, "a string"),
    "blob": (str, "a string"),
    "integer": (int, "a number"),
    "long": (int, "a number"),
    "float": ((int, float), "a number"),
    "double": ((int, float), "a number"),
    "boolean": (bool, "a boolean"),
    "list": (list, "an array"),
    "structure": (dict, "an object"),
    "map": (dict, "an object"),
}


def check_mock(params: dict[str, Any], state: Any) -> engine.Mock | None:
    """Return the request's validated mock; None without one. Raises ValidationException."""
    mock = params.get("mock")
    configuration = params.get("stateConfiguration") or {}
    if "errorCausedByState" in configuration:
        _check_origin(configuration["errorCausedByState"], mock or {}, state)
    if mock is None:
        return None
    if params.get("revealSecrets"):
        msg = "TestState does not support RevealSecrets when a mock is specified."
        raise ValidationException(msg)
    if (mock.get("result") is None) == (mock.get("errorOutput") is None):
        msg = "A test mock should have only one of the following fields: [result, errorOutput]."
        raise ValidationException(msg)
    if mock.get("errorOutput") is not None:
        error = mock["errorOutput"]
        if error.get("error") is None:
            raise ValidationException("A test mock's errorOutput must have the field 'error'.")
        return engine.Mock(error=error["error"], cause=error.get("cause"))
    if "mapIterationFailureCount" in configuration and not hasattr(state, "processor"):
        raise ValidationException("MapIterationFailureCount is only supported for a Map state.")
    _check_result(mock, state)
    reader_items, pointed = _items(configuration.get("mapItemReaderData"), state)
    return engine.Mock(
        result=mock["result"],
        failures=configuration.get("mapIterationFailureCount") or 0,
        items=reader_items,
        pointed=pointed,
    )


def _check_origin(name: str, mock: dict[str, Any], state: Any) -> None:
    """Raise ValidationException unless a mocked error can come from the state of this name.

    The name changes no answer, so that nobody would notice a wrong one.
    """
    inner = _inner_states(state)
    if not inner or mock.get("errorOutput") is None:
        raise ValidationException(
            "ErrorCausedByState is only supported with a mocked error of a Map or Parallel state."
        )
    if name not in inner:
        names = ", ".join(sorted(inner))
        raise ValidationException(
            f"ErrorCausedByState must be a state inside of this one ({names}), not {name[:80]}"
        )


def _inner_states(state: Any) -> list[str]:
    """Return the names of all states inside of a Map or Parallel."""
    blocks = getattr(state, "branches", None) or [getattr(state, "processor", None)]
    states = [pair for block in blocks if block for pair in block.states.items()]
    return [name for own, inner in states for name in (own, *_inner_states(inner))]


def _items(data: str | None, state: Any) -> tuple[list[Any] | None, Any]:
    """Return the items of a mocked ItemReader, and the result of its ItemsPointer."""
    reader = getattr(getattr(state, "distributed", None), "item_reader", None)
    if data is None:
        return None, None
    if reader is None:
        raise ValidationException(
            "MapItemReaderData is only supported for a Map state with an ItemReader."
        )
    config = reader.get("ReaderConfig") or {}
    try:
        pointer = str(config.get("ItemsPointer", ""))
        return items.parse_items(data, config), items.find_items(data, pointer) if pointer else None
    except items.ReaderError as error:
        raise ValidationException(f"Invalid mapItemReaderData provided: {error}") from None


def _check_result(mock: dict[str, Any], state: Any) -> None:
    try:
        value = engine.loads(mock["result"])
    except engine.JsonTextError:
        raise ValidationException("Mocked result must be valid JSON") from None
    branches = getattr(state, "branches", None)
    distributed = getattr(state, "distributed", None)
    if distributed is not None and distributed.result_writer is not None:
        if not isinstance(value, dict):
            raise ValidationException("Mocked result must be a JSON object.")
    elif (branches is not None or hasattr(state, "processor")) and not isinstance(value, list):
        raise ValidationException("Mocked result must be an array.")
    if branches is not None and len(value) != len(branches):
        raise ValidationException(
            "Mocked result must contain the same number of items as number of Parallel branches."
        )
    mode = mock.get("fieldValidationMode") or "STRICT"
    resource = getattr(state, "resource", None)
    if mode != "NONE" and resource is not None and resource.kind == "service":
        operation = names.find_operation(resource.service, resource.action)
        shape = None if operation is None else operation.model.output_shape
        if operation is not None and shape is not None:
            parsed = _PARSED.get((resource.service, resource.action))
            if parsed and isinstance(value, dict):
                value = {name: item for name, item in value.items() if name != parsed}
            _check_structure(shape, value, operation.field_name, strict=mode == "STRICT")


def _check_structure(shape: Any, value: Any, field_name: FieldName, *, strict: bool) -> None:
    if not isinstance(value, dict):
        raise ValidationException(f"{_SCHEMA}The result must be an object")
    members = {field_name(shape, name): member for name, member in shape.members.items()}
    required = [field_name(shape, name) for name in shape.required_members]
    for name in required if strict else ():
        if name not in value:
            raise ValidationException(f"{_SCHEMA}Required field '{name}' is missing")
    for name, member_value in value.items():
        if name in members:
            _check_member(members[name], name, member_value, field_name, strict=strict)


def _check_member(
    shape: Any, name: str, value: Any, field_name: FieldName, *, strict: bool
) -> None:
    expected, words = _WORDS.get(shape.type_name, (object, ""))
    right = isinstance(value, expected) and (
        shape.type_name == "boolean" or not isinstance(value, bool)
    )
    if not right:
        raise ValidationException(f"{_SCHEMA}Field '{name}' must be {words}")
    _check_size(shape, name, value)
    if shape.type_name == "structure":
        _check_structure(shape, value, field_name, strict=strict)
    elif shape.type_name == "list":
        for item in value:
            _check_member(shape.member, name, item, field_name, strict=strict)
    elif shape.type_name == "map":
        for item in value.values():
            _check_member(shape.value, name, item, field_name, strict=strict)
    elif value not in (shape.metadata.get("enum") or (value,)):
        raise ValidationException(f"{_SCHEMA}Field '{name}' is not an expected value")


def _check_size(shape: Any, name: str, value: Any) -> None:
    """Raise for a number, text or array outside of its limits."""
    sized = isinstance(value, str | list)
    size = len(value) if sized else value
    if shape.type_name == "blob":
        size = -(-size * 3 // 4)  # Base64: four characters are three bytes
    least = shape.metadata.get("min")
    most = _RECORDED_MAXIMUM.get(shape.name, shape.metadata.get("max"))
    if least is not None and size < least:
        words = "smaller than the minimum length" if sized else "less than the minimum value"
        raise ValidationException(f"{_SCHEMA}Field '{name}' is {words}")
    if most is not None and size > most:
        words = "maximum length" if sized else "maximum value"
        raise ValidationException(f"{_SCHEMA}Field '{name}' exceeds the {words}")


def parse_context(text: str, state: Any) -> dict[str, Any]:
    """Return a validated context object for a state; raise ValidationException."""
    try:
        value = engine.loads(text)
    except engine.JsonTextError as error:
        raise _bad_context(str(error)) from None
    if not isinstance(value, dict):
        raise _bad_context("must be a JSON object")
    if "Map" in value:
        raise _bad_context("'Map' field is not supported when mocking a Context object")
    if "Task" in value and not getattr(getattr(state, "resource", None), "pattern", ""):
        raise _bad_context(
            "Context object contains 'Task' when state is not a Task state with a '.sync' or "
            "'.waitForTaskToken' service integration pattern"
        )
    for group, fields in value.items():
        if group not in _CONTEXT:
            raise _bad_context(f"Field '{group}' is not allowed")
        for name, field in fields.items():
            if name not in _CONTEXT[group]:
                raise _bad_context(f"Field '{name}' is not allowed")
            if name not in _NOT_TEXTS and not isinstance(field, str):
                raise _bad_context(f"{group}.{name} must be a string")
    return value


def _bad_context(problem: str) -> ValidationException:
    return ValidationException(f"Invalid Context object provided: {problem}")
