"""The Parallel state: run every branch with the effective input, all at the same time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.runtime import fault_strikes, flow, groups
from engine.runtime.payload import ensure_within_limit

if TYPE_CHECKING:
    from engine.language.model import Parallel
    from engine.runtime.run import Frame
    from engine.runtime.turn import Turn


def enter(turn: Turn, frame: Frame, state: Parallel) -> None:
    """Open the group of branches."""
    if turn.faults is not None:
        fault_strikes.count_group_attempt(turn, frame)
    payload = ensure_within_limit(flow.effective_input(turn, frame, state.data), state.name)
    groups.open_parallel(turn, frame, state, payload)
