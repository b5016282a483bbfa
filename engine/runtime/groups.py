"""Start and join the branches of a Parallel and the iterations of an inline Map.

A *group* is open while its children run, and its owner, the frame in the Parallel or Map state,
waits. The first failing child closes the group at once: its siblings are aborted, and the error
becomes the owner's, whose Retry or Catch may handle it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from engine import jsontext
from engine.errors import HEARTBEAT_TIMEOUT, TIMEOUT, EngineBug, StatesError
from engine.execution_status import ExecutionStatus
from engine.jsontext import MAX_BYTES
from engine.language.model import Map, Parallel, Task, Wait
from engine.runtime import flow, halts, recovery
from engine.runtime.payload import Payload, too_large_error
from engine.runtime.run import Frame, FramePhase, Group, GroupKind
from engine.runtime.turn import output_key

if TYPE_CHECKING:
    from engine.data.expression import Json
    from engine.runtime.turn import Turn

INLINE_CONCURRENCY = 40
"""AWS: an inline Map runs at most about 40 iterations at a time, whatever MaxConcurrency says."""
_MAX_JOINED = 16 * MAX_BYTES
"""Maximum bytes of outputs to join, above the payload limit: a ResultSelector may shrink them."""


# -- opening ---------------------------------------------------------------------------------------


def open_parallel(turn: Turn, frame: Frame, state: Parallel, payload: Payload) -> None:
    """Start every branch with the same input; source: the Parallel state, "Branches"."""
    frame = turn.emit(frame, "ParallelStateStarted")
    # All branches are entered before any of them acts. So the history begins with the entries of
    # all branches, whatever their first states do.
    group = _open(turn, frame, Group(0, frame.id, GroupKind.PARALLEL, len(state.branches), 0, 0))
    for index, block in enumerate(state.branches):
        child = _add_child(turn, frame, group, index, frame.cursor, index)
        flow.enter(turn, child, block.start_at, payload)
    turn.groups[group.id] = replace(group, started=group.total)


def open_map(turn: Turn, frame: Frame, items: list[Json], limit: int) -> None:
    """Start the first iterations, up to ``limit``: MaxConcurrency, 0 for none."""
    frame = turn.emit(frame, "MapStateStarted", {"length": len(items)})
    limit = min(limit or INLINE_CONCURRENCY, INLINE_CONCURRENCY)
    group = _open(turn, frame, Group(0, frame.id, GroupKind.MAP, len(items), 0, 0, limit=limit))
    turn.items[group.id] = items
    for _ in range(min(limit, group.total)):
        group = _start_iteration(turn, group, frame.cursor)
    if not group.total:
        _join(turn, group)


def _open(turn: Turn, frame: Frame, group: Group) -> Group:
    """Give the group a number; its owner waits for it from now on."""
    group = replace(group, id=turn.new_id(), start_event=frame.cursor, last_event=frame.cursor)
    turn.groups[group.id] = group
    turn.outputs[group.id] = {}
    if turn.plan is not None:
        turn.plan = turn.plan.open_group(frame.id, group.total)
    turn.keep(
        frame, phase=FramePhase.GROUP, waits_for=group.id, started_event=frame.cursor, timer=""
    )
    return group


def _add_child(
    turn: Turn, owner: Frame, group: Group, index: int, cursor: int, branch: int
) -> Frame:
    frame = Frame(
        id=turn.new_id(),
        path=(*owner.path, (owner.state, branch)),
        state="",
        input="",
        cursor=cursor,
        group=group.id,
        index=index,
    )
    turn.frames[frame.id] = frame
    if turn.plan is not None:
        turn.plan = turn.plan.begin_child(owner.id, frame.id)
    return frame


def _start_iteration(turn: Turn, group: Group, previous: int) -> Group:
    """Write MapIterationStarted and queue the iteration.

    Its first state is entered when its turn comes.
    """
    owner = turn.frames[group.owner]
    index = group.started
    details = {"name": owner.state, "index": index}
    number = turn.record("MapIterationStarted", previous, details, owner.state)
    child = _add_child(turn, owner, group, index, number, 0)
    # ItemSelector is not evaluated yet, and the first state is not entered: MapIterationStarted of
    # all iterations that may run at once are adjacent in the history.
    turn.keep(child, phase=FramePhase.BEGIN)
    turn.ready.append(child.id)
    group = replace(group, started=index + 1)
    turn.groups[group.id] = group
    return group


# -- a line ends -----------------------------------------------------------------------------------


def settle(turn: Turn) -> None:
    """Pass every ended line of control to its group; without a group, end the execution.

    Joining a group can end the owner's line in turn, so this repeats until no line is left. The
    ends are queued, so a chain of groups that end together needs no recursion.
    """
    while turn.line_ends:
        frame, outcome = turn.line_ends.popleft()
        if frame.id not in turn.frames:
            continue  # an earlier failure in the queue has aborted its group
        if isinstance(outcome, Payload):
            _line_ended(turn, frame, outcome)
        else:
            _line_failed(turn, frame, outcome)


def _line_ended(turn: Turn, frame: Frame, payload: Payload) -> None:
    """Store the output of an ended line of control in its group."""
    if not frame.group:
        turn.record("ExecutionSucceeded", frame.cursor, {"output": payload.text})
        turn.finish(ExecutionStatus.SUCCEEDED, output=payload.text)
        return
    group = turn.groups[frame.group]
    if turn.plan is not None:
        turn.plan = turn.plan.step_outwards(frame.id, group.owner, len(frame.path))
    last = frame.cursor
    if group.kind is GroupKind.MAP:
        name = turn.frames[group.owner].state
        details = {"name": name, "index": frame.index}
        last = turn.record("MapIterationSucceeded", frame.cursor, details, name)
    # The output is kept as text: joining a thousand outputs parses none of them.
    turn.outputs.setdefault(group.id, {})[frame.index] = payload.text
    turn.remove(frame, done=True)
    size = group.size + jsontext.byte_size(payload.text) + 1
    group = replace(group, done=group.done + 1, last_event=last, size=size)
    turn.groups[group.id] = group
    if group.started < group.total:
        # The next iteration's first event follows the last state of the iteration that ended, not
        # its MapIterationSucceeded.
        _start_iteration(turn, group, frame.cursor)
    elif group.done == group.total:
        _join(turn, group)


def _join(turn: Turn, group: Group) -> None:
    """Pass the outputs of all children, in index order, to the owner as its result."""
    owner = turn.frames[group.owner]
    state = turn.state(owner)
    if not isinstance(state, Parallel | Map):
        msg = f"group {group.id} is owned by a {type(state).__name__}, wanted Parallel or Map"
        raise EngineBug(msg)
    # The 256 KiB limit holds for what leaves the state: a ResultSelector may make little of much.
    # Only outputs far beyond it are refused here, before they fill the memory.
    result = Payload.array(_child_outputs(turn, group)) if group.size <= _MAX_JOINED else None
    turn.close_group(group, done=True)
    # ...StateSucceeded is a side arm of the chain: ...StateExited points at the same event as it
    # does, the last one of the child that ended last.
    turn.record(type(state).__name__ + "StateSucceeded", group.last_event, None, owner.state)
    owner = turn.keep(owner, cursor=group.last_event, phase=FramePhase.READY, waits_for=0)
    try:
        if result is None:
            raise too_large_error(owner.state)
        flow.complete(turn, owner, state, state.data, result)
    except StatesError as error:
        recovery.state_failed(turn, owner, error)


def _child_outputs(turn: Turn, group: Group) -> list[str]:
    recent = turn.outputs.get(group.id, {})
    stored = [index for index in range(group.total) if index not in recent]
    texts = turn.before.values.many([output_key(group.id, index) for index in stored])
    texts_by_index = {**recent, **dict(zip(stored, texts, strict=True))}
    return [texts_by_index[index] for index in range(group.total)]


# -- a child fails ---------------------------------------------------------------------------------


def _line_failed(turn: Turn, frame: Frame, error: StatesError) -> None:
    """Pass an unhandled error of a line of control to the group's owner."""
    # No Retrier or Catcher further out takes a States.Runtime of the interpreter. AWS ends the
    # execution where it arose: no state around it fails, and none beside it is aborted [measured].
    if not frame.group or error.fatal:
        fail_execution(turn, frame.cursor, error)
        return
    group = turn.groups[frame.group]
    owner = turn.frames[group.owner]
    if turn.plan is not None:
        if _stops_for_owner(turn, frame, owner, error):
            return
        turn.plan = turn.plan.step_outwards(frame.id, owner.id, len(frame.path))
    failing = frame.cursor
    if group.kind is GroupKind.MAP:
        details = {"name": owner.state, "index": frame.index}
        turn.record("MapIterationFailed", failing, details, owner.state)
    # AWS writes TaskStateAborted for the failing Task itself, too, before those of its siblings.
    if isinstance(turn.state(frame), Task):
        turn.record("TaskStateAborted", failing, None, frame.state)
    turn.remove(frame)
    _abort_group(turn, group, failing)
    # The owner is in the phase READY while its Retriers and Catchers are asked: a Retrier runs the
    # whole Parallel or Map again, with a new group.
    owner = turn.keep(owner, cursor=failing, phase=FramePhase.READY, waits_for=0)
    recovery.state_failed(turn, owner, error)


