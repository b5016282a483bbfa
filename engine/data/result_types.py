"""The errors of a JSONata expression whose result its field cannot have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import jsontext
from engine.errors import QueryEvaluationError

if TYPE_CHECKING:
    from engine.data.expression import Expression, Json


def json_type(value: Json) -> str:
    """Return the JSON name of the value's type."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    names = {dict: "object", list: "array", str: "string", int: "number", float: "number"}
    return names[type(value)]


def unexpected_type_error(
    expression: Expression, field: str, expected: str, got: Json
) -> QueryEvaluationError:
    """Return the error of an expression that yields a value of the wrong type [recorded].

    ``expected``: a JSON type. Where the value has it, an integer from 0 was expected.
    """
    text = getattr(expression, "text", jsontext.dumps(got))
    problem = f"Expected '{expected}', but was '{json_type(got)}' for value: {jsontext.dumps(got)}"
    if json_type(got) == expected:
        problem = f"Expected a non-negative integer, but was: {jsontext.dumps(got)}"
    return QueryEvaluationError(
        f"The JSONata expression '{text}' specified for the field '{field}' returned an unexpected "
        f"result type. {problem}",
        field,
    )


def wrong_number_error(
    expression: Expression, field: str, got: Json, allowed: str
) -> QueryEvaluationError:
    """Return the error of an expression that yields no number, or not the ``allowed`` one."""
    if json_type(got) != "number":
        return unexpected_type_error(expression, field, "number", got)
    text = getattr(expression, "text", "")
    return QueryEvaluationError(
        f"The JSONata expression '{text}' specified for the field '{field}' returned "
        f"{jsontext.dumps(got)}, wanted {allowed}",
        field,
    )
