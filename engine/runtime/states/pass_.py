"""The Pass state: its result is the literal ``Result``, or the effective input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.data.expression import ABSENT
from engine.language.model import QueryLanguage
from engine.runtime import flow
from engine.runtime.payload import Payload

if TYPE_CHECKING:
    from engine.language.model import Pass
    from engine.runtime.run import Frame
    from engine.runtime.turn import Turn


def enter(turn: Turn, frame: Frame, state: Pass) -> None:
    """Leave with the result."""
    if state.result is ABSENT:
        result = flow.effective_input(turn, frame, state.data)
    else:
        result = Payload.of(state.result)
        turn.note("result", result)
    # In JSONata a Pass has no $states.result: Output and Assign see the input only.
    if state.language is QueryLanguage.JSONATA:
        payload = flow.pass_through(turn, frame, state, state.data)
        values = flow.evaluate_assign(turn, frame, state, state.data, result, plain=True)
        flow.leave(turn, frame, payload, values, state.next)
    else:
        flow.complete(turn, frame, state, state.data, result)
