"""Compile and evaluate JSONata expressions, such as ``{% $states.input.n + 1 %}``.

An expression is parsed when the machine is compiled. An expression that surely ends soon is
evaluated in this process: only paths, operators, constructors and harmless functions. All others
may loop for ever, so they run in a child process with limits of time, memory and depth.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from jsonata.jexception import JException

from engine import jsontext
from engine.data import jsonata_eval
from engine.data.expression import ABSENT, EvaluationScope, Json
from engine.data.jsonata_pool import POOL, evaluate_here
from engine.data.jsonata_text import error_text
from engine.data.paths import PathSyntaxError
from engine.data.stored_rules import reads_stored
from engine.errors import QueryEvaluationError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.data.expression import Expression


_PARTS = ("lhs", "rhs", "condition", "then", "_else", "expression", "procedure", "body")
_LISTS = ("expressions", "arguments")
ROOT = "$$"


class _Undefined:
    """The type of ``UNDEFINED``."""


UNDEFINED: Final = _Undefined()
"""JSONata's missing value: an object or array leaves the member out."""
OPEN, CLOSE = "{%", "%}"

# Functions without callbacks, loops, or results much larger than their arguments.
_TAME = frozenset(
    {
        "sum",
        "count",
        "max",
        "min",
        "average",
        "string",
        "length",
        "substring",
        "substringBefore",
        "substringAfter",
        "uppercase",
        "lowercase",
        "trim",
        "contains",
        "number",
        "boolean",
        "not",
        "exists",
        "abs",
        "floor",
        "ceil",
        "round",
        "sqrt",
        "keys",
        "lookup",
        "reverse",
        "distinct",
        "type",
        "uuid",
        "random",
        "hash",
        "parse",
        "now",
        "millis",
        "append",
        "merge",
    }
)
_MAX_TAME = 400  # characters


def is_jsonata(value: Json) -> bool:
    """Return whether a value is an expression: a text from ``{%`` to ``%}``."""
    return isinstance(value, str) and value.startswith(OPEN) and value.endswith(CLOSE)


def jsonata_problem(value: Json) -> str:
    """Return why a value is not a JSONata expression; "" if it is valid or plain text."""
    if is_jsonata(value):
        return ""
    if isinstance(value, str) and (value.startswith(OPEN) or value.endswith(CLOSE)):
        return f"JSONata string must start with {OPEN} and end with {CLOSE}"
    return f"The value must be a JSONata expression: got {value!r}"


def looks_broken(value: Json) -> bool:
    """Return whether a text has only one of the two marks; the service rejects that."""
    return isinstance(value, str) and value.startswith(OPEN) != value.endswith(CLOSE)


class JsonataSyntaxError(PathSyntaxError):
    """The service rejects the expression in a definition.

    ``code``: the diagnostic's code. ``messages``: one for each problem. ``jsonata_code``: JSONata's
    own code of a syntax error, which the service leaves out.
    """

    def __init__(self, code: str, messages: list[str], jsonata_code: str = "") -> None:
        """Keep the data for a diagnostic."""
        super().__init__(" ".join(messages))
        self.code = code
        self.messages = messages
        self.jsonata_code = jsonata_code


INVALID, UNSUPPORTED = "INVALID_JSONATA_EXPRESSION", "UNSUPPORTED_JSONATA_EXPRESSION"


@dataclass(frozen=True, slots=True)
class Expression_:  # noqa: N801 - ``Expression`` is the protocol's name
    """A compiled expression.

    ``text``: without the marks. ``field``: where it stands, as ``Output/total``, for errors.
    """

    text: str
    field: str
    tame: bool

    def evaluate(self, scope: EvaluationScope) -> Json:
        """Return the value; raise ``QueryEvaluationError`` when there is none or it fails."""
        value = self.optional(scope)
        if value is UNDEFINED:
            raise self._error("returned nothing (undefined).")
        return value

    def optional(self, scope: EvaluationScope) -> Json:
        """Return the value or ``UNDEFINED``; raise ``QueryEvaluationError`` when it fails."""
        bindings = self._bindings(scope)
        seed = scope.rng().getrandbits(64) if _RANDOM.search(self.text) else 0
        evaluate = evaluate_here if self.tame else POOL.evaluate
        kind, value = evaluate(self.text, bindings, seed)
        match kind:
            case jsonata_eval.VALUE if not self._has_lone_surrogate(value):
                return value
            case jsonata_eval.UNDEFINED:
                return UNDEFINED
            case jsonata_eval.VALUE | jsonata_eval.UNSUPPORTED:
                raise self._error("returned an unsupported result type.")
            case jsonata_eval.INTERNAL:
                ticket = uuid.UUID(int=scope.rng().getrandbits(128), version=4)
                raise self._error(f"threw an internal error during evaluation. {ticket}")
        mark = "." if _CODED.match(value) else ":"
        raise self._error(f"threw an error during evaluation{mark} {value}")

    def _has_lone_surrogate(self, value: Json) -> bool:
        """Return whether an escape in the expression produced a lone surrogate."""
        return "\\u" in self.text and jsontext.has_surrogate(jsontext.dumps(value))

    def _error(self, problem: str) -> QueryEvaluationError:
        cause = (
            f"The JSONata expression '{self.text}' specified for the field '{self.field}' {problem}"
        )
        return QueryEvaluationError(cause, self.field)

    def _bindings(self, scope: EvaluationScope) -> dict[str, Any]:
        states: dict[str, Json] = {"input": scope.input}
        if _CONTEXT.search(self.text):
            states["context"] = scope.context()
        if scope.result is not ABSENT:
            states["result"] = scope.result
        if scope.error_output is not ABSENT:
            states["errorOutput"] = scope.error_output
        mentioned = {
            name: value for name, value in scope.variables.items() if f"${name}" in self.text
        }
        return {**mentioned, "states": states}


