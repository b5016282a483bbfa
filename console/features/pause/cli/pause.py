"""``stateyard pause``: pause an execution, a state machine, or all schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.cli.connection import add_connection_arguments
from console.features.pause.cli import changes as pauses

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

SUMMARY = "pause an execution, all of a state machine, or all schedules"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the subject and the kind of pause."""
    pauses.add_subject_arguments(parser)
    parser.add_argument(
        "--timers",
        choices=("run", "still"),
        default="run",
        help="whether waits and time limits continue or stop (default: run)",
    )
    parser.add_argument("--note", default="", help="the reason, shown on pages and in the audit")
    add_connection_arguments(parser)


def run_command(options: Namespace) -> int:
    """Pause."""
    more = {"timers": options.timers} | ({"note": options.note} if options.note else {})
    return pauses.run_change("pause", options, more)
