"""Check state machine definitions in files and projects, for ``stateyard lint``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import engine
from console.cli.commands import FAILED
from console.cli.documents import WARNINGS
from console.cli.output import write_error, write_line
from console.feature import Hook, hooked
from console.features.deploy.lint_sources import lint_path, lint_text
from console.features.deploy.parameters import parse_parameters

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any


def lint(options: Namespace) -> int:
    """Check each file; return 1 if there is an error."""
    write = engine.LINT_FORMATS[options.format]
    failed = False
    try:
        parameters = parse_parameters(options.param)
        for name in options.files:
            for place, problems in _problems(name, options.type, parameters):
                failed = failed or any(problem.severity == "ERROR" for problem in problems)
                report = write(file_of_place(place, options.format), problems)
                if report:
                    write_line(report)
        for check in hooked(Hook.LINT_CHECK):
            failed = check(options, parameters) or failed
    finally:
        for warning in WARNINGS:
            write_error(f"warning: {warning}")
        WARNINGS.clear()
    return FAILED if failed else 0


def _problems(
    name: str, kind: str, parameters: Mapping[str, str]
) -> Iterator[tuple[str, Sequence[Any]]]:
    if name == "-":
        yield name, lint_text(sys.stdin.read(), name, kind, parameters)
    else:
        yield from lint_path(Path(name), kind, parameters)


def file_of_place(place: str, style: str) -> str:
    """Return the file name for a report: GitHub accepts only a file's name."""
    return place.partition(": ")[0] if style == "github" else place
