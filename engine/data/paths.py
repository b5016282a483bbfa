"""Compile and evaluate JSONPaths, such as ``$.items[0].price``, as Jayway 2.0.0 does.

The service uses this library. A path is compiled once. A *definite* path (members and single
indexes) yields one value or none. An *indefinite* path always yields an array, perhaps empty (the
service has recorded ``[]`` for ``$.items[*]`` without items, so Jayway suppresses errors there).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from engine import jsontext
from engine.data.expression import ABSENT, ROOT, EvaluationScope, Json
from engine.data.path_parser import read_selectors
from engine.data.path_syntax import PathSyntaxError
from engine.data.selectors import (
    Budget,
    BudgetExceededError,
    IndexSelector,
    InnerNamesError,
    NameSelector,
    NamesSelector,
    Selector,
    select_all,
    select_definite,
    split_definite,
)
from engine.errors import RESULT_PATH_MATCH_FAILURE, InterpreterError

if TYPE_CHECKING:
    from engine.data.expression import Expression

__all__ = [
    "REPLACE",
    "Path",
    "PathSyntaxError",
    "ResultPath",
    "compile_path",
    "compile_result_path",
    "is_reference_path",
]

_HEAD = re.compile(r"\$\$|\$(?P<name>[^\W\d]\w*)|\$")


@dataclass(frozen=True, slots=True)
class Path:
    """A compiled path.

    ``head``: ``""`` for ``$``, ``"$$"`` for the context, else a variable's name. ``field``: the
    field it stands in, ``""`` for InputPath and OutputPath, whose errors read differently.
    ``definite``: the leading selectors that select one value; ``rest``: the selectors from the
    first that may select several.
    """

    text: str
    field: str
    head: str
    definite: tuple[Selector, ...]
    rest: tuple[Selector, ...] = ()

    def found(self, scope: EvaluationScope) -> Json:
        """Return the value at the path, ``ABSENT`` if there is none."""
        root = self._root(scope)
        if root is ABSENT:
            return ABSENT
        value = select_definite(self.definite, root)
        if not self.rest:
            return value
        if value is ABSENT and isinstance(self.rest[0], NamesSelector):
            return ABSENT
        try:
            return self._indefinite(value, root)
        except InnerNamesError:
            return ABSENT

    def present(self, scope: EvaluationScope) -> bool:
        """Return whether the path has a value, for IsPresent.

        A null is a value. An index beyond an array leads to none, although ``found`` gives null.
        """
        root = self._root(scope)
        if root is ABSENT:
            return False
        value = select_definite(self.definite, root, ABSENT)
        if value is ABSENT or not self.rest:
            return value is not ABSENT
        try:
            return bool(self._indefinite(value, root))
        except InnerNamesError:
            return False

    def evaluate(self, scope: EvaluationScope) -> Json:
        """Return the value at the path; raise ``InterpreterError`` if there is none."""
        value = self.found(scope)
        if value is ABSENT:
            raise InterpreterError(self._missing(scope))
        return value

    def undefined_variable(self, scope: EvaluationScope) -> str:
        """Return the error message if the path's variable is undefined, else ``""``."""
        if self._root(scope) is not ABSENT:
            return ""
        return f"Variable '${self.head}' referenced in '{self.text}' is not defined"

    def _root(self, scope: EvaluationScope) -> Json:
        if not self.head:
            return scope.input
        if self.head == "$$":
            return scope.context()
        return scope.variables.get(self.head, ABSENT)

    def _indefinite(self, value: Json, root: Json) -> Json:
        if value is ABSENT:
            return []
        try:
            return select_all(self.rest, value, root, Budget())
        except BudgetExceededError:
            raise InterpreterError(f"The JSONPath '{self.text}' selects too many values") from None

    def _missing(self, scope: EvaluationScope) -> str:
        if undefined := self.undefined_variable(scope):
            return undefined
        if self.field:
            return (
                f"The JSONPath '{self.text}' specified for the field '{self.field}' could not be "
                f"found in the input '{jsontext.dumps(scope.input)}'"
            )
        return f"Invalid path '{self.text}' : {self._missing_part(self._root(scope))}"

    def _missing_part(self, value: Json) -> str:
        """Return the first selector without a value, in Jayway's words."""
        place = "$"
        for number, selector in enumerate(self.definite):
            following = select_definite((selector,), value)
            if following is not ABSENT:
                value, place = following, place + str(selector)
                continue
            if not isinstance(selector, NameSelector | NamesSelector):
                rest = "".join(map(str, self.definite[number:]))
                context = jsontext.dumps(value)
                return (
                    f"Filter: {rest} can only be applied to arrays. Current context is: {context}"
                )
            if not isinstance(value, dict):
                return f"Property {selector} not found in path {place}"
            leaf = number == len(self.definite) - 1 and not self.rest
            words = "No results for path:" if leaf else "Missing property in path"
            return f"{words} {place}{selector}"
        inner = [getattr(selector, "target", selector) for selector in self.rest]
        names = next((part for part in inner if isinstance(part, NamesSelector)), "")
        return f"Multi properties can only be used as path leafs: {place}{names}"


