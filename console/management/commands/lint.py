"""``manage.py lint``: checks definitions from files or stdin."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand

from console.cli.commands import lint

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    """Prints every problem; exits with 1 if one is an error."""

    help = "Check state machine definitions."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take what ``stateyard lint`` takes."""
        lint.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Check each file."""
        del args
        code = lint.run_command(argparse.Namespace(**options))
        if code:
            sys.exit(code)
