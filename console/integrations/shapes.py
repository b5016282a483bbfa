"""How do the fields of a state become those of a request, and an answer those of a result?

State machines write PascalCase whatever the service uses; botocore's service model says which
fields there are.
"""

from __future__ import annotations

import base64
import datetime as dt
from typing import Any

import engine


class ParametersError(Exception):
    """A parameter is not one of the operation, or has a value it cannot have."""


def request(shape: Any, value: Any, key: str) -> dict[str, Any]:
    """Return the parameters of a call as botocore wants them; raise ``ParametersError``.

    ``shape``: the operation's input, None if it has none. ``key``: what makes the request
    repeatable, for services that take such a token.
    """
    if not isinstance(value, dict):
        raise ParametersError("The Parameters must be an object")
    if shape is None:
        return {}
    made: dict[str, Any] = _structure(shape, value)
    for name, member in shape.members.items():
        if member.metadata.get("idempotencyToken") and name not in made:
            made[name] = key
    return made


def _to_service(shape: Any, value: Any, name: str) -> Any:
    kind = shape.type_name
    if value is None:
        return None
    if kind in _CONTAINERS and not isinstance(value, _CONTAINERS[kind]):
        raise ParametersError(f"The value of the field '{name}' has an invalid format")
    if kind == "structure":
        return _structure(shape, value)
    if kind == "list":
        return [_to_service(shape.member, one, name) for one in value]
    if kind == "map":
        return {key: _to_service(shape.value, one, key) for key, one in value.items()}
    if kind == "string" and isinstance(value, dict | list):
        return engine.dumps(value)  # MessageBody, Message, Detail, Input: objects become text
    if kind == "string" and not isinstance(value, str):
        raise ParametersError(f"The value for the field '{name}' must be a STRING")
    if kind == "blob":
        return (value if isinstance(value, str) else engine.dumps(value)).encode()
    return value


_CONTAINERS: dict[str, type] = {"structure": dict, "list": list, "map": dict}


def _structure(shape: Any, value: dict[str, Any]) -> dict[str, Any]:
    """Match members whatever the case of their first letter."""
    names = {_pascal(name): name for name in shape.members}
    made = {}
    for key, one in value.items():
        name = key if key in shape.members else names.get(key)
        if name is None:
            raise ParametersError(f'The field "{key}" is not supported by Step Functions')
        found = _to_service(shape.members[name], one, key)
        if found is not None:
            made[name] = found
    return made


def result(shape: Any, value: dict[str, Any], *, epoch: bool) -> dict[str, Any]:
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
        return int(value.timestamp() * 1000) if epoch else _iso(value)
    if kind == "blob":
        return _text(value if isinstance(value, bytes) else value.read(engine.MAX_BYTES + 1))
    return value


def _iso(moment: dt.datetime) -> str:
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
