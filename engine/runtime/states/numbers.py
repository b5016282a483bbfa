"""Check and convert numbers in the fields of states."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.data.expression import Json

LARGEST = 99_999_999
"""A larger number in a field is cut to this: the service's own bound of seconds and attempts."""


def is_whole_number(value: Json) -> bool:
    """Return whether a JSON value is a whole number (``true`` is not a number)."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def as_float(value: float) -> float:
    """Return a number as a float; an integer beyond the largest float is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
