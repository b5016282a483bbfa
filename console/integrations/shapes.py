"""Convert a state's parameters to a botocore request, and a response to the state's result.

botocore's service model has the fields; a ``FieldName`` of ``sdk_names`` has their spelling in
state machines. Parameters of a stored definition may also use the model's own spelling; a new
definition must not have a member with a small first letter (``unknown_names``).
"""

from __future__ import annotations

import base64
import datetime as dt
from itertools import islice
from typing import TYPE_CHECKING, Any

import engine
from console.integrations.sdk_names import capitalized_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.integrations.sdk_names import FieldName


class ParametersError(Exception):
    """A parameter is unknown, or has an invalid value."""


def to_request(
    shape: Any, value: Any, key: str, field_name: FieldName = capitalized_name
) -> dict[str, Any]:
    """Return parameters in botocore's form; raise ``ParametersError``.

    ``shape``: the operation's input, None if it has none. ``key``: the idempotency token, for
    services that accept one. ``field_name``: how state machines write the members. A null is left
    out, as the SDKs do.
    """
    problems = find_problems(shape, value, field_name)
    if problems:
        raise ParametersError(", ".join(problems))
    if shape is None:
        return {}
    parameters: dict[str, Any] = _to_service(shape, value, field_name)
    for name, member in shape.members.items():
        if member.metadata.get("idempotencyToken") and name not in parameters:
            parameters[name] = key
    return parameters


def find_problems(shape: Any, value: Any, field_name: FieldName = capitalized_name) -> list[str]:
    """Return the first errors in parameters: place, actual and expected value.

    A null counts as a value, also for a required field: the service itself checks it [recorded].
    """
    if not isinstance(value, dict):
        return [f"The Parameters must be an OBJECT, got {_shown(value)}"]
    return [] if shape is None else list(islice(_wrong(shape, value, "", field_name), _MOST))


# -- what is wrong ---------------------------------------------------------------------------------

_MOST, _SHOWN = 10, 60
_WANTED: dict[str, tuple[str, tuple[type, ...]]] = {
    "structure": ("an OBJECT", (dict,)),
    "map": ("an OBJECT", (dict,)),
    "list": ("an ARRAY", (list,)),
    "string": ("a STRING", (str, dict, list)),  # objects become text
    "integer": ("an INTEGER", (int,)),
    "long": ("an INTEGER", (int,)),
    "float": ("a NUMBER", (int, float)),
    "double": ("a NUMBER", (int, float)),
    "boolean": ("a BOOLEAN", (bool,)),
    "timestamp": ("a STRING with a time, or a NUMBER", (str, int, float)),
}


def _wrong(shape: Any, value: Any, path: str, field_name: FieldName) -> Iterator[str]:
    """Yield the errors of a value, in the service's words where known."""
    kind = shape.type_name
    if kind == "structure" and shape.is_document_type:
        return  # any JSON
    description, types = _WANTED.get(kind, ("", ()))
    number_only = isinstance(value, bool) and bool not in types
    if types and (number_only or not isinstance(value, types)):
        yield f"The value for the field '{path}' must be {description}, got {_shown(value)}"
    elif kind == "structure":
        yield from _wrong_members(shape, value, path, field_name)
    elif kind == "list":
        for index, member in enumerate(value):
            if member is not None:
                yield from _wrong(shape.member, member, f"{path}[{index}]", field_name)
    elif kind == "map":
        for key, member in value.items():
            if member is not None:
                yield from _wrong(shape.value, member, f"{path}.{key}", field_name)


def _wrong_members(
    shape: Any, value: dict[str, Any], path: str, field_name: FieldName
) -> Iterator[str]:
    before = f"{path}." if path else ""
    names = member_names(shape, field_name)
    for key, member in value.items():
        if key not in names:
            yield f'The field "{before}{key}" is not supported by Step Functions'
        elif member is not None:
            yield from _wrong(shape.members[names[key]], member, before + key, field_name)
    present = {names.get(key) for key in value}
    for name in shape.required_members:
        if name not in present and not shape.members[name].metadata.get("idempotencyToken"):
            yield f"The field '{before}{field_name(shape, name)}' is required but was missing"


