"""Compile and evaluate the filters of a JSONPath, such as ``$.items[?(@.price > 10)]``.

A small recursive-descent parser of Jayway's filter language, which is wider than jsonpath-ng's:
``==`` ``!=`` ``<`` ``<=`` ``>`` ``>=`` ``=~`` ``in`` ``nin`` ``subsetof`` ``anyof`` ``noneof``
``size`` ``empty``, ``&&``, ``||``, ``!`` and parentheses. The right side of a comparison may be a
text without quotes, as in ``[?(@.name==x y)]``. A text is compared with a number or a boolean by
its content; other values of different types are unequal and unordered. Patterns are RE2, so every
match takes linear time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import re2

from engine import jsontext
from engine.data.expression import ABSENT, Json
from engine.data.path_syntax import PathSyntaxError, unquote
from engine.data.selectors import select_all, select_definite, split_definite
from engine.errors import JsonTextError

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.data.selectors import Budget, FilterTest, Selector

    PathReader = Callable[[str], tuple[Selector, ...]]

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<string>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<path>[@$](?:
          \.\.?[^\s.\[\]'"@,:?*()=!<>&|~$]+(?:\(\))?
        | \[(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\]'"])*\]
        | \.\*
      )*)
    | (?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
    | (?P<op>==|!=|<=|>=|=~|&&|\|\||[<>!()\[\],])
    | (?P<word>\w+)
    )""",
    re.VERBOSE,
)
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
# A slash ends a pattern if the comparison ends behind it; else it belongs to the pattern.
_PATTERN_END = re.compile(r"\\.|/([imsx]*)\s*(?=&&|\|\||\)|\Z)", re.DOTALL)
_SCALAR = re.compile(r"(?:-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)\s*(?=&&|\|\||\)|\Z)")
_LIST_TESTS = {"in", "nin", "subsetof", "anyof", "noneof", "size", "empty"}
_WORDS = {"true": True, "false": False, "null": None}
_MAX_DEPTH = 50
# Else RE2 itself writes an invalid pattern to the server's stderr, with any data in it.
_QUIET = re2.Options()
_QUIET.log_errors = False


@dataclass(frozen=True, slots=True)
class _Operand:
    """A literal, or a path from the node (``@``) or the root (``$``).

    ``text``: how a literal is written.
    """

    literal: Json = ABSENT
    definite: tuple[Selector, ...] = ()
    rest: tuple[Selector, ...] = ()
    from_root: bool = False
    text: str = ""

    def value(self, node: Json, root: Json, budget: Budget) -> Json:
        if self.literal is not ABSENT:
            return self.literal
        value = select_definite(self.definite, root if self.from_root else node)
        if self.rest:
            value = [] if value is ABSENT else select_all(self.rest, value, root, budget)
        return value


@dataclass(frozen=True, slots=True)
class _Exists:
    """True if there is a value: not for null, but for false, 0 and "" [measured]."""

    operand: _Operand

    def holds(self, node: Json, root: Json, budget: Budget) -> bool:
        value = self.operand.value(node, root, budget)
        return value is not ABSENT and value is not None and not (self.operand.rest and value == [])


@dataclass(frozen=True, slots=True)
class _Not:
    test: FilterTest

    def holds(self, node: Json, root: Json, budget: Budget) -> bool:
        return not self.test.holds(node, root, budget)


@dataclass(frozen=True, slots=True)
class _All:
    tests: tuple[FilterTest, ...]

    def holds(self, node: Json, root: Json, budget: Budget) -> bool:
        return all(test.holds(node, root, budget) for test in self.tests)


@dataclass(frozen=True, slots=True)
class _Any:
    tests: tuple[FilterTest, ...]

    def holds(self, node: Json, root: Json, budget: Budget) -> bool:
        return any(test.holds(node, root, budget) for test in self.tests)


@dataclass(frozen=True, slots=True)
class _Compare:
    left: _Operand
    operator: str
    right: _Operand

    def holds(self, node: Json, root: Json, budget: Budget) -> bool:
        left = self.left.value(node, root, budget)
        right = self.right.value(node, root, budget)
        if self.operator in _COMPARISONS:
            if left is ABSENT or right is ABSENT:
                return False
            if type(left) is not type(right):
                right = _as_type_of(left, right, self.right.text)
        return _compare(self.operator, left, right)


