"""The options of ``lint``, ``deploy`` and ``role`` about roles.

This module imports none of the modules that rehearse a role, so ``--help`` is fast.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import ArgumentParser, _ActionsContainer


class RoleMode(StrEnum):
    """The reaction of a command to missing permissions."""

    OFF = "off"
    REPORT = "report"
    """The command prints a warning."""
    ENFORCE = "enforce"
    """The command fails."""


def add_role_arguments(parser: ArgumentParser) -> None:
    """Add the options for the mode of the rehearsal and for policy files."""
    group = parser.add_argument_group("role")
    group.add_argument(
        "--role",
        choices=[str(mode) for mode in RoleMode],
        default=str(RoleMode.REPORT),
        help="missing permissions: ignore, warn or fail (default: report)",
    )
    add_policy_argument(group)


def add_policy_argument(parser: _ActionsContainer) -> None:
    """Add the option for policy files."""
    parser.add_argument(
        "--policy",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help="a policy of the role (JSON or YAML), in place of those in the files; repeatable",
    )
