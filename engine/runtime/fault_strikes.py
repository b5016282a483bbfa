"""Apply the injected faults of a run (``faults``): errors in place of calls, and added latency.

``states`` and ``advance`` call these functions when a Task, Parallel or Map begins an attempt; a
run without faults costs them one comparison with None. A fault *strikes* an attempt if it applies
to it. The history gets the events that AWS writes for the same error; the command ``NoteEdit``
records the fault beside the history.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from engine import jsontext
from engine.errors import HEARTBEAT_TIMEOUT, TASK_FAILED, TIMEOUT, StatesError
from engine.language.model import Task, TaskKind
from engine.runtime import commands, messages
from engine.runtime.faults import (
    CALLBACKS,
    ChildFaults,
    DelayedCall,
    FailingChild,
    FailingChildren,
    FaultPlan,
    FaultTime,
    FaultType,
    FaultyAnswer,
    LateAnswer,
    chosen_children,
    fault_entry,
    states_in,
    throttle_error,
)
from engine.runtime.run import FramePhase

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from engine.language.model import Map
    from engine.runtime.faults import Fault
    from engine.runtime.run import Frame
    from engine.runtime.turn import Turn

FAULT = "fault"
"""``NoteEdit.what`` of a fault that struck."""
_TIMEOUTS = {FaultType.TIMEOUT: TIMEOUT, FaultType.LOSE_HEARTBEAT: HEARTBEAT_TIMEOUT}


class Strike(Struct, frozen=True):
    """The faults that strike one attempt of a Task, as indexes in the plan; -1: none.

    ``latency``: the first fault with latency; ``seconds``: their total delay, limited by the
    timeout. ``ending``: the fault that fails the Task before its call. ``answers``: the faults that
    replace, delay or repeat the outcome of the call.
    """

    attempt: int
    latency: int = -1
    seconds: int = 0
    ending: int = -1
    answers: tuple[int, ...] = ()


def plan_of(turn: Turn) -> FaultPlan:
    """Return the faults of a turn's run; an empty plan without any."""
    return turn.faults or FaultPlan()


def count_attempt(turn: Turn, frame: Frame) -> Strike | None:
    """Count an attempt of a Task; return the faults that strike it, None without any."""
    turn.faults, attempt, struck = plan_of(turn).struck(frame.state)
    strike = Strike(attempt)
    for index in struck:
        fault = turn.faults.faults[index]
        if fault.type is FaultType.LATENCY:
            latency = index if strike.latency < 0 else strike.latency
            strike = replace(strike, latency=latency, seconds=strike.seconds + fault.seconds)
        elif fault.when is FaultTime.AFTER or fault.type in CALLBACKS:
            strike = replace(strike, answers=(*strike.answers, index))
        elif strike.ending < 0:
            strike = replace(strike, ending=index, seconds=strike.seconds + fault.seconds)
    return strike if struck else None


def count_group_attempt(
    turn: Turn, frame: Frame, inner: Collection[str] = ()
) -> tuple[int, list[int]]:
    """Count an attempt of a Parallel or Map; raise the error of a fault that fails it as a whole.

    ``inner``: as of ``FaultPlan.struck``. Return the number of the attempt, and the faults that
    fail its iterations.
    """
    turn.faults, attempt, struck = plan_of(turn).struck(frame.state, inner)
    for index in struck:
        if turn.faults.faults[index].type is FaultType.FAIL:
            note_strike(turn, frame, index, attempt)
            raise error_of(turn, frame, index)
    return attempt, struck


def choose_children(turn: Turn, frame: Frame, attempt: int, struck: list[int]) -> None:
    """Choose the iterations of a Map's open group that faults will fail."""
    group = turn.groups.get(frame.waits_for)
    if group is None or group.owner != frame.id:
        return  # a Map without items has left already
    plan = plan_of(turn)
    for index in struck:
        drawn = chosen_children(plan.draw(index, attempt), plan.faults[index].children, group.total)
        chosen = FailingChildren(group.id, index, attempt, tuple(sorted(drawn)))
        plan = replace(plan, children=(*plan.children, chosen))
    turn.faults = plan


