"""The interface of compiled expressions, ``evaluate(scope)``, and the scope that they read.

Paths (``$.total``), payload templates, intrinsic calls and JSONata are all compiled to objects with
this one method. Values are plain JSON values (dict, list, str, int, float, bool, None). Nobody
changes them in place, so any number of readers may share them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

Json = Any  # a JSON value; ``Any`` because every consumer narrows it by rule


class _Absent:
    """The type of ``ABSENT``, the missing value."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()
"""No value at all, as opposed to JSON ``null``."""


class EvaluationScope(Struct, frozen=True):
    """The data that an expression can read.

    ``input``: what ``$`` means (JSONPath) or ``$states.input`` (JSONata).
    ``context``: makes the context object (``$$``, ``$states.context``) when it is first needed.
    ``variables``: name -> value, inner scopes already laid over outer ones.
    ``result``, ``error_output``: ``$states.result`` and ``$states.errorOutput``, else ``ABSENT``.
    ``rng``: makes the random source of this step when it is first needed.
    """

    input: Json
    context: Callable[[], dict[str, Json]]
    variables: Mapping[str, Json]
    rng: Callable[[], random.Random]
    result: Json = ABSENT
    error_output: Json = ABSENT


class Expression(Protocol):
    """A compiled path, template, intrinsic call or JSONata expression."""

    def evaluate(self, scope: EvaluationScope) -> Json:
        """Return the value; raise ``StatesError`` (mostly ``InterpreterError``) without one."""
        ...


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant."""

    value: Json

    def evaluate(self, scope: EvaluationScope) -> Json:  # noqa: ARG002 - the protocol's signature
        """Return the constant."""
        return self.value


@dataclass(frozen=True, slots=True)
class _Root:
    """The path ``$``."""

    def evaluate(self, scope: EvaluationScope) -> Json:
        """Return the whole input."""
        return scope.input


ROOT: Final = _Root()
"""The default of InputPath and OutputPath; compared by identity to skip work."""
NOTHING: Final = Literal({})
"""The result of a ``null`` InputPath or OutputPath."""
