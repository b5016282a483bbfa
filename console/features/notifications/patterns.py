"""Match events against event patterns of EventBridge.

``parse(text).matches(text)``: both are JSON texts, because EventBridge compares numbers by how they
are written. Source: "Creating Amazon EventBridge event patterns" of the EventBridge User Guide.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from console.features.notifications import operators

if TYPE_CHECKING:
    from collections.abc import Iterator

PatternError = operators.PatternError
_MAX_CHARACTERS = 4_096
_OR = "$or"
_FEWEST_ALTERNATIVES = 2


@dataclass(frozen=True, slots=True)
class _Leaf:
    """The allowed values of one field: any of the tests, or ``absent``."""

    tests: tuple[operators.Test, ...]
    absent: bool

    def matches(self, values: list[Any]) -> bool:
        scalars = list(_scalars(values))
        if not scalars:
            return self.absent
        return any(test(scalar) for test in self.tests for scalar in scalars)


@dataclass(frozen=True, slots=True)
class _Node:
    """Fields that must all match, and groups with at least one matching alternative."""

    fields: tuple[tuple[str, _Leaf | _Node], ...]
    groups: tuple[tuple[_Node, ...], ...]

    def matches(self, values: list[Any]) -> bool:
        """Match any of the objects; without an object, fields that may be absent match."""
        objects = list(_objects(values)) or [{}]
        return any(self.fits(item) for item in objects)

    def fits(self, value: dict[str, Any]) -> bool:
        """Match one object."""
        return all(
            rule.matches([value[name]] if name in value else []) for name, rule in self.fields
        ) and all(any(alternative.fits(value) for alternative in group) for group in self.groups)


@dataclass(frozen=True, slots=True)
class Pattern:
    """A checked event pattern."""

    root: _Node

    def matches(self, event: str) -> bool:
        """Whether an event (JSON text of an object) matches; raise ``PatternError``."""
        return self.fits(load_event(event))

    def fits(self, event: dict[str, Any]) -> bool:
        """Whether an event that ``load_event`` has read matches."""
        return self.root.matches([event])


def load_event(event: str) -> dict[str, Any]:
    """Read an event for ``Pattern.fits``; raise ``PatternError``."""
    value = _loads(event, "the event")
    if not isinstance(value, dict):
        raise PatternError("The event must be a JSON object")
    return value


def parse_pattern(text: str) -> Pattern:
    """Read and check an event pattern; raise ``PatternError``."""
    if len(text) > _MAX_CHARACTERS:
        msg = f"The pattern has {len(text)} characters. At most {_MAX_CHARACTERS} are accepted"
        raise PatternError(msg)
    return Pattern(_node(_loads(text, "the pattern"), ""))


def _loads(text: str, subject: str) -> Any:
    try:
        return json.loads(
            text, parse_int=operators.PatternNumber, parse_float=operators.PatternNumber
        )
    except (ValueError, ArithmeticError, RecursionError) as error:
        raise PatternError(f"{subject}: no JSON: {error}") from None


def _scalars(values: list[Any]) -> Iterator[Any]:
    """Yield the scalar values: each item of an array; nothing for an object."""
    for value in values:
        if isinstance(value, list):
            yield from _scalars(value)
        elif not isinstance(value, dict):
            yield value


def _objects(values: list[Any]) -> Iterator[dict[str, Any]]:
    for value in values:
        if isinstance(value, list):
            yield from _objects(value)
        elif isinstance(value, dict):
            yield value


# -- reading ---------------------------------------------------------------------------------------


def _node(value: Any, path: str) -> _Node:
    if not isinstance(value, dict):
        raise PatternError(f"{path or 'The pattern'} must be a JSON object")
    if not value:
        raise PatternError(f"{path or 'the pattern'}: an empty object matches nothing")
    fields = tuple(
        (name, _rule(rule, f"{path}.{name}" if path else name))
        for name, rule in value.items()
        if name != _OR
    )
    groups = (_alternatives(value[_OR], f"{path}.{_OR}" if path else _OR),) if _OR in value else ()
    return _Node(fields, groups)


def _rule(value: Any, path: str) -> _Leaf | _Node:
    if isinstance(value, dict):
        return _node(value, path)
    if not isinstance(value, list):
        raise PatternError(f'"{path}" must be an object or an array')
    if not value:
        raise PatternError(f"{path}: an empty array matches nothing")
    return _Leaf(
        tuple(operators.make_operator(item, path) for item in value),
        any(operators.wants_absence(item) for item in value),
    )


def _alternatives(value: Any, path: str) -> tuple[_Node, ...]:
    if not isinstance(value, list) or len(value) < _FEWEST_ALTERNATIVES:
        raise PatternError(f"{path} must be an array of at least two objects")
    return tuple(
        _node(alternative, f"{path}[{number}]") for number, alternative in enumerate(value)
    )
