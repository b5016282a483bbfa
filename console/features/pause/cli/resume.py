"""``stateyard resume``: resume an execution, a state machine, or all schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.cli.connection import add_connection_arguments
from console.features.pause.cli import changes as pauses

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

SUMMARY = "resume an execution, all of a state machine, or all schedules"


def add_arguments(parser: ArgumentParser) -> None:
    """Add the subject."""
    pauses.add_subject_arguments(parser)
    add_connection_arguments(parser)


def run_command(options: Namespace) -> int:
    """Resume."""
    return pauses.run_change("resume", options, {})