def unknown_names(shape: Any, template: Any, field_name: FieldName) -> Iterator[str]:
    """Yield unknown member names in a parameters template; paths are not evaluated.

    The model's own spelling with a small first letter is not reported [measured].
    """
    kind = shape.type_name
    if kind == "structure" and isinstance(template, dict) and not shape.is_document_type:
        names = member_names(shape, field_name)
        for key, member in template.items():
            if key in names and not key[:1].islower():
                yield from unknown_names(shape.members[names[key]], member, field_name)
            elif not key.endswith(".$"):
                yield key
    elif kind == "list" and isinstance(template, list):
        for member in template:
            yield from unknown_names(shape.member, member, field_name)
    elif kind == "map" and isinstance(template, dict):
        for member in template.values():
            yield from unknown_names(shape.value, member, field_name)


def _shown(value: Any) -> str:
    text = engine.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


# -- what is sent ----------------------------------------------------------------------------------


def _to_service(shape: Any, value: Any, field_name: FieldName) -> Any:
    kind = shape.type_name
    if value is None or (kind == "structure" and shape.is_document_type):
        return value
    if kind == "structure":
        names = member_names(shape, field_name)
        return {
            names[key]: _to_service(shape.members[names[key]], member, field_name)
            for key, member in value.items()
            if member is not None
        }
    if kind == "list":
        return [_to_service(shape.member, member, field_name) for member in value]
    if kind == "map":
        return {key: _to_service(shape.value, member, field_name) for key, member in value.items()}
    if kind == "string" and isinstance(value, dict | list):
        return engine.dumps(value)  # MessageBody, Message, Detail, Input: objects become text
    if kind == "blob":
        return (value if isinstance(value, str) else engine.dumps(value)).encode()
    return value


def member_names(shape: Any, field_name: FieldName) -> dict[str, str]:
    """Return accepted spelling -> member name: AWS's spelling and the model's."""
    members = shape.members
    names = {capitalized_name(shape, name): name for name in members}
    names |= {field_name(shape, name): name for name in members}
    return names | {name: name for name in members}


# -- what came back --------------------------------------------------------------------------------


def from_answer(
    shape: Any, value: dict[str, Any], *, epoch: bool, field_name: FieldName = capitalized_name
) -> dict[str, Any]:
    """Convert a response to a state's result. ``epoch``: times in milliseconds, else ISO 8601."""
    if shape is None:
        return {}
    members = {name: member for name, member in value.items() if name in shape.members}
    result: dict[str, Any] = _from_service(shape, members, field_name, epoch=epoch)
    return result


def _from_service(shape: Any, value: Any, field_name: FieldName, *, epoch: bool) -> Any:
    kind = shape.type_name
    if kind == "structure":
        members = shape.members
        return {
            field_name(shape, name): _from_service(members[name], member, field_name, epoch=epoch)
            for name, member in value.items()
            if member is not None and name in members
        }
    if kind == "list":
        return [_from_service(shape.member, member, field_name, epoch=epoch) for member in value]
    if kind == "map":
        of = shape.value
        return {
            key: _from_service(of, member, field_name, epoch=epoch) for key, member in value.items()
        }
    if isinstance(value, dt.datetime):
        return int(value.timestamp() * 1000) if epoch else _java_instant(value)
    if kind == "blob":
        return _text(value if isinstance(value, bytes) else value.read(engine.MAX_BYTES + 1))
    return value


def _java_instant(moment: dt.datetime) -> str:
    """Return a time as Java prints an Instant: milliseconds only if not zero."""
    moment = moment.astimezone(dt.UTC)
    precision = "milliseconds" if moment.microsecond else "seconds"
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return base64.b64encode(data).decode()
