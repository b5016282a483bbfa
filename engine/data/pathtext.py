"""How is the text of a JSONPath read?

jsonpath-ng parses. What its grammar does not know - names that are no identifiers, filters, an
index counted by ``@.length`` - is put out of its way first and put back into the steps afterwards.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jsonpath_ng import jsonpath
from jsonpath_ng.ext.parser import parse as ng_parse

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
)
from engine.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_STEPS = 500
FUNCTIONS = "length|min|max|avg|sum|stddev|keys|size|first|last"


class PathSyntaxError(EngineError):
    """The text is not a JSONPath, an intrinsic call or an expression that can be compiled."""


QUOTED = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\"""", re.DOTALL)
_NAME = re.compile(r"\.\.?([^\s.\[\]'\"()*?,$]+)")
_SCRIPT = re.compile(r"\[\s*\(\s*@\.length\s*-\s*(\d+)\s*\)\s*\]")
_PATTERN = re.compile(r"=~\s*/(?:[^/\\]|\\.)*/", re.DOTALL)
_FUNCTION = re.compile(rf"\.({FUNCTIONS})\(\)$")
_FILTER = re.compile(r"\[\s*\?")
_PLACE = re.compile(r"x__(n|f)(\d+)__x")


@lru_cache(maxsize=4096)
def read_steps(rest: str) -> tuple[tuple[Step, ...], str]:
    """Return the steps behind a path's head, and its closing function's name or ``""``.

    Raise ``PathSyntaxError``.
    """
    function = ""
    if match := _FUNCTION.search(rest):
        function, rest = match[1], rest[: match.start()]
    if not rest:
        return (), function
    reader = _Reader(rest)
    try:
        tree = ng_parse("$" + reader.prepared())
    except Exception as error:  # noqa: BLE001 - its lexer raises bare Exceptions
        raise PathSyntaxError(f"'${rest}': {error}") from None
    steps = reader.steps(tree)
    if len(steps) > MAX_STEPS:
        raise PathSyntaxError(f"got a path of {len(steps)} steps, wanted at most {MAX_STEPS}")
    return steps, function


def unquote(text: str) -> str:
    """Return the text between quotes, its escapes undone."""
    return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)


class _Reader:
    """One path: the names and filters taken out of it, by number."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.names: list[str] = []
        self.filters: list[str] = []

    def prepared(self) -> str:
        """Return the path as jsonpath-ng can read it."""
        made, at = [], 0
        while at < len(self.text):
            piece, at = self._piece(at)
            made.append(piece)
        return "".join(made)

    def _piece(self, at: int) -> tuple[str, int]:
        text = self.text
        if _FILTER.match(text, at):
            end = filter_end(text, at)
            self.filters.append(text[text.index("?", at) + 1 : end - 1])
            return f"['x__f{len(self.filters) - 1}__x']", end
        if script := _SCRIPT.match(text, at):
            return f"[-{script[1]}]", script.end()
        if quoted := QUOTED.match(text, at):
            return f"'{self._name(unquote(quoted[0]))}'", quoted.end()
        if dotted := _NAME.match(text, at):
            dots = ".." if dotted[0].startswith("..") else ""
            return f"{dots}['{self._name(dotted[1])}']", dotted.end()
        return text[at], at + 1

    def _name(self, name: str) -> str:
        self.names.append(name)
        return f"x__n{len(self.names) - 1}__x"

    def steps(self, tree: Any) -> tuple[Step, ...]:
        """Turn jsonpath-ng's tree into steps, outermost first, without recursion."""
        found: list[Step] = []
        stack, deep = [tree], False
        while stack:
            node = stack.pop()
            if isinstance(node, jsonpath.Root):
                continue
            if isinstance(node, jsonpath.Child):
                stack += [node.right, node.left]
            elif isinstance(node, jsonpath.Descendants):
                stack += [node.right, None, node.left]
            elif node is None:
                deep = True
            else:
                step = self._step(node)
                found.append(Deep(step) if deep else step)
                deep = False
        return tuple(found)

    def _step(self, node: Any) -> Step:
        match node:
            case jsonpath.Fields(fields=("*",)) | jsonpath.Wildcard():
                return Wildcard()
            case jsonpath.Fields(fields=fields):
                return self._members(fields)
            case jsonpath.Index(indices=(index,)):
                return Element(index)
            case jsonpath.Index(indices=indexes):
                return Elements(tuple(indexes))
            case jsonpath.Slice(start=None, end=None, step=None):
                return Wildcard()
            case jsonpath.Slice(step=0):
                raise PathSyntaxError(f"'${self.text}': got step 0, wanted any other number")
            case jsonpath.Slice():
                return Slice(node.start, node.end, node.step)
        raise PathSyntaxError(
            f"'${self.text}': got {type(node).__name__}, which a path here cannot have"
        )

    def _members(self, fields: Sequence[str]) -> Step:
        names = []
        for one in fields:
            place = _PLACE.fullmatch(one)
            if place is None:
                raise PathSyntaxError(f"'${self.text}': got {one!r}, wanted a quoted name")
            if place[1] == "f":
                return Filter(self._filter(int(place[2])))
            names.append(self.names[int(place[2])])
        return Member(names[0]) if len(names) == 1 else Several(tuple(names))

    def _filter(self, number: int) -> Any:
        from engine.data.filters import compile_filter  # filters hold paths, paths hold filters

        return compile_filter(self.filters[number])


def filter_end(text: str, start: int) -> int:
    """Return where the filter that begins at ``start`` ends; raise ``PathSyntaxError``."""
    depth, at = 0, start
    while at < len(text):
        if skipped := QUOTED.match(text, at) or _PATTERN.match(text, at):
            at = skipped.end()
            continue
        depth += {"[": 1, "]": -1}.get(text[at], 0)
        at += 1
        if depth == 0:
            return at
    raise PathSyntaxError(f"'${text}': got an open filter, wanted ')]'")
