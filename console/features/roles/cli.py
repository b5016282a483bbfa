"""``stateyard role``: print the least policy of a state machine, or rehearse its role."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from console.cli.account import Account
from console.cli.commands import FAILED, add_parameter_argument
from console.cli.connection import add_connection_arguments, connect
from console.cli.documents import SourceError
from console.cli.output import write_error, write_line
from console.features.deploy.discovery import read_machines
from console.features.deploy.sources import MachineSource
from console.features.roles.evaluation import (
    WRITERS,
    RoleAccount,
    RoleOptions,
    least_policy,
    resource_words,
)
from console.features.roles.files.options import add_policy_argument
from console.features.roles.files.source_checks import (
    UNKNOWN_ACCOUNT,
    account_of,
    needs_of_machine,
    read_policies,
    rehearse,
)

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Sequence

    from console.features.roles.evaluation import RoleSource

SUMMARY = "print the least policy of a state machine's role, or rehearse the role that it has"
_POLICY = "policy"


def add_arguments(parser: ArgumentParser) -> None:
    """Take a file or a state machine of a server, and the format."""
    parser.add_argument(
        "target", metavar="NAME|FILE", help="a state machine of a server, or a file or folder"
    )
    parser.add_argument(
        "--format",
        choices=[_POLICY, *WRITERS],
        default=_POLICY,
        help="policy: the least policy as JSON; text, json, junit: the rehearsal of the role",
    )
    add_parameter_argument(parser)
    parser.add_argument("--account", metavar="ID", help="the account of a file")
    add_policy_argument(parser)
    add_connection_arguments(parser)


def run_command(options: Namespace) -> int:
    """Print the policy or the rehearsal; return 1 if a permission is missing."""
    path = Path(options.target)
    policies = _policies(options)
    machines, account = _of_file(path, options) if path.exists() else _of_server(options)
    if options.format == _POLICY:
        _write_policies(machines, account)
        return 0
    reports = rehearse(machines, policies, account)
    write_line(WRITERS[options.format](reports))
    return FAILED if any(report.failing for report in reports) else 0


def _policies(options: Namespace) -> RoleSource | None:
    """Return the policies of files; raise ``SourceError`` if the format does not use them."""
    if options.policy and options.format == _POLICY:
        raise SourceError(f"--policy: got --format {_POLICY}, wanted {', '.join(WRITERS)}")
    return read_policies(options.policy)


def _of_file(path: Path, options: Namespace) -> tuple[list[MachineSource], RoleAccount]:
    account = replace(
        UNKNOWN_ACCOUNT,
        number=options.account or UNKNOWN_ACCOUNT.number,
        region=options.region or UNKNOWN_ACCOUNT.region,
    )
    home = Account(account.number, account.region, account.partition)
    return read_machines(path, options.param, home), account


def _of_server(options: Namespace) -> tuple[list[MachineSource], RoleAccount]:
    for name in ("account", "param"):
        if getattr(options, name):
            raise SourceError(f"--{name}: got the name of a state machine, wanted a file")
    connection = connect(options)
    arn = connection.machine_arn(options.target)
    said = connection.states.describe_state_machine(stateMachineArn=arn)
    level = said.get("loggingConfiguration", {}).get("level", "OFF")
    choices = RoleOptions(
        level != "OFF",
        said.get("tracingConfiguration", {}).get("enabled", False),
        said.get("encryptionConfiguration", {}).get("kmsKeyId", ""),
    )
    machine = MachineSource(
        said["name"], said["definition"], arn, said["type"], said["roleArn"], options=choices
    )
    return [machine], account_of(connection.account)


def _write_policies(machines: Sequence[MachineSource], account: RoleAccount) -> None:
    """Print the least policy of a state machine; with several, each under its name."""
    policies = {}
    for machine in machines:
        needs = needs_of_machine(machine, account)
        policies[machine.name] = least_policy(needs)
        for need in needs:
            if need.reason:
                action = f"{need.action} on {resource_words(need.resource)}: " * bool(need.action)
                write_error(f"not in the policy: {need.state}: {action}{need.reason}")
    only = next(iter(policies.values())) if len(policies) == 1 else policies
    write_line(json.dumps(only, indent=2, ensure_ascii=False))
