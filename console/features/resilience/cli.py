"""``stateyard resilience``: tries Retriers, Catchers and timeouts, and names weaknesses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import engine
from console.cli.commands import FAILED, WRONG_USE, add_parameter_argument
from console.cli.connection import add_connection_arguments, connect
from console.cli.documents import SourceError
from console.cli.inputs import named_input
from console.cli.output import write_error, write_line
from console.features.deploy.discovery import read_machines
from console.features.deploy.executions import list_events
from console.features.deploy.lint_sources import with_resources
from console.features.resilience.trials import WRITERS, Rehearsal, Report, examine, read_rehearsal

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from console.cli.connection import Connection

SUMMARY = "try the Retriers, Catchers and timeouts of a state machine, and name weaknesses"


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
        "--input-name",
        metavar="NAME",
        help="run with this named input, not with that of the last success (state machine only)",
    )
    add_parameter_argument(parser)
    add_connection_arguments(parser)


def run_command(options: Namespace) -> int:
    """Print the report; return 1 if there is a weakness."""
    path = Path(options.target)
    try:
        reports = _of_file(path, options) if path.exists() else [_of_server(options)]
    except engine.DefinitionError as error:
        for problem in error.diagnostics:
            write_error(f"{options.target}: {problem}")
        return WRONG_USE
    write_line(WRITERS[options.format](reports))
    return FAILED if any(report.weaknesses for report in reports) else 0


def _of_file(path: Path, options: Namespace) -> list[Report]:
    if options.input_name is not None:
        raise SourceError("--input-name: got a file, wanted the name of a state machine")
    return [
        examine(
            with_resources(machine.definition),
            name=machine.name,
            kind=options.type or machine.type,
        )
        for machine in read_machines(path, options.param)
    ]


def _of_server(options: Namespace) -> Report:
    for name in ("type", "param"):
        if getattr(options, name):
            raise SourceError(f"--{name}: got the name of a state machine, wanted a file")
    connection = connect(options)
    arn = connection.machine_arn(options.target)
    machine = connection.states.describe_state_machine(stateMachineArn=arn)
    rehearsal = _last_success(connection.states, arn)
    if options.input_name is not None:
        rehearsal = _with_input(connection, arn, rehearsal, options.input_name)
    report = examine(
        machine["definition"], name=machine["name"], kind=machine["type"], rehearsal=rehearsal
    )
    if options.input_name is not None and not report.rehearsal:
        raise SourceError(
            f"--input-name: got {options.input_name!r}, wanted an input with which the state"
            " machine succeeds with the answers of its last success"
        )
    return report


def _with_input(
    connection: Connection, arn: str, rehearsal: Rehearsal | None, name: str
) -> Rehearsal:
    """Return the answers of an execution with a named input."""
    text = named_input(connection, arn, name)
    if rehearsal is None:
        raise SourceError("--input-name: no execution has succeeded, so there are no answers")
    return replace(rehearsal, input=engine.loads(text), input_name=name)


def _last_success(states: Any, arn: str) -> Rehearsal | None:
    """Return the last execution that succeeded, None without one."""
    try:
        listed = states.list_executions(stateMachineArn=arn, statusFilter="SUCCEEDED", maxResults=1)
    except states.exceptions.StateMachineTypeNotSupported:  # AWS lists no Express executions
        return None
    for row in listed["executions"]:
        described = states.describe_execution(executionArn=row["executionArn"])
        events = list_events(states, row["executionArn"])
        return read_rehearsal(row["name"], described.get("input", "{}"), events)
    return None
