"""``stateyard status``: print paused executions, state machines and schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.cli.connection import add_connection_arguments
from console.features.pause.cli import changes as pauses

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

SUMMARY = "show the status of an execution and its pause, or all that is paused"


def add_arguments(parser: ArgumentParser) -> None:
    """Add an optional execution."""
    parser.add_argument("execution", nargs="?", metavar="EXECUTION", help="ARN of an execution")
    add_connection_arguments(parser)


def run_command(options: Namespace) -> int:
    """Print the status."""
    return pauses.run_status(options)
