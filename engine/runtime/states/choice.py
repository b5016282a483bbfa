"""The Choice state: take the first rule that holds, else ``Default``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.errors import InterpreterError
from engine.language.model import QueryLanguage
from engine.runtime import flow

if TYPE_CHECKING:
    from engine.language.model import Choice, DataFlow
    from engine.runtime.run import Frame
    from engine.runtime.turn import Turn

# ASL documents States.NoChoiceMatched for this. The service itself fails with States.Runtime and
# this text, in each of three histories that were recorded.
_NO_WAY_OUT = "Failed to transition out of the state. The state does not point to a next state."


def enter(turn: Turn, frame: Frame, state: Choice) -> None:
    """Leave by the first rule that holds, or by the default."""
    payload = flow.apply_input_path(turn, frame, state.data)
    scope = flow.evaluation_scope(turn, frame, payload.value)
    for rule in state.rules:
        if rule.condition.holds(scope):
            _leave(turn, frame, state, rule.data, rule.next)
            return
    if state.default is None:
        raise InterpreterError(_NO_WAY_OUT)
    _leave(turn, frame, state, state.data, state.default)


def _leave(turn: Turn, frame: Frame, state: Choice, rule: DataFlow, following: str) -> None:
    """Leave for ``following`` with the Assign and Output of ``rule``; for Default, the state's own.

    A JSONata rule without Output takes the state's Output; its Assign is never the state's.
    """
    payload = flow.apply_input_path(turn, frame, state.data)
    if state.language is QueryLanguage.JSONATA:
        data = rule if rule.output is not None else state.data
        payload = flow.pass_through(turn, frame, state, data)
    else:
        payload = flow.apply_output_path(turn, frame, state.data, payload)
    # A Choice has no result: in JSONPath its Assign reads the input, with InputPath applied.
    values = flow.evaluate_assign(
        turn, frame, state, rule, flow.apply_input_path(turn, frame, state.data), plain=True
    )
    flow.leave(turn, frame, payload, values, following)
