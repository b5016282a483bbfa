"""Validate request parameters against botocore's service model, with AWS's error messages.

Checked are required members, types, lengths, ranges, enums and patterns.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import re2
from botocore.loaders import Loader
from botocore.model import ServiceModel

import engine
from console.errors import ErrorCode, ProtocolError, ValidationException

if TYPE_CHECKING:
    from botocore.model import OperationModel

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "timestamp": (int, float),
    "list": (list,),
    "structure": (dict,),
    "map": (dict,),
}
_DOUBLE = sys.float_info.max
_RANGES: dict[str, tuple[float, float]] = {
    "integer": (-(2**31), 2**31 - 1),
    "long": (-(2**63), 2**63 - 1),
    "float": (-_DOUBLE, _DOUBLE),
    "double": (-_DOUBLE, _DOUBLE),
    "timestamp": (-62_135_596_800, 253_402_300_799),  # the years 1 to 9999
}
"""Type -> the limits of its values or lengths; NaN is outside of all."""
_NOUNS = {
    "integer": "an integer",
    "long": "an integer",
    "float": "a number",
    "double": "a number",
    "timestamp": "seconds since 1970",
}
_IN_BYTES = ("SensitiveData", 262_144)
"""Name and greatest size of the shape whose texts are counted in bytes of UTF-8 [measured]."""
_REFUSED_LATER = ("TaskToken", 2048)
"""Name and greatest length of a shape whose longer values are an InvalidToken or the like."""
_WITH_NUL = {
    *("Name", "Arn", "LongArn", "Definition", "TaskToken"),  # operations refuse it in their words
    *("SensitiveData", "SensitiveError", "SensitiveCause"),  # it is stored as U+FFFD
}
_ASKED_FOR = {"TargetArn"}
"""Members that only identify an existing resource: no stored name contains U+0000."""
_NO_NUL = r"[^\u0000]*"
# The order in which the service names the values [recorded]; others as the model has them.
_ENUM_ORDER: dict[str, list[str]] = {
    "ExecutionStatus": [
        "SUCCEEDED",
        "TIMED_OUT",
        "PENDING_REDRIVE",
        "ABORTED",
        "FAILED",
        "RUNNING",
    ],
}


@lru_cache(maxsize=8)
def service_model(name: str = "stepfunctions") -> ServiceModel:
    """Return botocore's model of a service, by default Step Functions."""
    return ServiceModel(Loader().load_service_model(name, "service-2"), name)


@lru_cache(maxsize=8)
def operations(name: str) -> dict[str, OperationModel]:
    """Return the actions of a service: name -> botocore's model."""
    model = service_model(name)
    return {action: model.operation_model(action) for action in model.operation_names}


@lru_cache(maxsize=8)
def error_shapes(name: str) -> dict[str, Any]:
    """Return the errors of a service: code -> botocore's shape."""
    return {shape.error_code: shape for shape in service_model(name).error_shapes}


def takes_trace_header(operation: OperationModel, value: str) -> bool:
    """Whether an operation has a ``traceHeader`` that accepts the value."""
    members = operation.input_shape.members if operation.input_shape is not None else {}
    if "traceHeader" not in members:
        return False
    problems: list[str] = []
    _value(members["traceHeader"], value, "traceHeader", problems)
    return not problems


def check_params(operation: OperationModel, params: dict[str, Any]) -> None:
    """Raise ``ValidationException`` with every violation, or ``SerializationException``.

    Members that are null are removed, at any depth: they count as absent.
    """
    problems: list[str] = []
    if operation.input_shape is not None:
        _structure(operation.input_shape, params, "", problems)
    if problems:
        count = len(problems)
        noun = "error" if count == 1 else "errors"
        raise ValidationException(f"{count} validation {noun} detected: {'; '.join(problems)}")


def _structure(shape: Any, value: dict[str, Any], path: str, problems: list[str]) -> None:
    for name in [name for name, inner in value.items() if inner is None]:
        del value[name]
    missing = [name for name in shape.required_members if name not in value]
    problems += [
        _violation(shape.members[name], None, path + name, "not be null") for name in missing
    ]
    for name, member in shape.members.items():
        if name in value:
            _value(member, value[name], path + name, problems)


