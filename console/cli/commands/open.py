"""``stateyard open``: open the page of an execution or state machine in the browser."""

from __future__ import annotations

import webbrowser
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from console.cli.connection import ConnectionRefused, add_connection_arguments, connect
from console.cli.output import write_error, write_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

SUMMARY = "open the page of an execution or a state machine"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the execution or state machine."""
    parser.add_argument("name", metavar="ARN|NAME", help="an ARN, or the name of a state machine")
    parser.add_argument("--print", action="store_true", dest="only_print", help="the address only")
    add_connection_arguments(parser)


def run_command(options: Namespace) -> int:
    """Open the page; the server says if it does not exist."""
    connection = connect(options)
    arn = connection.machine_arn(options.name)
    if ":execution:" in arn or ":express:" in arn:
        connection.states.describe_execution(executionArn=arn)
    elif ":stateMachine:" in arn:
        connection.states.describe_state_machine(stateMachineArn=arn)
    address = f"{_console(connection.web_address, options)}/arn/{quote(arn, safe=':')}"
    write_line(address)
    if not options.only_print and not webbrowser.open(address):
        write_error("no browser was found; the address is above")
    return 0


def _console(address: str, options: Namespace) -> str:
    """Return the URL of the pages; raise ``ConnectionRefused`` for AWS itself."""
    if options.aws:
        host = urlsplit(address).hostname
        raise ConnectionRefused(f"{host}: got AWS itself, wanted a server with pages")
    return address