def compile_path(text: str, *, field: str = "") -> Expression:
    """Compile a path starting with ``$``, ``$$`` or ``$name``; raise ``PathSyntaxError``."""
    head = _HEAD.match(text)
    if head is None:
        raise PathSyntaxError(f"{text!r}: got no '$' at the beginning")
    name = "$$" if head[0] == "$$" else head["name"] or ""
    selectors = read_selectors(text[head.end() :])
    if not selectors and not name:
        return ROOT
    return Path(text, field, name, *split_definite(selectors))


_REFERENCE = re.compile(
    r"""(\.[^\s.\[\]'"@,:?*()]+|\['(?:[^'\\]|\\.)*'\]|\["(?:[^"\\]|\\.)*"\]|\[-?\d+\])*"""
)


def is_reference_path(text: str) -> bool:
    """Return whether a path has only members and single indexes (ASL: "Reference Path")."""
    head = _HEAD.match(text)
    return head is not None and _REFERENCE.fullmatch(text[head.end() :]) is not None


# -- ResultPath ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ResultPath:
    """The place of a result in the raw input; without selectors the result replaces the input."""

    text: str
    selectors: tuple[Selector, ...]

    @property
    def is_whole(self) -> bool:
        """Whether this is ``$``."""
        return not self.selectors

    def put(self, raw: Json, result: Json) -> Json:
        """Return the input with the result inserted; only the objects on the path are copied."""
        parents = []
        node = raw
        for selector in self.selectors:
            parents.append(node)
            node = select_definite((selector,), node)
        value = result
        for selector, parent in zip(reversed(self.selectors), reversed(parents), strict=True):
            value = self._with(parent, selector, value)
        return value

    def _with(self, parent: Json, selector: Selector, value: Json) -> Json:
        if isinstance(selector, NameSelector) and (
            parent is ABSENT or parent is None or isinstance(parent, dict)
        ):
            return {**(parent if isinstance(parent, dict) else {}), selector.name: value}
        if (
            isinstance(selector, IndexSelector)
            and isinstance(parent, list)
            and 0 <= selector.index < len(parent)
        ):
            copy = list(parent)
            copy[selector.index] = value
            return copy
        parent_text = "" if parent is ABSENT else jsontext.dumps(parent)
        msg = f"Unable to apply ReferencePath {self.text} to input {parent_text}"
        raise InterpreterError(msg, RESULT_PATH_MATCH_FAILURE)


REPLACE: Final = ResultPath("$", ())


def compile_result_path(text: str) -> ResultPath:
    """Compile ResultPath; raise ``PathSyntaxError`` unless it is a Reference Path."""
    head = _HEAD.match(text)
    if head is None or head[0] != "$" or not is_reference_path(text):
        raise PathSyntaxError(f"{text!r}: wanted a Reference Path that begins with '$'")
    selectors = read_selectors(text[1:])
    return ResultPath(text, selectors) if selectors else REPLACE
