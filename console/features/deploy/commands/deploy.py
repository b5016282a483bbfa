"""``stateyard deploy``: deploy the state machines, rules and schedules of a project to a server."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from console.cli import branches
from console.cli.commands import FAILED, add_parameter_argument, guarded
from console.cli.connection import add_connection_arguments, connect
from console.cli.documents import READ_FILES, WARNINGS, SourceError
from console.cli.output import write_error, write_line
from console.feature import Hook, hooked
from console.features.deploy.branch_machines import BranchMachines, adapt_project
from console.features.deploy.deployment import (
    DeploymentChange,
    Machines,
    plan_deployment,
    warn_of_functions,
)
from console.features.deploy.discovery import read_paths
from console.features.deploy.parameters import Parameters, parse_parameters

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator

    from console.cli.branches import BranchAccess
    from console.cli.connection import Connection
    from console.features.deploy.deployment import PlannedChange
    from console.features.deploy.sources import SourceProject

SUMMARY = "bring the state machines of files and projects onto a server"
_MARKS = {
    DeploymentChange.CREATE: "+",
    DeploymentChange.UPDATE: "~",
    DeploymentChange.UNCHANGED: "=",
    DeploymentChange.DELETE: "-",
}
_LOOK_S = 0.5


def add_arguments(parser: ArgumentParser) -> None:
    """Add paths, parameters and mode."""
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        type=Path,
        help="NAME.asl.json or .yaml, a folder of them, a template of SAM or CloudFormation, "
        "cdk.out, serverless.yml, or what `terraform show -json` printed",
    )
    add_parameter_argument(parser)
    parser.add_argument("--dry-run", action="store_true", help="only show what would change")
    parser.add_argument("--diff", action="store_true", help="show what changes")
    parser.add_argument("--watch", action="store_true", help="again whenever a file changes")
    parser.add_argument("--stack", default="", help="mark state machines as parts of this stack")
    parser.add_argument(
        "--prune", action="store_true", help="delete those of --stack that are in no file any more"
    )
    parser.add_argument(
        "--branch",
        default="",
        metavar="NAME",
        help="deploy to this branch of the project; a missing branch is created",
    )
    parser.add_argument(
        "--ttl", default="", metavar="3d", help="how long --branch lasts from now (default: 3d)"
    )
    for add_options in hooked(Hook.FILE_OPTIONS):
        add_options(parser)
    add_connection_arguments(parser)


def run_command(options: Namespace) -> int:
    """Deploy once, or with ``--watch`` until Ctrl-C."""
    parameters = parse_parameters(options.param)
    _check_options(options)
    target = _open_target(options, connect(options))
    if options.watch:
        return _watch(options, target, parameters)
    return _deploy(options, target, parameters)


def _check_options(options: Namespace) -> None:
    if options.prune and not options.stack:
        raise SourceError("--prune: got no --stack, wanted the one whose rest may go")
    if options.ttl and not options.branch:
        raise SourceError("--ttl: got no --branch, wanted the one that lasts so long")


@dataclass(frozen=True, slots=True)
class _Target:
    """The destination of a deployment: a project, or a branch."""

    connection: Connection
    branch: BranchAccess | None = None

    @property
    def machines(self) -> Machines:
        """The state machines of the target."""
        return Machines(self.connection) if self.branch is None else BranchMachines(self.connection)


def _open_target(options: Namespace, connection: Connection) -> _Target:
    """Return the target; create or extend a branch, and store its key if it is new."""
    if not options.branch:
        return _Target(connection)
    if options.dry_run:
        return _open_for_dry_run(options, connection)
    branch = branches.put_branch(connection, options.branch, options.ttl)
    write_line(branch.summary)
    if branch.described["created"]:
        key = {name: value for name, value in branch.environment.items() if "ACCESS_KEY" in name}
        if os.environ.get("GITHUB_ACTIONS") == "true":  # its log shows *** from here on
            write_line(f"::add-mask::{key['AWS_SECRET_ACCESS_KEY']}")
        for name, value in key.items():
            write_line(f"{name}={value}")
    return _Target(branch.connection, branch)


def _open_for_dry_run(options: Namespace, connection: Connection) -> _Target:
    """Return the branch, or its parent if the branch does not exist yet."""
    try:
        branch = branches.open_branch(connection, options.branch)
    except branches.CallRefused as refusal:
        if refusal.status != HTTPStatus.NOT_FOUND:
            raise
        write_line(f"would create branch {options.branch}; compared with its parent:")
        return _Target(connection)
    write_line(branch.summary)
    return _Target(branch.connection, branch)


def _deploy(options: Namespace, target: _Target, parameters: dict[str, str]) -> int:
    """Deploy once; return the exit code."""
    connection, machines = target.connection, target.machines
    project = _read(options, connection, parameters)
    for check in hooked(Hook.DEPLOYMENT_CHECK):
        check(options, connection, project)
    if target.branch is not None:
        adapt_project(project, target.branch.described)
    plan = plan_deployment(project, connection, machines, stack=options.stack, prune=options.prune)
    failed = _apply(options, machines, plan)
    for note in project.notes:
        write_error(f"left out: {note}")
    for line in warn_of_functions(project, machines):
        write_error(f"warning: {line}")
    return FAILED if failed else 0


def _read(options: Namespace, connection: Connection, parameters: dict[str, str]) -> SourceProject:
    """Read the files, and print their notes even if they cannot be deployed."""
    try:
        return read_paths(options.paths, connection.account, Parameters(parameters))
    finally:
        for warning in WARNINGS:
            write_error(f"warning: {warning}")
        WARNINGS.clear()


def _apply(options: Namespace, machines: Machines, plan: Iterator[list[PlannedChange]]) -> int:
    """Apply the changes one by one; return the number of refused ones."""
    failed = 0
    for group in plan:
        changes = [each for each in group if each.change is not DeploymentChange.UNCHANGED]
        outcomes = [] if options.dry_run else machines.apply(changes)
        refused = {id(each): error for each, error in zip(changes, outcomes, strict=False) if error}
        for planned in group:
            if error := refused.get(id(planned)):
                failed += 1
                write_error(f"{planned.place}: {planned.kind} {planned.name}: {_reason(error)}")
                continue
            _show_change(planned, dry_run=options.dry_run)
            if options.dry_run or options.diff:
                for line in planned.diff():
                    write_line(f"  {line}")
    return failed


def _show_change(planned: PlannedChange, *, dry_run: bool) -> None:
    outcome = f"would {planned.change}" if dry_run else f"{planned.change}d"
    if planned.change is DeploymentChange.UNCHANGED:
        outcome = "unchanged"
    write_line(f"{_MARKS[planned.change]} {planned.kind} {planned.name}: {outcome}")


def _reason(error: Exception) -> str:
    if isinstance(error, ClientError):
        details = error.response["Error"]
        return " ".join(f"{details['Code']}: {details['Message']}".split())
    return " ".join(str(error).split())


def _watch(options: Namespace, target: _Target, parameters: dict[str, str]) -> int:
    """Deploy again after each change of a file; print errors and continue."""
    try:
        while True:
            present = _definitions(options.paths)
            guarded(lambda: _deploy(options, target, parameters))
            # times from before each file was read, so that no change during the read is missed
            read = dict(READ_FILES)
            while _definitions(options.paths) == present and not _has_changed(read):
                time.sleep(_LOOK_S)
    except KeyboardInterrupt:
        return 0


def _definitions(paths: list[Path]) -> set[Path]:
    """Return the definition files in the watched folders, to notice new ones."""
    return {file for path in paths if path.is_dir() for file in path.rglob("*.asl.*")}


def _has_changed(read: dict[Path, int]) -> bool:
    return any(not file.exists() or file.stat().st_mtime_ns != at for file, at in read.items())
