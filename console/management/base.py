"""Base classes of management commands: one form of errors, and the option ``--data DIR``."""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, ProgrammingError

from console.cli.commands import WRONG_USE
from console.cli.documents import SourceError
from console.cli.output import write_error
from console.errors import ServiceError
from console.models import Project

if TYPE_CHECKING:
    from django.core.management.base import CommandParser


_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


class WrongUse(CommandError):
    """A command cannot use its arguments or files; nothing was done."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args, returncode=WRONG_USE)


def read_file(name: str) -> str:
    """Return the text of a file, or of stdin for ``-``; raise WrongUse if it cannot be read."""
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUse(f"{name}: {getattr(error, 'strerror', None) or error}") from None


class ErrorLineCommand(BaseCommand):
    """A command whose errors are printed as those of ``console.cli``, with its exit codes."""

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command; on a command line, an error is printed and ends the process."""
        try:
            return self._execute(*args, **options)
        except CommandError as error:
            if not getattr(self, "_called_from_command_line", False) or options["traceback"]:
                raise
            write_error(str(error))
            sys.exit(error.returncode)

    def _execute(self, *args: Any, **options: Any) -> str | None:
        try:
            return super().execute(*args, **options)
        except SourceError as error:
            raise WrongUse(str(error)) from None


class DataFolderCommand(ErrorLineCommand):
    """A command with ``--data DIR``; ``command_line.set_up`` reads it before the settings."""

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        """Return Django's parser, with ``--data`` for the help text."""
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        parser.add_argument(
            "--data",
            metavar="DIR",
            help="the data folder; default: STATEYARD_DATA, else ~/.local/share/stateyard",
        )
        return parser

    def _execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command; a missing database or missing tables end it with one line."""
        try:
            return super()._execute(*args, **options)
        except (OperationalError, ProgrammingError, psycopg.Error) as error:
            line = " ".join(str(error).split())
            raise CommandError(f"the database refused: {line}") from error
        except OSError as error:
            if error.errno not in _DISK:
                raise
            raise CommandError(f"the disk refused: {error}") from error


class ProjectCommand(DataFolderCommand):
    """A command with actions on a project; its parser sets ``act`` and ``--project``.

    The method ``_create(project, options)`` runs the action ``create``.
    """

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the action, or say why it is refused."""
        del args
        project = Project.objects.filter(name=options["project"]).first()
        if project is None:
            raise WrongUse(f"--project: there is no project {options['project']!r}")
        try:
            getattr(self, f"_{options['act']}")(project, options)
        except ServiceError as error:
            raise CommandError(error.message) from None
