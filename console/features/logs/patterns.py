"""Match log lines against a CloudWatch filter pattern: terms, and JSON selectors.

Supported are terms, quoted phrases, ``-`` (none of these) and ``?`` (any of these); selectors such
as ``{ $.type = "X" }`` with comparisons joined by ``&&`` and ``||``, parentheses, ``*`` in texts,
``IS NULL``, ``IS TRUE``, ``IS FALSE`` and ``NOT EXISTS``.
"""

from __future__ import annotations

import json
import operator
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from console.errors import CodedError, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

_TERM = re.compile(r'\s*([-?]?)(?:"((?:[^"\\]|\\.)*)"|([^\s"]+))')
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<selector>\$[\w.\[\]-]*)
    | (?P<text>"(?:[^"\\]|\\.)*")
    | (?P<sign>&&|\|\||!=|<=|>=|[=<>()])
    | (?P<word>[^\s"=<>()!&|]+)
    )""",
    re.VERBOSE,
)
_STEP = re.compile(r"\.([\w-]+)|\[(\d+)\]")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_ABSENT = object()
_DEEPEST = 20


class InvalidPattern(CodedError):
    """The filter pattern is invalid."""

    CODE = ErrorCode.InvalidParameterException


def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Return a function that tests a line; raise ``InvalidPattern``."""
    text = pattern.strip()
    if not text:
        return lambda _line: True
    if text.startswith("{"):
        if not text.endswith("}"):
            raise InvalidPattern("Invalid filter pattern: a JSON pattern ends with }")
        condition = _PatternParser(text[1:-1]).whole()
        return lambda line: condition(json.loads(line))
    return _terms(text)


def _terms(text: str) -> Callable[[str], bool]:
    groups: dict[str, list[str]] = {"": [], "-": [], "?": []}
    place = 0
    while place < len(text):
        match = _TERM.match(text, place)
        if match is None:
            raise InvalidPattern("Invalid filter pattern: a quote is not closed")
        sign, phrase, term = match.groups()
        groups[sign].append(term if phrase is None else _unquoted(phrase))
        place = match.end()

    def matches(line: str) -> bool:
        if any(term in line for term in groups["-"]):
            return False
        if not all(term in line for term in groups[""]):
            return False
        return not groups["?"] or any(term in line for term in groups["?"])

    return matches


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


class _PatternParser:
    """Parser of a JSON pattern: comparisons, ``&&`` before ``||``, parentheses."""

    def __init__(self, text: str) -> None:
        self.tokens = list(self._tokens(text))
        self.place = 0
        self.depth = 0

    @staticmethod
    def _tokens(text: str) -> list[tuple[str, str]]:
        tokens, place = [], 0
        while text[place:].strip():
            token = _TOKEN.match(text, place)
            if token is None or token.lastgroup is None:
                raise InvalidPattern(f"Invalid filter pattern: not understood: {text[place:]!r}")
            tokens.append((token.lastgroup, token[token.lastgroup]))
            place = token.end()
        return tokens

    def whole(self) -> Callable[[Any], bool]:
        """Return the test of the whole pattern."""
        test = self._any()
        if self.place < len(self.tokens):
            raise self._wrong("the end")
        return test

    def _any(self) -> Callable[[Any], bool]:
        tests = [self._all()]
        while self._take("||"):
            tests.append(self._all())
        return lambda value: any(test(value) for test in tests)

    def _all(self) -> Callable[[Any], bool]:
        tests = [self._one()]
        while self._take("&&"):
            tests.append(self._one())
        return lambda value: all(test(value) for test in tests)

    def _one(self) -> Callable[[Any], bool]:
        if not self._take("("):
            return self._comparison()
        self.depth += 1
        if self.depth > _DEEPEST:
            raise InvalidPattern(f"Invalid filter pattern: more than {_DEEPEST} parentheses deep")
        test = self._any()
        if not self._take(")"):
            raise self._wrong(")")
        self.depth -= 1
        return test

    def _comparison(self) -> Callable[[Any], bool]:
        path = _path(self._next("selector"))
        if self._take("IS"):
            word = self._next("word").upper()
            if word not in _CONSTANTS:
                raise InvalidPattern(f"Invalid filter pattern: IS {word}")
            return lambda value: _find(value, path) is _CONSTANTS[word]
        if self._take("NOT"):
            if not self._take("EXISTS"):
                raise self._wrong("EXISTS")
            return lambda value: _find(value, path) is _ABSENT
        sign = self._next("sign")
        if sign not in {*_COMPARE, "=", "!="}:
            raise InvalidPattern(f"Invalid filter pattern: {sign!r} is not a comparison")
        kind, operand = self._operand()
        return lambda value: _holds(_find(value, path), sign, kind, operand)

    def _operand(self) -> tuple[str, str]:
        if self.place < len(self.tokens) and self.tokens[self.place][0] == "text":
            return "text", _unquoted(self._next("text")[1:-1])
        return "word", self._next("word")

    def _next(self, kind: str) -> str:
        if self.place >= len(self.tokens) or self.tokens[self.place][0] != kind:
            raise self._wrong(kind)
        self.place += 1
        return self.tokens[self.place - 1][1]

    def _take(self, text: str) -> bool:
        upcoming = self.tokens[self.place : self.place + 1]
        matched = (
            bool(upcoming) and upcoming[0][0] in ("sign", "word") and upcoming[0][1].upper() == text
        )
        self.place += matched
        return matched

    def _wrong(self, expected: str) -> InvalidPattern:
        upcoming = self.tokens[self.place : self.place + 1]
        token = upcoming[0][1] if upcoming else "the end"
        return InvalidPattern(f"Invalid filter pattern: {expected} expected before {token!r}")


_CONSTANTS = {"NULL": None, "TRUE": True, "FALSE": False}


def _path(selector: str) -> list[str | int]:
    steps: list[str | int] = []
    place = 1
    while place < len(selector):
        match = _STEP.match(selector, place)
        if match is None:
            raise InvalidPattern(f"Invalid filter pattern: the selector {selector!r}")
        steps.append(match[1] if match[2] is None else int(match[2]))
        place = match.end()
    return steps


def _find(value: Any, path: list[str | int]) -> Any:
    for step in path:
        if isinstance(step, str) and isinstance(value, dict):
            value = value.get(step, _ABSENT)
        elif isinstance(step, int) and isinstance(value, list) and step < len(value):
            value = value[step]
        else:
            return _ABSENT
    return value


def _holds(value: Any, sign: str, kind: str, operand: str) -> bool:
    """Whether a comparison is true. A numeric word is compared as a number."""
    if value is _ABSENT or isinstance(value, dict | list | bool) or value is None:
        return False
    number = _number(operand) if kind == "word" else None
    if number is not None and not isinstance(value, str):
        return _compare(value, sign, number)
    if sign in _COMPARE:
        value_number = _number(str(value))
        return (
            value_number is not None and number is not None and _COMPARE[sign](value_number, number)
        )
    matches = fnmatchcase(str(value), operand.replace("[", "[[]").replace("?", "[?]"))
    return matches == (sign == "=")


def _compare(value: float, sign: str, number: float) -> bool:
    if sign in _COMPARE:
        return _COMPARE[sign](value, number)
    return (value == number) == (sign == "=")


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
