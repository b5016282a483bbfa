"""AWS CLI commands for the actions of a page, to copy."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.masking.mask import MASK

if TYPE_CHECKING:
    from django.http import HttpRequest

    from console.models import Execution, StateMachine
    from console.web.core.scope import Scope

_LONGEST = 16_384


@dataclass(frozen=True, slots=True)
class CliCommand:
    """A command to copy, with its description."""

    label: str
    text: str


def machine_commands(
    request: HttpRequest,
    scope: Scope,
    machine: StateMachine,
    input: str,  # noqa: A002 - AWS's word
) -> list[CliCommand]:
    """Return the commands for a state machine. ``input``: the suggested one of the start form."""
    arn = {"state-machine-arn": machine.arn}
    return [
        CliCommand(
            "Start an execution", _aws_command(request, scope, "start-execution", arn, input=input)
        ),
        CliCommand("Describe it", _aws_command(request, scope, "describe-state-machine", arn)),
        CliCommand("List its executions", _aws_command(request, scope, "list-executions", arn)),
    ]


def start_command(
    request: HttpRequest,
    scope: Scope,
    machine: StateMachine,
    input: str,  # noqa: A002 - AWS's word
    *,
    run: str = "",
    name: str = "",
) -> CliCommand:
    """Return the command for the start in a form. ``run``: a version or an alias."""
    arn = {"state-machine-arn": f"{machine.arn}:{run}" if run else machine.arn}
    more = {"name": name} if name else {}
    text = _input_argument(input)
    return CliCommand(
        "Start with the same input (AWS CLI)",
        _aws_command(request, scope, "start-execution", {**arn, **more}, input=text),
    )


def _input_argument(text: str) -> str:
    """Return an input as an argument, or a file for a long or masked input.

    What is masked has no text to start with either.
    """
    return text if len(text) <= _LONGEST and MASK not in text else "file://input.json"


def execution_commands(
    request: HttpRequest, scope: Scope, execution: Execution
) -> list[CliCommand]:
    """Return the commands for an execution; the first one starts it again."""
    machine, arn = (
        {"state-machine-arn": execution.state_machine_arn},
        {"execution-arn": execution.arn},
    )
    text = _input_argument(execution.input)
    again = _aws_command(request, scope, "start-execution", machine, input=text)
    return [
        *([] if execution.map_run_id else [CliCommand("Start the same again", again)]),
        CliCommand("Describe it", _aws_command(request, scope, "describe-execution", arn)),
        CliCommand("Read its history", _aws_command(request, scope, "get-execution-history", arn)),
    ]


def task_commands(request: HttpRequest, scope: Scope) -> list[CliCommand]:
    """Return the commands that complete a task; its token is shown on request only."""
    token = {"task-token": "TASK_TOKEN"}
    return [
        CliCommand(
            "Answer with success",
            _aws_command(request, scope, "send-task-success", token, **{"task-output": "{}"}),
        ),
        CliCommand(
            "Answer with failure",
            _aws_command(
                *(request, scope, "send-task-failure", token), error="Rejected", cause="Why"
            ),
        ),
        CliCommand("Keep it alive", _aws_command(request, scope, "send-task-heartbeat", token)),
    ]


def _aws_command(
    request: HttpRequest,
    scope: Scope,
    action: str,
    named: dict[str, str],
    **more: str,
) -> str:
    address = request.build_absolute_uri("/").rstrip("/")
    parts = ["aws", "--endpoint-url", address, "--region", scope.region, "stepfunctions", action]
    for name, value in {**named, **more}.items():
        parts += [f"--{name}", value]
    return shlex.join(parts)
