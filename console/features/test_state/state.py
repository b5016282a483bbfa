"""Implement TestState: run one state with an input, without an execution."""

from __future__ import annotations

import secrets
import threading
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any, assert_never

import structlog
from django.db import connections

import engine
from console import access, arns, integrations, own_api
from console.db import audit, clock
from console.db.writer import write
from console.errors import ErrorCode, InvalidDefinition, ServiceError, ValidationException
from console.features.test_state import mocks
from console.functions import asynchronous
from console.integrations import (
    Exchange,
    Failed,
    Outcome,
    Submitted,
    Succeeded,
    TaskAttempt,
    parameters,
)
from console.integrations.outcome import internal_failure
from console.own_client import OwnClient
from console.samples import is_sample

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.access import Principal
    from console.models import Project

log = structlog.get_logger(__name__)
MOST_S = 300
"""AWS: a test of a state takes five minutes at most."""
_MOCKABLE = ("Task", "Map", "Parallel")
_NEEDS_MOCK = (
    "TestState API does not support Map or Parallel states. Supported state types include: "
    "[Task, Wait, Pass, Succeed, Fail, Choice]"
)


_WAITS = (
    "TestState API does not support Activity tasks, or the .sync and .waitForTaskToken service "
    "integration patterns, unless a mock is specified"
)


def try_state(
    principal: Principal,
    region: str,
    params: dict[str, Any],
    actor: audit.Actor | None = None,
) -> dict[str, Any]:
    """Return the answer of TestState; raise ``ServiceError``. ``params``: in the API's form.

    ``actor``: the person whom the audit names if the service is really called; None: the principal.
    """
    if params.get("revealSecrets"):
        _check_right(principal, "RevealSecrets")
    if params.get("roleArn"):
        arns.check_role(params["roleArn"])
    machine, name = _parse(params)
    state = machine.block.states[name]
    _check_variables(params.get("variables"))
    mock = mocks.check_mock(params, state)
    if mock is None and type(state).__name__ in _MOCKABLE:
        # Without a mock, the test really calls the function or service that the definition names.
        # That needs the same right as creating and running a state machine.
        _check_right(principal, "TestUnmockedTask")
    _check(params, state, mock)
    if mock is None and type(state).__name__ == "Task":
        actor = actor or audit.Actor(principal.user.get_username(), principal.key_id)
        _record_call(principal.project, actor, name, state, params)
    exchange = Exchange(reveal=bool(params.get("revealSecrets")))
    about = _context_object(principal, region, params, state)
    call = partial(_call, principal, region, exchange, params.get("roleArn") or "")
    trial = _tried(call, params, machine, name, about, mock, exchange)
    level = params.get("inspectionLevel") or "INFO"
    exchange_data = exchange.inspection_data() if level == "TRACE" else {}
    answer = {
        "status": trial.status,
        "output": exchange.hidden(trial.output),
        "error": exchange.hidden(trial.error),
        "cause": exchange.hidden(trial.cause),
        "nextState": trial.next_state,
        "inspectionData": None
        if level == "INFO"
        else exchange.hidden(trial.stages | exchange_data),
    }
    return {name: value for name, value in answer.items() if value is not None}


def _record_call(
    project: Project, actor: audit.Actor, name: str, state: Any, params: dict[str, Any]
) -> None:
    """Record in the audit trail that a Task is really called, and whether secrets are shown."""
    actions = ["TestUnmockedTask", *(["RevealSecrets"] if params.get("revealSecrets") else [])]

    def store() -> None:
        for action in actions:
            audit.record(project, actor, action, state.resource.arn, f"state {name}")

    write(store)


def _tried(
    call: Callable[[engine.RunTask], engine.Message],
    params: dict[str, Any],
    machine: engine.Machine,
    name: str,
    about: dict[str, Any],
    mock: engine.Mock | None,
    exchange: Exchange,
) -> engine.Trial:
    configuration = params.get("stateConfiguration") or {}
    try:
        return engine.try_state(
            machine,
            name,
            _input(params),
            engine.Moment(
                clock.now_ms(),
                secrets.randbits(63),
                unusable=None if mock else parameters.parameter_problem,
            ),
            about=about,
            mock=mock,
            retries=configuration.get("retrierRetryCount") or 0,
            variables=params.get("variables") or "",
            call=call,
        )
    except engine.TrialError as error:
        raise ValidationException(exchange.hidden(str(error))) from None


def _check_right(principal: Principal, action: str) -> None:
    """Raise AccessDeniedException unless the caller has the right."""
    try:
        access.authorize(principal, action)
    except access.Denied as error:
        raise ServiceError(ErrorCode.AccessDeniedException, str(error)) from None


def _parse(params: dict[str, Any]) -> tuple[engine.Machine, str]:
    try:
        return engine.parse_state(params["definition"], params.get("stateName"))
    except KeyError:
        raise ValidationException("State not found in definition") from None
    except engine.DefinitionError as error:
        problems = ", ".join(str(diagnostic) for diagnostic in error.diagnostics)
        msg = f"Invalid State Machine Definition: '{problems}'"
        raise InvalidDefinition(msg, tuple(error.diagnostics)) from None


