"""The JSONata evaluator: jsonata-python's, corrected to the results of JSONata 2 and the service.

Each correction overrides one method of the library's evaluator. The rest is inherited.
"""

from __future__ import annotations

import math
import operator
import time
from typing import TYPE_CHECKING, Any, Final

from jsonata.functions import Functions
from jsonata.jexception import JException
from jsonata.jsonata import Jsonata
from jsonata.parser import Parser
from jsonata.utils import Utils

from engine.data.jsonata_builtins import LIBRARY, BuiltIn, VariableFrame, number
from engine.data.jsonata_library import clone, merge_sorted, to_string
from engine.data.jsonata_regex import find_matches, regex_engine
from engine.data.jsonata_service import MAX_BYTES, MemoryLimitError
from engine.data.jsonata_syntax import checked_signature, thread_parser

if TYPE_CHECKING:
    from collections.abc import Callable

TIMEOUT_S: Final = 1.4  # AWS: one second; the rest is for our slower interpreter
MAX_DEPTH: Final = 100  # maximum nesting of evaluations [measured]
_MAX_RANGE: Final = 10_000_000  # JSONata's own limit
_CHECK_TIME: Final = 0x3F  # every 64 evaluations
_MAX_NUMBERS: Final = MAX_BYTES // 8


class DepthError(Exception):
    """Evaluations are nested deeper than the service allows."""


class TimeLimitError(Exception):
    """An evaluation takes longer than the service allows."""


_METHODS: Final = {
    "apply": "evaluate_apply_expression",
    "binary": "evaluate_binary",
    "bind": "evaluate_bind_expression",
    "block": "evaluate_block",
    "condition": "evaluate_condition",
    "descendant": "_descendants",
    "function": "evaluate_function",
    "lambda": "evaluate_lambda",
    "name": "evaluate_name",
    "number": "_literal",
    "parent": "_parent",
    "partial": "evaluate_partial_application",
    "path": "evaluate_path",
    "regex": "_pattern",
    "string": "_literal",
    "transform": "evaluate_transform_expression",
    "unary": "evaluate_unary",
    "value": "_literal",
    "variable": "evaluate_variable",
    "wildcard": "_wildcard",
}


def _member(path: Any, value: Any) -> Any:
    """Return the value at a path of plain names through objects, else ``NONE``."""
    try:
        names = path.bare_names
    except AttributeError:
        names = path.bare_names = _bare_names(path)
    if not names:
        return Utils.NONE
    for name in names:
        if type(value) is not dict:
            return Utils.NONE
        if name not in value:
            return None
        value = value[name]
        if value is None:
            value = Utils.NULL_VALUE
    return Utils.NONE if isinstance(value, list) else value


_ADDED_TO_PATHS: Final = ("group", "predicate", "tuple", "keep_singleton_array", "keep_array")
_ADDED_TO_STEPS: Final = ("stages", "predicate", "group", "tuple", "focus", "index", "ancestor")


def _bare_names(path: Any) -> list[str]:
    """Return the names of a path that has only names, [] for any other."""
    plain = not any(getattr(path, added, None) for added in _ADDED_TO_PATHS) and all(
        step.type == "name"
        and not step.keep_array
        and all(getattr(step, added, None) is None for added in _ADDED_TO_STEPS)
        for step in path.steps
    )
    return [str(step.value) for step in path.steps] if plain else []


def _collapse_sequence(sequence: Any, expr: Any) -> Any:
    """Reduce a sequence: none for an empty one, the item of a single one, else itself."""
    if not sequence.sequence or sequence.tuple_stream:
        return sequence
    if expr.keep_array:
        sequence.keep_singleton = True
    if not sequence:
        return None
    return sequence[0] if len(sequence) == 1 and not sequence.keep_singleton else sequence


