"""The Task state: schedule a call outside of the engine, and wait for its one outcome.

The events of a task and the messages that cause them::

    enter                 ...Scheduled
    start_held            ...Started, but for an activity
    TaskStarted           ActivityStarted
    TaskSubmitted         TaskSubmitted           the call is accepted, its job still runs
    TaskSucceeded         ...Succeeded, then ...StateExited
    TaskFailed            ...Failed or TaskSubmitFailed, then Retry and Catch
    TaskTimedOut          ...TimedOut (``time_out``), then Retry and Catch

An injected fault may delay the call, fail it beforehand, or replace, delay or repeat its outcome.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from engine import jsontext
from engine.data.expression import EvaluationScope
from engine.data.result_types import unexpected_type_error, wrong_number_error
from engine.errors import (
    HEARTBEAT_TIMEOUT,
    TIMEOUT,
    InterpreterError,
    StatesError,
)
from engine.history.event_types import Family
from engine.language.model import IntegrationPattern, QueryLanguage, TaskKind
from engine.runtime import commands, fault_strikes, flow, messages
from engine.runtime.context import context_object
from engine.runtime.payload import Payload, ensure_within_limit
from engine.runtime.run import FramePhase
from engine.runtime.states.numbers import LARGEST, is_whole_number
from engine.runtime.tokens import task_token

if TYPE_CHECKING:
    from collections.abc import Callable

    from engine.data.expression import Expression
    from engine.language.model import Task
    from engine.runtime.messages import Message
    from engine.runtime.run import Frame
    from engine.runtime.turn import Turn

# Python 3.11 calls a function to look a member up on its enum. The loop asks once a state.
_LAMBDA, _ACTIVITY, _SERVICE = TaskKind.LAMBDA, TaskKind.ACTIVITY, TaskKind.SERVICE
_FAMILY = {
    _LAMBDA: Family.LAMBDA_FUNCTION,
    _ACTIVITY: Family.ACTIVITY,
    _SERVICE: Family.TASK,
}
_NO_ARN = "arn:aws:states:us-east-1:123456789012:"
"""Beginning of an ARN, for a trial outside of an execution."""
_MOST_SHOWN = 24_000  # characters of unusable parameters, so that a cause holds them and why


def enter(turn: Turn, frame: Frame, state: Task) -> None:
    """Schedule the task; ``start_held`` starts it later, except an activity.

    The number of the task is that of its ...Scheduled event. The timers of TimeoutSeconds and
    HeartbeatSeconds are the caller's: it knows when a worker took the task.
    """
    if state.resource.arn in turn.moment.missing_activities:
        msg = f"The activity {state.resource.arn} does not exist."
        raise InterpreterError(msg)
    # The command is made before the event is written: an error in the arguments leaves no
    # ...Scheduled event, as on AWS.
    command = _make_command(turn, frame, state)
    if turn.faults is not None:
        strike = fault_strikes.count_attempt(turn, frame)
        if strike is not None and _enter_faulty(turn, frame, state, command, strike):
            return
    frame = turn.emit(frame, _FAMILY[command.kind] + "Scheduled", _scheduled_details(turn, command))
    phase = FramePhase.SCHEDULED
    if command.kind is _ACTIVITY:  # offered at once: nothing says that it has started
        phase = FramePhase.TASK
        turn.command(command)
    else:
        turn.held[frame.id] = command
    turn.keep(frame, phase=phase, waits_for=command.task, started_event=0, submitted=False)


def _enter_faulty(
    turn: Turn,
    frame: Frame,
    state: Task,
    command: commands.RunTask,
    strike: fault_strikes.Strike,
) -> bool:
    """Schedule a task that a fault strikes; return whether to skip the call for now."""
    if strike.answers and strike.ending < 0:
        fault_strikes.expect_answer(turn, frame, command, strike)
    if strike.ending < 0 and not strike.seconds:
        return False
    family = _FAMILY[command.kind]
    frame = turn.emit(frame, family + "Scheduled", _scheduled_details(turn, command))
    frame = turn.keep(frame, waits_for=command.task, started_event=0, submitted=False)
    if command.kind is not _ACTIVITY or not strike.seconds:
        frame = turn.emit(frame, family + "Started", _resource_details(state))
        frame = turn.keep(frame, started_event=frame.cursor)
    if not strike.seconds:
        _fail_uncalled(turn, frame, state, command, strike.ending, strike.attempt)
    fault_strikes.delay_call(turn, frame, command, strike)
    return True


def end_delay(turn: Turn, frame: Frame, state: Task, _fired: Message) -> None:
    """Make the delayed call, or end the task without it or without its late answer."""
    frame = turn.keep(frame, timer="")
    if name := fault_strikes.passed_limit(turn, frame):
        raise time_out(turn, frame, heartbeat=name == HEARTBEAT_TIMEOUT)
    call = fault_strikes.take_delayed(turn, frame)
    if call.times_out:
        turn.command(commands.AnsweredTask(call.task))
        raise time_out(turn, frame, heartbeat=False)
    if call.ending >= 0:
        _fail_uncalled(turn, frame, state, call.task, call.ending, call.attempt)
    turn.keep(frame, phase=FramePhase.TASK)
    turn.command(call.task)


def _fail_uncalled(
    turn: Turn, frame: Frame, state: Task, command: commands.RunTask, fault: int, attempt: int
) -> NoReturn:
    """Fail a task that a fault ends before its call."""
    turn.command(commands.AnsweredTask(command))
    fault_strikes.note_strike(turn, frame, fault, attempt)
    if name := fault_strikes.timeout_error(turn, fault):
        raise time_out(turn, frame, heartbeat=name == HEARTBEAT_TIMEOUT)
    raise _record_failure(turn, frame, state, "Failed", fault_strikes.error_of(turn, frame, fault))


def start_held(turn: Turn) -> None:
    """Write ...Started for the scheduled tasks, and let the caller run them."""
    for number, command in turn.held.items():
        frame = turn.frames[number]
        details = _resource_details(turn.state(frame))
        frame = turn.emit(frame, _FAMILY[command.kind] + "Started", details)
        turn.keep(frame, phase=FramePhase.TASK, started_event=frame.cursor)
        turn.command(command)
    turn.held.clear()


def answer(turn: Turn, frame: Frame, state: Task, outcome: messages.AnswerTask) -> None:
    """End the task with a user's outcome, and record the events of a call."""
    command = _make_command(turn, frame, state)
    family = _FAMILY[command.kind]
    frame = turn.emit(frame, family + "Scheduled", _scheduled_details(turn, command))
    frame = turn.emit(frame, family + "Started", _resource_details(state))
    frame = turn.keep(frame, started_event=frame.cursor, submitted=False)
    turn.command(commands.AnsweredTask(command))
    if outcome.output is not None:
        _succeed(turn, frame, state, Payload(outcome.output))
        return
    error = StatesError(outcome.error, outcome.cause)
    raise _record_failure(turn, frame, state, "Failed", error)


