"""``stateyard lint``: check state machine definitions in files and projects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.cli.commands import add_parameter_argument
from console.feature import Hook, hooked

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

SUMMARY = "check definitions; exit code 1 if one has an error"
_FORMATS = ("text", "json", "github")
"""The names of ``engine.LINT_FORMATS``."""


def add_arguments(parser: ArgumentParser) -> None:
    """Add the files and the output format."""
    parser.add_argument(
        "files", nargs="+", metavar="PATH", help="JSON, YAML, a folder, a template; - for stdin"
    )
    parser.add_argument("--format", choices=_FORMATS, default="text")
    parser.add_argument("--type", choices=["STANDARD", "EXPRESS"], default="STANDARD")
    add_parameter_argument(parser)
    for add_options in hooked(Hook.FILE_OPTIONS):
        add_options(parser)


def run_command(options: Namespace) -> int:
    """Check each file; return 1 if there is an error."""
    from console.features.deploy.linting import lint  # with the engine, which a help does not need

    return lint(options)
