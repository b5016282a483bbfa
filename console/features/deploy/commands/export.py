"""``stateyard export``: print a state machine as ASL, SAM, CloudFormation, Terraform or CDK."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.cli.connection import add_connection_arguments, connect
from console.cli.output import write_line
from console.features.deploy.machine_formats import FORMATS

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

SUMMARY = "print a state machine as ASL, or for another tool"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the state machine and the tool."""
    parser.add_argument("machine", metavar="NAME", help="name or ARN")
    parser.add_argument("--as", dest="tool", choices=FORMATS, default="asl")
    add_connection_arguments(parser)


def run_command(options: Namespace) -> int:
    """Print the code."""
    connection = connect(options)
    arn = connection.machine_arn(options.machine)
    machine = connection.states.describe_state_machine(stateMachineArn=arn)
    write_line(FORMATS[options.tool].write(machine).rstrip("\n"))
    return 0
