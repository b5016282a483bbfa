"""``manage.py doctor``: check a deployment, and say how to fix problems."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from console.config.version import server_version
from console.features.doctor.deployment import (
    Connections,
    Finding,
    Questions,
    Verdict,
    list_findings,
    worst_of,
)
from console.management.base import DataFolderCommand
from console.management.capacity import count_capacity
from console.management.team import reach_database

if TYPE_CHECKING:
    from argparse import ArgumentParser

EXIT_CODES = {Verdict.OK: 0, Verdict.WARNING: 3, Verdict.FAILED: 4}
"""Worst verdict -> exit code; 1 and 2 say that the command could not run, or was used wrongly."""


class Command(DataFolderCommand):
    """Prints one line per check; changes nothing."""

    help = "Check a deployment; say how to fix problems. Exit code: 0 fine, 3 warnings, 4 failures."
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the output format."""
        parser.add_argument("--json", action="store_true", help="one JSON object")

    def handle(self, *args: Any, **options: Any) -> None:
        """Check, print, and exit with the code of the worst result."""
        del args
        findings: list[Finding] = []
        for finding in list_findings(Questions(_unreachable, _count)):
            findings.append(finding)
            if not options["json"]:
                self.stdout.write(str(finding))
        worst = worst_of(findings)
        if options["json"]:
            report = {"verdict": worst, "version": server_version()}
            checks = [asdict(finding) for finding in findings]
            self.stdout.write(json.dumps({**report, "checks": checks}, indent=1))
        elif worst is Verdict.OK:
            self.stdout.write("no problems")
        if worst is not Verdict.OK:
            sys.exit(EXIT_CODES[worst])


def _unreachable() -> str:
    try:
        reach_database()
    except CommandError as error:
        return str(error)
    return ""


def _count() -> Connections:
    capacity = count_capacity()
    # the doctor is a process of this server, too, and gone in a moment
    return Connections(capacity.allowed, capacity.others, max(0, capacity.processes - 1))
