"""Continue a line of control from a breakpoint: continue, step, answer, skip or fail.

A user's action changes no written event: the command ``NoteEdit`` records it beside the history. A
message whose halt is gone changes nothing, like a duplicate.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, assert_never

from msgspec.structs import replace

from engine import jsontext
from engine.errors import JsonTextError, StatesError, failure_problem
from engine.language.model import Choice, Fail, Map, Parallel, Task
from engine.language.scopes import variable_problem
from engine.runtime import commands, flow, halts, messages, recovery
from engine.runtime.breakpoints import (
    BreakTime,
    Halt,
    LineDestination,
    read_breakpoints,
)
from engine.runtime.payload import Payload
from engine.runtime.run import FramePhase
from engine.runtime.states import ENTER, task
from engine.runtime.states_ahead import states_ahead

if TYPE_CHECKING:
    from collections.abc import Collection

    from engine.language.model import State
    from engine.runtime.breakpoints import DebugPlan
    from engine.runtime.run import Frame
    from engine.runtime.turn import Turn

_NESTED = ("states", "startExecution")

ReleaseMessage = messages.Release | messages.AnswerTask | messages.Skip | messages.FailState


def set_breakpoints(turn: Turn, message: messages.SetBreakpoints) -> None:
    """Replace the breakpoints of a run. Lines at a removed breakpoint stay there."""
    places = read_breakpoints(message.breakpoints, turn.machine)
    turn.plan = halts.plan_of(turn).with_breakpoints(places)


def frame_to_release(turn: Turn, message: ReleaseMessage) -> Frame | None:
    """Return the frame that a message releases, None if it cannot or has continued already."""
    halt = halts.plan_of(turn).halt(message.halt)
    if halt is None:
        return None
    frame = turn.frames[halt.frame]
    runs_to = isinstance(message, messages.Release) and message.run_to
    ahead = states_ahead(turn.machine, frame, halt) if runs_to else ()
    return None if release_problem(halt, turn.state(frame), message, ahead) else frame


def release_problem(
    halt: Halt, state: State, message: ReleaseMessage, ahead: Collection[str]
) -> str:
    """Return why a message cannot continue a line of control, "" if it can.

    ``ahead``: the states that the line may still enter.
    """
    match message:
        case messages.Release():
            return _stop_problem(halt, state, message, ahead) or _edit_problem(halt, message)
        case messages.AnswerTask():
            if not isinstance(state, Task) or halt.when is not BreakTime.BEFORE:
                return "Only a Task that stands before its work can be answered."
            if message.output is None:
                return failure_problem(message.error, message.cause)
            return _json_problem("Output", message.output)
        case messages.Skip():
            if halt.when is BreakTime.AFTER:
                return "The state has succeeded: edit its output instead of skipping it."
            if isinstance(state, Choice | Fail):
                kind = type(state).__name__
                return f"A {kind} cannot be skipped: no single state follows it."
            return _json_problem("Output", message.output)
        case messages.FailState():
            return failure_problem(message.error, message.cause)
        case _:
            assert_never(message)


def _stop_problem(
    halt: Halt, state: State, message: messages.Release, ahead: Collection[str]
) -> str:
    """Return why a line of control cannot stop at the place that a message names."""
    if message.step + message.into + bool(message.run_to) > 1:
        return "A line stops again at one place: wanted one of step, into and run_to."
    if message.run_to and message.run_to not in ahead:
        return (
            f"Run to: got the state {message.run_to!r}, wanted one that this line can come to:"
            f" {', '.join(sorted(ahead))}"
        )
    return _into_problem(halt, state) if message.into else ""


def _into_problem(halt: Halt, state: State) -> str:
    """Return why a user cannot step into a state, "" if they can."""
    if isinstance(state, Task) and (state.resource.service, state.resource.action) == _NESTED:
        return "A nested execution cannot be stepped into: set breakpoints in it once it runs."
    if isinstance(state, Map) and state.distributed is not None:
        return (
            "A distributed Map cannot be stepped into: set breakpoints in its child executions"
            " once they run."
        )
    if not isinstance(state, Map | Parallel):
        return f"Only a Parallel or Map can be stepped into, not a {type(state).__name__}."
    if halt.when is not BreakTime.BEFORE:
        return f"The {type(state).__name__} has run: it can only be stepped into before its work."
    return ""


def _edit_problem(halt: Halt, message: messages.Release) -> str:
    if message.input is not None and halt.when is not BreakTime.BEFORE:
        return "The input can only be edited before the state."
    if message.output is not None and halt.when is not BreakTime.AFTER:
        return "The output can only be edited after the state."
    for name, text in (("Input", message.input), ("Output", message.output)):
        if text is not None and (problem := _json_problem(name, text)):
            return problem
    if message.variables is None:
        return ""
    if problem := _json_problem("Variables", message.variables):
        return problem
    variables = json.loads(message.variables)
    if not isinstance(variables, dict):
        return f"Variables: got {message.variables[:40]}, wanted a JSON object"
    return next(filter(None, map(variable_problem, variables)), "")


def _json_problem(name: str, text: str) -> str:
    if jsontext.is_too_long(text):
        limit = jsontext.payload_limit()
        return f"{name}: got more than {limit.most} {limit.unit}"
    try:
        jsontext.loads(text)
    except JsonTextError as error:
        return f"{name}: got no JSON ({error}), wanted a JSON text"
    return ""


# -- going on --------------------------------------------------------------------------------------


def resume(turn: Turn, frame: Frame, state: State, message: ReleaseMessage) -> None:
    """Continue a line of control; the message is valid for it."""
    plan = halts.plan_of(turn)
    halt = plan.halt(message.halt)
    assert halt is not None  # noqa: S101 - ``frame_to_release`` has seen it
    others = tuple(other for other in plan.halts if other.number != halt.number)
    turn.plan = replace(plan, halts=others)
    if isinstance(message, messages.Release):
        turn.plan = _stop_again(turn, frame, halt, message)
    if halt.entered_after >= 0:
        turn.entered_after[frame.id] = halt.entered_after
    turn.released = (frame.id, halt.state)
    frame = turn.keep(frame, phase=FramePhase.READY)
    match message:
        case messages.Release():
            frame = _edit(turn, frame, halt, message)
            _continue(turn, frame, state, halt, message.output)
        case messages.AnswerTask(output=output):
            after = _error_text(message) if output is None else output
            _note(turn, frame, message.by, "answer", "", after)
            task.answer(turn, frame, _as_task(state), message)
        case messages.Skip(output=output):
            _note(turn, frame, message.by, "skip", _error_text(halt), output)
            following = getattr(state, "next", None)
            flow.leave(turn, frame, Payload(output), {}, following, succeeded=False)
        case messages.FailState(error=error, cause=cause):
            before = halt.output if halt.when is BreakTime.AFTER else _error_text(halt)
            _note(turn, frame, message.by, "fail", before, _error_text(message))
            recovery.recover(turn, frame, state, StatesError(error, cause))
        case _:
            assert_never(message)


def _stop_again(turn: Turn, frame: Frame, halt: Halt, message: messages.Release) -> DebugPlan:
    """Return the plan with the next stop of a released line."""
    plan = halts.plan_of(turn)
    if message.step:
        return replace(plan, stepping=(*plan.stepping, frame.id))
    if message.into:
        return replace(plan, entering=(*plan.entering, frame.id))
    if message.run_to:
        depth = states_ahead(turn.machine, frame, halt)[message.run_to]
        place = LineDestination(frame.id, message.run_to, depth)
        others = tuple(other for other in plan.destinations if other.frame != frame.id)
        return replace(plan, destinations=(*others, place))
    return plan


def _as_task(state: State) -> Task:
    assert isinstance(state, Task)  # noqa: S101 - ``release_problem`` has seen it
    return state


def _continue(turn: Turn, frame: Frame, state: Any, halt: Halt, output: str | None) -> None:
    match halt.when:
        case BreakTime.BEFORE:
            ENTER[type(state)](turn, frame, state)
        case BreakTime.AFTER:
            values = json.loads(halt.assigned) if halt.assigned else {}
            payload = Payload(halt.output if output is None else output)
            flow.leave(turn, frame, payload, values, halt.following, succeeded=False)
        case BreakTime.ERROR if halt.state == frame.state:
            recovery.recover(turn, frame, state, halts.error_of(halt))
        case BreakTime.ERROR:  # its own Retriers and Catchers have been asked
            turn.end_line(frame, halts.error_of(halt))
        case _:
            assert_never(halt.when)


def _edit(turn: Turn, frame: Frame, halt: Halt, message: messages.Release) -> Frame:
    """Apply a user's edits and record them; return the frame."""
    if message.input is not None and message.input != frame.input:
        _note(turn, frame, message.by, "input", frame.input, message.input)
        frame = turn.keep(frame, input=message.input)
        turn.set_input(frame, Payload(message.input))
    if message.variables is not None and message.variables != (frame.variables or "{}"):
        _note(turn, frame, message.by, "variables", frame.variables or "{}", message.variables)
        frame = turn.variables.exchange(frame, json.loads(message.variables))
    if message.output is not None and message.output != halt.output:
        _note(turn, frame, message.by, "output", halt.output, message.output)
    return frame


def _note(turn: Turn, frame: Frame, by: str, kind: str, before: str, after: str) -> None:
    turn.command(commands.NoteEdit(frame.cursor, frame.state, kind, by, before, after))


def _error_text(error: Halt | messages.AnswerTask | messages.FailState) -> str:
    """Return an error as JSON text, "" if there is none."""
    texts = {"Error": error.error, "Cause": error.cause}
    present = {name: text for name, text in texts.items() if text is not None}
    return jsontext.dumps(present) if present else ""
