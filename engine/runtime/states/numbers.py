"""Checks of values where a field wants a number, and the errors of those that are none."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from engine import jsontext
from engine.errors import QueryEvaluationError

if TYPE_CHECKING:
    from engine.data.expression import Expression, Json

LARGEST = 99_999_999
"""A larger number in a field is cut to this: the service's own bound of seconds and attempts."""


def is_whole_number(value: Json) -> bool:
    """Tell whether a JSON value is a number without a fraction (``true`` is not a number)."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def as_float(value: float) -> float:
    """Return a number as a float; an integer beyond the largest float is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def json_type(value: Json) -> str:
    """Return the JSON name of the value's type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    names = {dict: "object", list: "array", str: "string", int: "number", float: "number"}
    return names[type(value)]


def unexpected_type_error(
    expression: Expression, field: str, wanted: str, got: Json
) -> QueryEvaluationError:
    """Return the error of a JSONata expression that yields a value of the wrong type."""
    text = getattr(expression, "text", "")
    return QueryEvaluationError(
        f"The JSONata expression '{text}' specified for the field '{field}' returned an unexpected "
        f"result type. Expected '{wanted}', but was '{json_type(got)}' for value: "
        f"{jsontext.dumps(got)}",
        field,
    )
