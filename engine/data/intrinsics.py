"""Compile and evaluate calls of intrinsic functions, such as ``States.Format('{}', $.name)``.

Only JSONPath states have them. An argument is a single-quoted text, a number, ``true``, ``false``,
``null``, a path, a context path, a variable or a nested call. A call is compiled once; the
functions themselves are in ``engine.data.functions``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine import jsontext
from engine.data.expression import ABSENT, EvaluationScope, Json, Literal
from engine.data.functions import FUNCTIONS, WrittenText
from engine.data.path_parser import find_filter_end
from engine.data.paths import Path, PathSyntaxError, compile_path
from engine.data.stored_rules import reads_stored
from engine.errors import INTRINSIC_FAILURE, InterpreterError, JsonTextError

if TYPE_CHECKING:
    from engine.data.expression import Expression

MAX_NESTING = 10
_NAME = re.compile(r"\s*(States\.\w+)\s*\(")
_STRING = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)
_WORDS = {"true": True, "false": False, "null": None}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = "'{}\\"


@dataclass(frozen=True, slots=True)
class IntrinsicCall:
    """A compiled call. ``text``: the whole expression in the definition, for errors."""

    name: str
    arguments: tuple[Expression, ...]
    text: str
    field: str

    def evaluate(self, scope: EvaluationScope) -> Json:
        """Call the function and return its result.

        Raise ``States.IntrinsicFailure``, for Retry and Catch, if it rejects its arguments.
        """
        values = [self._value(argument, scope) for argument in self.arguments]
        try:
            return FUNCTIONS[self.name].call(values, scope)
        except ValueError as error:
            msg = f"The function '{self.text}' had the following error: {error}"
            raise InterpreterError(msg, INTRINSIC_FAILURE) from None

    def _value(self, argument: Expression, scope: EvaluationScope) -> Json:
        """Return the value of an argument; raise AWS's error for a path without a value."""
        if not isinstance(argument, Path):
            return argument.evaluate(scope)
        value = argument.found(scope)
        if value is ABSENT and not argument.undefined_variable(scope):
            raise InterpreterError(
                f"The function '{self.text}' had the following error: The JsonPath argument for "
                f"the field '{argument.text}' could not be found in the input "
                f"'{jsontext.dumps(scope.input)}'"
            )
        return argument.evaluate(scope) if value is ABSENT else value


def compile_intrinsic(text: str, *, field: str = "") -> Expression:
    """Compile an intrinsic call; raise ``PathSyntaxError``."""
    reader = _CallReader(text, field)
    if text[:1].isspace():
        raise reader.error("no blanks before the function")
    call = reader.call(1)
    reader.blank()
    if reader.at != len(text):
        raise reader.error("the end")
    return call


class _CallReader:
    def __init__(self, text: str, field: str) -> None:
        self.text = text
        self.field = field
        self.at = 0

    def error(self, expected: str) -> PathSyntaxError:
        got = self.text[self.at : self.at + 20] or "the end"
        return PathSyntaxError(f"'{self.text}': got {got!r}, wanted {expected}")

    def blank(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def call(self, depth: int) -> IntrinsicCall:
        start = self.at
        head = _NAME.match(self.text, self.at)
        if head is None or head[1] not in FUNCTIONS:
            raise self.error("an intrinsic function such as States.Format(")
        if depth > MAX_NESTING:
            raise self.error(f"at most {MAX_NESTING} nested calls")
        self.at = head.end()
        arguments = _resolve_escapes(head[1], self.arguments(depth))
        function = FUNCTIONS[head[1]]
        if not function.least <= len(arguments) <= function.most:
            raise PathSyntaxError(
                f"'{self.text}': {head[1]} got {len(arguments)} arguments, wanted {function.wanted}"
            )
        for number in function.numbers[: len(arguments)]:
            self._check_number(head[1], arguments[number])
        return IntrinsicCall(head[1], arguments, self.text[start : self.at].strip(), self.field)

    def _check_number(self, name: str, argument: Expression) -> None:
        """Reject a literal that is not a number where the function needs one."""
        value = argument.value if isinstance(argument, Literal) else 0
        if isinstance(value, bool) or not isinstance(value, int | float):
            text = jsontext.dumps(value)
            raise PathSyntaxError(f"'{self.text}': {name} got {text}, wanted a number or a path")

    def _check_escapes(self, inside: str) -> None:
        """Reject a backslash before a character that needs none, as the service does [recorded]."""
        illegal = next((mark for mark in _ESCAPE.findall(inside) if mark not in _ESCAPED), None)
        if illegal is not None and not reads_stored():
            raise self.error(f"a backslash only before one of {_ESCAPED}, not before {illegal}")

    def arguments(self, depth: int) -> tuple[Expression, ...]:
        arguments: list[Expression] = []
        self.blank()
        if self.text.startswith(")", self.at):
            self.at += 1
            return ()
        while True:
            arguments.append(self.argument(depth))
            self.blank()
            mark = self.text[self.at : self.at + 1]
            if mark not in (",", ")"):
                raise self.error("',' or ')'")
            self.at += 1
            if mark == ")":
                return tuple(arguments)

    def argument(self, depth: int) -> Expression:
        self.blank()
        if match := _STRING.match(self.text, self.at):
            self._check_escapes(match[1])
            self.at = match.end()
            return Literal(WrittenText(match[1]))
        if self.text.startswith("$", self.at):
            return self.path()
        if match := _NUMBER.match(self.text, self.at):
            self.at = match.end()
            try:
                return Literal(jsontext.loads(match[0]))
            except JsonTextError:
                raise self.error("a number that a double holds") from None
        for word, value in _WORDS.items():
            if self.text.startswith(word, self.at):
                self.at += len(word)
                return Literal(value)
        return self.call(depth + 1)

    def path(self) -> Expression:
        """Parse a path up to the comma or parenthesis that ends the argument."""
        start, depth = self.at, 0
        while self.at < len(self.text):
            if (end := find_filter_end(self.text, self.at)) > self.at:
                self.at = end
                continue
            mark = self.text[self.at]
            if mark in "'\"":
                quoted = re.compile(rf"{mark}(?:[^{mark}\\]|\\.)*{mark}").match(self.text, self.at)
                if quoted is None:
                    raise self.error("a closing quote")
                self.at = quoted.end()
                continue
            if depth == 0 and mark in ",)":
                break
            depth += {"[": 1, "(": 1, "]": -1, ")": -1}.get(mark, 0)
            self.at += 1
        return compile_path(self.text[start : self.at].strip(), field=self.field)


def _resolve_escapes(name: str, arguments: tuple[Expression, ...]) -> tuple[Expression, ...]:
    """Resolve the escapes of literal texts, except in the template of States.Format."""
    first = 1 if name == "States.Format" else 0
    return (*arguments[:first], *(_unescape_literal(argument) for argument in arguments[first:]))


def _unescape_literal(argument: Expression) -> Expression:
    if isinstance(argument, Literal) and isinstance(argument.value, WrittenText):
        return Literal(argument.value.unescaped)
    return argument
