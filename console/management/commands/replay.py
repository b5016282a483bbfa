"""``manage.py replay``: run recorded executions again, without calling services, and compare."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from django.core.management.base import BaseCommand, CommandError

import engine
from console.integrations import parameters
from console.management.files import read_file

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(BaseCommand):
    """Prints every difference; exits with 1 if there is any."""

    help = "Run scenarios, recorded executions, again: same path, same output?"
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add files, and another definition to replay with."""
        parser.add_argument("files", nargs="+", metavar="FILE", help="- for stdin")
        parser.add_argument(
            "--definition", metavar="FILE", help="run this definition instead of the recorded one"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Replay each file."""
        del args
        definition = read_file(options["definition"]) if options["definition"] else None
        failed = False
        for name in options["files"]:
            try:
                differences = engine.replay(
                    read_file(name), definition, parameters.parameter_problem
                )
            except (engine.JsonTextError, ValueError) as error:
                raise CommandError(f"{name}: {error}") from None
            failed = failed or bool(differences)
            for difference in differences:
                self.stdout.write(f"{name}: {difference}")
            if not differences:
                self.stdout.write(f"{name}: same path, same output")
        if failed:
            sys.exit(1)