def _value(shape: Any, value: Any, path: str, problems: list[str]) -> None:
    kind: str = shape.type_name
    if not _fits(kind, value):
        raise ProtocolError(
            ErrorCode.SerializationException, f"{path}: got {type(value).__name__}, wanted {kind}"
        )
    if kind in _RANGES and not _RANGES[kind][0] <= value <= _RANGES[kind][1]:
        least, most = _RANGES[kind]
        number_text = f"{value:g}" if isinstance(value, float) else str(value)[:40]
        raise ProtocolError(
            ErrorCode.SerializationException,
            f"{path}: got {number_text}, wanted {_NOUNS[kind]} from {least} to {most}",
        )
    if kind == "structure":
        _structure(shape, value, f"{path}.", problems)
    elif kind == "list":
        _bounds(shape, len(value), value, path, "have length", problems)
        for number, item in enumerate(value, 1):
            _value(shape.member, item, f"{path}.{number}.member", problems)
    elif kind == "string":
        _string(shape, value, path, problems)
    elif kind == "map":
        for key, item in value.items():
            _value(shape.value, item, f"{path}.{key}", problems)
    elif kind in ("integer", "long", "float", "double"):
        _bounds(shape, value, value, path, "have value", problems)


def _fits(kind: str, value: Any) -> bool:
    """Whether a JSON value has a type of the model; ``true`` is not a number."""
    right = isinstance(value, _TYPES.get(kind, (object,)))
    return right and (kind == "boolean" or not isinstance(value, bool))


def _string(shape: Any, value: str, path: str, problems: list[str]) -> None:
    values = shape.metadata.get("enum")
    if values and value not in values:
        enum_values = _ENUM_ORDER.get(shape.name, values)
        constraint = f"satisfy enum value set: [{', '.join(enum_values)}]"
        problems.append(_violation(shape, value, path, constraint))
    if (shape.name, shape.metadata.get("max")) == _IN_BYTES:
        if engine.byte_size(value) > _IN_BYTES[1]:
            constraint = f"have size less than or equal to {_IN_BYTES[1]} bytes in UTF-8 encoding"
            problems.append(_violation(shape, value, path, constraint))
    else:
        length = len(value)
        if (shape.name, shape.metadata.get("max")) == _REFUSED_LATER:
            length = min(length, _REFUSED_LATER[1])
        _bounds(shape, length, value, path, "have length", problems)
    if "\x00" in value and shape.name not in _WITH_NUL and path not in _ASKED_FOR:
        # No service has a use for it, and PostgreSQL stores none.
        constraint = f"satisfy regular expression pattern: {_NO_NUL}"
        problems.append(_violation(shape, value, path, constraint))
    pattern = shape.metadata.get("pattern")
    if pattern and not _compile_pattern(pattern).search(value):
        constraint = f"satisfy regular expression pattern: {pattern}"
        problems.append(_violation(shape, value, path, constraint))


@lru_cache(maxsize=256)
def _compile_pattern(pattern: str) -> Any:
    """Compile a Java pattern; the whole text must match. RE2 knows classes that Python does not."""
    translated = pattern.replace(r"\p{ASCII}", r"[\x00-\x7f]")
    try:
        return re.compile(rf"\A(?:{translated})\Z")
    except re.error:
        return re2.compile(rf"\A(?:{translated})\z")


def _bounds(
    shape: Any, size: int, value: Any, path: str, quantity: str, problems: list[str]
) -> None:
    least, most = shape.metadata.get("min"), shape.metadata.get("max")
    if least is not None and size < least:
        problems.append(
            _violation(shape, value, path, f"{quantity} greater than or equal to {least}")
        )
    if most is not None and size > most:
        problems.append(_violation(shape, value, path, f"{quantity} less than or equal to {most}"))


def _violation(shape: Any, value: Any, path: str, constraint: str) -> str:
    """Return a violation in the service's words, without a sensitive value [measured]."""
    value_text = "Value null" if value is None else f"Value '{_java_text(shape, value)}'"
    if shape.metadata.get("sensitive"):
        value_text = "Value"
    return f"{value_text} at '{path}' failed to satisfy constraint: Member must {constraint}"


def _java_text(shape: Any, value: Any) -> str:
    """Return a value as Java prints it: ``[RoutingItem(arn=a, weight=50)]``."""
    if shape.type_name == "list" and isinstance(value, list):
        return f"[{', '.join(_java_text(shape.member, item) for item in value)}]"
    if shape.type_name == "structure" and isinstance(value, dict):
        members = [
            f"{name}={_java_text(member, value[name])}"
            for name, member in shape.members.items()
            if value.get(name) is not None
        ]
        return f"{shape.name}({', '.join(members)})"
    return str(value)
