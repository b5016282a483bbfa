"""The global scope of JSONata expressions: all built-in functions by name, such as ``$sum``.

Functions that the library implements wrongly, and those that Step Functions adds, replace the
library's. Each call checks its arguments first.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from jsonata.jexception import JException
from jsonata.jsonata import Jsonata

from engine.data.jsonata_library import FUNCTIONS
from engine.data.jsonata_service import SERVICE, FunctionError
from engine.data.jsonata_syntax import CheckedSignature, checked_signature

if TYPE_CHECKING:
    from collections.abc import Callable

_BARE_ERRORS: Final = (
    *(ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError),
    *(RuntimeError, re.error),
)
"""Errors of Python that the library raises for unexpected arguments."""
_EXACT: Final = 2**53  # above this, a double represents several integers


@lru_cache(maxsize=256)
def _signature(text: str, name: str) -> CheckedSignature:
    """Return a parsed signature, cached because parsing takes longer than most expressions."""
    return CheckedSignature(text, name)


class BuiltIn(Jsonata.JFunction):  # type: ignore[misc]
    """A built-in function with its name and signature."""

    def __init__(self, name: str, signature: str, implementation: Callable[..., Any]) -> None:
        """Keep the function; each call checks its arguments."""
        super().__init__(None, None)
        self.function_name = name
        self.signature = _signature(signature, name)
        self._implementation = implementation

    def validate(self, args: Any, context: Any) -> Any:
        """Return the arguments; a missing one may come from the context value."""
        return self.signature.validate(args, context)

    def call(self, input: Any, args: Any) -> Any:  # noqa: A002 - as inherited
        """Check the arguments and call the function.

        Raise ``FunctionError`` for an error of Python's, which would tell an author nothing.
        """
        try:
            result = self._implementation(*self.validate(args, input))
        except (JException, RecursionError):
            raise
        except _BARE_ERRORS:
            words = f"The function '${self.function_name}' cannot use its arguments"
            raise FunctionError(words) from None
        return number(result) if isinstance(result, float) else result

    def get_number_of_args(self) -> int:
        """Return the number of arguments in the signature."""
        return int(self.signature.get_number_of_args())


class _LibraryFunction(BuiltIn):
    """A function of the library, with our checks of its arguments."""

    def __init__(self, function: Any) -> None:
        """Take over its name, and its signature with our checks."""
        Jsonata.JFunction.__init__(self, None, None)
        self.function_name = function.function_name
        self.signature = checked_signature(function.signature)
        missing = [None] * function.get_number_of_args()
        self._implementation = lambda *args: function.method(*args, *missing[len(args) :])


def number(value: float) -> float:
    """Convert a whole number that a double represents exactly to an integer."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    return value


class VariableFrame(Jsonata.Frame):  # type: ignore[misc]
    """A scope of variables."""

    def bind(self, name: str, val: Any) -> None:
        """Set a variable; a function keeps the name it was defined with."""
        self.bindings[name] = val

    def lookup(self, name: str) -> Any:
        """Return a variable's value, None if no scope around has it."""
        frame = self
        while frame is not None:
            if name in frame.bindings:
                return frame.bindings[name]
            frame = frame.parent
        return None


def _library_frame() -> VariableFrame:
    """Return the frame of all built-in functions, without ``$eval``."""
    frame = VariableFrame(None)
    for name, function in Jsonata.static_frame.bindings.items():
        frame.bind(name, _LibraryFunction(function))
    for name, (signature, implementation) in {**FUNCTIONS, **SERVICE}.items():
        frame.bind(name, BuiltIn(name, signature, implementation))
    frame.bindings.pop("eval")
    return frame


LIBRARY: Final = _library_frame()
