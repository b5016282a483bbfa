"""``manage.py verify_audit``: find audit rows that were changed, removed or inserted later."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from console.features.audit import verify
from console.management.base import DataFolderCommand

if TYPE_CHECKING:
    from argparse import ArgumentParser

_FOUND = 3


class Command(DataFolderCommand):
    """Prints a line for each finding; exits with 3 if there is one."""

    help = "Check the audit against its chain of hashes; it is only read."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the output format."""
        parser.add_argument("--json", action="store_true", help="one JSON object, on one line")

    def handle(self, *args: Any, **options: Any) -> None:
        """Check, and print the findings."""
        del args
        report = verify.check_audit()
        if options["json"]:
            self.stdout.write(json.dumps(verify.report_as_json(report)))
        else:
            self._print(report)
        if not report.intact:
            sys.exit(_FOUND)

    def _print(self, report: verify.AuditReport) -> None:
        for finding in report.findings:
            self.stdout.write(f"{finding.kind}: {finding.message}")
        if report.more_findings:
            self.stdout.write(f"and {report.more_findings} more")
        more = f"; {report.waiting} wait for their seal" if report.waiting else ""
        if report.removed_with_projects:
            more += f"; {report.removed_with_projects} went with deleted projects"
        if report.anchor:
            more += f"; removed by retention up to position {report.anchor}"
        outcome = "nothing wrong" if report.intact else "not intact"
        self.stdout.write(f"{report.rows} rows, {outcome}{more}")
        self.stdout.write(f"newest: position {report.head}, hash {report.head_hash}")
