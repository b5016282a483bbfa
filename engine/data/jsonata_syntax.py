"""The JSONata parser: the library's tokens, signatures and grammar, with JSONata's own errors."""

from __future__ import annotations

import copy
import re
from functools import cached_property
from typing import Any, Final, NamedTuple, NoReturn

from jsonata.jexception import JException
from jsonata.jsonata import Jsonata
from jsonata.parser import Parser
from jsonata.signature import Signature
from jsonata.tokenizer import Tokenizer
from jsonata.utils import Utils

from engine.data.jsonata_regex import regex_engine

_EXACT: Final = 2**53  # above this, a double represents several integers
_NUMERIC = re.compile(r"-?[0-9]+(\.[0-9]+)?([Ee][-+]?[0-9]+)?")
_SURROGATES = re.compile("[\ud800-\udfff]")


class _Tokens(Tokenizer):  # type: ignore[misc]
    """The tokenizer; a text that ends too early raises JSONata's error."""

    path: str
    length: int
    position: int

    def next(self, prefix: bool) -> Any:
        """Return the next token, None at the end."""
        self._skip_comments()
        try:
            token = super().next(prefix)
        except IndexError:
            raise JException("S0101", self.position) from None
        except JException as error:
            if error.error == "S0301" and error.current is not None:  # the library's wrong code
                raise JException("S0103", error.location, error.current) from None
            if error.error == "S0102":
                text = _NUMERIC.match(self.path, self.position)
                raise JException("S0102", error.location, text and text[0]) from None
            raise
        if token is not None and token.type == "operator" and token.value in ("!", "~"):
            raise JException("S0204", token.position, token.value)
        if token is not None and token.type == "number" and abs(token.value) > _EXACT:
            token.value = float(token.value)
        if token is not None and token.type == "string" and _SURROGATES.search(token.value):
            data = token.value.encode("utf-16", "surrogatepass")
            token.value = data.decode("utf-16", "surrogatepass")
        return token

    def _skip_comments(self) -> None:
        while True:
            while self.position < self.length and self.path[self.position] in " \t\n\r\v":
                self.position += 1
            if not self.path.startswith("/*", self.position):
                return
            end = self.path.find("*/", self.position + 2)
            if end < 0:
                raise JException("S0106", self.position)
            self.position = end + 2


class _Plan(NamedTuple):
    """The position of each argument (-1: the context value), and the allowed context types."""

    indices: tuple[int, ...]
    context_types: frozenset[str]


_ANY: Final = frozenset("asnblfom")


class CheckedSignature(Signature):  # type: ignore[misc]
    """Checks the types of arguments; null is a type of its own."""

    def get_symbol(self, value: Any) -> str:
        """Return the letter of a value's type."""
        return _SYMBOLS.get(type(value)) or str(super().get_symbol(value))

    def validate(self, args: Any, context: Any) -> Any:
        """Return the arguments with defaults; raise T0410 to T0412."""
        symbols = "".join(map(self.get_symbol, args))
        if symbols not in self._plans:
            self._plans[symbols] = self._plan(symbols)
        plan = self._plans[symbols]
        if plan is not None and self.get_symbol(context) in plan.context_types:
            return [context if index < 0 else args[index] for index in plan.indices]
        return self._validated(args, context)

    @cached_property
    def _plans(self) -> dict[str, _Plan | None]:
        return {}

    def _plan(self, symbols: str) -> _Plan | None:
        """Return the plan for arguments of these types; None if the general check is needed."""
        match = self._regex.fullmatch(symbols)
        if match is None or any(param.type == "a" for param in self._params):
            return None
        indices: list[int] = []
        types, count_so_far = _ANY, 0
        for number, param in enumerate(self._params, 1):
            count = len(match[number])
            if not count and not param.context:
                break  # what is optional and missing is nothing
            if not count:
                types = frozenset(kind for kind in types if re.fullmatch(param.regex, kind))
                indices.append(-1)
            indices += range(count_so_far, count_so_far + count)
            count_so_far += count
        return _Plan(tuple(indices), types) if count_so_far == len(symbols) else None

    def _validated(self, args: Any, context: Any) -> Any:
        try:
            return super().validate(args, context)
        except JException as error:
            if error.error == "T0411":
                raise JException("T0411", -1, error.expected, self.function_name) from None
            if error.error == "T0412":
                kind = _KINDS.get(str(error.extra)[:1], str(error.extra))
                raise JException("T0412", -1, error.current, self.function_name, kind) from None
            raise

    def throw_validation_error(self, args: Any, symbols: Any, name: Any) -> NoReturn:
        """Raise T0410 for the first argument of a wrong type."""
        pattern, good = "", 0
        for param in self._params:
            pattern += param.regex
            match = re.match(pattern, symbols)
            if match is None:
                break
            good = match.end()
        del args
        raise JException("T0410", -1, good + 1, name)


