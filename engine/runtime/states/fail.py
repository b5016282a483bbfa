"""The Fail state: end its line of control with an error.

Error and Cause are optional. ASL: a Fail state has neither Retry nor Catch of its own; a Retrier or
Catcher of a Parallel or Map around it may handle the error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine import jsontext
from engine.data import jsonata
from engine.data.result_types import unexpected_type_error
from engine.errors import InterpreterError, StatesError
from engine.runtime import flow, halts

if TYPE_CHECKING:
    from engine.data.expression import Expression
    from engine.language.model import Fail
    from engine.runtime.run import Frame
    from engine.runtime.turn import Turn


def enter(turn: Turn, frame: Frame, state: Fail) -> None:
    """End the line of control with the state's Error and Cause, unless a breakpoint stops it."""
    error = StatesError(
        _evaluate_text(turn, frame, state.error, "Error"),
        _evaluate_text(turn, frame, state.cause, "Cause"),
    )
    if turn.plan is None or not halts.stops_at_error(turn, frame, error):
        turn.end_line(frame, error)


def _evaluate_text(
    turn: Turn, frame: Frame, expression: Expression | None, field: str
) -> str | None:
    """Return the value of a field, None if missing; raise unless it is a string."""
    if expression is None:
        return None
    value = expression.evaluate(flow.evaluation_scope(turn, frame, turn.input(frame).value))
    if isinstance(value, str):
        return value
    if isinstance(expression, jsonata.Expression_):
        raise unexpected_type_error(expression, field, "string", value)
    value_text = jsontext.dumps(value)
    msg = f"The {field} field of the Fail state does not evaluate to a string: {value_text}"
    raise InterpreterError(msg)
