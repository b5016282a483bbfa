"""Process a state's data (InputPath to OutputPath, Arguments to Output) and enter the next state.

Source: "Processing input and output" (JSONPath) and "Transforming data with JSONata". The stages,
in their order, with the function for each::

    JSONPath                              JSONata
    InputPath        apply_input_path     Arguments   effective_input
    Parameters       effective_input      (the work)
    (the work)                            Output      apply_result
    ResultSelector   apply_result
    ResultPath       apply_result
    OutputPath       apply_output_path

Assign (``evaluate_assign``) reads the result, too, but has no part in the output.

States without a result (Choice, Wait, Succeed) use ``pass_through`` in place of ``apply_result``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine.data.expression import ABSENT, ROOT, EvaluationScope
from engine.language.model import QueryLanguage
from engine.runtime import halts
from engine.runtime.context import context_object
from engine.runtime.payload import Payload, ensure_within_limit
from engine.runtime.run import FramePhase
from engine.runtime.turn import MachineDeletingError

if TYPE_CHECKING:
    from engine.data.expression import Json
    from engine.language.model import DataFlow, State
    from engine.runtime.run import Frame
    from engine.runtime.turn import Turn
# Python 3.11 calls a function to look a member up on its enum. The loop asks once a state.
_READY = FramePhase.READY


def evaluation_scope(turn: Turn, frame: Frame, value: Json, **more: Any) -> EvaluationScope:
    """Return the scope for an expression of the frame's state, with ``value`` as input.

    ``more``: ``result`` or ``error_output``, if the expression may read them of ``$states``.
    """
    # Context and random source are made when an expression first asks for them: most never do, and
    # a context object parses the whole input of the execution.
    return EvaluationScope(
        input=value,
        context=lambda: context_object(turn, frame),
        variables=turn.variables.visible(frame),
        rng=turn.rng,
        **more,
    )


def enter(turn: Turn, frame: Frame, name: str, payload: Payload) -> Frame:
    """Write ...StateEntered, and put the frame at the end of the ready queue.

    Return the frame in its new state: retries, timers and tasks of the former state are gone. Raise
    ``MachineDeletingError`` if the state machine is being deleted: AWS ends the executions of such
    a machine at their next transition.
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
        phase=_READY,
        waits_for=0,
        timer="",
        entered_event=number,
        entered_ms=turn.now_ms,
        started_event=0,
        tries=(),
        retry_count=0,
    )


def apply_input_path(turn: Turn, frame: Frame, data: DataFlow) -> Payload:
    """Return the state's input with InputPath applied; a JSONata state has none."""
    # ROOT is compared by identity: most states have no InputPath, and pay nothing for it.
    payload = turn.input(frame)
    if data.input_path is not ROOT:
        payload = Payload.of(data.input_path.evaluate(evaluation_scope(turn, frame, payload.value)))
    turn.note("afterInputPath", payload)
    return payload


def effective_input(turn: Turn, frame: Frame, data: DataFlow) -> Payload:
    """Return the effective input: after InputPath and Parameters, or Arguments."""
    template = data.arguments or data.parameters
    payload = apply_input_path(turn, frame, data)
    if template is not None:
        payload = Payload.of(template.evaluate(evaluation_scope(turn, frame, payload.value)))
    turn.note("afterParameters" if data.arguments is None else "afterArguments", payload)
    return payload


def apply_result(
    turn: Turn, frame: Frame, state: State, data: DataFlow, result: Payload
) -> Payload:
    """Return the output of a state with a result.

    JSONPath applies ResultSelector, ResultPath and OutputPath, JSONata applies Output. ResultPath
    puts the result into the *raw* input, as it was before InputPath and Parameters.
    """
    if state.language is QueryLanguage.JSONATA:
        return _jsonata_output(turn, frame, data, result)
    if data.result_selector is not None:
        result = Payload.of(
            data.result_selector.evaluate(evaluation_scope(turn, frame, result.value))
        )
    turn.note("afterResultSelector", result)
    raw = turn.input(frame)
    if data.result_path is None:  # "ResultPath": null discards the result
        payload = raw
    elif data.result_path.is_whole:
        payload = result
    else:
        payload = Payload.of(data.result_path.put(raw.value, result.value))
    turn.note("afterResultPath", payload)
    return apply_output_path(turn, frame, data, payload)


def apply_output_path(turn: Turn, frame: Frame, data: DataFlow, payload: Payload) -> Payload:
    """Return the payload with OutputPath applied."""
    if data.output_path is ROOT:
        return payload
    return Payload.of(data.output_path.evaluate(evaluation_scope(turn, frame, payload.value)))


def _jsonata_output(turn: Turn, frame: Frame, data: DataFlow, result: Payload) -> Payload:
    if data.output is None:
        return result
    scope = evaluation_scope(turn, frame, turn.input(frame).value, result=result.value)
    return Payload.of(data.output.evaluate(scope))


def pass_through(turn: Turn, frame: Frame, state: State, data: DataFlow) -> Payload:
    """Return the output of a state that has no result: InputPath and OutputPath, or Output."""
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
    """Return name -> value of ``Assign``, without storing them.

    JSONPath: ``$`` is ``result``. JSONata: ``$states`` has the input and the result. ``plain``: the
    state's type has no ``$states.result``. ``error_output``: ``$states.errorOutput`` of a Catcher.
    """
    if data.assign is None:
        return {}
    if state.language is not QueryLanguage.JSONATA:
        return turn.variables.evaluate(data.assign, evaluation_scope(turn, frame, result.value))
    scope = evaluation_scope(
        turn,
        frame,
        turn.input(frame).value,
        result=ABSENT if plain else result.value,
        error_output=error_output,
    )
    return turn.variables.evaluate(data.assign, scope)


def leave(
    turn: Turn,
    frame: Frame,
    payload: Payload,
    values: dict[str, Json],
    following: str | None,
    *,
    succeeded: bool = True,
) -> None:
    """Write ...StateExited, then enter the state ``following``; None ends this line of control.

    ``values``: the evaluated Assign. ``succeeded``: whether the state succeeded, so that a
    breakpoint may stop the line; False after a Catcher or a user's action. Raise
    ``States.DataLimitExceeded`` for an output that is too large: the error belongs to the state
    that is about to be left, and its Catchers see it.
    """
    ensure_within_limit(payload, frame.state)
    if turn.trial is not None:
        # TestState wants to know where the state leads, not what comes after it.
        turn.trial |= {"left": payload, "following": following, "variables": values}
        return
    if (
        turn.plan is not None
        and succeeded
        and halts.stops_after(turn, frame, payload, values, following)
    ):
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
    """Leave a Pass, Task, Parallel or Map with its result."""
    # ASL: Assign and Output see the variables as they were at entry, so neither sees the other.
    # Assign is evaluated first: if both fail, the history names the error of Assign.
    values = evaluate_assign(turn, frame, state, data, result)
    leave(turn, frame, apply_result(turn, frame, state, data, result), values, state.next)
