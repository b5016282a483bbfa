"""Let the faults of a plan strike: the errors that take the place of a call, and latency.

The rest of the engine asks only if the run has a plan of faults: an execution without one pays for
a comparison with None. The events are those that AWS writes for such an error. That a fault was the
reason goes out as the command ``NoteEdit``, beside the history.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from engine import jsontext
from engine.errors import TASK_FAILED, TIMEOUT, StatesError
from engine.language.model import Task, TaskKind
from engine.runtime import commands
from engine.runtime.faults import (
    DelayedCall,
    FailingChildren,
    FaultPlan,
    FaultTime,
    FaultType,
    FaultyAnswer,
    fault_entry,
    throttle_error,
)
from engine.runtime.run import FramePhase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.runtime.faults import Fault
    from engine.runtime.run import Frame
    from engine.runtime.turn import Turn

FAULT = "fault"
"""``NoteEdit.what`` of a fault that struck."""


class Strike(Struct, frozen=True):
    """What strikes a Task at an attempt: numbers of faults, -1 for none.

    ``latency``: the first of the faults that add it; ``seconds``: of all together, or until a
    timeout. ``ending``: fails it before its call; ``answer``: replaces the outcome of its call.
    """

    attempt: int
    latency: int = -1
    seconds: int = 0
    ending: int = -1
    answer: int = -1


def plan_of(turn: Turn) -> FaultPlan:
    """Return the plan of a turn, which may be empty."""
    return turn.faults or FaultPlan()


def count_attempt(turn: Turn, frame: Frame) -> Strike | None:
    """Count an attempt of a Task; return what strikes it, None if nothing does."""
    turn.faults, attempt, struck = plan_of(turn).struck(frame.state)
    strike = Strike(attempt)
    for index in struck:
        fault = turn.faults.faults[index]
        if fault.type is FaultType.LATENCY:
            latency = index if strike.latency < 0 else strike.latency
            strike = replace(strike, latency=latency, seconds=strike.seconds + fault.seconds)
        elif fault.when is FaultTime.AFTER:
            if strike.answer < 0:
                strike = replace(strike, answer=index)
        elif strike.ending < 0:
            strike = replace(strike, ending=index, seconds=strike.seconds + fault.seconds)
    return strike if struck else None


def count_group_attempt(turn: Turn, frame: Frame) -> tuple[int, list[int]]:
    """Count an attempt of a Parallel or Map; raise the error of a fault that fails it.

    Return the number of the attempt, and the faults that fail its iterations.
    """
    turn.faults, attempt, struck = plan_of(turn).struck(frame.state)
    for index in struck:
        if turn.faults.faults[index].type is FaultType.FAIL:
            note_strike(turn, frame, index, attempt)
            raise error_of(turn, frame, index)
    return attempt, struck


def choose_children(turn: Turn, frame: Frame, attempt: int, struck: list[int]) -> None:
    """Choose which iterations of the group that a Map has opened will fail."""
    group = turn.groups.get(frame.waits_for)
    if group is None or group.owner != frame.id:
        return  # a Map without items has left already
    plan = plan_of(turn)
    for index in struck:
        count = min(plan.faults[index].children, group.total)
        drawn = random.Random(plan.draw(index, attempt)).sample(range(group.total), count)  # noqa: S311
        chosen = FailingChildren(group.id, index, attempt, tuple(sorted(drawn)))
        plan = replace(plan, children=(*plan.children, chosen))
    turn.faults = plan


def fails_child(turn: Turn, frame: Frame) -> bool:
    """Fail an iteration of a Map that a fault has chosen; tell whether it does.

    No Retrier or Catcher of its first state is asked: the iteration fails as a whole.
    """
    plan = plan_of(turn)
    for place, chosen in enumerate(plan.children):
        if chosen.group != frame.group or frame.index not in chosen.indices:
            continue
        rest = tuple(index for index in chosen.indices if index != frame.index)
        others = (*plan.children[:place], replace(chosen, indices=rest))
        turn.faults = replace(plan, children=(*others, *plan.children[place + 1 :]))
        note_strike(turn, frame, chosen.fault, chosen.attempt)
        turn.end_line(frame, error_of(turn, frame, chosen.fault))
        return True
    return False


# -- a call that waits, and an outcome that is replaced --------------------------------------------


def delay_call(turn: Turn, frame: Frame, command: commands.RunTask, strike: Strike) -> None:
    """Hold a call back for the seconds of a strike: they count as a part of its TimeoutSeconds."""
    limit = command.timeout_seconds
    by_worker = command.kind is TaskKind.ACTIVITY  # its clock starts when a worker has it
    is_late = strike.latency >= 0 and not by_worker
    times_out = is_late and limit is not None and limit <= strike.seconds
    ending = -1 if times_out else strike.ending
    fault = strike.latency if strike.latency >= 0 else strike.ending
    if limit is not None and not times_out and not by_worker:
        command = replace(command, timeout_seconds=max(1, limit - strike.seconds))
    call = DelayedCall(command, fault, strike.attempt, ending, times_out)
    plan = plan_of(turn)
    turn.faults = replace(plan, delayed={**plan.delayed, frame.id: call})
    seconds = limit if times_out and limit is not None else strike.seconds
    if strike.latency >= 0:  # an ending is noted when its time has come
        note_strike(turn, frame, fault, strike.attempt)
    turn.set_timer(frame, turn.now_ms + seconds * 1000, FramePhase.DELAY)


def take_delayed(turn: Turn, frame: Frame) -> DelayedCall:
    """Return the call that was held back in a frame, and forget it."""
    plan = plan_of(turn)
    call = plan.delayed[frame.id]
    rest = {number: other for number, other in plan.delayed.items() if number != frame.id}
    turn.faults = replace(plan, delayed=rest)
    return call


def replace_answer(turn: Turn, frame: Frame, strike: Strike) -> None:
    """Remember that an error will replace the outcome of a frame's Task."""
    plan = plan_of(turn)
    answer = FaultyAnswer(frame.id, strike.answer, strike.attempt)
    turn.faults = replace(plan, answers=(*plan.answers, answer))


