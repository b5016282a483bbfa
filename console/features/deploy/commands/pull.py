"""``stateyard pull``: save state machines and executions of a server (or of AWS) to files.

``NAME.machine.json`` has the origin of a definition. ``deploy`` sends that along, so that the
machine's page shows the origin and later changes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from console.cli.commands import FAILED
from console.cli.connection import add_connection_arguments, connect
from console.cli.output import write_error, write_line
from console.features.deploy.deployment import DEPLOYED, SOURCE, definition_diff
from console.features.deploy.executions import plain_answer, read_execution, safe_name, write_json

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

SUMMARY = "write state machines and their last executions to files"
_OWN_TAGS = (DEPLOYED, SOURCE)
_LISTED = ("name", "type", "roleArn", "stateMachineArn", "description")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the state machines, the folder, and the number of executions."""
    parser.add_argument("machines", nargs="*", metavar="NAME", help="which ones (default: all)")
    parser.add_argument("--to", type=Path, default=Path(), metavar="FOLDER", help="default: here")
    parser.add_argument(
        "--executions",
        type=int,
        default=0,
        metavar="N",
        help="also the last N executions of each",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; exit code 1 if a file has not what the server has",
    )
    add_connection_arguments(parser)


def run_command(options: Namespace) -> int:
    """Save the files; only reading actions are called."""
    states = connect(options).states
    arns = _machine_arns(states)
    missing = set(options.machines) - arns.keys()
    differing = 0
    for name in options.machines or arns:
        if name in arns:
            machine = states.describe_state_machine(stateMachineArn=arns[name])
            differing += _show_difference(machine, options.to)
            if not options.check:
                _pull_machine(states, machine, options.to)
                inside = options.to / "executions"
                _pull_executions(states, arns[name], inside, options.executions)
    for name in sorted(missing):
        write_error(f"there is no state machine {name}")
    return FAILED if missing or (options.check and differing) else 0


def _show_difference(machine: dict[str, Any], folder: Path) -> bool:
    """Print how the server's definition differs from a file; return whether it does.

    Another layout of the same JSON is no difference.
    """
    path = _definition_path(machine, folder)
    if not path.exists():
        write_line(str(path))
        return True
    before = path.read_text(encoding="utf-8")
    name = machine["name"]
    lines = definition_diff(before, machine["definition"], str(path), f"{name} (server)")
    write_line(f"{path}: {'changed' if lines else 'unchanged'}")
    for line in lines:
        write_line(f"  {line}")
    return bool(lines)


def _definition_path(machine: dict[str, Any], folder: Path) -> Path:
    return folder / f"{safe_name(machine['name'])}.asl.json"


def _machine_arns(states: Any) -> dict[str, str]:
    pages = states.get_paginator("list_state_machines").paginate()
    every = [machine for page in pages for machine in page["stateMachines"]]
    return {machine["name"]: machine["stateMachineArn"] for machine in every}


def _pull_machine(states: Any, machine: dict[str, Any], folder: Path) -> None:
    """Save the definition unchanged, and the state machine's other settings beside it."""
    arn = machine["stateMachineArn"]
    aliases = states.list_state_machine_aliases(stateMachineArn=arn)["stateMachineAliases"]
    versions = states.list_state_machine_versions(stateMachineArn=arn)["stateMachineVersions"]
    about = {key: machine[key] for key in _LISTED if key in machine}
    about["endpoint"] = states.meta.endpoint_url
    tags = states.list_tags_for_resource(resourceArn=arn)["tags"]
    about["tags"] = [tag for tag in tags if tag["key"] not in _OWN_TAGS]
    about["versions"] = [version["stateMachineVersionArn"] for version in versions]
    about["aliases"] = [
        plain_answer(
            states.describe_state_machine_alias(stateMachineAliasArn=alias["stateMachineAliasArn"])
        )
        for alias in aliases
    ]
    folder.mkdir(parents=True, exist_ok=True)
    _definition_path(machine, folder).write_text(machine["definition"], encoding="utf-8")
    write_json(folder / f"{safe_name(machine['name'])}.machine.json", about)


def _pull_executions(states: Any, arn: str, folder: Path, number: int) -> None:
    """Save the latest executions in three files each, as the AWS CLI prints them."""
    if number < 1 or ":express:" in arn:
        return
    try:
        listed = states.list_executions(stateMachineArn=arn, maxResults=min(number, 1000))
    except states.exceptions.StateMachineTypeNotSupported:  # of an Express machine
        return
    for row in listed["executions"]:
        read_execution(states, row["executionArn"]).save(folder)