def _stops_for_owner(turn: Turn, frame: Frame, owner: Frame, error: StatesError) -> bool:
    """Stop a line at the breakpoint of a state around it, before its error goes up."""
    released, passed = turn.released
    # A user released the error: skip the breakpoint at which it was halted.
    passing = released == frame.id and passed != frame.state
    while True:
        if passing:
            passing = owner.state != passed
        elif halts.stops_at_error(turn, frame, error, owner):
            return True
        if recovery.takes_error(turn, owner, error) or not owner.group:
            return False
        owner = turn.frames[turn.groups[owner.group].owner]


def selector_failed(turn: Turn, frame: Frame, owner: Frame, error: StatesError) -> None:
    """Fail the Map as a whole, because the ItemSelector of an iteration failed.

    The iteration has entered no state, so there is no MapIterationFailed for it.
    """
    group = turn.groups[frame.group]
    failing = frame.cursor
    turn.remove(frame)
    if not error.fatal:
        _abort_group(turn, group, failing)
    owner = turn.keep(owner, cursor=failing, phase=FramePhase.READY, waits_for=0)
    recovery.state_failed(turn, owner, error)


def _abort_group(turn: Turn, group: Group, failing: int) -> None:
    """Abort every open child; ``failing``: the previous event of each abort."""
    owner = turn.frames[group.owner]
    for child in [frame for frame in turn.frames.values() if frame.group == group.id]:
        if group.kind is GroupKind.MAP:
            details = {"name": owner.state, "index": child.index}
            turn.record("MapIterationAborted", failing, details, owner.state)
        _abort(turn, child, failing)
    turn.close_group(group)


