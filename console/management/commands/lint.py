"""``manage.py lint``: checks definitions from files or stdin."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

import engine

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
            found = engine.check(_read(name), options["type"])
            failed = failed or any(one.severity == "ERROR" for one in found)
            told = tell(name, found)
            if told:
                self.stdout.write(told)
        if failed:
            sys.exit(1)


def _read(name: str) -> str:
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{name}: {error}") from None
