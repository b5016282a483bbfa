"""``stateyard schema``: prints a JSON Schema of definitions, for editors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import engine
from console.cli.output import write_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

SUMMARY = "print a JSON Schema of definitions, for editors"


def add_arguments(parser: ArgumentParser) -> None:
    """Take no arguments."""
    del parser


def run_command(options: Namespace) -> int:
    """Print the schema."""
    del options
    write_line(json.dumps(engine.json_schema(), indent=2))
    return 0
