"""The conditions of Choice rules, compiled.

A value of the wrong type makes a comparison false; it is no error. A missing Variable is an error,
except for IsPresent. Texts are ordered as Java orders them, by UTF-16 code units. Source: "Choice
workflow state" and recorded executions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from engine.data.expression import ABSENT, EvaluationScope, Json
from engine.data.result_types import unexpected_type_error
from engine.data.timestamps import parse_timestamp
from engine.errors import InterpreterError

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.data.expression import Expression


class ChoiceCondition(Protocol):
    """A compiled rule."""

    def holds(self, scope: EvaluationScope) -> bool:
        """Tell whether the rule holds; raise ``InterpreterError`` if its Variable is missing."""
        ...


@dataclass(frozen=True, slots=True)
class And:
    """All rules hold."""

    rules: tuple[ChoiceCondition, ...]

    def holds(self, scope: EvaluationScope) -> bool:
        """Stop at the first that does not."""
        return all(rule.holds(scope) for rule in self.rules)


@dataclass(frozen=True, slots=True)
class Or:
    """Any rule holds."""

    rules: tuple[ChoiceCondition, ...]

    def holds(self, scope: EvaluationScope) -> bool:
        """Stop at the first that does."""
        return any(rule.holds(scope) for rule in self.rules)


@dataclass(frozen=True, slots=True)
class Not:
    """The rule does not hold."""

    rule: ChoiceCondition

    def holds(self, scope: EvaluationScope) -> bool:
        """Turn it around."""
        return not self.rule.holds(scope)


@dataclass(frozen=True, slots=True)
class Comparison:
    """``Variable`` against a constant or, for the ``...Path`` operators, another path."""

    variable: Expression
    test: Callable[[Json, Json], bool]
    value: Expression
    path: str

    def holds(self, scope: EvaluationScope) -> bool:
        """Compare."""
        found = _look_up(self.variable, scope)
        if found is ABSENT:
            msg = f"Invalid path '{self.path}': The choice state's condition path references an "
            raise InterpreterError(msg + "invalid value.")
        return self.test(found, self.value.evaluate(scope))


@dataclass(frozen=True, slots=True)
class Presence:
    """``IsPresent``."""

    variable: Expression
    wanted: bool

    def holds(self, scope: EvaluationScope) -> bool:
        """An explicit null is present; an element beyond an array is not."""
        return (_look_up(self.variable, scope, presence=True) is not ABSENT) is self.wanted


@dataclass(frozen=True, slots=True)
class Jsonata:
    """``Condition`` of a JSONata rule."""

    expression: Expression

    def holds(self, scope: EvaluationScope) -> bool:
        """Evaluate; anything but a boolean is an error."""
        value = self.expression.evaluate(scope)
        if not isinstance(value, bool):
            field = getattr(self.expression, "field", "Condition")
            raise unexpected_type_error(self.expression, field, "boolean", value)
        return value


def _look_up(variable: Expression, scope: EvaluationScope, *, presence: bool = False) -> Json:
    find = getattr(variable, "found", None)
    if find is None:
        return variable.evaluate(scope)
    if presence and (precise := getattr(variable, "present", None)) is not None:
        return ABSENT if not precise(scope) else None
    return find(scope)


# -- comparisons -----------------------------------------------------------------------------------


def _java_order(value: Json) -> bytes | None:
    """Return bytes that are ordered as Java's compareTo orders texts; None for all else."""
    # Python orders by code points. The two differ for characters beyond U+FFFF, such as emoji:
    # Java sees two surrogates, U+D800 to U+DFFF, which come before U+E000 to U+FFFF.
    return value.encode("utf-16-be", "surrogatepass") if isinstance(value, str) else None


def _as_number(value: Json) -> float | None:
    return None if isinstance(value, bool) or not isinstance(value, int | float) else value


def _as_boolean(value: Json) -> bool | None:
    return value if isinstance(value, bool) else None


def _make_comparison(
    read: Callable[[Json], Any], decide: Callable[[Any, Any], bool]
) -> Callable[[Json, Json], bool]:
    def test(left: Json, right: Json) -> bool:
        left_value, right_value = read(left), read(right)
        return (
            left_value is not None and right_value is not None and decide(left_value, right_value)
        )

    return test


_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "Equals": lambda a, b: a == b,
    "LessThan": lambda a, b: a < b,
    "GreaterThan": lambda a, b: a > b,
    "LessThanEquals": lambda a, b: a <= b,
    "GreaterThanEquals": lambda a, b: a >= b,
}
_FAMILIES = {"String": _java_order, "Numeric": _as_number, "Timestamp": parse_timestamp}


def matches_glob(value: Json, pattern: Json) -> bool:
    r"""Tell whether a text matches: ``*`` is any run of characters, ``\*`` a star.

    Source: StringMatches. ``\\`` is a backslash. It takes linear time, whatever the pattern.
    """
    if not isinstance(value, str) or not isinstance(pattern, str):
        return False
    pieces = _split_pattern(pattern)
    if len(pieces) == 1:
        return value == pieces[0]
    first, *middle, last = pieces
    if len(value) < len(first) + len(last):
        return False
    if not value.startswith(first) or not value.endswith(last):
        return False
    at, end = len(first), len(value) - len(last)
    # Taking the leftmost place for each piece leaves the most room for the rest, so no piece is
    # ever tried again: a pattern such as a*a*a*a*b cannot make it slow.
    for piece in middle:
        at = value.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return True


def _split_pattern(pattern: str) -> list[str]:
    pieces, at = [""], 0
    while at < len(pattern):
        mark = pattern[at]
        if mark == "\\" and at + 1 < len(pattern):
            at += 1
            pieces[-1] += pattern[at]
        elif mark == "*":
            pieces.append("")
        else:
            pieces[-1] += mark
        at += 1
    return pieces


COMPARISONS: dict[str, Callable[[Json, Json], bool]] = {
    **{
        family + order: _make_comparison(read, decide)
        for family, read in _FAMILIES.items()
        for order, decide in _ORDERS.items()
    },
    "BooleanEquals": _make_comparison(_as_boolean, _ORDERS["Equals"]),
    "StringMatches": matches_glob,
}
WITH_PATH = tuple(name for name in COMPARISONS if name != "StringMatches")
TYPE_TESTS: dict[str, Callable[[Json, Json], bool]] = {
    "IsNull": lambda value, wanted: (value is None) is wanted,
    "IsNumeric": lambda value, wanted: (_as_number(value) is not None) is wanted,
    "IsString": lambda value, wanted: isinstance(value, str) is wanted,
    "IsBoolean": lambda value, wanted: isinstance(value, bool) is wanted,
    "IsTimestamp": lambda value, wanted: (parse_timestamp(value) is not None) is wanted,
}
PRESENCE = "IsPresent"
LOGIC = ("And", "Or", "Not")
