"""What does a JSONata expression yield?

Expressions are recognised and refused for now: definitions in JSONata get a clear answer at create.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from engine.data.paths import PathSyntaxError

if TYPE_CHECKING:
    from engine.data.expression import Expression, Json


class _Undefined:
    """The type of ``UNDEFINED``."""


UNDEFINED: Final = _Undefined()
"""JSONata's "nothing": inside an object or array the member is left out."""


def is_jsonata(value: Json) -> bool:
    """Tell whether a value is an expression.

    Begins exactly with ``{%`` and ends exactly with ``%}``.
    """
    return isinstance(value, str) and value.startswith("{%") and value.endswith("%}")


def jsonata_problem(value: Json) -> str:
    """Say why a value is no expression."""
    return f"got {value!r}, wanted a JSONata expression between '{{%' and '%}}'"


def compile_jsonata(text: str, *, field: str) -> Expression:
    """Refuse; raise ``PathSyntaxError``."""
    raise PathSyntaxError(f"JSONata expressions cannot be evaluated yet: got {text!r} in '{field}'")
