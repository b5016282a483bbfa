"""Redrive: a failed execution continues from the states that did not succeed.

Source: "Restarting state machine executions with redrive": succeeded states do not run again; retry
counters and timeouts start anew; of a Parallel or inline Map only the branches and iterations that
did not succeed run again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.execution_status import ExecutionStatus
from engine.language.model import Fail, Map
from engine.runtime import flow
from engine.runtime.run import FramePhase
from engine.runtime.states import distributed

if TYPE_CHECKING:
    from engine.runtime.run import Frame
    from engine.runtime.turn import Turn


def begin(turn: Turn) -> None:
    """Write ExecutionRedriven and continue every line of control that did not succeed."""
    count = turn.about.get("redrive_count", 0) + 1
    turn.about = {**turn.about, "redrive_count": count, "redrive_ms": turn.now_ms}
    turn.status = ExecutionStatus.RUNNING
    number = turn.record("ExecutionRedriven", turn.next_event - 1, {"redriveCount": count})
    owned = {group.owner: group.id for group in turn.groups.values()}
    # The numbers of frames give the order in which the lines began. Going by them makes the events
    # of a redrive the same, whatever the order of the frames in the snapshot.
    for frame in sorted(turn.frames.values(), key=lambda frame: frame.id):
        if frame.id in owned:
            _wait_again(turn, frame, owned[frame.id])
        else:
            _run_again(turn, frame, number)


def unsuccessful_states(frames: list[Frame], owners: set[int]) -> list[str]:
    """Return the names of the states that a redrive would run again, each once."""
    return list(
        dict.fromkeys(frame.state for frame in frames if frame.id not in owners and frame.state)
    )


def _wait_again(turn: Turn, frame: Frame, group: int) -> None:
    """Let a Parallel or Map wait for its branches or iterations again."""
    turn.keep(
        frame,
        phase=FramePhase.GROUP,
        waits_for=group,
        started_event=turn.groups[group].start_event,
        tries=(),
        retry_count=0,
        timer="",
    )


def _run_again(turn: Turn, frame: Frame, redriven: int) -> None:
    """Do the work of a line's state again, without entering the state again."""
    frame = turn.keep(
        frame,
        phase=FramePhase.READY if frame.state else FramePhase.BEGIN,
        waits_for=0,
        timer="",
        submitted=False,
        tries=(),
        retry_count=0,
        # The execution's own line continues after ExecutionRedriven; a branch or an iteration
        # continues after its own last event.
        cursor=frame.cursor if frame.group else redriven,
    )
    state = turn.state(frame) if frame.state else None
    if isinstance(state, Map) and frame.map_run:
        distributed.redrive(turn, frame)
        return
    frame = turn.keep(frame, started_event=0)
    # A Fail has no work that could be done again. AWS enters it once more, and it fails once more.
    if isinstance(state, Fail):
        flow.enter(turn, frame, frame.state, turn.input(frame))
    else:
        turn.ready.append(frame.id)
