"""``stateyard lint``: check state machine definitions in files and projects."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import engine
from console.cli.documents import WARNINGS, SourceError
from console.cli.lint_sources import lint_path, lint_text
from console.cli.output import write_error, write_line
from console.cli.parameters import parse_parameters

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

SUMMARY = "check definitions; exit code 1 if one has an error"
_WRONG_USE = 2


def add_arguments(parser: ArgumentParser) -> None:
    """Add the files and the output format."""
    parser.add_argument(
        "files", nargs="+", metavar="PATH", help="JSON, YAML, a folder, a template; - for stdin"
    )
    parser.add_argument("--format", choices=engine.LINT_FORMATS, default="text")
    parser.add_argument("--type", choices=["STANDARD", "EXPRESS"], default="STANDARD")
    parser.add_argument(
        "--param", action="append", default=[], metavar="NAME=VALUE", help="a parameter; repeatable"
    )


def run_command(options: Namespace) -> int:
    """Check each file; return 1 if there is an error, 2 if a file cannot be read."""
    write = engine.LINT_FORMATS[options.format]
    failed = False
    try:
        parameters = parse_parameters(options.param)
        for name in options.files:
            for place, problems in _problems(name, options.type, parameters):
                failed = failed or any(problem.severity == "ERROR" for problem in problems)
                report = write(_file_of(place, options.format), problems)
                if report:
                    write_line(report)
    except SourceError as error:
        write_error(str(error))
        return _WRONG_USE
    finally:
        for warning in WARNINGS:
            write_error(f"warning: {warning}")
        WARNINGS.clear()
    return 1 if failed else 0


def _problems(
    name: str, kind: str, parameters: Mapping[str, str]
) -> Iterator[tuple[str, Sequence[Any]]]:
    if name == "-":
        yield name, lint_text(sys.stdin.read(), name, kind, parameters)
    else:
        yield from lint_path(Path(name), kind, parameters)


def _file_of(place: str, style: str) -> str:
    """Return the file name for a report: GitHub accepts only a file's name."""
    return place.partition(": ")[0] if style == "github" else place
