"""The Wait state: pause the line of control for some seconds, or until a time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from engine import jsontext
from engine.data.expression import ABSENT, Json
from engine.data.result_types import unexpected_type_error
from engine.data.timestamps import parse_timestamp
from engine.errors import InterpreterError, QueryEvaluationError
from engine.language.model import QueryLanguage
from engine.runtime import flow
from engine.runtime.run import FramePhase
from engine.runtime.states.numbers import is_whole_number

if TYPE_CHECKING:
    from engine.language.model import Wait
    from engine.runtime.messages import Message
    from engine.runtime.run import Frame
    from engine.runtime.turn import Turn

_MAX_MS = (2**31 - 1) * 1000
"""AWS: a wait is 24,855 days long at most, the seconds that 32 bits count [recorded].

A longer one fails when the state is entered; the execution itself ends after a year."""


def enter(turn: Turn, frame: Frame, state: Wait) -> None:
    """Set the timer, or leave at once if the time has passed."""
    due_ms = _due_ms(turn, frame, state)
    if due_ms <= turn.now_ms:
        _go_on(turn, frame, state)
    elif due_ms - turn.now_ms > _MAX_MS:
        msg = "Wait state delay is too long."
        raise InterpreterError(msg)
    else:
        turn.set_timer(frame, due_ms, FramePhase.TIMER)


def resume(turn: Turn, frame: Frame, state: Wait, message: Message) -> None:  # noqa: ARG001
    """Leave the state: the timer fired."""
    _go_on(turn, turn.keep(frame, phase=FramePhase.READY, timer=""), state)


def _go_on(turn: Turn, frame: Frame, state: Wait) -> None:
    payload = flow.apply_input_path(turn, frame, state.data)
    values = flow.evaluate_assign(turn, frame, state, state.data, payload, plain=True)
    leaving = flow.pass_through(turn, frame, state, state.data)
    flow.leave(turn, frame, leaving, values, state.next)


def _due_ms(turn: Turn, frame: Frame, state: Wait) -> int:
    value = _evaluate_value(turn, frame, state)
    if state.field in ("Timestamp", "TimestampPath"):
        moment = parse_timestamp(value)
        if moment is None:
            raise _timestamp_error(state, value)
        # AWS ignores the part below a second: 12:00:00.9 is due at 12:00:00.
        return int(moment.second.timestamp()) * 1000
    return turn.now_ms + _check_seconds(state, value) * 1000


def _evaluate_value(turn: Turn, frame: Frame, state: Wait) -> Json:
    scope = flow.evaluation_scope(turn, frame, flow.apply_input_path(turn, frame, state.data).value)
    if state.path is None:
        return state.until.evaluate(scope)
    # A path that leads nowhere has a message of its own in a Wait, so it must not raise here.
    evaluate = getattr(state.until, "found", state.until.evaluate)
    value = evaluate(scope)
    if value is ABSENT or value is None:
        msg = f"The {state.field} parameter does not reference an input value: {state.path}"
        raise InterpreterError(msg)
    return value


def _check_seconds(state: Wait, value: Json) -> int:
    if state.language is QueryLanguage.JSONATA:
        if not is_whole_number(value) or value < 0:
            raise unexpected_type_error(state.until, state.field, "number", value)
        return int(value)
    value_text = value if isinstance(value, str) else jsontext.dumps(value)
    # AWS reads a number as text, too, as Java's Long.parseLong would.
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,18}", value, re.ASCII):
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        problem = "cannot be parsed as a long value"
    elif value < 0:
        problem = "references a negative value"
    else:
        return value
    msg = f"The {state.field} parameter {problem}: {state.path} == {value_text}"
    raise InterpreterError(msg)


def _timestamp_error(state: Wait, value: Json) -> InterpreterError:
    text = value if isinstance(value, str) else jsontext.dumps(value)
    form = "ISO-8601 extended offset date-time format string"
    if state.language is QueryLanguage.JSONATA:
        msg = f"The Timestamp field cannot be parsed as an {form}: {text}"
        return QueryEvaluationError(msg, "Timestamp")
    return InterpreterError(
        f"The {state.field} parameter does not reference a valid {form}: {state.path} == {text}"
    )