def resolved_input(turn: Turn, frame: Frame, state: Task) -> str:
    """Return the input of the call as JSON text; raise ``StatesError`` without one."""
    return _make_command(turn, frame, state).input


def resume(turn: Turn, frame: Frame, state: Task, message: Message) -> None:
    """Process a message for the open task.

    TaskStarted and TaskSubmitted count once: a caller that repeats them writes no second event.
    """
    family = _FAMILY[state.resource.kind]
    if turn.faults is not None and isinstance(
        message, messages.TaskSucceeded | messages.TaskFailed
    ):
        outcome = message.output if isinstance(message, messages.TaskSucceeded) else ""
        replaced = fault_strikes.replaced_answer(turn, frame, outcome)
        if replaced is not None:
            raise _record_failure(turn, frame, state, "Failed", replaced)
    match message:
        case messages.TaskStarted(worker_name=name) if not frame.started_event:
            frame = turn.emit(frame, family + "Started", {"workerName": name} if name else {})
            turn.keep(frame, started_event=frame.cursor)
            if turn.faults is not None:
                fault_strikes.start_clock(turn, frame)
        case messages.TaskSubmitted(output=text) if not frame.submitted:
            turn.emit(frame, "TaskSubmitted", {**(_resource_details(state) or {}), "output": text})
            turn.keep(turn.frames[frame.id], submitted=True)
        case messages.TaskSucceeded(output=text):
            _succeed(turn, frame, state, Payload(text))
        case messages.TaskFailed(error=error, cause=cause, refused=refused):
            ending = "SubmitFailed" if refused and family is Family.TASK else "Failed"
            raise _record_failure(turn, frame, state, ending, StatesError(error, cause))


