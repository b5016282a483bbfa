"""``stateyard export``: print a state machine as ASL, SAM, CloudFormation, Terraform or CDK."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from console.cli.connection import ConnectionRefused, add_connection_arguments, connect
from console.cli.machine_formats import FORMATS
from console.cli.output import write_error, write_line

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
    try:
        connection = connect(options)
        arn = options.machine
        if not arn.startswith("arn:"):
            arn = connection.account.arn("states", f"stateMachine:{arn}")
        machine = connection.states.describe_state_machine(stateMachineArn=arn)
    except (ConnectionRefused, BotoCoreError, ClientError) as error:
        write_error(str(error))
        return 1
    write_line(FORMATS[options.tool].write(machine).rstrip("\n"))
    return 0
