"""``manage.py lint``: checks definitions from files or stdin."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from console.cli.commands import run_client_command
from console.features.deploy.commands import lint
from console.management.base import ErrorLineCommand

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(ErrorLineCommand):
    """Prints every problem; exits with 1 if one is an error."""

    help = "Check state machine definitions."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the arguments of ``stateyard lint``."""
        lint.add_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Check each file."""
        del args
        code = run_client_command(lint.__name__, argparse.Namespace(**options))
        if code:
            sys.exit(code)