def child_faults(turn: Turn, frame: Frame, state: Map) -> ChildFaults | None:
    """Count an attempt of a distributed Map; return the faults of its children, None for none.

    Raise the error of a fault that fails the Map as a whole: no child is started then.
    """
    inner = {name for name, _ in states_in([state.processor])}
    attempt, struck = count_group_attempt(turn, frame, inner)
    plan = plan_of(turn)
    faults = tuple(fault for fault in plan.faults if fault.state in inner)
    failing = tuple(FailingChild(plan.faults[at], plan.draw(at, attempt)) for at in struck)
    if not faults and not failing:
        return None
    return ChildFaults(f"{plan.seed}/{frame.state}/{attempt}", attempt, plan.by, faults, failing)


def fails_child(turn: Turn, frame: Frame) -> bool:
    """Fail an iteration of a Map if a fault has chosen it; return whether it did.

    The iteration fails as a whole: its first state's Retriers and Catchers do not apply.
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
    """Delay a call by a strike's seconds, which count towards its TimeoutSeconds."""
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
    """Remove and return the delayed call of a frame."""
    plan = plan_of(turn)
    call = plan.delayed[frame.id]
    rest = {number: other for number, other in plan.delayed.items() if number != frame.id}
    turn.faults = replace(plan, delayed=rest)
    return call


def expect_answer(turn: Turn, frame: Frame, command: commands.RunTask, strike: Strike) -> None:
    """Remember the faults that will strike the answer of a frame's Task."""
    plan = plan_of(turn)
    limits = (turn.now_ms, command.timeout_seconds, command.heartbeat_seconds)
    answers = []
    for fault in strike.answers:
        is_late = plan.faults[fault].type is FaultType.DELAY_CALLBACK
        clock = limits if is_late else ()
        answers.append(FaultyAnswer(frame.id, fault, strike.attempt, *clock))
    turn.faults = replace(plan, answers=(*plan.answers, *answers))


def start_clock(turn: Turn, frame: Frame) -> None:
    """Start the clock of TimeoutSeconds anew: a worker has taken the activity task."""
    plan = plan_of(turn)
    answers = tuple(
        replace(answer, since_ms=turn.now_ms)
        if answer.frame == frame.id and answer.since_ms
        else answer
        for answer in plan.answers
    )
    turn.faults = replace(plan, answers=answers)


def replaced_answer(turn: Turn, frame: Frame, outcome: str) -> StatesError | None:
    """Return the error that replaces the outcome of a Task, None if none does."""
    answers = _take_answers(turn, frame, FaultType.FAIL)
    turn.faults = plan_of(turn).forget(frame.id)
    if not answers:
        return None
    note_strike(turn, frame, answers[0].fault, answers[0].attempt, outcome)
    return error_of(turn, frame, answers[0].fault)


def repeats_answer(turn: Turn, frame: Frame) -> bool:
    """Tell whether the answer of a Task arrives twice, and note that it does."""
    answers = _take_answers(turn, frame, FaultType.DUPLICATE_CALLBACK)
    for answer in answers:
        note_strike(turn, frame, answer.fault, answer.attempt)
    return bool(answers)