class Evaluator(Jsonata):  # type: ignore[misc]
    """A parsed expression that can be evaluated, by one thread at a time."""

    def __init__(self, text: str) -> None:
        """Parse an expression; raise ``JException`` for a syntax error."""
        self.regex_engine = regex_engine
        self.parser = thread_parser()
        self.ast = self.parser.parse(text)
        self.errors = None
        self.environment = self.create_frame(LIBRARY)
        self.timestamp = 0
        self.input = None
        self.validate_input = False
        self.output_convert_nulls = False
        self._depth = 0
        self._evaluations = 0
        self._ends = math.inf

    def result(self, names: dict[str, Any], root: Any = None) -> Any:
        """Evaluate with variables; None is nothing, ``Utils.NULL_VALUE`` is null."""
        Jsonata.CURRENT.jsonata = self
        self._depth = 0
        self._evaluations = 0
        self._ends = time.monotonic() + TIMEOUT_S
        return self.evaluate(root, names)

    def get_per_thread_instance(self) -> Evaluator:
        """Return this evaluator; the library would return the newest evaluator of the thread."""
        return self

    def create_frame(self, enclosing_environment: Any = None) -> VariableFrame:
        """Make a scope of variables inside another one."""
        return VariableFrame(enclosing_environment)

    def eval(self, expr: Any, input: Any, environment: Any) -> Any:  # noqa: A002 - as inherited
        """Evaluate a part within the limits of depth, time and memory."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise DepthError(f"Depth={self._depth} max={MAX_DEPTH}")
        self._evaluations += 1
        if not self._evaluations & _CHECK_TIME and time.monotonic() > self._ends:
            raise TimeLimitError
        before, self.environment = self.environment, environment
        result = self._value(expr, input, environment)
        self.environment = before
        self._depth -= 1
        if isinstance(result, list):
            if len(result) > _MAX_NUMBERS:
                raise MemoryLimitError
            return _collapse_sequence(result, expr) if isinstance(result, Utils.JList) else result
        if isinstance(result, str) and len(result) > MAX_BYTES:
            raise MemoryLimitError
        return result

    def _value(self, expr: Any, input: Any, environment: Any) -> Any:  # noqa: A002
        """Evaluate a part with its predicates and its grouping."""
        kind = expr.type
        if kind == "path" and type(input) is dict and self._depth < MAX_DEPTH:
            member = _member(expr, input)
            if member is not Utils.NONE:
                return member
        method = _METHODS.get(kind)
        result = getattr(self, method)(expr, input, environment) if method else None
        for predicate in expr.predicate or ():
            result = self.evaluate_filter(predicate.expr, result, environment)
        if kind != "path" and expr.group is not None:
            result = self.evaluate_group_expression(expr.group, result, environment)
        return result

    def _literal(self, expr: Any, *_: Any) -> Any:
        return Utils.NULL_VALUE if expr.value is None else expr.value

    def _pattern(self, expr: Any, *_: Any) -> Any:
        return expr.value

    def _wildcard(self, expr: Any, input: Any, _: Any) -> Any:  # noqa: A002
        return self.evaluate_wildcard(expr, input)

    def _descendants(self, expr: Any, input: Any, _: Any) -> Any:  # noqa: A002
        return self.evaluate_descendants(expr, input)

    def _parent(self, expr: Any, _: Any, environment: Any) -> Any:
        return environment.lookup(expr.slot.label)

    # -- operators -----------------------------------------------------------------------------

    def evaluate_binary(self, expr: Any, input: Any, environment: Any) -> Any:  # noqa: A002
        """Evaluate an operator between two parts."""
        lhs, sign = self.eval(expr.lhs, input, environment), expr.value
        if sign in ("and", "or"):
            truth = Jsonata.boolize(lhs)
            if truth is (sign == "or"):
                return truth
            return Jsonata.boolize(self.eval(expr.rhs, input, environment))
        rhs = self.eval(expr.rhs, input, environment)
        if sign in _ARITHMETIC:
            return self.evaluate_numeric_expression(lhs, rhs, sign)
        if sign in ("=", "!="):
            equal = _equal(lhs, rhs)
            return False if equal is None else equal is (sign == "=")
        if sign in ("<", "<=", ">", ">="):
            return self.evaluate_comparison_expression(lhs, rhs, sign)
        if sign == "&":
            return (to_string(lhs) or "") + (to_string(rhs) or "")
        if sign == "in":
            return self.evaluate_includes_expression(lhs, rhs)
        return self.evaluate_range_expression(lhs, rhs)

    def evaluate_numeric_expression(self, lhs: Any, rhs: Any, op: Any) -> Any:
        """Calculate with doubles, as JavaScript does."""
        if lhs is not None and not Utils.is_numeric(lhs):
            raise JException("T2001", -1, op, lhs)
        if rhs is not None and not Utils.is_numeric(rhs):
            raise JException("T2002", -1, op, rhs)
        if lhs is None or rhs is None:
            return None
        return number(_ARITHMETIC[op](float(lhs), float(rhs)))

    def evaluate_unary(self, expr: Any, input: Any, environment: Any) -> Any:  # noqa: A002
        """Negate a number; the library does all other prefixes."""
        if expr.value != "-":
            return super().evaluate_unary(expr, input, environment)
        value = self.eval(expr.expression, input, environment)
        if value is None:
            return None
        if not Utils.is_numeric(value):
            raise JException("D1002", expr.position, value)
        return number(-float(value))

    def evaluate_includes_expression(self, lhs: Any, rhs: Any) -> bool:
        """Return whether a list contains a value (``in``); ``true`` is not 1."""
        if lhs is None or rhs is None:
            return False
        return any(_same(lhs, item) for item in (rhs if isinstance(rhs, list) else [rhs]))

    def evaluate_range_expression(self, lhs: Any, rhs: Any) -> Any:
        """Return the integers of ``[first..last]``, both included."""
        if lhs is not None and not _is_integer(lhs):
            raise JException("T2003", -1, lhs)
        if rhs is not None and not _is_integer(rhs):
            raise JException("T2004", -1, rhs)
        if lhs is None or rhs is None or lhs > rhs:
            return None
        count = int(rhs) - int(lhs) + 1  # len() takes no range beyond 64 bits
        if count > _MAX_RANGE:
            raise JException("D2014", -1, count)
        if count > _MAX_NUMBERS:
            raise MemoryLimitError
        return Utils.create_sequence_from_iter(range(int(lhs), int(rhs) + 1))

    def evaluate_sort_expression(self, expr: Any, input: Any, environment: Any) -> Any:  # noqa: A002
        """Order a sequence by its terms."""
        if input is None:
            return None
        if len(input) <= 1:
            return input
        tuples = isinstance(input, Utils.JList) and input.tuple_stream
        compare = Jsonata.ComparatorWrapper(self, expr, environment, tuples).compare
        ordered: Any = merge_sorted(list(input), lambda *pair: compare(*pair) > 0)
        if tuples:
            ordered.tuple_stream = True
        return ordered

    # -- functions -----------------------------------------------------------------------------

    def evaluate_filter(self, predicate: Any, input: Any, environment: Any) -> Any:  # noqa: A002
        """Return the items that satisfy a predicate, or the items at its indexes."""
        if input is None:
            return Utils.create_sequence()
        tuples = isinstance(input, Utils.JList) and input.tuple_stream
        results = Utils.create_sequence()
        results.tuple_stream = bool(tuples)
        items = input if isinstance(input, list) else [input]
        if predicate.type == "number":
            place = math.floor(predicate.value)
            element = items[place] if -len(items) <= place < len(items) else None
            return element if isinstance(element, list) else _with_item(results, element)
        for index, item in enumerate(items):
            scope = self.create_frame_from_tuple(environment, item) if tuples else environment
            value = self.eval(predicate, item["@"] if tuples else item, scope)
            if Utils.is_numeric(value):
                value = [value]
            if Utils.is_array_of_numbers(value):
                places = (math.floor(place) for place in value)
                hits = sum(
                    index == (place + len(items) if place < 0 else place) for place in places
                )
                results.extend([item] * hits)
            elif Jsonata.boolize(value):
                results.append(item)
        return results

    def evaluate_lambda(self, expr: Any, input: Any, environment: Any) -> Any:  # noqa: A002
        """Create a closure; its signature is checked like a built-in function's."""
        procedure = super().evaluate_lambda(expr, input, environment)
        procedure.id = procedure.value = ""  # else the library cannot show it in an error
        if procedure.signature is not None:
            procedure.signature = checked_signature(procedure.signature)
        return procedure

    def evaluate_transform_expression(self, expr: Any, input: Any, environment: Any) -> Any:  # noqa: A002
        """Return the function of a transformation ``|pattern|update|``."""
        del input

        def transform(value: Any) -> Any:
            return self._transformed(expr, environment, value)

        return BuiltIn("transform", "<(oa):o>", transform)

    def _transformed(self, expr: Any, environment: Any, value: Any) -> Any:
        """Return a copy of a value with the matching parts updated."""
        if not isinstance(environment.lookup("clone"), Jsonata.JFunction | Parser.Symbol):
            raise JException("T2013", expr.position)
        copied = clone(value)
        matches = self.eval(expr.pattern, copied, environment)
        for match in matches if isinstance(matches, list) else [matches]:
            if match is None:
                continue
            update = self.eval(expr.update, match, environment)
            if update is not None and not isinstance(update, dict):
                raise JException("T2011", expr.update.position, update)
            deleted_names = (
                None if expr.delete is None else self.eval(expr.delete, match, environment)
            )
            names = (
                deleted_names
                if isinstance(deleted_names, list)
                else []
                if deleted_names is None
                else [deleted_names]
            )
            if not Utils.is_array_of_strings(names):
                raise JException("T2012", expr.delete.position, deleted_names)
            if isinstance(match, dict):
                match.update(update or {})
                for name in names:
                    match.pop(name, None)
        return copied

    def evaluate_partial_application(self, expr: Any, input: Any, environment: Any) -> Any:  # noqa: A002
        """Bind some arguments; T1007 for a function name without its ``$``."""
        procedure = expr.procedure
        if procedure.type == "path" and self.eval(procedure, input, environment) is None:
            name = str(procedure.steps[0].value)
            if environment.lookup(name) is not None:
                raise JException("T1007", expr.position, name)
        applied = super().evaluate_partial_application(expr, input, environment)
        applied.id = applied.value = ""  # as that of a lambda
        return applied

    def evaluate_function(
        self,
        expr: Any,
        input: Any,  # noqa: A002
        environment: Any,
        first: Any = Utils.NONE,
    ) -> Any:
        """Call a function; ``first``: the left side of ``~>``, its first argument."""
        called = expr.procedure
        if called.type == "variable" and called.value and not called.predicate:
            procedure = environment.lookup(called.value)
        else:
            procedure = self.eval(called, input, environment)
        name = called.steps[0].value if called.type == "path" else called.value
        if procedure is None:
            is_variable = called.type == "path" and environment.lookup(str(name)) is not None
            raise JException("T1005" if is_variable else "T1006", expr.position, name)
        args = [] if first is Utils.NONE else [first]
        args += [self.eval(argument, input, environment) for argument in expr.arguments or ()]
        if isinstance(procedure, Parser.Symbol):
            procedure.token, procedure.position = name, expr.position
        return self.apply(procedure, args, input, environment)

    def apply_inner(self, proc: Any, args: Any, input: Any, environment: Any) -> Any:  # noqa: A002
        """Call a function with arguments; raise T1006 for a value that is not a function."""
        del environment
        if isinstance(proc, Jsonata.JFunction):
            return proc.call(input, args)
        if Functions.is_lambda(proc):
            return self.apply_procedure(proc, self.validate_arguments(proc, args, input))
        if Functions.is_regex(proc):
            text = next((value for value in args if isinstance(value, str)), "")
            return _next_match(find_matches(proc, text, function="match"))
        raise JException("T1006", -1)


def _with_item(sequence: Any, item: Any) -> Any:
    if item is not None:
        sequence.append(item)
    return sequence


def _next_match(matches: Any) -> Any:
    """Return the next match of a pattern, in the form that JSONata passes to functions."""
    match = next(matches, None)
    if match is None:
        return None
    return {
        "match": match.text,
        "start": match.start,
        "end": match.end,
        "groups": list(match.groups),
        "next": BuiltIn("next", "<:x>", lambda: _next_match(matches)),
    }


def _divided(dividend: float, divisor: float) -> float:
    if divisor:
        return dividend / divisor
    return math.nan if dividend == 0 or math.isnan(dividend) else math.copysign(math.inf, dividend)


_ARITHMETIC: Final[dict[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
    "%": lambda dividend, divisor: math.fmod(dividend, divisor) if divisor else math.nan,
}


def _is_integer(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, int) or value.is_integer()


def _equal(first: Any, second: Any) -> bool | None:
    """Compare two values deeply; None if either is missing."""
    if first is None or second is None:
        return None
    return bool(Utils.is_deep_equal(first, second))


def _same(first: Any, second: Any) -> bool:
    """Return whether JavaScript's ``===`` holds for two values."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, list | dict):
        return first is second
    return bool(first == second)