@dataclass(frozen=True, slots=True)
class _Matches:
    operand: _Operand
    pattern: Any

    def holds(self, node: Json, root: Json, budget: Budget) -> bool:
        value = self.operand.value(node, root, budget)
        return isinstance(value, str) and self.pattern.fullmatch(value) is not None


def _as_type_of(value: Json, other: Json, written: str) -> Json:
    """Convert a literal or text to the type of the other operand where the text allows.

    Jayway 2.0.0 takes each literal for a text, which becomes a number or a boolean where the value
    is one.
    """
    if isinstance(value, str):
        return written or other
    if not isinstance(other, str):
        return other
    if isinstance(value, bool):
        return other.lower() == "true"
    if isinstance(value, int | float):
        try:
            number = jsontext.loads(other)
        except JsonTextError:
            return other
        return number if isinstance(number, int | float) else other
    return other


def _compare(operator: str, left: Json, right: Json) -> bool:
    match operator:
        case "==":
            return _json_equal(left, right)
        case "!=":
            return not _json_equal(left, right) and not _is_container_beside_scalar(left, right)
        case "in":
            return isinstance(right, list) and any(_json_equal(left, element) for element in right)
        case "nin":
            return isinstance(right, list) and not any(
                _json_equal(left, element) for element in right
            )
        case "size":
            return isinstance(left, list | str) and len(left) == right
        case "empty":
            return isinstance(left, list | str | dict) and (not left) is right
        case "subsetof" | "anyof" | "noneof":
            return _compare_sets(operator, left, right)
    return _compare_order(operator, left, right)


def _compare_sets(operator: str, left: Json, right: Json) -> bool:
    if not isinstance(left, list) or not isinstance(right, list):
        return False
    inside = [any(_json_equal(element, other) for other in right) for element in left]
    return {"subsetof": all(inside), "anyof": any(inside), "noneof": not any(inside)}[operator]


def _json_equal(left: Json, right: Json) -> bool:
    if left is ABSENT or right is ABSENT:
        return left is right
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def _is_container_beside_scalar(left: Json, right: Json) -> bool:
    """Return whether Jayway cannot compare the values; they are not unequal then, either."""
    return (
        left is not None
        and right is not None
        and (isinstance(left, list | dict) != isinstance(right, list | dict))
    )


def _compare_order(operator: str, left: Json, right: Json) -> bool:
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (left, right))
    if not numbers and not (isinstance(left, str) and isinstance(right, str)):
        return False
    return bool(
        {"<": left < right, "<=": left <= right, ">": left > right, ">=": left >= right}[operator]
    )


# -- reading ---------------------------------------------------------------------------------------


def compile_filter(text: str, read_path: PathReader) -> FilterTest:
    """Compile the text inside of ``[? ... ]``; raise ``PathSyntaxError``.

    ``read_path`` parses the part of a path after ``@`` or ``$``.
    """
    reader = _FilterReader(text, read_path)
    test = reader.either(0)
    if reader.token is not None:
        raise reader.error("the end")
    return test


