"""``stateyard resilience``: tries Retriers, Catchers and timeouts, and names weaknesses."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

import engine
from console.cli.connection import ConnectionRefused, add_connection_arguments, connect
from console.cli.discovery import read_paths
from console.cli.documents import SourceError
from console.cli.lint_sources import without_bare_placeholders
from console.cli.output import write_error, write_line
from console.cli.parameters import Parameters, parse_parameters
from console.cli.sources import Account
from console.resilience import WRITERS, Rehearsal, Report, examine, read_rehearsal

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

SUMMARY = "try the Retriers, Catchers and timeouts of a state machine, and name weaknesses"
_WRONG_USE = 2
_RESOURCE = re.compile(r'("Resource"\s*:\s*")(?:\$\{[^{}"]+\}|\{\{resolve:[^{}"]+\}\})(?=")')
_FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:placeholder"


def add_arguments(parser: ArgumentParser) -> None:
    """Take a file or a state machine of a server, and the format."""
    parser.add_argument(
        "target", metavar="NAME|FILE", help="a state machine of a server, or a file or folder"
    )
    parser.add_argument("--format", choices=WRITERS, default="text")
    parser.add_argument(
        "--type", choices=["STANDARD", "EXPRESS"], help="of a file (default: as it says)"
    )
    parser.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of a file; repeatable",
    )
    add_connection_arguments(parser)


def run_command(options: Namespace) -> int:
    """Print the report; return 1 if there is a weakness, 2 if there is no definition to try."""
    path = Path(options.target)
    try:
        reports = _of_file(path, options) if path.exists() else [_of_server(options)]
    except engine.DefinitionError as error:
        for problem in error.diagnostics:
            write_error(f"{options.target}: {problem}")
        return _WRONG_USE
    except (SourceError, ConnectionRefused, BotoCoreError, ClientError) as error:
        write_error(str(error))
        return _WRONG_USE
    write_line(WRITERS[options.format](reports))
    return 1 if any(report.weaknesses for report in reports) else 0


def _of_file(path: Path, options: Namespace) -> list[Report]:
    parameters = Parameters(parse_parameters(options.param), placeholders=True)
    machines = read_paths([path], Account(), parameters).machines
    if not machines:
        raise SourceError(f"{path}: got no state machine, wanted one")
    return [
        examine(
            _with_resources(machine.definition),
            name=machine.name,
            kind=options.type or machine.type,
        )
        for machine in machines
    ]


def _with_resources(text: str) -> str:
    """Put a function where a placeholder without a value stands for the Resource of a Task."""
    return _RESOURCE.sub(rf"\1{_FUNCTION}", without_bare_placeholders(text))


def _of_server(options: Namespace) -> Report:
    for name in ("type", "param"):
        if getattr(options, name):
            raise SourceError(f"--{name}: got the name of a state machine, wanted a file")
    connection = connect(options)
    arn = options.target
    if not arn.startswith("arn:"):
        arn = connection.account.arn("states", f"stateMachine:{arn}")
    machine = connection.states.describe_state_machine(stateMachineArn=arn)
    return examine(
        machine["definition"],
        name=machine["name"],
        kind=machine["type"],
        rehearsal=_last_success(connection.states, arn),
    )


def _last_success(states: Any, arn: str) -> Rehearsal | None:
    """Return the last execution that succeeded, None without one."""
    try:
        listed = states.list_executions(stateMachineArn=arn, statusFilter="SUCCEEDED", maxResults=1)
    except states.exceptions.StateMachineTypeNotSupported:  # AWS lists no Express executions
        return None
    for row in listed["executions"]:
        described = states.describe_execution(executionArn=row["executionArn"])
        pages = states.get_paginator("get_execution_history").paginate(
            executionArn=row["executionArn"]
        )
        events = [event for page in pages for event in page["events"]]
        return read_rehearsal(row["name"], described.get("input", "{}"), events)
    return None
