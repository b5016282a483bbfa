"""Evaluate the conditions of Choice rules, such as ``{"Variable": "$.n", "NumericEquals": 1}``.

A value of the wrong type makes a comparison false, without an error. A missing Variable is an
error, except for IsPresent. Strings are compared as in Java, by UTF-16 code units. Source: "Choice
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
        """Return whether the rule holds; raise ``InterpreterError`` if its Variable is missing."""
        ...


@dataclass(frozen=True, slots=True)
class And:
    """``And``: true if all rules hold."""

    rules: tuple[ChoiceCondition, ...]

    def holds(self, scope: EvaluationScope) -> bool:
        """Evaluate the rules in order, up to the first false one."""
        return all(rule.holds(scope) for rule in self.rules)


@dataclass(frozen=True, slots=True)
class Or:
    """``Or``: true if any rule holds."""

    rules: tuple[ChoiceCondition, ...]

    def holds(self, scope: EvaluationScope) -> bool:
        """Evaluate the rules in order, up to the first true one."""
        return any(rule.holds(scope) for rule in self.rules)


@dataclass(frozen=True, slots=True)
class Not:
    """``Not``: true if the rule does not hold."""

    rule: ChoiceCondition

    def holds(self, scope: EvaluationScope) -> bool:
        """Negate the rule."""
        return not self.rule.holds(scope)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of ``Variable`` with a constant or, for ``...Path`` operators, another path."""

    variable: Expression
    test: Callable[[Json, Json], bool]
    value: Expression
    path: str

    def holds(self, scope: EvaluationScope) -> bool:
        """Compare; raise ``InterpreterError`` if the Variable is missing."""
        value = _look_up(self.variable, scope)
        if value is ABSENT:
            msg = f"Invalid path '{self.path}': The choice state's condition path references an "
            raise InterpreterError(msg + "invalid value.")
        return self.test(value, self.value.evaluate(scope))


@dataclass(frozen=True, slots=True)
class Presence:
    """The ``IsPresent`` operator; ``expected``: the value given in the rule."""

    variable: Expression
    expected: bool

    def holds(self, scope: EvaluationScope) -> bool:
        """Return whether the presence of the Variable equals ``expected``.

        A null is present; an index beyond the end of the array is not.
        """
        return (_look_up(self.variable, scope, presence=True) is not ABSENT) is self.expected


@dataclass(frozen=True, slots=True)
class Jsonata:
    """The ``Condition`` of a JSONata rule."""

    expression: Expression

    def holds(self, scope: EvaluationScope) -> bool:
        """Evaluate the condition; any result except a boolean is an error."""
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
    """Return a sort key in the order of Java's String.compareTo; None for a non-string."""
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
    def test(first: Json, second: Json) -> bool:
        first_value, second_value = read(first), read(second)
        return (
            first_value is not None
            and second_value is not None
            and decide(first_value, second_value)
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
    r"""Return whether a string matches a pattern of StringMatches, in linear time.

    ``*`` matches any characters, ``\*`` is a star and ``\\`` a backslash.
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
    # The leftmost match of a piece leaves the most room for the next ones, so no piece is tried
    # twice: a pattern such as a*a*a*a*b takes linear time.
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
    "IsNull": lambda value, expected: (value is None) is expected,
    "IsNumeric": lambda value, expected: (_as_number(value) is not None) is expected,
    "IsString": lambda value, expected: isinstance(value, str) is expected,
    "IsBoolean": lambda value, expected: isinstance(value, bool) is expected,
    "IsTimestamp": lambda value, expected: (parse_timestamp(value) is not None) is expected,
}
PRESENCE = "IsPresent"
LOGIC = ("And", "Or", "Not")
