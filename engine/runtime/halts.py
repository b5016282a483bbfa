"""Stop lines of control at breakpoints while ``advance`` computes a step.

``advance``, ``flow`` and ``recovery`` call the three ``stops_...`` functions; a run without
breakpoints costs them one comparison with None. A line of control (frame) may stop:

* BEFORE: its state is entered, and its work has not begun;
* AFTER: its state has an output, and ...StateExited is not written yet;
* ERROR: its state has failed, and no Retrier or Catcher was tried. An error that would reach a
  Parallel or Map with a breakpoint stops the line in which it arose. The siblings are not aborted
  yet, so the line can still be repaired.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from engine import jsontext
from engine.data.expression import ABSENT, EvaluationScope
from engine.data.jsonata import UNDEFINED
from engine.errors import HEARTBEAT_TIMEOUT, TIMEOUT, StatesError
from engine.runtime.breakpoints import BreakTime, DebugPlan, Halt, compiled_condition
from engine.runtime.context import context_object
from engine.runtime.run import FramePhase

if TYPE_CHECKING:
    from engine.data.expression import Json
    from engine.runtime.breakpoints import Breakpoint
    from engine.runtime.payload import Payload
    from engine.runtime.run import Frame
    from engine.runtime.turn import Turn


def stops_before(turn: Turn, frame: Frame) -> bool:
    """Stop a frame before its state's work if a breakpoint applies; return whether it stopped."""
    stepped = _has_arrived(turn, frame)
    problem = _reach(turn, frame, frame.state, BreakTime.BEFORE)
    if problem is None and not stepped:
        return False
    _stop(turn, frame, BreakTime.BEFORE, problem, stepped=stepped and problem is None)
    return True


def _has_arrived(turn: Turn, frame: Frame) -> bool:
    """Return whether a frame has reached the end of a step or of *Run to*; if so, end that request.

    A retry repeats the work of the same state and does not count as the next state.
    """
    before = plan_of(turn)
    around = [frame.id]
    owner = frame
    while before.destinations and owner.group:
        owner = turn.frames[turn.groups[owner.group].owner]
        around.append(owner.id)
    plan = before.arrive(frame.id, frame.state, around)
    if frame.retry_count:
        plan = replace(before, entering=plan.entering)
    if plan != before:
        turn.plan = plan
    return (plan.stepping, plan.destinations) != (before.stepping, before.destinations)


def stops_after(
    turn: Turn, frame: Frame, payload: Payload, values: dict[str, Json], following: str | None
) -> bool:
    """Stop a frame with its state's output if a breakpoint applies; return whether it stopped."""
    if not _has_place(turn, frame.state, BreakTime.AFTER):
        return False
    problem = _reach(turn, frame, frame.state, BreakTime.AFTER, result=payload.value)
    if problem is None:
        return False
    assigned = jsontext.dumps(values) if values else ""
    more = {"output": payload.text, "assigned": assigned, "following": following}
    _stop(turn, frame, BreakTime.AFTER, problem, **more)
    return True


def stops_at_error(
    turn: Turn, frame: Frame, error: StatesError, owner: Frame | None = None
) -> bool:
    """Stop a frame with its state's error if a breakpoint applies; return whether it stopped.

    ``owner``: the surrounding frame with the breakpoint, if it is not the frame's own.
    """
    # Lost frames return to the run if nothing handles the error: that must be known in this turn.
    if turn.lost_frames:
        return False
    place = owner or frame
    if not _has_place(turn, place.state, BreakTime.ERROR):
        return False
    name = TIMEOUT if error.name == HEARTBEAT_TIMEOUT else error.name
    error_output = {"Error": name, "Cause": error.cause}
    problem = _reach(turn, place, place.state, BreakTime.ERROR, error_output=error_output)
    if problem is None:
        return False
    more = {"error": error.name, "cause": error.cause}
    flags = {"fatal": error.fatal, "of_result": error.of_result}
    _stop(turn, frame, BreakTime.ERROR, problem, state=place.state, **more, **flags)
    return True


def error_of(halt: Halt) -> StatesError:
    """Return the error of a halt."""
    return StatesError(halt.error, halt.cause, of_result=halt.of_result, fatal=halt.fatal)


def plan_of(turn: Turn) -> DebugPlan:
    """Return the plan of a turn's run; an empty plan without breakpoints."""
    return turn.plan or DebugPlan()


def _has_place(turn: Turn, state: str, when: BreakTime) -> bool:
    return any(place.state == state and place.when == when for place in plan_of(turn).breakpoints)


def _stop(turn: Turn, frame: Frame, when: BreakTime, problem: str | None, **more: Any) -> None:
    plan = plan_of(turn)
    halt = Halt(
        number=plan.next_halt,
        frame=frame.id,
        state=more.pop("state", frame.state),
        when=when,
        since_ms=turn.now_ms,
        entered_after=turn.entered_after.get(frame.id, -1),
        problem=problem or "",
        **more,
    )
    turn.plan = replace(plan, halts=(*plan.halts, halt), next_halt=plan.next_halt + 1)
    turn.keep(frame, phase=FramePhase.BREAK)


def _reach(turn: Turn, frame: Frame, state: str, when: BreakTime, **seen: Json) -> str | None:
    """Count the breakpoints of a state that a frame reaches.

    Return None if none stops the frame. Otherwise return why a condition could not be evaluated, ""
    if all could.
    """
    plan = plan_of(turn)
    reached, problem = list(plan.reached), None
    for index, place in enumerate(plan.breakpoints):
        if place.state != state or place.when != when:
            continue
        holds, trouble = _holds(turn, frame, place, seen)
        if holds:
            reached[index] = min(reached[index] + 1, place.hits)
            if reached[index] == place.hits:
                problem = problem or trouble
    if tuple(reached) != plan.reached:
        turn.plan = replace(plan, reached=tuple(reached))
    return problem


def _holds(turn: Turn, frame: Frame, place: Breakpoint, seen: dict[str, Json]) -> tuple[bool, str]:
    """Return whether a condition is true, and why it has no value; without a value it stops."""
    if not place.condition:
        return True, ""
    scope = EvaluationScope(
        input=turn.input(frame).value,
        context=lambda: context_object(turn, frame),
        variables=turn.variables.visible(frame),
        # Not the random source of the step: a breakpoint must not change what states draw from it.
        rng=lambda: random.Random(turn.moment.seed),  # noqa: S311 - not for secrets
        result=seen.get("result", ABSENT),
        error_output=seen.get("error_output", ABSENT),
    )
    try:
        value = compiled_condition(place.condition).optional(scope)
    except StatesError as error:
        return True, error.cause or "The condition has no value."
    return value is not UNDEFINED and value is True, ""
