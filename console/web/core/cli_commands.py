"""Write the commands of the AWS CLI that do what a page does."""

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
    """A command to copy, and what it does."""

    label: str
    text: str


def machine_commands(
    request: HttpRequest,
    scope: Scope,
    machine: StateMachine,
    input: str,  # noqa: A002 - AWS's word
) -> list[CliCommand]:
    """Return the commands of a machine. ``input``: what the start form would suggest."""
    arn = {"state-machine-arn": machine.arn}
    return [
        CliCommand(
            "Start an execution", _aws_command(request, scope, "start-execution", arn, input=input)
        ),
        CliCommand("Describe it", _aws_command(request, scope, "describe-state-machine", arn)),
        CliCommand("List its executions", _aws_command(request, scope, "list-executions", arn)),
    ]


def execution_commands(
    request: HttpRequest, scope: Scope, execution: Execution
) -> list[CliCommand]:
    """Return the commands of an execution; the first one starts the same again."""
    machine, arn = (
        {"state-machine-arn": execution.state_machine_arn},
        {"execution-arn": execution.arn},
    )
    # one argument of a command has no room for all that an input may be, nor for what is masked
    whole = len(execution.input) <= _LONGEST and MASK not in execution.input
    text = execution.input if whole else "file://input.json"
    again = _aws_command(request, scope, "start-execution", machine, input=text)
    return [
        *([] if execution.map_run_id else [CliCommand("Start the same again", again)]),
        CliCommand("Describe it", _aws_command(request, scope, "describe-execution", arn)),
        CliCommand("Read its history", _aws_command(request, scope, "get-execution-history", arn)),
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