_SYMBOLS: Final = {
    str: "s",
    bool: "b",
    int: "n",
    float: "n",
    list: "a",
    Utils.JList: "a",
    dict: "o",
    type(Utils.NULL_VALUE): "l",
    type(None): "m",
}
_KINDS: Final = {
    "a": "arrays",
    "b": "booleans",
    "f": "functions",
    "n": "numbers",
    "o": "objects",
    "s": "strings",
}


def checked_signature(signature: Any) -> CheckedSignature:
    """Convert a signature of the library to a checked one."""
    renewed = CheckedSignature.__new__(CheckedSignature)
    renewed.__dict__.update(signature.__dict__)
    return renewed


class _Parser(Parser):  # type: ignore[misc]
    """The parser on top of ``_Tokens``."""

    def parse(self, text: str, engine: Any = regex_engine) -> Any:
        """Parse an expression to a tree; raise ``JException``."""
        self.source = text
        self.errors: list[Any] = []
        self.lexer: Any = _Tokens(text, engine)
        try:
            self.advance()
            tree = self.expression(0)
        except NotImplementedError:  # the library's word for a token that begins no expression
            raise JException("S0201", self.node.position, self.node.value) from None
        except RuntimeError as error:
            if isinstance(error, JException):
                raise
            raise JException(_signature_code(error), self.node.position) from None
        if self.node.id != "(end)":
            raise JException("S0201", self.node.position, self.node.value)
        tree = self.process_ast(tree)
        if tree.type == "parent" or tree.seeking_parent is not None:
            raise JException("S0217", tree.position, tree.type)
        return tree

    def process_ast(self, expr: Any) -> Any:
        """Turn a parsed expression into an evaluable tree.

        ``a ?: b`` and ``a ?? b`` use ``a`` twice. The library would process the same part twice and
        turn ``[-1]`` into an index of 1, so the second use gets a copy.
        """
        if expr is not None and expr.type == "condition" and _shares_condition(expr):
            expr.then = _duplicate(expr.then)
        return super().process_ast(expr)


def _shares_condition(expr: Any) -> bool:
    arguments = expr.condition.arguments or [] if expr.condition.type == "function" else []
    return expr.then is expr.condition or any(expr.then is part for part in arguments)


def _duplicate(part: Any) -> Any:
    """Return a deep copy of a parsed part."""
    if isinstance(part, list | tuple):
        return type(part)(_duplicate(item) for item in part)
    if not isinstance(part, Parser.Symbol):
        return part
    twin = copy.copy(part)
    for name, value in vars(part).items():
        setattr(twin, name, _duplicate(value))
    return twin


def _signature_code(error: RuntimeError) -> str:
    return "S0402" if "Choice groups" in str(error) else "S0401"


def thread_parser() -> _Parser:
    """Return this thread's parser: creating one is slow, and threads cannot share it."""
    parser: _Parser | None = getattr(Jsonata.PARSER, "checked", None)
    if parser is None:
        parser = Jsonata.PARSER.checked = _Parser()
    return parser