# -- outcomes --------------------------------------------------------------------------------------


def _succeed(turn: Turn, frame: Frame, state: Task, result: Payload) -> None:
    # The message of the limit names the function, the state or the service, depending on the kind.
    name = {_LAMBDA: state.resource.arn, _ACTIVITY: state.name}.get(
        state.resource.kind, state.resource.service
    )
    # AWS writes ...Failed, not ...Succeeded, for a result above the limit, and lets States.ALL
    # catch that, which catches no other States.DataLimitExceeded.
    try:
        ensure_within_limit(result, name)
    except StatesError as error:
        refused = StatesError(error.name, error.cause, of_result=True)
        raise _record_failure(turn, frame, state, "Failed", refused) from None
    details = {**(_resource_details(state) or {}), "output": result.text}
    frame = turn.emit(frame, _FAMILY[state.resource.kind] + "Succeeded", details)
    frame = turn.keep(frame, phase=FramePhase.READY, waits_for=0)
    turn.note("result", result)
    flow.complete(turn, frame, state, state.data, result)


def time_out(turn: Turn, frame: Frame, *, heartbeat: bool) -> StatesError:
    """Write ...TimedOut; return the error of the state."""
    if turn.faults is not None:
        turn.faults = turn.faults.forget(frame.id)
    error = StatesError(HEARTBEAT_TIMEOUT if heartbeat else TIMEOUT)
    return _record_failure(turn, frame, turn.state(frame), "TimedOut", error)


def _record_failure(
    turn: Turn, frame: Frame, state: Any, ending: str, error: StatesError
) -> StatesError:
    """Write the event of a failure; return the error."""
    # The event shows a missed heartbeat as States.Timeout, while ErrorEquals can still tell the two
    # apart: the error that is raised keeps its name.
    name = TIMEOUT if error.name == HEARTBEAT_TIMEOUT else error.name
    texts = {"error": name, "cause": error.cause}
    present = {key: value for key, value in texts.items() if value is not None}
    details = {**(_resource_details(state) or {}), **present}
    frame = turn.emit(frame, _FAMILY[state.resource.kind] + ending, details)
    turn.keep(frame, phase=FramePhase.READY, waits_for=0)
    return error


# -- scheduling ------------------------------------------------------------------------------------


def _make_command(turn: Turn, frame: Frame, state: Task) -> commands.RunTask:
    resource = state.resource
    template = state.data.arguments or state.data.parameters
    payload = flow.apply_input_path(turn, frame, state.data)
    # Made only if an expression asks: a function that gets its input as it is costs no parsing.
    scope = partial(_token_scope, turn, frame, state, payload)
    if template is not None:
        payload = Payload.of(template.evaluate(scope()))
    turn.note("afterParameters" if state.data.arguments is None else "afterArguments", payload)
    text = ensure_within_limit(payload, state.name).text
    _check_parameters(turn, state, payload)
    credentials = None
    if state.credentials is not None:
        credentials = Payload.of(state.credentials.evaluate(scope())).text
    return commands.RunTask(
        task=turn.next_event,
        kind=resource.kind,
        resource=resource.arn,
        state=state.name,
        input=text,
        attempt=frame.retry_count,
        entered_event=frame.entered_event,
        service=resource.service,
        action=resource.action,
        pattern=resource.pattern,
        timeout_seconds=_evaluate_seconds(state, "TimeoutSeconds", state.timeout_seconds, scope),
        heartbeat_seconds=_evaluate_seconds(
            state, "HeartbeatSeconds", state.heartbeat_seconds, scope
        ),
        credentials=credentials,
    )