_CODED = re.compile(r"[DSTU]\d{4}: ")
_RANDOM = re.compile(r"\$(random|shuffle|uuid)\b")
# Matches a use of the context object: by name, or as a part of the whole ``$states``.
_CONTEXT = re.compile(r"context|\$states(?!\s*\.\s*(input|result|errorOutput)\b)")


@lru_cache(maxsize=4096)
def _inspect(text: str, *, top_level: bool) -> bool:
    """Parse an expression; return whether it may run in this process (``JsonataSyntaxError``).

    ``top_level``: accept an expression that reads the top level.
    """
    try:
        tree = jsonata_eval.compiled(text).ast
    except JException as error:
        raise JsonataSyntaxError(INVALID, [error_text(error)], str(error.error)) from None
    except Exception:  # noqa: BLE001 - the library lets bare errors of Python through
        raise JsonataSyntaxError(INVALID, ["The expression cannot be read"]) from None
    if not top_level and mentions_root(tree):
        raise JsonataSyntaxError(UNSUPPORTED, [f"Reference to '{ROOT}' is not supported."])
    if not top_level and (names := top_level_names(tree)):
        messages = [f"Reference to '{name}' at the top level is not supported." for name in names]
        raise JsonataSyntaxError(UNSUPPORTED, messages)
    return len(text) <= _MAX_TAME and _is_tame(tree)


_WILD = {"lambda", "partial", "regex", "descendant", "bind", "apply", "transform", "sort", "group"}
_WILD_OPERATORS = {"..", ":=", "~>", "**"}


def _is_tame(tree: Any) -> bool:
    """Return whether a tree has only paths, operators, constructors and harmless functions."""
    stack, seen = [tree], 0
    while stack:
        node = stack.pop()
        if isinstance(node, list | tuple):
            stack.extend(node)
            continue
        if not hasattr(node, "type"):
            continue
        seen += 1
        if node.type in _WILD or node.value in _WILD_OPERATORS or seen > 200:  # noqa: PLR2004
            return False
        if node.type == "function" and not _tame_call(node):
            return False
        stack.extend(value for name, value in vars(node).items() if not name.startswith("_"))
    return True


def _tame_call(node: Any) -> bool:
    procedure: Any = getattr(node, "procedure", None)
    return getattr(procedure, "type", "") == "variable" and procedure.value in _TAME


def compile_jsonata(text: str, *, field: str) -> Expression:
    """Compile a text between its marks; raise ``PathSyntaxError`` or ``JsonataSyntaxError``."""
    if not is_jsonata(text):
        raise PathSyntaxError(jsonata_problem(text))
    inner = text[len(OPEN) : -len(CLOSE)].strip()
    return Expression_(inner, field, _inspect(inner, top_level=reads_stored()))


# -- names at the top level ------------------------------------------------------------------------

# Such as ``total`` in ``total + 1``. The service has no value there (its input is
# ``$states.input``) and rejects such expressions. Only the first step of a path reads the top
# level. Later steps, predicates, sort terms and groupings read the value of the step before. The
# body of a function may read the same variables as its definition [measured].


def top_level_names(tree: Any) -> list[str]:
    """Return the names in order of occurrence, each once; ``$`` is the top level itself."""
    return list(dict.fromkeys(_names(tree)))


def mentions_root(tree: Any) -> bool:
    """Return whether an expression contains ``$$``."""
    stack, seen = [tree], set()
    while stack:
        node = stack.pop()
        if isinstance(node, list | tuple):
            stack.extend(node)
            continue
        if not hasattr(node, "type") or id(node) in seen:
            continue
        seen.add(id(node))
        if node.type == "variable" and node.value == "$":
            return True
        stack.extend(value for name, value in vars(node).items() if name != "_outer_instance")
    return False


def _names(node: Any) -> Iterator[str]:
    """Yield the names that a part reads at the top level."""
    if node is None or not hasattr(node, "type"):
        return
    if node.type == "path":
        yield from _names(node.steps[0])
    elif node.type == "name":
        yield str(node.value)
    elif node.type == "variable":
        if node.value == "":
            yield "$"
    elif node.type != "transform":
        yield from _inner_names(node)


def _inner_names(node: Any) -> Iterator[str]:
    for part in _PARTS:
        if part == "lhs" and node.type == "bind":
            continue
        yield from _names(getattr(node, part, None))
    for part in _LISTS:
        if part == "arguments" and node.type == "lambda":
            continue
        for item in getattr(node, part, None) or ():
            yield from _names(item)
    if node.type == "unary":
        for pair in getattr(node, "lhs_object", None) or ():
            for item in pair:
                yield from _names(item)
