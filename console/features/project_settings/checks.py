"""Validate owners' settings, with the same rules and messages for pages and files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import engine
from console.config import environment, quotas, setting_shapes
from console.config.environment import SettingError
from console.errors import ValidationException
from console.store.executions import retention

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_LONGEST_ROLE = 256
_MOST_ACTIONS = 500


def checked_quota(project: str, name: str, value: Any) -> Any:
    """Return a valid quota; raise ValidationException above the operator's ceiling."""
    try:
        return quotas.read_own_quota(project, name, value)
    except SettingError as error:
        raise ValidationException(str(error)) from None


def checked_denial(role: Any, actions: Any) -> list[str]:
    """Return the valid denied actions of a role; raise ValidationException."""
    problem = role_problem(role)
    if problem:
        raise ValidationException(problem)
    _check_shape(setting_shapes.PERMISSIONS, {"deny": {role: actions}}, "denied actions")
    if not actions:
        raise ValidationException(f"deny: {role}: name at least one action")
    if len(actions) > _MOST_ACTIONS:
        raise ValidationException(
            f"deny: {role}: {len(actions)} actions are more than {_MOST_ACTIONS}, the most possible"
        )
    return list(dict.fromkeys(actions))


def role_problem(role: Any) -> str:
    """Return why a role cannot have denied actions, "" if it can."""
    if isinstance(role, str) and role.strip() and len(role) <= _LONGEST_ROLE:
        return ""
    got = repr(role[:_LONGEST_ROLE]) if role and isinstance(role, str) else "nothing"
    return (
        f"role: got {got}, wanted the name or ARN of a role, of at most {_LONGEST_ROLE} characters"
    )


def checked_mocks(value: Any) -> dict[str, Any]:
    """Return a valid mock configuration; raise ValidationException."""
    if not isinstance(value, dict):
        raise ValidationException("A mock configuration must be a JSON object.")
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except ValueError:
        raise ValidationException(
            "got a value that JSON in UTF-8 does not have: infinity, no number, half a character"
        ) from None
    _check_shape(setting_shapes.MOCKS, value, "mocks")
    return value


def read_mocks(text: str) -> dict[str, Any]:
    """Parse a mock configuration; raise ValidationException."""
    try:
        value = json.loads(text, object_pairs_hook=engine.unique_members)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ValidationException(f"{place}: got no JSON ({error.msg})") from None
    except (ValueError, engine.JsonTextError, RecursionError) as error:
        raise ValidationException(f"got no JSON ({error})") from None
    return checked_mocks(value)


def checked_days(value: Any) -> float:
    """Return the days of retention; raise ValidationException above the ceiling."""
    return retention.read_own_days(value)


def _check_shape(shape: TypeAdapter[Any], value: Any, where: str) -> None:
    try:
        environment.check_object(value, where, shape)
    except SettingError as error:
        raise ValidationException(str(error)) from None
