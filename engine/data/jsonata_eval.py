"""Evaluate one JSONata expression and encode its result or error.

Simple expressions call this in the server's own process, all others in the child process
(``jsonata_child``). It imports only the evaluator, so the child starts fast.
"""

from __future__ import annotations

import math
from typing import Any

from jsonata.jexception import JException
from jsonata.utils import Utils

from engine.data.jsonata_builtins import BuiltIn, number
from engine.data.jsonata_dialect import DepthError, Evaluator, TimeLimitError
from engine.data.jsonata_library import InternalError
from engine.data.jsonata_regex import RefusedPatternError
from engine.data.jsonata_service import FunctionError, MemoryLimitError, json_value, seeded
from engine.data.jsonata_text import error_text, number_text

UNDEFINED = "undefined"
VALUE = "value"
UNSUPPORTED = "unsupported"
ERROR = "error"
INTERNAL = "internal"
TIMEOUT = "Expression evaluation timeout: Check for infinite loop"
MEMORY = "Expression evaluation memory limit exceeded: Check for excessive memory usage"
DEPTH = (
    "Stack overflow error: Check for non-terminating recursive function. Consider rewriting as "
    "tail-recursive."
)
_WRITTEN_IN_FULL = 1e21


class _UnsupportedError(Exception):
    """The result is not a JSON value, for example a function."""


def compiled(text: str) -> Evaluator:
    """Parse an expression; raise ``JException`` for a syntax error."""
    return Evaluator(text)


def evaluate(
    expression: Evaluator, bindings: dict[str, Any], seed: int, root: Any = None
) -> tuple[str, Any]:
    """Evaluate an expression; return the kind of the outcome and its value.

    ``(VALUE, json)``, ``(UNDEFINED, None)``, ``(UNSUPPORTED, None)``, ``(ERROR, message)`` or
    ``(INTERNAL, None)``. ``root``: the value that names at the top level belong to; a state machine
    has none.
    """
    try:
        functions = {name: BuiltIn(name, *parts) for name, parts in seeded(seed).items()}
        marked = {name: json_value(value) for name, value in bindings.items()}
        result = expression.result({**functions, **marked}, root)
        return (UNDEFINED, None) if result is None else (VALUE, _plain(result))
    except _UnsupportedError:
        return UNSUPPORTED, None
    except Exception as error:  # noqa: BLE001 - the library lets bare errors of Python through
        return failure(error)


def failure(error: Exception) -> tuple[str, str | None]:
    """Return kind and message of an error, in the service's words."""
    match error:
        case JException():
            return ERROR, f"{error.error}: {error_text(error)}"
        case TimeLimitError():
            return ERROR, TIMEOUT
        case DepthError():
            return ERROR, f"{DEPTH} {error}"
        case RecursionError():
            return ERROR, DEPTH
        case MemoryError() | MemoryLimitError():
            return ERROR, MEMORY
        case FunctionError() | RefusedPatternError():
            return ERROR, str(error)
        case InternalError():
            return INTERNAL, None
    # A Python error in the library: its text would tell an author nothing.
    return INTERNAL, None


def _plain(value: Any) -> Any:
    """Convert a result to plain JSON: no sequences, no null marks, no fraction ``.0``.

    A number that is not finite becomes its name, as the service writes it.
    """
    if value is Utils.NULL_VALUE or value is None:
        return None
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return _plain_number(value)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    raise _UnsupportedError


def _plain_number(value: float) -> int | float | str:
    if not math.isfinite(value):
        return number_text(value)
    if value.is_integer() and abs(value) < _WRITTEN_IN_FULL:
        return int(number_text(value))
    return number(value)
