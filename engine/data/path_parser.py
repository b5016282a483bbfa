"""Parse the text of a JSONPath, such as ``$.items[0]['a b']``, into selectors.

jsonpath-ng does the parsing, but its grammar lacks special names, filters and indexes counted by
``@.length``. So the parser replaces these by plain names first, and puts them back into the
selectors afterwards. ``length()`` is a name like any other: Jayway 2.0.0 knows no functions.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jsonpath_ng import jsonpath
from jsonpath_ng.ext.parser import parse as ng_parse

from engine.data.filters import compile_filter
from engine.data.path_syntax import QUOTED, PathSyntaxError, unquote
from engine.data.selectors import (
    DescendantSelector,
    FilterSelector,
    FromEndSelector,
    IndexesSelector,
    IndexSelector,
    NameSelector,
    NamesSelector,
    Selector,
    SliceSelector,
    WildcardSelector,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from engine.data.selectors import FilterTest

MAX_SELECTORS = 500

_NAME = re.compile(r"\.\.?([^\s.\[\]'\"()*?,]+(?:\(\))?)")
_SCRIPT = re.compile(r"\[\s*\(\s*@\.length\s*-\s*(\d+)\s*\)\s*\]")
_PATTERN = re.compile(r"=~\s*/(?:[^\\]|\\.)*?/[imsx]*(?=\s*(?:&&|\|\||\)))", re.DOTALL)
_FILTER = re.compile(r"\[\s*\?")
_PLACE = re.compile(r"x__(n|f|e)(\d+)__x")


@lru_cache(maxsize=4096)
def read_selectors(rest: str) -> tuple[Selector, ...]:
    """Parse the text after the ``$`` into selectors; raise ``PathSyntaxError``."""
    if not rest:
        return ()
    reader = _PathReader(rest)
    try:
        tree = ng_parse("$" + reader.prepared())
    except Exception as error:  # noqa: BLE001 - its lexer raises bare Exceptions
        raise PathSyntaxError(f"'${rest}': {error}") from None
    selectors = reader.selectors(tree)
    if len(selectors) > MAX_SELECTORS:
        raise PathSyntaxError(
            f"got a path of {len(selectors)} steps, wanted at most {MAX_SELECTORS}"
        )
    return selectors


class _PathReader:
    """The parser of one path. It replaces special names and filters by numbered names."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.names: list[str] = []
        self.filters: list[str] = []

    def prepared(self) -> str:
        """Return the path as jsonpath-ng can read it."""
        pieces, at = [], 0
        while at < len(self.text):
            piece, at = self._piece(at)
            pieces.append(piece)
        return "".join(pieces)

    def _piece(self, at: int) -> tuple[str, int]:
        text = self.text
        if (end := find_filter_end(text, at)) > at:
            self.filters.append(text[text.index("?", at) + 1 : end - 1])
            return f"['x__f{len(self.filters) - 1}__x']", end
        if script := _SCRIPT.match(text, at):
            return f"['x__e{script[1]}__x']", script.end()
        if quoted := QUOTED.match(text, at):
            return f"'{self._name(unquote(quoted[0]))}'", quoted.end()
        if dotted := _NAME.match(text, at):
            dots = ".." if dotted[0].startswith("..") else ""
            return f"{dots}['{self._name(dotted[1])}']", dotted.end()
        return text[at], at + 1

    def _name(self, name: str) -> str:
        self.names.append(name)
        return f"x__n{len(self.names) - 1}__x"

    def selectors(self, tree: Any) -> tuple[Selector, ...]:
        """Turn jsonpath-ng's tree into selectors, outermost first, without recursion."""
        selectors: list[Selector] = []
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
                selector = self._selector(node)
                selectors.append(DescendantSelector(selector) if deep else selector)
                deep = False
        return tuple(selectors)

    def _selector(self, node: Any) -> Selector:
        match node:
            case jsonpath.Fields(fields=("*",)) | jsonpath.Wildcard():
                return WildcardSelector()
            case jsonpath.Fields(fields=fields):
                return self._members(fields)
            case jsonpath.Index(indices=(index,)):
                return IndexSelector(index)
            case jsonpath.Index(indices=indexes):
                return IndexesSelector(tuple(indexes))
            case jsonpath.Slice(start=None, end=None, step=None):
                return WildcardSelector()
            case jsonpath.Slice(step=0):
                raise PathSyntaxError(f"'${self.text}': got step 0, wanted any other number")
            case jsonpath.Slice():
                return SliceSelector(node.start, node.end, node.step)
        raise PathSyntaxError(
            f"'${self.text}': got {type(node).__name__}, which a path here cannot have"
        )

    def _members(self, fields: Sequence[str]) -> Selector:
        names = []
        for field in fields:
            place = _PLACE.fullmatch(field)
            if place is None:
                raise PathSyntaxError(f"'${self.text}': got {field!r}, wanted a quoted name")
            if place[1] == "f":
                return FilterSelector(self._filter(int(place[2])))
            if place[1] == "e":
                return FromEndSelector(int(place[2]))
            names.append(self.names[int(place[2])])
        return NameSelector(names[0]) if len(names) == 1 else NamesSelector(tuple(names))

    def _filter(self, number: int) -> FilterTest:
        # A filter holds paths, and a path holds filters: the reader of the one is handed to the
        # other, so that their modules need not import each other.
        return compile_filter(self.filters[number], read_selectors)


def find_filter_end(text: str, start: int) -> int:
    """Return the end of the filter that begins at ``start``; raise ``PathSyntaxError``.

    ``start`` if no filter begins there.
    """
    if not _FILTER.match(text, start):
        return start
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