def replaced_answer(turn: Turn, frame: Frame, outcome: str) -> StatesError | None:
    """Return the error that replaces the outcome of a Task, None if none does."""
    plan = plan_of(turn)
    answer = next((answer for answer in plan.answers if answer.frame == frame.id), None)
    if answer is None:
        return None
    turn.faults = plan.forget(frame.id)
    note_strike(turn, frame, answer.fault, answer.attempt, outcome)
    return error_of(turn, frame, answer.fault)


# -- errors and notes ------------------------------------------------------------------------------


def error_of(turn: Turn, frame: Frame, index: int) -> StatesError:
    """Return the error with which a fault fails a state."""
    fault = plan_of(turn).faults[index]
    if fault.type is FaultType.TIMEOUT:
        return StatesError(TIMEOUT)
    name, cause = fault.error or TASK_FAILED, fault.cause or "A fault was injected."
    state = turn.state(frame)
    if fault.type is FaultType.THROTTLE and isinstance(state, Task):
        name = fault.error or throttle_error(state.resource)
        cause = fault.cause or "Rate exceeded: a fault was injected."
    return StatesError(name, cause)


def is_timeout(turn: Turn, index: int) -> bool:
    """Tell whether a fault is a timeout, which has an event of its own."""
    return plan_of(turn).faults[index].type is FaultType.TIMEOUT


def note_strike(turn: Turn, frame: Frame, index: int, attempt: int, before: str = "") -> None:
    """Note that a fault strikes a state; ``before``: the outcome that it replaces."""
    plan = plan_of(turn)
    after = jsontext.dumps(struck_fault(plan.faults[index], attempt))
    turn.command(commands.NoteEdit(frame.cursor, frame.state, FAULT, plan.by, before, after))


def struck_fault(fault: Fault, attempt: int) -> Mapping[str, object]:
    """Return a fault as its note has it, with the number of the attempt."""
    entry = fault_entry(fault)
    return {name: entry[name] for name in entry if name not in ("state", "attempts")} | {
        "attempt": attempt
    }
