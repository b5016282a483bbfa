"""A JSON value between states, parsed and serialized only when needed.

A chain of states that only pass their input never parses it, and a received text is passed on
unchanged, with its blanks and its order of keys.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from engine import jsontext
from engine.data.expression import ABSENT
from engine.errors import DATA_LIMIT_EXCEEDED, StatesError
from engine.jsontext import is_too_long

if TYPE_CHECKING:
    from collections.abc import Iterable


class Payload:
    """A JSON value as text, as parsed value, or both; each is made from the other on demand.

    Neither is ever changed in place. A received text stays exactly as it is.
    """

    __slots__ = ("_text", "_value")

    def __init__(self, text: str | None, value: Any = ABSENT) -> None:
        """One of the two must be given."""
        self._text = text
        self._value = value

    @classmethod
    def of(cls, value: Any) -> Payload:
        """Carry a parsed value."""
        return cls(None, value)

    @classmethod
    def array(cls, texts: Iterable[str]) -> Payload:
        """Carry the array of these JSON texts, without parsing them."""
        return cls("[" + ",".join(texts) + "]")

    @property
    def text(self) -> str:
        """The JSON text."""
        if self._text is None:
            self._text = jsontext.dumps(self._value)
        return self._text

    @property
    def value(self) -> Any:
        """The parsed value."""
        if self._value is ABSENT:
            self._value = json.loads(self._text or "null")
        return self._value


def ensure_within_limit(payload: Payload, name: str) -> Payload:
    """Return the payload; raise ``States.DataLimitExceeded`` naming ``name`` above the limit."""
    if is_too_long(payload.text):
        raise too_large_error(name)
    return payload


def too_large_error(name: str) -> StatesError:
    """Return the error of a result above the limit."""
    return StatesError(
        DATA_LIMIT_EXCEEDED,
        f"The state/task '{name}' returned a result with a size exceeding "
        "the maximum number of bytes service limit.",
    )
