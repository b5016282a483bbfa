"""What happens to the data around a state, and where does control go next?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.data.expression import ABSENT, ROOT, Scope
from engine.language.model import QueryLanguage
from engine.runtime.context import context_object
from engine.runtime.payload import Payload, ensure_within_limit
from engine.runtime.run import FramePhase
from engine.runtime.turn import MachineDeletingError

if TYPE_CHECKING:
    from engine.data.expression import Json
    from engine.language.model import DataFlow, State
    from engine.runtime.run import Frame
    from engine.runtime.turn import Turn


def evaluation_scope(turn: Turn, frame: Frame, value: Json, **more: Any) -> Scope:
    """Return what an expression of the frame's state sees, with ``value`` as its input."""
    return Scope(
        input=value,
        context=lambda: context_object(turn, frame),
        variables=turn.variables.visible(frame),
        rng=turn.rng,
        **more,
    )


def enter(turn: Turn, frame: Frame, name: str, payload: Payload) -> Frame:
    """Write ...StateEntered and put the frame into the ready queue.

    Raise ``MachineDeletingError`` if the state machine is being deleted: AWS ends the executions of
    such a machine at their next transition.
    """
    if turn.moment.deleting:
        raise MachineDeletingError
    kind = type(turn.block(frame).states[name]).__name__
    turn.budget -= 1
    turn.entered_after[frame.id] = frame.cursor
    number = turn.record(
        kind + "StateEntered", frame.cursor, {"name": name, "input": payload.text}, name
    )
    turn.set_input(frame, payload)
    turn.ready.append(frame.id)
    return turn.keep(
        frame,
        state=name,
        input=payload.text,
        cursor=number,
        phase=FramePhase.READY,
        waits_for=0,
        timer="",
        entered_event=number,
        entered_ms=turn.now_ms,
        started_event=0,
        tries=(),
        retry_count=0,
    )


def apply_input_path(turn: Turn, frame: Frame, data: DataFlow) -> Payload:
    """Apply InputPath (JSONPath states; in JSONata states the input is the input)."""
    payload = turn.input(frame)
    if data.input_path is not ROOT:
        payload = Payload.of(data.input_path.evaluate(evaluation_scope(turn, frame, payload.value)))
    turn.note("afterInputPath", payload)
    return payload


def effective_input(turn: Turn, frame: Frame, data: DataFlow) -> Payload:
    """Apply InputPath and Parameters, or Arguments: what the state works on."""
    template = data.arguments or data.parameters
    payload = apply_input_path(turn, frame, data)
    if template is not None:
        payload = Payload.of(template.evaluate(evaluation_scope(turn, frame, payload.value)))
    turn.note("afterParameters" if data.arguments is None else "afterArguments", payload)
    return payload


def apply_result(
    turn: Turn, frame: Frame, state: State, data: DataFlow, result: Payload
) -> Payload:
    """Lead a result out: ResultSelector, ResultPath and OutputPath, or Output."""
    if state.language is QueryLanguage.JSONATA:
        return _jsonata_output(turn, frame, data, result)
    if data.result_selector is not None:
        result = Payload.of(
            data.result_selector.evaluate(evaluation_scope(turn, frame, result.value))
        )
    turn.note("afterResultSelector", result)
    raw = turn.input(frame)
    if data.result_path is None:
        payload = raw
    elif data.result_path.is_whole:
        payload = result
    else:
        payload = Payload.of(data.result_path.put(raw.value, result.value))
    turn.note("afterResultPath", payload)
    return apply_output_path(turn, frame, data, payload)


def apply_output_path(turn: Turn, frame: Frame, data: DataFlow, payload: Payload) -> Payload:
    """Apply OutputPath alone (states without a result)."""
    if data.output_path is ROOT:
        return payload
    return Payload.of(data.output_path.evaluate(evaluation_scope(turn, frame, payload.value)))


def _jsonata_output(turn: Turn, frame: Frame, data: DataFlow, result: Payload) -> Payload:
    if data.output is None:
        return result
    seen = evaluation_scope(turn, frame, turn.input(frame).value, result=result.value)
    return Payload.of(data.output.evaluate(seen))


def pass_through(turn: Turn, frame: Frame, state: State, data: DataFlow) -> Payload:
    """Lead the input through a state that has no result: InputPath and OutputPath, or Output."""
    if state.language is not QueryLanguage.JSONATA:
        return apply_output_path(turn, frame, data, apply_input_path(turn, frame, data))
    raw = turn.input(frame)
    if data.output is None:
        return raw
    return Payload.of(data.output.evaluate(evaluation_scope(turn, frame, raw.value)))


def evaluate_assign(
    turn: Turn,
    frame: Frame,
    state: State,
    data: DataFlow,
    result: Payload,
    *,
    plain: bool = False,
    error_output: Json = ABSENT,
) -> dict[str, Json]:
    """Evaluate ``Assign``.

    ``$`` is ``result`` (JSONPath). ``$states`` has input and result (JSONata); ``plain``: the
    state's type has no result there; in a Catcher there is ``errorOutput`` instead.
    """
    if data.assign is None:
        return {}
    if state.language is not QueryLanguage.JSONATA:
        return turn.variables.evaluate(data.assign, evaluation_scope(turn, frame, result.value))
    seen = evaluation_scope(
        turn,
        frame,
        turn.input(frame).value,
        result=ABSENT if plain else result.value,
        error_output=error_output,
    )
    return turn.variables.evaluate(data.assign, seen)


def leave(
    turn: Turn, frame: Frame, payload: Payload, values: dict[str, Json], following: str | None
) -> None:
    """Write ...StateExited, then enter the following state, or end this line of control (None)."""
    ensure_within_limit(payload, frame.state)
    if turn.trial is not None:
        turn.trial |= {"left": payload, "following": following, "variables": values}
        return
    details: dict[str, Any] = {"name": frame.state, "output": payload.text}
    if values:
        frame, details["assignedVariables"] = turn.variables.put(frame, values)
    kind = type(turn.state(frame)).__name__
    frame = turn.emit(frame, kind + "StateExited", details)
    if following is None:
        turn.end_line(frame, payload)
    else:
        enter(turn, frame, following, payload)


def complete(turn: Turn, frame: Frame, state: Any, data: DataFlow, result: Payload) -> None:
    """Lead the result of a Pass, Task, Parallel or Map out and go on."""
    values = evaluate_assign(turn, frame, state, data, result)
    leave(turn, frame, apply_result(turn, frame, state, data, result), values, state.next)
