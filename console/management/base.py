"""Base class of management commands with the option ``--data DIR``."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Any

import psycopg
from django.core.management.base import BaseCommand, CommandError
from django.db import OperationalError, ProgrammingError

if TYPE_CHECKING:
    from django.core.management.base import CommandParser


_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


class DataFolderCommand(BaseCommand):
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

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command; a missing database or missing tables end it with one line."""
        try:
            return super().execute(*args, **options)
        except (OperationalError, ProgrammingError, psycopg.Error) as error:
            line = " ".join(str(error).split())
            raise CommandError(f"the database refused: {line}") from error
        except OSError as error:
            if error.errno not in _DISK:
                raise
            raise CommandError(f"the disk refused: {error}") from error
