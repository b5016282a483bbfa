"""What does a JSONPath select?  Jayway's dialect, which the service speaks.

jsonpath-ng parses; its tree is compiled once into small steps. A *definite* path (members and
single indexes) yields the value itself or is missing; an *indefinite* one always yields an array,
perhaps empty.

(Above 300 lines: reading the dialect is one grammar.)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from jsonpath_ng import jsonpath
from jsonpath_ng.ext.parser import parse as ng_parse

from engine import jsontext
from engine.data.expression import ABSENT, ROOT, Json, Scope
from engine.data.steps import (
    Deep,
    Element,
    Elements,
    Filter,
    Member,
    Several,
    Slice,
    Step,
    Wildcard,
    apply_function,
    walk,
    walk_definite,
)
from engine.errors import EngineError, InterpreterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.data.expression import Expression


class PathSyntaxError(EngineError):
    """The text is not a JSONPath."""


_HEAD = re.compile(r"\$\$|\$(?P<name>[^\W\d]\w*)|\$")
_PLACEHOLDER = "x__{}__x"


# -- compiled paths --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Path:
    """A compiled path. ``head``.

    ``""`` for ``$``, ``"$$"`` for the context, else a variable's name.

    ``field``: the field it stands in, ``""`` for InputPath and OutputPath, whose errors read
    differently.
    """

    text: str
    field: str
    head: str
    steps: tuple[Step, ...]
    definite: bool
    function: str = ""

    def found(self, scope: Scope) -> Json:
        """Return the value, or ``ABSENT`` when a definite path leads nowhere."""
        root = self._root(scope)
        if root is ABSENT:
            return ABSENT
        value = walk_definite(self.steps, root) if self.definite else walk(self.steps, root)
        return apply_function(self.function, value) if self.function else value

    def present(self, scope: Scope) -> bool:
        """Tell what IsPresent asks: is there such a value, be it null?

        Beyond an array there is none.
        """
        root = self._root(scope)
        if root is ABSENT:
            return False
        if self.definite:
            return walk_definite(self.steps, root, ABSENT) is not ABSENT
        return bool(walk(self.steps, root))

    def evaluate(self, scope: Scope) -> Json:
        """Return the value; raise ``InterpreterError`` when a definite path leads nowhere."""
        value = self.found(scope)
        if value is ABSENT:
            raise InterpreterError(self._missing(scope))
        return value

    def _root(self, scope: Scope) -> Json:
        if not self.head:
            return scope.input
        if self.head == "$$":
            return scope.context()
        return scope.variables.get(self.head, ABSENT)

    def _missing(self, scope: Scope) -> str:
        if self.head and self.head != "$$" and self.head not in scope.variables:
            return f"Variable '${self.head}' referenced in '{self.text}' is not defined"
        if self.field:
            shown = jsontext.dumps(scope.input)
            return (
                f"The JSONPath '{self.text}' specified for the field '{self.field}' could not be "
                f"found in the input '{shown}'"
            )
        return f"Invalid path '{self.text}' : {self._where(self._root(scope))}"

    def _where(self, value: Json) -> str:
        """Say which step led nowhere, as Jayway does."""
        shown = "$"
        for number, step in enumerate(self.steps):
            shown += f"['{step.name}']" if isinstance(step, Member) else f"[{step}]"
            value = walk_definite((step,), value)
            if value is ABSENT:
                last = number == len(self.steps) - 1
                return f"{'No results for path:' if last else 'Missing property in path'} {shown}"
        return f"No results for path: {shown}"


def compile_path(text: str, *, field: str = "") -> Expression:
    """Compile a path starting with ``$``, ``$$`` or ``$name``; raise ``PathSyntaxError``."""
    head = _HEAD.match(text)
    if head is None:
        raise PathSyntaxError(f"{text!r}: got no '$' at the beginning")
    name = "$$" if head[0] == "$$" else head["name"] or ""
    steps, definite, function = compile_steps(text[head.end() :])
    if not steps and not name and not function:
        return ROOT
    return Path(text, field, name, steps, definite, function)


_REFERENCE = re.compile(
    r"""(\.[^\s.\[\]'"@,:?*()]+|\['(?:[^'\\]|\\.)*'\]|\["(?:[^"\\]|\\.)*"\]|\[-?\d+\])*"""
)


def is_reference_path(text: str) -> bool:
    """Tell whether a path has only members and single indexes (ASL's "Reference Path")."""
    head = _HEAD.match(text)
    return head is not None and _REFERENCE.fullmatch(text[head.end() :]) is not None


_FUNCTION = re.compile(r"\.(length|min|max|avg|sum|stddev|keys|size|first|last)\(\)$")


@lru_cache(maxsize=4096)
def compile_steps(rest: str) -> tuple[tuple[Step, ...], bool, str]:
    """Return the steps behind the head, whether they are definite, and a closing function."""
    function = ""
    if match := _FUNCTION.search(rest):
        function, rest = match[1], rest[: match.start()]
    prepared, names, filters = _prepare(rest)
    try:
        tree = ng_parse("$" + prepared)
    except Exception as error:  # noqa: BLE001 - its lexer raises bare Exceptions
        raise PathSyntaxError(f"'${rest}': {error}") from None
    steps = tuple(_steps(tree, names, filters))
    definite = all(isinstance(step, Member | Element | Several) for step in steps)
    return steps, definite, function


_QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""")
_DOT_NAME = re.compile(r"\.([^\s.\[\]'\"@,:?*()$]+)")


def _prepare(rest: str) -> tuple[str, list[str], list[str]]:
    """Put names and filters that jsonpath-ng's grammar does not know out of its way."""
    names: list[str] = []
    filters: list[str] = []
    made, at = [], 0
    while at < len(rest):
        if rest.startswith("[?", at):
            end = _filter_end(rest, at)
            filters.append(rest[at + 2 : end - 1])
            made.append(f"['{_PLACEHOLDER.format('f' + str(len(filters) - 1))}']")
            at = end
        elif quoted := _QUOTED.match(rest, at):
            names.append(unquote(quoted[0]))
            made.append(f"'{_PLACEHOLDER.format(len(names) - 1)}'")
            at = quoted.end()
        elif (dotted := _DOT_NAME.match(rest, at)) and not rest.startswith("..", at):
            names.append(dotted[1])
            made.append(f"['{_PLACEHOLDER.format(len(names) - 1)}']")
            at = dotted.end()
        elif deep := re.compile(r"\.\.([^\s.\[\]'\"@,:?*()$]+)").match(rest, at):
            names.append(deep[1])
            made.append(f"..['{_PLACEHOLDER.format(len(names) - 1)}']")
            at = deep.end()
        else:
            made.append(rest[at])
            at += 1
    return "".join(made), names, filters


def _filter_end(text: str, start: int) -> int:
    """Return where the filter that begins at ``start`` ends."""
    depth, at = 0, start
    while at < len(text):
        if quoted := _QUOTED.match(text, at):
            at = quoted.end()
            continue
        depth += {"[": 1, "]": -1}.get(text[at], 0)
        at += 1
        if depth == 0:
            return at
    raise PathSyntaxError(f"'{text}': got an open filter, wanted ')]'")


def unquote(text: str) -> str:
    """Return the text between quotes, its escapes undone."""
    return re.sub(r"\\(.)", r"\1", text[1:-1])


def _steps(tree: Any, names: list[str], filters: list[str]) -> list[Step]:
    """Turn jsonpath-ng's tree into steps, outermost first, without recursion."""
    found: list[Step] = []
    while not isinstance(tree, jsonpath.Root):
        if isinstance(tree, jsonpath.Child):
            found.append(_step(tree.right, names, filters))
            tree = tree.left
        elif isinstance(tree, jsonpath.Descendants):
            found += [_step(tree.right, names, filters), Deep()]
            tree = tree.left
        else:
            raise PathSyntaxError(f"got {type(tree).__name__}, which a path here cannot have")
    return found[::-1]


def _step(node: Any, names: list[str], filters: list[str]) -> Step:
    match node:
        case jsonpath.Fields(fields=("*",)) | jsonpath.Wildcard():
            return Wildcard()
        case jsonpath.Fields(fields=fields):
            return _members(fields, names, filters)
        case jsonpath.Index(indices=(index,)):
            return Element(index)
        case jsonpath.Index(indices=indexes):
            return Elements(tuple(indexes))
        case jsonpath.Slice(start=None, end=None, step=None):
            return Wildcard()
        case jsonpath.Slice():
            return Slice(slice(node.start, node.end, node.step))
    raise PathSyntaxError(f"got {type(node).__name__}, which a path here cannot have")


def _members(fields: Sequence[str], names: list[str], filters: list[str]) -> Step:
    found = []
    for one in fields:
        number = one.removeprefix("x__").removesuffix("__x")
        if number.startswith("f") and number[1:].isdigit():
            from engine.data.filters import compile_filter

            return Filter(compile_filter(filters[int(number[1:])]))
        found.append(names[int(number)])
    return Member(found[0]) if len(found) == 1 else Several(tuple(found))


# -- ResultPath ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ResultPath:
    """Where a result goes in the raw input. No steps: it replaces the input (``is_whole``)."""

    text: str
    steps: tuple[Step, ...]

    @property
    def is_whole(self) -> bool:
        """Tell whether this is ``$``."""
        return not self.steps

    def put(self, raw: Json, result: Json) -> Json:
        """Return the input with the result in its place; only what lies on the way is copied."""
        parents = []
        node = raw
        for step in self.steps:
            parents.append(node)
            node = walk_definite((step,), node)
        made = result
        for step, parent in zip(reversed(self.steps), reversed(parents), strict=True):
            made = self._with(parent, step, made)
        return made

    def _with(self, parent: Json, step: Step, value: Json) -> Json:
        if isinstance(step, Member) and (
            parent is ABSENT or parent is None or isinstance(parent, dict)
        ):
            return {**(parent if isinstance(parent, dict) else {}), step.name: value}
        inside = isinstance(step, Element) and isinstance(parent, list)
        if inside and -len(parent) <= step.index < len(parent):  # type: ignore[union-attr]
            copy = list(parent)
            copy[step.index] = value  # type: ignore[union-attr]
            return copy
        shown = "" if parent is ABSENT else jsontext.dumps(parent)
        raise InterpreterError(f"Unable to apply ReferencePath {self.text} to input {shown}")


REPLACE: Final = ResultPath("$", ())


def compile_result_path(text: str) -> ResultPath:
    """Compile ResultPath; raise ``PathSyntaxError`` unless it is a Reference Path."""
    head = _HEAD.match(text)
    if head is None or head[0] != "$" or not is_reference_path(text):
        raise PathSyntaxError(f"{text!r}: wanted a Reference Path that begins with '$'")
    steps, _, _ = compile_steps(text[1:])
    return ResultPath(text, steps) if steps else REPLACE