def _check_parameters(turn: Turn, state: Task, payload: Payload) -> None:
    """Raise the service's error for invalid parameters of the integration."""
    if turn.moment.unusable is None or state.resource.kind is not _SERVICE:
        return
    problem = turn.moment.unusable(state.resource, state.name, payload.value)
    if problem:
        sent = payload.text if len(payload.text) < _MOST_SHOWN else f"{payload.text[:_MOST_SHOWN]}…"
        msg = f"The Parameters '{sent}' could not be used to start the Task: [{problem}]"
        raise InterpreterError(msg)


def _token_scope(turn: Turn, frame: Frame, state: Task, payload: Payload) -> EvaluationScope:
    """Return the scope of Parameters or Arguments; with the token unless request-response."""
    # The token is derived from the number of the ...Scheduled event, which is the next one: nothing
    # is recorded between here and there.
    token = None
    if state.resource.pattern is not IntegrationPattern.REQUEST_RESPONSE:
        arn = turn.about.get("execution_arn", _NO_ARN)
        token = task_token(turn.moment.token_key, arn, turn.next_event)
    return EvaluationScope(
        input=payload.value,
        context=lambda: context_object(turn, frame, token),
        variables=turn.variables.visible(frame),
        rng=turn.rng,
    )


def _evaluate_seconds(
    state: Task,
    field: str,
    expression: Expression | None,
    scope: Callable[[], EvaluationScope],
) -> int | None:
    if expression is None:
        return None
    value = expression.evaluate(scope())
    if is_whole_number(value) and 0 < value <= LARGEST:
        return int(value)
    value_text = value if isinstance(value, str) else jsontext.dumps(value)
    expected = f"wanted an integer from 1 to {LARGEST}"
    if state.language is not QueryLanguage.JSONATA:
        msg = f"The {field}Path parameter does not reference a positive integer: got {value_text}"
        raise InterpreterError(f"{msg}, {expected}")
    if not is_whole_number(value):
        raise unexpected_type_error(expression, field, "number", value)
    raise wrong_number_error(expression, field, value, f"an integer from 1 to {LARGEST}")


# -- details of the events -------------------------------------------------------------------------


def _resource_details(state: Any) -> dict[str, Any] | None:
    """Return resourceType and resource, which only the Task... family of events has."""
    if state.resource.kind is not _SERVICE:
        return None if state.resource.kind is _LAMBDA else {}
    return {
        "resourceType": state.resource.service,
        "resource": state.resource.action + state.resource.pattern,
    }


def _scheduled_details(turn: Turn, command: commands.RunTask) -> dict[str, Any]:
    if command.kind is _SERVICE:
        details: dict[str, Any] = {
            "resourceType": command.service,
            "resource": command.action + command.pattern,
            "region": turn.about.get("state_machine_arn", _NO_ARN).split(":")[3],
            "parameters": command.input,
        }
    else:
        details = {"resource": command.resource, "input": command.input}
    if command.timeout_seconds is not None:
        details["timeoutInSeconds"] = command.timeout_seconds
    # LambdaFunctionScheduled has no heartbeat: a function cannot send one.
    if command.heartbeat_seconds is not None and command.kind is not _LAMBDA:
        details["heartbeatInSeconds"] = command.heartbeat_seconds
    if command.credentials is not None:
        details["taskCredentials"] = _role_details(command.credentials)
    return details


def _role_details(credentials: str) -> dict[str, Any]:
    value = Payload(credentials).value
    return {"roleArn": value.get("RoleArn")} if isinstance(value, dict) else {}
