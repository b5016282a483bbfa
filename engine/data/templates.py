"""Compile payload templates: Parameters, ResultSelector, ItemSelector and their JSONata twins.

A template is JSON with expressions, such as ``{"id.$": "$.order.id"}``. It is compiled once into a
tree; a part without expressions is a constant, so a static template costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.data.expression import EvaluationScope, Json, Literal
from engine.data.intrinsics import compile_intrinsic
from engine.data.jsonata import (
    UNDEFINED,
    compile_jsonata,
    is_jsonata,
    jsonata_problem,
    looks_broken,
)
from engine.data.paths import PathSyntaxError, compile_path
from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.data.expression import Expression

    # key, value, pointer, field, depth -> name and compiled value of a member
    MemberCompiler = Callable[[str, Json, str, str, int], tuple[str, Expression]]

_MAX_DEPTH = 400


class TemplateSyntaxError(EngineError):
    """A template has an invalid expression.

    ``pointer``: its place in the template, such as ``/a/b.$``.
    """

    def __init__(
        self, message: str, pointer: str, key: str, reason: EngineError | None = None
    ) -> None:
        """``key``: the field the value stands in. ``reason``: the expression's own error."""
        super().__init__(message)
        self.reason = reason
        self.pointer = pointer
        self.key = key


class CollidingKeysError(TemplateSyntaxError):
    """A template has both ``x`` and ``x.$``, which would set the same key."""


@dataclass(frozen=True, slots=True)
class _ObjectTemplate:
    members: tuple[tuple[str, Expression], ...]

    def evaluate(self, scope: EvaluationScope) -> Json:
        pairs = ((name, part.evaluate(scope)) for name, part in self.members)
        return {name: value for name, value in pairs if value is not UNDEFINED}


@dataclass(frozen=True, slots=True)
class _ArrayTemplate:
    elements: tuple[Expression, ...]

    def evaluate(self, scope: EvaluationScope) -> Json:
        values = (part.evaluate(scope) for part in self.elements)
        return [value for value in values if value is not UNDEFINED]


def compile_template(value: Json, *, field: str = "") -> Expression:
    """Compile a JSONPath payload template; raise ``TemplateSyntaxError``.

    In an object at any depth, a key ending in ``.$`` must hold a text: a path, a context path, a
    variable or an intrinsic call; the key loses the ``.$``. Everything else is literal.
    """
    return _compile(value, "", field, _jsonpath_member, 0)


def compile_jsonata_template(value: Json, *, field: str) -> Expression:
    """Compile JSON that contains ``{% %}`` texts; raise ``TemplateSyntaxError``."""
    return _compile(value, "", field, _jsonata_member, 0)


def _compile(
    value: Json, pointer: str, field: str, member: MemberCompiler, depth: int
) -> Expression:
    if depth > _MAX_DEPTH:
        raise TemplateSyntaxError(f"nested deeper than {_MAX_DEPTH} levels", pointer, field)
    if isinstance(value, dict):
        if member is _jsonpath_member and (problem := find_collision(value)):
            raise CollidingKeysError(problem, pointer, field)
        members = tuple(member(key, inner, pointer, field, depth) for key, inner in value.items())
        # A part without expressions becomes one constant, which is handed out and never copied.
        constants = {name: part.value for name, part in members if isinstance(part, Literal)}
        return Literal(constants) if len(constants) == len(members) else _ObjectTemplate(members)
    if isinstance(value, list):
        elements = tuple(
            _compile(inner, f"{pointer}[{index}]", f"{field}[{index}]", member, depth + 1)
            for index, inner in enumerate(value)
        )
        values = [part.value for part in elements if isinstance(part, Literal)]
        return Literal(values) if len(values) == len(elements) else _ArrayTemplate(elements)
    if member is _jsonata_member:
        if is_jsonata(value):
            return _expression(value, pointer, field)
        if looks_broken(value):
            raise TemplateSyntaxError(jsonata_problem(value), pointer, field)
    return Literal(value)


def find_collision(value: dict[str, Json]) -> str | None:
    """Return the problem of a key ``x`` beside ``x.$``, None without such a pair."""
    key = next((name for name in value if name.endswith(".$") and name[:-2] in value), None)
    return None if key is None else f"Both '{key[:-2]}' and '{key}' give the key '{key[:-2]}'"


def _jsonpath_member(
    key: str, value: Json, pointer: str, field: str, depth: int
) -> tuple[str, Expression]:
    place = f"{pointer}/{key}"
    if not key.endswith(".$"):
        return key, _compile(value, place, field, _jsonpath_member, depth + 1)
    try:
        return key[:-2], compile_value(value, field=key)
    except PathSyntaxError as error:
        raise TemplateSyntaxError(str(error), place, key) from None


def compile_value(text: Json, *, field: str) -> Expression:
    """Compile the value of a ``.$`` key: a path or an intrinsic call.

    Raise ``PathSyntaxError``.
    """
    if not isinstance(text, str):
        raise PathSyntaxError(f"got {text!r}, wanted a text")
    if text.startswith("$"):
        return compile_path(text, field=field)
    return compile_intrinsic(text, field=field)


def _jsonata_member(
    key: str, value: Json, pointer: str, field: str, depth: int
) -> tuple[str, Expression]:
    return key, _compile(
        value, f"{pointer}/{key}", _join_field(field, key), _jsonata_member, depth + 1
    )


def _expression(text: str, pointer: str, field: str) -> Expression:
    try:
        return compile_jsonata(text, field=field)
    except PathSyntaxError as error:
        raise TemplateSyntaxError(str(error), pointer, field, error) from None


def _join_field(field: str, name: str) -> str:
    return f"{field}/{name}" if field else name
