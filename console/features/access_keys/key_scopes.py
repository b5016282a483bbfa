"""Parse the scope of an access key that a user typed: actions and state machines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from console import access, own_api
from console.errors import ValidationException
from console.models.key_scope import ANY_END, ActionSet, KeyScope

if TYPE_CHECKING:
    from collections.abc import Iterable

_MOST_MACHINES = 50
_MACHINE = re.compile(r"[^\s<>{}\[\]?*\"#%\\^|~`$&,;:/\x00-\x1f\x7f-\x9f]{1,80}")
_SERVER = "stateyard"
_SERVICES = {
    "": "stepfunctions",
    "events": "events",
    "logs": "logs",
    "monitoring": "cloudwatch",
    "scheduler": "scheduler",
}
"""Prefix of a permission -> botocore's name of the service."""
_BESIDE = {"RevealSecrets"}
"""Permissions whose actions have another name."""


def is_api_action(name: str) -> bool:
    """Return whether a name is an action of this server's APIs, allowed in a scope."""
    prefix, _, action = name.rpartition(":")
    if prefix == _SERVER:
        return action in access.actions_of_server()
    if name in _BESIDE:
        return access.least_role(name) is not None
    return prefix in _SERVICES and own_api.serves(_SERVICES[prefix], action)


def read_scope(actions: str | None, listed: Iterable[str], machines: Iterable[str]) -> KeyScope:
    """Return the scope of a user's input; raise ValidationException for unknown names.

    ``actions``: ``read``, ``start`` or ``all``; None for the actions of ``listed``.
    """
    names = _known_names(listed)
    if actions is None and not names:
        raise ValidationException("actions: name at least one action, such as StartExecution")
    if actions is not None and actions not in {*ActionSet}:
        action_sets = ", ".join(ActionSet)
        raise ValidationException(
            f"actions: {actions[:80]!r} is not a set of actions ({action_sets}) or a list"
        )
    if actions is not None and names:
        raise ValidationException(f"actions: a list does not go together with {actions!r}")
    chosen = None if actions is None else ActionSet(actions)
    return KeyScope(chosen, names, _machine_patterns(machines))


def _known_names(listed: Iterable[str]) -> frozenset[str]:
    names = {name.removeprefix("states:") for name in listed}
    for name in sorted(names):
        if not is_api_action(name):
            raise ValidationException(f"actions: there is no action {name[:80]!r} of this API")
    return frozenset(names)


def _machine_patterns(machines: Iterable[str]) -> tuple[str, ...]:
    patterns = tuple(sorted(set(machines)))
    for pattern in patterns:
        if not _MACHINE.fullmatch(pattern.removesuffix(ANY_END)):
            raise ValidationException(
                f"state machines: {pattern[:80]!r} is no name of a state machine, nor a prefix"
                f" such as orders-{ANY_END}"
            )
    if len(patterns) > _MOST_MACHINES:
        raise ValidationException(f"state machines: at most {_MOST_MACHINES} names and prefixes")
    return patterns
