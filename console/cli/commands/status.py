"""``stateyard status``: says what is paused, since when and by whom."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.cli import pauses
from console.cli.connection import add_connection_arguments

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

SUMMARY = "show the status of an execution and its pause, or all that is paused"


def add_arguments(parser: ArgumentParser) -> None:
    """Take an execution, or none."""
    parser.add_argument("execution", nargs="?", metavar="EXECUTION", help="ARN of an execution")
    add_connection_arguments(parser)


def run_command(options: Namespace) -> int:
    """Show it. Return 0: done, 1: refused, 2: no server."""
    return pauses.run_status(options)
