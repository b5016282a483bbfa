"""``stateyard fetch``: save executions of AWS, or of another server, as files.

Only reading actions are called: DescribeExecution, GetExecutionHistory,
DescribeStateMachineForExecution, DescribeMapRun and ListExecutions of a Map Run.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from console.cli.commands import FAILED
from console.cli.connection import add_connection_arguments, connect
from console.cli.documents import SourceError
from console.cli.output import write_error, write_line
from console.features.deploy.executions import (
    arn_problem,
    list_items,
    plain_answer,
    read_execution,
    safe_name,
    write_json,
)

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from console.features.deploy.executions import ReadExecution

SUMMARY = "save executions of AWS or a server as files, with their children"
_MOST = 1_000
"""The maximum number of executions that one call of the command saves."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the executions, the folder, and what is saved with them."""
    parser.add_argument("arns", nargs="+", metavar="ARN", help="of a Standard execution")
    parser.add_argument(
        "--to", type=Path, default=Path("executions"), metavar="FOLDER", help="default: executions"
    )
    parser.add_argument(
        "--no-children", action="store_true", help="without executions that it started"
    )
    parser.add_argument(
        "--items",
        type=int,
        default=20,
        metavar="N",
        help="number of items of each Map Run, the failed ones first (default: 20)",
    )
    add_connection_arguments(parser)


def run_command(options: Namespace) -> int:
    """Save the executions; return 1 if one cannot be read."""
    for arn in options.arns:
        if problem := arn_problem(arn):
            raise SourceError(f"{arn}: {problem}")
    if options.items < 0:
        raise SourceError(f"--items: got {options.items}, wanted 0 or more")
    return _save_all(connect(options).states, options)


def _save_all(states: Any, options: Namespace) -> int:
    """Save the executions and their child executions, each once."""
    waiting, saved, failed = [*options.arns], set[str](), False
    while waiting:
        arn = waiting.pop(0)
        if arn in saved:
            continue
        if len(saved) >= _MOST:
            write_error(f"stopped after {_MOST:,} executions; {len(waiting) + 1:,} were left out")
            return FAILED
        saved.add(arn)
        try:
            execution = read_execution(states, arn)
            _save(execution, options.to)
            if not options.no_children:
                waiting += (child for child in execution.children if not arn_problem(child))
                waiting += _save_map_runs(states, execution, options)
        except ClientError as error:
            write_error(f"{arn}: {error}")
            failed = True
    return FAILED if failed else 0


def _save(execution: ReadExecution, folder: Path) -> None:
    """Save an execution, and print its status, its error and its file."""
    path = execution.save(folder)
    described = execution.description
    error = f" {described['error']}" if described.get("error") else ""
    write_line(f"{described['status']}{error}  {path}")


def _save_map_runs(states: Any, execution: ReadExecution, options: Namespace) -> list[str]:
    """Save the Map Runs of an execution; return the ARNs of the items to save."""
    arns: list[str] = []
    for map_run in execution.map_runs:
        described = plain_answer(states.describe_map_run(mapRunArn=map_run))
        stem = options.to / execution.place
        name = f"{stem.name}.map-run-{safe_name(map_run.rpartition(':')[2])}.json"
        write_json(stem.with_name(name), described)
        items = list(list_items(states, map_run, options.items))
        total = described["itemCounts"]["total"]
        write_line(f"{described['status']}  {stem.with_name(name)}: {len(items)} of {total} items")
        arns += [item for item in items if not arn_problem(item)]
    return arns
