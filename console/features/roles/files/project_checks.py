"""The checks of roles that ``lint`` and ``deploy`` make."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import engine
from console.cli.documents import SourceError
from console.cli.output import write_line
from console.features.deploy.deployment import DeploymentRefused
from console.features.deploy.linting import file_of_place
from console.features.roles.files.options import RoleMode
from console.features.roles.files.source_checks import (
    UNKNOWN_ACCOUNT,
    account_of,
    is_rehearsed,
    read_role_options,
    rehearse,
    role_machines,
    role_problems,
    warn_of_roles,
)

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping, Sequence

    from console.cli.connection import Connection
    from console.features.deploy.sources import SourceProject
    from console.features.roles.evaluation import RoleReport


def check_files(options: Namespace, parameters: Mapping[str, str]) -> bool:
    """Warn of permissions that the roles of linted files lack; return whether that is an error."""
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
            write_line(engine.LINT_FORMATS[style](file_of_place(report.place, style), problems))


def check_deployment(options: Namespace, connection: Connection, project: SourceProject) -> None:
    """Warn of permissions that roles lack; raise ``DeploymentRefused`` if the mode is enforce."""
    mode, policies = read_role_options(options)
    if mode is RoleMode.OFF:
        return
    machines = [each for each in project.machines if is_rehearsed(each, mode, policies)]
    missing = warn_of_roles(rehearse(machines, policies, account_of(connection.account)))
    if missing and mode is RoleMode.ENFORCE:
        raise DeploymentRefused(f"--role enforce: got missing permissions ({missing}), wanted none")
