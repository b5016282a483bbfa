"""Check state machine definitions in files and projects, for ``stateyard lint``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import engine
from console.cli.commands import FAILED
from console.cli.documents import WARNINGS, SourceError
from console.cli.lint_sources import lint_path, lint_text
from console.cli.output import write_error, write_line
from console.cli.parameters import parse_parameters
from console.cli.role_checks import (
    UNKNOWN_ACCOUNT,
    read_role_options,
    rehearse,
    role_machines,
    role_problems,
    warn_of_roles,
)
from console.cli.role_options import RoleMode

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from console.roles import RoleReport


def lint(options: Namespace) -> int:
    """Check each file; return 1 if there is an error."""
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
        failed = _check_roles(options, parameters) or failed
    finally:
        for warning in WARNINGS:
            write_error(f"warning: {warning}")
        WARNINGS.clear()
    return FAILED if failed else 0


def _check_roles(options: Namespace, parameters: Mapping[str, str]) -> bool:
    """Warn of permissions that roles lack; return whether that is an error."""
    mode, policies = read_role_options(options)
    paths = [Path(name) for name in options.files if name != "-"]
    if mode is RoleMode.OFF:
        return False
    if len(paths) < len(options.files) and (policies or mode is RoleMode.ENFORCE):
        raise SourceError("-: got stdin, wanted files for --policy and --role enforce")
    machines = role_machines(paths, parameters, mode, policies)
    reports = rehearse(machines, policies, UNKNOWN_ACCOUNT)
    if options.format != "text":
        _write_role_problems(reports, options.format, mode)
    missing = warn_of_roles(reports, all_lines=options.format == "text")
    return mode is RoleMode.ENFORCE and missing > 0


def _write_role_problems(reports: Sequence[RoleReport], style: str, mode: RoleMode) -> None:
    """Write missing permissions as problems of their state machines, for programs and CI."""
    severity = engine.Severity.ERROR if mode is RoleMode.ENFORCE else engine.Severity.WARNING
    for report in reports:
        problems = role_problems(report, severity)
        if problems:
            write_line(engine.LINT_FORMATS[style](_file_of(report.place, style), problems))


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
