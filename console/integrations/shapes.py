"""How do the fields of a state become those of a request, and an answer those of a result?

State machines write PascalCase whatever the service uses; botocore's service model says which
fields there are.
"""

from __future__ import annotations

import base64
import datetime as dt
from itertools import islice
from typing import TYPE_CHECKING, Any

import engine

if TYPE_CHECKING:
    from collections.abc import Iterator


class ParametersError(Exception):
    """A parameter is not one of the operation, or has a value it cannot have."""


def to_request(shape: Any, value: Any, key: str) -> dict[str, Any]:
    """Return the parameters of a call as botocore wants them; raise ``ParametersError``.

    ``shape``: the operation's input, None if it has none. ``key``: what makes the request
    repeatable, for services that take such a token.
    """
    found = find_problems(shape, value)
    if found:
        raise ParametersError(", ".join(found))
    if shape is None:
        return {}
    made: dict[str, Any] = _to_service(shape, value)
    for name, member in shape.members.items():
        if member.metadata.get("idempotencyToken") and name not in made:
            made[name] = key
    return made


def find_problems(shape: Any, value: Any) -> list[str]:
    """Return what is wrong with parameters: what, where, got and wanted; the first few."""
    if not isinstance(value, dict):
        return [f"The Parameters must be an OBJECT, got {_shown(value)}"]
    return [] if shape is None else list(islice(_wrong(shape, value, ""), _MOST))


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


def _wrong(shape: Any, value: Any, path: str) -> Iterator[str]:
    """Yield the problems of a value, in the words of the service as far as they are known."""
    kind = shape.type_name
    if kind == "structure" and shape.is_document_type:
        return  # any JSON
    wanted, types = _WANTED.get(kind, ("", ()))
    number_only = isinstance(value, bool) and bool not in types
    if types and (number_only or not isinstance(value, types)):
        yield f"The value for the field '{path}' must be {wanted}, got {_shown(value)}"
    elif kind == "structure":
        yield from _wrong_members(shape, value, path)
    elif kind == "list":
        for index, one in enumerate(value):
            if one is not None:
                yield from _wrong(shape.member, one, f"{path}[{index}]")
    elif kind == "map":
        for key, one in value.items():
            if one is not None:
                yield from _wrong(shape.value, one, f"{path}.{key}")


def _wrong_members(shape: Any, value: dict[str, Any], path: str) -> Iterator[str]:
    before = f"{path}." if path else ""
    known = _names(shape)
    for key, one in value.items():
        if key not in known:
            yield f'The field "{before}{key}" is not supported by Step Functions'
        elif one is not None:
            yield from _wrong(shape.members[known[key]], one, before + key)
    given = {known.get(key) for key, one in value.items() if one is not None}
    for name in shape.required_members:
        if name not in given and not shape.members[name].metadata.get("idempotencyToken"):
            yield f"The field '{before}{_pascal(name)}' is required but was missing"


def _shown(value: Any) -> str:
    text = engine.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


# -- what is sent ----------------------------------------------------------------------------------


def _to_service(shape: Any, value: Any) -> Any:
    kind = shape.type_name
    if value is None or (kind == "structure" and shape.is_document_type):
        return value
    if kind == "structure":
        names = _names(shape)
        return {
            names[key]: _to_service(shape.members[names[key]], one)
            for key, one in value.items()
            if one is not None
        }
    if kind == "list":
        return [_to_service(shape.member, one) for one in value]
    if kind == "map":
        return {key: _to_service(shape.value, one) for key, one in value.items()}
    if kind == "string" and isinstance(value, dict | list):
        return engine.dumps(value)  # MessageBody, Message, Detail, Input: objects become text
    if kind == "blob":
        return (value if isinstance(value, str) else engine.dumps(value)).encode()
    return value


def _names(shape: Any) -> dict[str, str]:
    """Return how members may be written -> their names: the first letter may be either."""
    return {_pascal(name): name for name in shape.members} | {name: name for name in shape.members}


# -- what came back --------------------------------------------------------------------------------


def from_answer(shape: Any, value: dict[str, Any], *, epoch: bool) -> dict[str, Any]:
    """Return an answer as a state's result; ``epoch``: times as milliseconds, else ISO 8601."""
    if shape is None:
        return {}
    known = {name: one for name, one in value.items() if name in shape.members}
    found: dict[str, Any] = _from_service(shape, known, epoch=epoch)
    return found


def _from_service(shape: Any, value: Any, *, epoch: bool) -> Any:
    kind = shape.type_name
    if kind == "structure":
        return {
            _pascal(name): _from_service(shape.members[name], one, epoch=epoch)
            for name, one in value.items()
            if one is not None and name in shape.members
        }
    if kind == "list":
        return [_from_service(shape.member, one, epoch=epoch) for one in value]
    if kind == "map":
        return {key: _from_service(shape.value, one, epoch=epoch) for key, one in value.items()}
    if isinstance(value, dt.datetime):
        return int(value.timestamp() * 1000) if epoch else _java_instant(value)
    if kind == "blob":
        return _text(value if isinstance(value, bytes) else value.read(engine.MAX_BYTES + 1))
    return value


def _java_instant(moment: dt.datetime) -> str:
    """Return a time as Java writes an Instant: milliseconds only where there are some."""
    moment = moment.astimezone(dt.UTC)
    precision = "milliseconds" if moment.microsecond else "seconds"
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return base64.b64encode(data).decode()


def _pascal(name: str) -> str:
    return name[:1].upper() + name[1:]
