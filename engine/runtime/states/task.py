"""Task: something outside does the work; the line of control waits for its one outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from engine import jsontext
from engine.data.expression import Scope
from engine.errors import (
    HEARTBEAT_TIMEOUT,
    TIMEOUT,
    InterpreterError,
    QueryEvaluationError,
    StatesError,
)
from engine.history.event_types import Family
from engine.language.model import Pattern, QueryLanguage
from engine.runtime import commands, flow, messages
from engine.runtime.payload import Payload, limited
from engine.runtime.states.numbers import MOST, unexpected_type, whole_number
from engine.runtime.tokens import task_token

if TYPE_CHECKING:
    from engine.data.expression import Expression
    from engine.language.model import Task
    from engine.runtime.messages import Message
    from engine.runtime.run import Frame
    from engine.runtime.turn import Turn

_FAMILY = {"lambda": Family.LAMBDA_FUNCTION, "activity": Family.ACTIVITY, "service": Family.TASK}
_MAX_ERROR, _MAX_CAUSE = 256, 32_768
_MOST_SHOWN = 24_000  # characters of unusable parameters, so that a cause holds them and why


def enter(turn: Turn, frame: Frame, state: Task) -> None:
    """Schedule the task; all but an activity count as started at once."""
    if state.resource.arn in turn.moment.missing_activities:
        msg = f"The activity {state.resource.arn} does not exist."
        raise InterpreterError(msg)
    command = _command(turn, frame, state)
    frame = turn.emit(frame, _FAMILY[command.kind] + "Scheduled", _scheduled(turn, command))
    frame = turn.keep(frame, phase="task", waits_for=command.task, started_event=0, submitted=False)
    if command.kind != "activity":
        frame = turn.emit(frame, _FAMILY[command.kind] + "Started", _named(state))
        turn.keep(frame, started_event=frame.cursor)
    turn.command(command)


def resume(turn: Turn, frame: Frame, state: Task, message: Message) -> None:
    """Take what came in for the open task."""
    family = _FAMILY[state.resource.kind]
    match message:
        case messages.TaskStarted(worker_name=name) if not frame.started_event:
            frame = turn.emit(frame, family + "Started", {"workerName": name} if name else {})
            turn.keep(frame, started_event=frame.cursor)
        case messages.TaskSubmitted(output=text) if not frame.submitted:
            turn.emit(frame, "TaskSubmitted", {**(_named(state) or {}), "output": text})
            turn.keep(turn.frames[frame.id], submitted=True)
        case messages.TaskSucceeded(output=text):
            _succeeded(turn, frame, state, Payload(text))
        case messages.TaskFailed(error=error, cause=cause, refused=refused):
            ending = "SubmitFailed" if refused and family is Family.TASK else "Failed"
            _failed(turn, frame, state, ending, _cut(error, cause))
        case messages.TaskTimedOut(heartbeat=heartbeat):
            name = HEARTBEAT_TIMEOUT if heartbeat else TIMEOUT
            _failed(turn, frame, state, "TimedOut", StatesError(name))


# -- outcomes --------------------------------------------------------------------------------------


def _succeeded(turn: Turn, frame: Frame, state: Task, result: Payload) -> None:
    name = {"lambda": state.resource.arn, "activity": state.name}.get(
        state.resource.kind, state.resource.service
    )
    try:
        limited(result, name)
    except StatesError as error:
        refused = StatesError(error.name, error.cause, of_result=True)
        _failed(turn, frame, state, "Failed", refused)
        return
    details = {**(_named(state) or {}), "output": result.text}
    frame = turn.emit(frame, _FAMILY[state.resource.kind] + "Succeeded", details)
    frame = turn.keep(frame, phase="ready", waits_for=0)
    turn.note("result", result)
    flow.complete(turn, frame, state, state.data, result)


def _cut(error: str | None, cause: str | None) -> StatesError:
    """Return the error as SendTaskFailure would have taken it: at most so long."""
    return StatesError(error and error[:_MAX_ERROR], cause and cause[:_MAX_CAUSE])


def _failed(turn: Turn, frame: Frame, state: Task, ending: str, error: StatesError) -> None:
    name = TIMEOUT if error.name == HEARTBEAT_TIMEOUT else error.name
    texts = {"error": name, "cause": error.cause}
    present = {key: value for key, value in texts.items() if value is not None}
    details = {**(_named(state) or {}), **present}
    frame = turn.emit(frame, _FAMILY[state.resource.kind] + ending, details)
    turn.keep(frame, phase="ready", waits_for=0)
    raise error


# -- scheduling ------------------------------------------------------------------------------------


def _command(turn: Turn, frame: Frame, state: Task) -> commands.RunTask:
    resource = state.resource
    seen = _scope(turn, frame, state)
    template = state.data.arguments or state.data.parameters
    payload = flow.selected(turn, frame, state.data)
    if template is not None:
        payload = Payload.of(template.evaluate(seen))
    turn.note("afterParameters" if state.data.arguments is None else "afterArguments", payload)
    text = limited(payload, state.name).text
    _check(turn, state, payload)
    credentials = None
    if state.credentials is not None:
        credentials = Payload.of(state.credentials.evaluate(seen)).text
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
        timeout_seconds=_seconds(state, "TimeoutSeconds", state.timeout_seconds, seen),
        heartbeat_seconds=_seconds(state, "HeartbeatSeconds", state.heartbeat_seconds, seen),
        credentials=credentials,
    )


def _check(turn: Turn, state: Task, payload: Payload) -> None:
    """Raise what the service says of parameters that are no request, before it schedules one."""
    if turn.moment.unusable is None or state.resource.kind != "service":
        return
    problem = turn.moment.unusable(state.resource, state.name, payload.value)
    if problem:
        sent = payload.text if len(payload.text) < _MOST_SHOWN else f"{payload.text[:_MOST_SHOWN]}…"
        msg = f"The Parameters '{sent}' could not be used to start the Task: [{problem}]"
        raise InterpreterError(msg)


def _scope(turn: Turn, frame: Frame, state: Task) -> Scope:
    """Return what Parameters or Arguments see; with the token if the task calls back."""
    token = None
    if state.resource.pattern is Pattern.WAIT_FOR_TASK_TOKEN:
        arn = turn.about["execution_arn"]
        token = task_token(turn.moment.token_key, arn, turn.next_event)
    return Scope(
        input=flow.selected(turn, frame, state.data).value,
        context=lambda: turn.context(frame, token),
        variables=turn.variables.visible(frame),
        rng=turn.rng,
    )


def _seconds(state: Task, field: str, expression: Expression | None, seen: Scope) -> int | None:
    if expression is None:
        return None
    value = expression.evaluate(seen)
    if whole_number(value) and 0 < value <= MOST:
        return int(value)
    shown = value if isinstance(value, str) else jsontext.dumps(value)
    wanted = f"wanted an integer from 1 to {MOST}"
    if state.language is not QueryLanguage.JSONATA:
        msg = f"The {field}Path parameter does not reference a positive integer: got {shown}"
        raise InterpreterError(f"{msg}, {wanted}")
    if not whole_number(value):
        raise unexpected_type(expression, field, "number", value)
    text = getattr(expression, "text", "")
    raise QueryEvaluationError(
        f"The JSONata expression '{text}' specified for the field '{field}' returned {shown}, "
        f"{wanted}",
        field,
    )


# -- details of the events -------------------------------------------------------------------------


def _named(state: Task) -> dict[str, Any] | None:
    """Return resourceType and resource, which only the Task... family of events has."""
    if state.resource.kind != "service":
        return None if state.resource.kind == "lambda" else {}
    return {
        "resourceType": state.resource.service,
        "resource": state.resource.action + state.resource.pattern,
    }


def _scheduled(turn: Turn, command: commands.RunTask) -> dict[str, Any]:
    if command.kind == "service":
        details: dict[str, Any] = {
            "resourceType": command.service,
            "resource": command.action + command.pattern,
            "region": turn.about["state_machine_arn"].split(":")[3],
            "parameters": command.input,
        }
    else:
        details = {"resource": command.resource, "input": command.input}
    if command.timeout_seconds is not None:
        details["timeoutInSeconds"] = command.timeout_seconds
    if command.heartbeat_seconds is not None and command.kind != "lambda":
        details["heartbeatInSeconds"] = command.heartbeat_seconds
    if command.credentials is not None:
        details["taskCredentials"] = _role(command.credentials)
    return details


def _role(credentials: str) -> dict[str, Any]:
    value = Payload(credentials).value
    return {"roleArn": value.get("RoleArn")} if isinstance(value, dict) else {}