def _abort(turn: Turn, frame: Frame, failing: int) -> None:
    state = turn.state(frame) if frame.state else None
    inner = turn.groups.get(frame.waits_for) if frame.phase is FramePhase.GROUP else None
    if inner is not None:  # inner states are aborted before outer ones
        _abort_group(turn, inner, failing)
    if isinstance(state, Task | Wait | Parallel | Map):
        turn.record(type(state).__name__ + "StateAborted", failing, None, frame.state)
    turn.remove(frame)


# -- the execution's end ---------------------------------------------------------------------------


def fail_execution(turn: Turn, previous: int, error: StatesError) -> None:
    """End the execution as FAILED; ``previous``: its previousEventId."""
    # AWS shows a missed heartbeat as States.Timeout from here on.
    name = TIMEOUT if error.name == HEARTBEAT_TIMEOUT else error.name
    details = {"error": name, "cause": error.cause}
    present = {key: value for key, value in details.items() if value is not None}
    turn.record("ExecutionFailed", previous, present)
    stop_everything(turn)
    turn.finish(ExecutionStatus.FAILED, error=name, cause=error.cause)


def stop_everything(turn: Turn) -> None:
    """End every line of control, and cancel the tasks and timers that they wait for."""
    for frame in tuple(turn.frames.values()):
        turn.remove(frame)