class _FilterReader:
    def __init__(self, text: str, read_path: PathReader) -> None:
        self.text = text
        self.read_path = read_path
        self.at = 0
        self.token: tuple[str, str] | None = None
        self.next()

    def error(self, expected: str) -> PathSyntaxError:
        got = self.token[1] if self.token else "the end"
        return PathSyntaxError(f"filter '{self.text}': got {got}, wanted {expected}")

    def next(self) -> tuple[str, str] | None:
        """Advance; return the token that was current."""
        before = self.token
        if not self.text[self.at :].strip():
            self.token = None
            return before
        match = _TOKEN.match(self.text, self.at)
        if match is None or match.lastgroup is None:
            raise PathSyntaxError(f"filter '{self.text}': got {self.text[self.at :]!r}")
        self.at = match.end()
        self.token = (match.lastgroup, match[match.lastgroup])
        return before

    def takes(self, text: str) -> bool:
        if self.token is not None and self.token[1] == text and self.token[0] in ("op", "word"):
            self.next()
            return True
        return False

    def either(self, depth: int) -> FilterTest:
        if depth > _MAX_DEPTH:
            raise self.error(f"at most {_MAX_DEPTH} levels of parentheses")
        tests = [self.both(depth)]
        while self.takes("||"):
            tests.append(self.both(depth))
        return tests[0] if len(tests) == 1 else _Any(tuple(tests))

    def both(self, depth: int) -> FilterTest:
        tests = [self.single(depth)]
        while self.takes("&&"):
            tests.append(self.single(depth))
        return tests[0] if len(tests) == 1 else _All(tuple(tests))

    def single(self, depth: int) -> FilterTest:
        if self.takes("!"):
            if depth > _MAX_DEPTH:
                raise self.error(f"at most {_MAX_DEPTH} levels")
            return _Not(self.single(depth + 1))
        if self.takes("("):
            test = self.either(depth + 1)
            if not self.takes(")"):
                raise self.error("')'")
            return test
        return self.comparison()

    def comparison(self) -> FilterTest:
        left = self.operand()
        if self.token is None or self.token[1] in (")", "&&", "||"):
            return _Exists(left)
        kind, operator = self.token
        if operator == "=~":
            return _Matches(left, self.pattern())
        if kind == "op" and operator in _COMPARISONS:
            bare = self.bare_text()
            return _Compare(left, operator, bare or self.right_side())
        if operator.lower() not in _LIST_TESTS:
            raise self.error("an operator")
        return _Compare(left, operator.lower(), self.right_side())

    def right_side(self) -> _Operand:
        self.next()
        return self.operand()

    def bare_text(self) -> _Operand | None:
        """Read a text without quotes: to the end of the comparison, blanks around it cut off."""
        start = self.skip_blanks()
        if self.text[start : start + 1] in tuple("'\"@$[") or _SCALAR.match(self.text, start):
            return None
        depth, at = 0, start
        while at < len(self.text) and not self.text.startswith(("&&", "||"), at):
            depth += {"(": 1, ")": -1}.get(self.text[at], 0)
            if depth < 0:
                break
            at += 1
        written = self.text[start:at].strip()
        if not written:
            return None
        self.at = at
        self.next()
        return _Operand(literal=written)

    def pattern(self) -> Any:
        """Read a pattern: it ends at the first slash that leaves a valid pattern."""
        start = self.skip_blanks()
        if not self.text.startswith("/", start):
            self.next()
            raise self.error("a pattern between slashes")
        problem = "got an open pattern, wanted '/'"
        for match in _PATTERN_END.finditer(self.text, start + 1):
            flags = match[1]
            if flags is None:
                continue
            body = self.text[start + 1 : match.start()]
            try:
                pattern = re2.compile((f"(?{flags})" if flags else "") + body, _QUIET)
            except re2.error as error:
                problem = str(error)
                continue
            self.at = match.end()
            self.next()
            return pattern
        raise PathSyntaxError(f"filter '{self.text}': {problem}")

    def skip_blanks(self) -> int:
        """Return the position of the first character after the current token and blanks."""
        return self.at + len(self.text[self.at :]) - len(self.text[self.at :].lstrip())

    def operand(self) -> _Operand:
        if self.takes("["):
            return _Operand(literal=self.array())
        token = self.next()
        if token is None:
            raise self.error("a value")
        kind, text = token
        if kind == "path":
            definite, rest = split_definite(self.read_path(text[1:]))
            return _Operand(ABSENT, definite, rest, text[0] == "$")
        written = "" if kind == "string" else text
        return _Operand(literal=self.literal(kind, text), text=written)

    def array(self) -> list[Json]:
        values = []
        while not self.takes("]"):
            token = self.next()
            if token is None:
                raise self.error("']'")
            values.append(self.literal(*token))
            self.takes(",")
        return values

    def literal(self, kind: str, text: str) -> Json:
        if kind == "string":
            return unquote(text)
        if kind == "number":
            return jsontext.loads(text)
        if kind == "word" and text in _WORDS:
            return _WORDS[text]
        raise PathSyntaxError(f"filter '{self.text}': got {text}, wanted a value")
