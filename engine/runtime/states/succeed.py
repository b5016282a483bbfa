"""The Succeed state: end its line of control with the processed input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.runtime import flow

if TYPE_CHECKING:
    from engine.language.model import Succeed
    from engine.runtime.run import Frame
    from engine.runtime.turn import Turn


def enter(turn: Turn, frame: Frame, state: Succeed) -> None:
    """Write SucceedStateExited and end the line of control; a Succeed has no Assign."""
    flow.leave(turn, frame, flow.pass_through(turn, frame, state, state.data), {}, None)
