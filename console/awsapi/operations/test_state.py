"""TestState: one state with one input, tried without an execution."""

from __future__ import annotations

import secrets
from functools import partial
from typing import Any

import engine
from console import access, arns, clock, integrations
from console.awsapi.operations import mocks
from console.awsapi.operations.call import Call, present
from console.errors import (
    AccessDeniedException,
    InvalidDefinition,
    InvalidExecutionInput,
    ValidationException,
)
from console.integrations import Exchange, Failed, Task

_MOCKABLE = ("Task", "Map", "Parallel")
_NEEDS_MOCK = (
    "TestState API does not support Map or Parallel states. Supported state types include: "
    "[Task, Wait, Pass, Succeed, Fail, Choice]"
)


def try_state(call: Call) -> dict[str, Any]:
    """TestState."""
    params = call.params
    if params.get("revealSecrets"):
        _check_revealing(call)
    if params.get("roleArn"):
        arns.check_role(params["roleArn"])
    machine, name = _parse(params)
    state = machine.block.states[name]
    mock = mocks.checked(params, state)
    _check(params, type(state).__name__, mock)
    configuration = params.get("stateConfiguration") or {}
    exchange = Exchange(reveal=bool(params.get("revealSecrets")))
    trial = engine.try_state(
        machine,
        name,
        _input(params),
        engine.Moment(clock.now_ms(), secrets.randbits(63)),
        about=_about(call),
        mock=mock,
        retries=configuration.get("retrierRetryCount") or 0,
        variables=params.get("variables") or "",
        call=partial(_call, exchange),
    )
    level = params.get("inspectionLevel") or "INFO"
    seen = exchange.told() if level == "TRACE" else {}
    return {
        "status": trial.status,
        **present(
            output=trial.output,
            error=trial.error,
            cause=trial.cause,
            nextState=trial.next_state,
            inspectionData=None if level == "INFO" else trial.stages | seen,
        ),
    }


def _check_revealing(call: Call) -> None:
    """Raise AccessDeniedException unless the caller may see the secrets of connections."""
    try:
        access.authorize(call.principal, "RevealSecrets")
    except access.Denied as error:
        raise AccessDeniedException(str(error)) from None


def _parse(params: dict[str, Any]) -> tuple[engine.Machine, str]:
    try:
        return engine.parse_state(params["definition"], params.get("stateName"))
    except KeyError:
        raise ValidationException("State not found in definition") from None
    except engine.DefinitionError as error:
        problems = ", ".join(str(one) for one in error.diagnostics)
        msg = f"Invalid State Machine Definition: '{problems}'"
        raise InvalidDefinition(msg, tuple(error.diagnostics)) from None


def _check(params: dict[str, Any], kind: str, mock: engine.Mock | None) -> None:
    if mock is not None and kind not in _MOCKABLE:
        msg = f"State type '{kind}' is not supported when a mock is specified"
        raise ValidationException(msg)
    if mock is None and kind in ("Map", "Parallel"):
        raise InvalidDefinition(_NEEDS_MOCK)
    if mock is None and kind == "Task" and not params.get("roleArn"):
        raise ValidationException("RoleArn must be specified when testing a Task state")


def _input(params: dict[str, Any]) -> str:
    text = params.get("input") or "{}"
    try:
        engine.loads(text)
    except engine.JsonTextError as error:
        raise InvalidExecutionInput(f"Invalid State Machine Execution Input: '{error}'") from None
    return text


def _about(call: Call) -> dict[str, Any]:
    """Return what the state may know of its execution: made up, or the given context."""
    account = f"{call.region}:{call.project.account_id}"
    about: dict[str, Any] = {
        "execution_arn": f"arn:aws:states:{account}:express:TestState:TestState",
        "execution_name": "TestState",
        "redrive_count_known": False,
        "state_machine_arn": f"arn:aws:states:{account}:stateMachine:TestState",
        "state_machine_name": "TestState",
        "role_arn": call.params.get("roleArn") or "",
        "input": _input(call.params),
        "start_ms": clock.now_ms(),
    }
    if call.params.get("context"):
        about["context"] = mocks.context(call.params["context"])
    return about


def _call(exchange: Exchange, command: engine.RunTask) -> engine.TaskSucceeded | engine.TaskFailed:
    """Call what the Task names and return its outcome."""
    outcome = integrations.tried(
        Task(
            kind=command.kind,
            resource=command.resource,
            service=command.service,
            action=command.action,
            input=command.input,
            idempotency_key=secrets.token_hex(16),
            execution_arn="",
            token="",
            timeout_s=command.timeout_seconds,
        ),
        exchange,
    )
    if isinstance(outcome, Failed):
        return engine.TaskFailed(command.task, outcome.error, outcome.cause)
    return engine.TaskSucceeded(command.task, outcome.output)