def hold_answer(
    turn: Turn, frame: Frame, message: messages.TaskSucceeded | messages.TaskFailed
) -> bool:
    """Hold the answer of a Task back, if a fault delays it; tell whether it does.

    The limits of the Task are kept here: for the server the task has ended. The answer counts as
    a heartbeat, the last one.
    """
    answers = _take_answers(turn, frame, FaultType.DELAY_CALLBACK)
    if not answers:
        return False
    plan = plan_of(turn)
    due_ms = turn.now_ms + 1000 * sum(plan.faults[answer.fault].seconds for answer in answers)
    clock, timed_out = answers[0], ""
    for since_ms, seconds, error in (
        (clock.since_ms, clock.timeout_seconds, TIMEOUT),
        (turn.now_ms, clock.heartbeat_seconds, HEARTBEAT_TIMEOUT),
    ):
        # A limit before now passed while the accepted answer waited for this step, as in a pause.
        if seconds is not None and turn.now_ms < since_ms + seconds * 1000 <= due_ms:
            due_ms, timed_out = since_ms + seconds * 1000, error
    if isinstance(message, messages.TaskSucceeded):
        late = LateAnswer(message.task, message.output, timed_out=timed_out)
    else:
        late = LateAnswer(message.task, None, message.error, message.cause, timed_out)
    turn.faults = replace(plan, late={**plan.late, frame.id: late})
    for answer in answers:
        lost = (late.output or "") if timed_out else ""
        note_strike(turn, frame, answer.fault, answer.attempt, lost)
    turn.set_timer(frame, due_ms, FramePhase.DELAY)
    return True


def take_late(turn: Turn, frame: Frame) -> messages.TaskSucceeded | messages.TaskFailed | None:
    """Return the answer that was held back in a frame, and forget it.

    None if there is none, or if a limit of the Task passes before it takes effect.
    """
    plan = plan_of(turn)
    late = plan.late.get(frame.id)
    if late is None or late.timed_out:
        return None
    rest = {number: other for number, other in plan.late.items() if number != frame.id}
    turn.faults = replace(plan, late=rest)
    if late.output is not None:
        return messages.TaskSucceeded(late.task, late.output)
    return messages.TaskFailed(late.task, late.error, late.cause)


def passed_limit(turn: Turn, frame: Frame) -> str:
    """Return the error of a limit that has passed before a late answer; "" for none."""
    late = plan_of(turn).late.get(frame.id)
    return late.timed_out if late is not None else ""


def _take_answers(turn: Turn, frame: Frame, kind: FaultType) -> list[FaultyAnswer]:
    """Return the faults of a type that strike the answer of a frame's Task, and forget them."""
    plan = plan_of(turn)
    taken = [
        answer
        for answer in plan.answers
        if answer.frame == frame.id and plan.faults[answer.fault].type is kind
    ]
    if taken:
        rest = tuple(answer for answer in plan.answers if answer not in taken)
        turn.faults = replace(plan, answers=rest)
    return taken


# -- errors and notes ------------------------------------------------------------------------------


def error_of(turn: Turn, frame: Frame, index: int) -> StatesError:
    """Return the error with which a fault fails the state of a frame."""
    fault = plan_of(turn).faults[index]
    if fault.type in _TIMEOUTS:
        return StatesError(_TIMEOUTS[fault.type])
    name, cause = fault.error or TASK_FAILED, fault.cause or "A fault was injected."
    state = turn.state(frame)
    if fault.type is FaultType.THROTTLE and isinstance(state, Task):
        name = fault.error or throttle_error(state.resource)
        cause = fault.cause or "Rate exceeded: a fault was injected."
    return StatesError(name, cause)


def timeout_error(turn: Turn, index: int) -> str:
    """Return the error of a timeout fault, which has an event of its own; "" for other faults."""
    return _TIMEOUTS.get(plan_of(turn).faults[index].type, "")


def note_strike(turn: Turn, frame: Frame, index: int, attempt: int, before: str = "") -> None:
    """Record the strike of a fault on a state. ``before``: the replaced outcome."""
    plan = plan_of(turn)
    after = jsontext.dumps(struck_fault(plan.faults[index], attempt))
    turn.command(commands.NoteEdit(frame.cursor, frame.state, FAULT, plan.by, before, after))


def struck_fault(fault: Fault, attempt: int) -> Mapping[str, object]:
    """Return a fault as recorded by ``note_strike``, with the number of the attempt."""
    entry = fault_entry(fault)
    return {name: entry[name] for name in entry if name not in ("state", "attempts")} | {
        "attempt": attempt
    }
