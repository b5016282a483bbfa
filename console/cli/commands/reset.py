"""``stateyard reset``: delete all data of a throw-away server that allows it."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from botocore.awsrequest import AWSRequest

from console.cli.branches import CallRefused
from console.cli.connection import add_connection_arguments, connect, send_request
from console.cli.output import write_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

SUMMARY = "remove all work from a server that was started with --allow-reset"
_TIMEOUT_S = 60.0


def add_arguments(parser: ArgumentParser) -> None:
    """Take the server."""
    add_connection_arguments(parser)


def run_command(options: Namespace) -> int:
    """Reset the server."""
    address = connect(options).web_address
    request = AWSRequest("POST", f"{address}/reset", {"X-Stateyard-Reset": "yes"})
    answer = send_request(request, _TIMEOUT_S)
    if answer.status_code == HTTPStatus.NOT_FOUND:
        raise CallRefused(f"{address}: got a server without --allow-reset, wanted one with it")
    if answer.status_code >= HTTPStatus.BAD_REQUEST:
        raise CallRefused(f"{address}/reset: {answer.status_code} {answer.text.strip()[:200]}")
    write_line(f"{address} is empty")
    return 0