def _check_variables(text: str | None) -> None:
    """Raise ValidationException unless variables are absent or a JSON object."""
    if not text:
        return
    try:
        variables = engine.loads(text)
    except engine.JsonTextError as error:
        raise ValidationException(f"Invalid Variables provided: {error}") from None
    if not isinstance(variables, dict):
        raise ValidationException("Invalid Variables provided: Variables must be a JSON object.")


def _check(params: dict[str, Any], state: Any, mock: engine.Mock | None) -> None:
    kind = type(state).__name__
    if mock is not None and kind not in _MOCKABLE:
        msg = f"State type '{kind}' is not supported when a mock is specified"
        raise ValidationException(msg)
    configuration = params.get("stateConfiguration") or {}
    if mock is None and configuration.get("mapIterationFailureCount") is not None:
        raise ValidationException(
            "TestState does not support MapIterationFailureCount when a mock is not specified."
        )
    if mock is None and kind in ("Map", "Parallel"):
        raise InvalidDefinition(_NEEDS_MOCK)
    if mock is None and kind == "Task" and not params.get("roleArn"):
        raise ValidationException("RoleArn must be specified when testing a Task state")
    if mock is None and kind == "Task" and (state.resource.pattern or _is_activity(state)):
        raise InvalidDefinition(_WAITS)


def _is_activity(state: Any) -> bool:
    return bool(state.resource.kind == "activity")


def _input(params: dict[str, Any]) -> str:
    text = params.get("input") or "{}"
    try:
        engine.loads(text)
    except engine.JsonTextError as error:
        raise ServiceError(
            ErrorCode.InvalidExecutionInput, f"Invalid State Machine Execution Input: '{error}'"
        ) from None
    return text


def _context_object(
    principal: Principal, region: str, params: dict[str, Any], state: Any
) -> dict[str, Any]:
    """Return the context of the state's execution: generated, or the given context object."""
    states = f"arn:{arns.partition_of(region)}:states:{region}:{principal.project.account_id}"
    about: dict[str, Any] = {
        "execution_arn": f"{states}:express:TestState:TestState",
        "execution_name": "TestState",
        "redrive_count_known": False,
        "state_machine_arn": f"{states}:stateMachine:TestState",
        "state_machine_name": "TestState",
        "role_arn": params.get("roleArn") or None,
        "input": _input(params),
        "start_ms": clock.now_ms(),
    }
    if params.get("context"):
        about["context"] = mocks.parse_context(params["context"], state)
    elif params.get("stateName"):
        mode = engine.map_mode_around(params["definition"], params["stateName"])
        source = {"Source": "STATE_DATA"} if mode == "DISTRIBUTED" else {}
        if mode:
            about["map_item"] = {"Index": 0, "Value": engine.loads(about["input"]), **source}
    return about


def _call(
    principal: Principal,
    region: str,
    exchange: Exchange,
    role_arn: str,
    command: engine.RunTask,
) -> engine.Message:
    """Call the service of a Task and return its outcome, or a timeout.

    Services of this server are called with the rights of the person who tries the state.
    """
    project = principal.project.name
    actor = audit.Actor(principal.user.get_username(), principal.key_id)
    limit = min(command.timeout_seconds or MOST_S, MOST_S)
    task = TaskAttempt(
        kind=command.kind,
        resource=command.resource,
        service=command.service,
        action=command.action,
        input=command.input,
        idempotency_key=secrets.token_hex(16),
        execution_arn="",
        token="",
        timeout_s=limit,
        home=OwnClient(own_api.Caller(principal, actor, region)),
        project=project,
        sample=is_sample(role_arn),
        role_arn=role_arn,
    )
    future: Future[Outcome] = Future()
    work = partial(_work, future, task, exchange)
    threading.Thread(target=work, name="test-state", daemon=True).start()
    try:
        outcome = future.result(limit)
    except TimeoutError:  # the call cannot be interrupted; its outcome is ignored
        return engine.TaskTimedOut(command.task)
    match outcome:
        case Failed():
            return engine.TaskFailed(command.task, outcome.error, outcome.cause)
        case Succeeded() | Submitted():
            if outcome.event is not None:
                _invoke_later(project, outcome.event)
            return engine.TaskSucceeded(command.task, outcome.output)
        case _:
            assert_never(outcome)


def _invoke_later(project: str, event: TaskAttempt) -> None:
    """Make an asynchronous invocation, whose result the test does not show."""

    def call(_: int) -> str:
        outcome = integrations.call_task(event)
        return (outcome.error or "Lambda.Unknown") if isinstance(outcome, Failed) else ""

    asynchronous.submit_invocation(project, event.resource, call)


def _work(future: Future[Outcome], task: TaskAttempt, exchange: Exchange) -> None:
    """Call on a new thread, because a function in this process cannot be interrupted."""
    try:
        future.set_result(integrations.call_for_test(task, exchange))
    except BaseException:
        log.exception("a call raised")
        future.set_result(internal_failure(task))
    finally:
        connections.close_all()
