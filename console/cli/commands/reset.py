"""``stateyard reset``: delete all data of a throw-away server that allows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

from console.cli.connection import ConnectionRefused, add_connection_arguments, connect
from console.cli.output import write_error, write_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

SUMMARY = "remove all work from a server that was started with --allow-reset"
_TIMEOUT_S = 60.0


def add_arguments(parser: ArgumentParser) -> None:
    """Take the server."""
    add_connection_arguments(parser)


def run_command(options: Namespace) -> int:
    """Reset the server; return 1 if it refuses."""
    try:
        address = connect(options).web_address
        headers = {"X-Stateyard-Reset": "yes"}
        answer = httpx.post(f"{address}/reset", headers=headers, timeout=_TIMEOUT_S)
    except (ConnectionRefused, httpx.HTTPError) as error:
        write_error(str(error))
        return 1
    if answer.status_code == httpx.codes.NOT_FOUND:
        write_error(f"{address}: got a server without --allow-reset, wanted one with it")
        return 1
    if answer.is_error:
        write_error(f"{address}/reset: {answer.status_code} {answer.text.strip()[:200]}")
        return 1
    write_line(f"{address} is empty")
    return 0
