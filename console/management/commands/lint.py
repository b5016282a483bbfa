"""``manage.py lint``: checks definitions from files or stdin."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand

import engine
from console.management.files import read_file

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    """Prints every problem; exits with 1 if one is an error."""

    help = "Check state machine definitions."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take files, and how to tell the problems."""
        parser.add_argument("files", nargs="+", metavar="FILE", help="- for stdin")
        parser.add_argument("--format", choices=engine.LINT_FORMATS, default="text")
        parser.add_argument("--type", choices=["STANDARD", "EXPRESS"], default="STANDARD")

    def handle(self, *args: Any, **options: Any) -> None:
        """Check each file."""
        del args
        tell = engine.LINT_FORMATS[options["format"]]
        failed = False
        for name in options["files"]:
            diagnostics = engine.check(read_file(name), options["type"])
            failed = failed or any(diagnostic.severity == "ERROR" for diagnostic in diagnostics)
            report = tell(name, diagnostics)
            if report:
                self.stdout.write(report)
        if failed:
            sys.exit(1)
