"""Operators of EventBridge event patterns (``prefix``, ``numeric``): each tests one value."""

from __future__ import annotations

import ipaddress
import operator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Test = Callable[[Any], bool]

_MOST = Decimal(5_000_000_000)
_COMPARE = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_PAIR, _TWO_PAIRS = 2, 4


class PatternError(ValueError):
    """EventBridge would refuse the pattern or event; the message names the place."""


@dataclass(frozen=True, slots=True)
class PatternNumber:
    """A number with its spelling: EventBridge distinguishes 300 and 300.0."""

    text: str
    value: Decimal = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", Decimal(self.text))


def make_operator(operand: Any, path: str) -> Test:
    """Return the test for one item of a field's array; raise ``PatternError``."""
    if isinstance(operand, list):
        raise PatternError(f"{path}: an array cannot stand in an array of values")
    if not isinstance(operand, dict):
        return _equal(operand)
    if len(operand) != 1:
        raise PatternError(f"{path} has {len(operand)} operators in one object. Use one")
    ((name, value),) = operand.items()
    maker = _MAKERS.get(name)
    if maker is None:
        names = ", ".join(_MAKERS)
        raise PatternError(f"{path}: '{name}' is not an operator. Use one of {names}")
    return maker(value, f"{path}.{name}")


def wants_absence(operand: Any) -> bool:
    """Whether an item is ``{"exists": false}``."""
    return isinstance(operand, dict) and operand.get("exists") is False


def _equal(operand: Any) -> Test:
    def test(value: Any) -> bool:
        return type(value) is type(operand) and bool(value == operand)

    return test


# -- texts -----------------------------------------------------------------------------------------


def _text(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise PatternError(f"{path} must be a string")
    return value


def _on_texts(check: Callable[[str], bool]) -> Test:
    return lambda value: isinstance(value, str) and check(value)


def _ignoring_case(operand: Any, path: str) -> Test:
    folded = _text(operand, path).casefold()
    return _on_texts(lambda value: value.casefold() == folded)


def _end_of(check: Callable[[str, str], bool]) -> Callable[[Any, str], Test]:
    """Return the maker for ``prefix`` or ``suffix``, which also take ``equals-ignore-case``."""

    def maker(operand: Any, path: str) -> Test:
        if isinstance(operand, dict):
            if set(operand) != {"equals-ignore-case"}:
                raise PatternError(f"{path} must be a string or equals-ignore-case")
            folded = _text(operand["equals-ignore-case"], path).casefold()
            return _on_texts(lambda value: check(value.casefold(), folded))
        text = _text(operand, path)
        return _on_texts(lambda value: check(value, text))

    return maker


_prefix, _suffix = _end_of(str.startswith), _end_of(str.endswith)


def _wildcard(operand: Any, path: str) -> Test:
    first, *rest = _pieces(_text(operand, path), path)
    return _on_texts(lambda value: _fits(value, first, rest))


def _pieces(text: str, path: str) -> list[str]:
    r"""Split at each unescaped ``*``; ``\*`` and ``\\`` stand for themselves."""
    pieces, at = [""], 0
    while at < len(text):
        character = text[at]
        if character == "\\":
            at += 1
            if text[at : at + 1] not in ("*", "\\") or at == len(text):
                raise PatternError(f"{path}: a backslash stands before * or another one only")
            pieces[-1] += text[at]
        elif character == "*":
            if text[at + 1 : at + 2] == "*":
                raise PatternError(f"{path}: two * beside each other")
            pieces.append("")
        else:
            pieces[-1] += character
        at += 1
    return pieces


def _fits(value: str, first: str, rest: list[str]) -> bool:
    """Match the pieces in order, the last one at the end, in linear time."""
    if not rest:
        return value == first
    *middle, last = rest
    if not value.startswith(first) or len(value) < len(first) + len(last):
        return False
    at = len(first)
    end = len(value) - len(last)
    for piece in middle:
        index = value.find(piece, at, end)
        if index < 0:
            return False
        at = index + len(piece)
    return value.endswith(last)


# -- numbers, addresses, presence ------------------------------------------------------------------


def _numeric(operand: Any, path: str) -> Test:
    if not isinstance(operand, list) or len(operand) not in (_PAIR, _TWO_PAIRS):
        raise PatternError(f"{path} must be one or two pairs of operator and number")
    checks = [_comparison(*pair, path) for pair in zip(operand[::2], operand[1::2], strict=True)]
    if len(checks) > 1:
        _check_range(operand, path)
    return lambda value: (
        isinstance(value, PatternNumber) and all(check(value.value) for check in checks)
    )


def _comparison(name: Any, number: Any, path: str) -> Callable[[Decimal], bool]:
    compare = _COMPARE.get(name) if isinstance(name, str) else None
    if compare is None:
        raise PatternError(f"{path} must have an operator, one of {', '.join(_COMPARE)}")
    if not isinstance(number, PatternNumber) or not -_MOST <= number.value <= _MOST:
        raise PatternError(f"{path} must have a number from -{_MOST} to {_MOST}")
    limit = number.value
    return lambda value: bool(compare(value, limit))


def _check_range(operand: list[Any], path: str) -> None:
    low, bottom, high, top = operand
    if low not in (">", ">=") or high not in ("<", "<="):
        raise PatternError(f"{path}: a range begins with > or >= and ends with < or <=")
    if bottom.value >= top.value:
        raise PatternError(f"{path}: the bottom of the range is not below its top")


def _cidr(operand: Any, path: str) -> Test:
    try:
        network = ipaddress.ip_network(_text(operand, path), strict=False)
    except ValueError:
        raise PatternError(
            f"{path} must be addresses such as 10.0.0.0/24 or 2001:db8::/32"
        ) from None

    def inside(value: str) -> bool:
        try:
            return ipaddress.ip_address(value) in network
        except ValueError:
            return False

    return _on_texts(inside)


def _exists(operand: Any, path: str) -> Test:
    if not isinstance(operand, bool):
        raise PatternError(f"{path} must be true or false")
    return lambda value: operand  # noqa: ARG005 - there is a value, whatever it is


# -- anything but ----------------------------------------------------------------------------------


def _anything_but(operand: Any, path: str) -> Test:
    tests = _refused(operand, path)
    return lambda value: not any(test(value) for test in tests)


def _refused(operand: Any, path: str) -> list[Test]:
    if isinstance(operand, dict):
        (name, value), *more = operand.items() or [("", None)]
        if name not in ("prefix", "suffix", "equals-ignore-case", "wildcard") or more:
            names = "prefix, suffix, equals-ignore-case or wildcard"
            raise PatternError(f"{path}: '{name}' is not {names}")
        values = value if isinstance(value, list) else [value]
        return _some([_MAKERS[name](_text(item, path), path) for item in values], path)
    values = operand if isinstance(operand, list) else [operand]
    kinds = {type(item) for item in values}
    if not kinds <= {str} and not kinds <= {PatternNumber}:
        raise PatternError(f"{path} must have only strings or only numbers")
    return _some([_equal(item) for item in values], path)


def _some(tests: list[Test], path: str) -> list[Test]:
    if not tests:
        raise PatternError(f"{path}: the list is empty")
    return tests


_MAKERS: dict[str, Callable[[Any, str], Test]] = {
    "prefix": _prefix,
    "suffix": _suffix,
    "equals-ignore-case": _ignoring_case,
    "wildcard": _wildcard,
    "anything-but": _anything_but,
    "numeric": _numeric,
    "cidr": _cidr,
    "exists": _exists,
}
