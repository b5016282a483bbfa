"""``manage.py administrator``: make a user an administrator of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.management.base import CommandError

from console.db.audit import Actor
from console.errors import ServiceError
from console.management.base import DataFolderCommand
from console.store.people import people

if TYPE_CHECKING:
    from argparse import ArgumentParser


class Command(DataFolderCommand):
    """Grants or revokes administration of the server."""

    help = "Make a person an administrator of the server: projects and operations, no payloads."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the user and ``--remove``."""
        parser.add_argument("name", help="the person's name")
        parser.add_argument("--remove", action="store_true", help="end it; memberships stay")

    def handle(self, *args: Any, **options: Any) -> None:
        """Grant or revoke, or raise CommandError."""
        del args
        name, remove = options["name"], options["remove"]
        try:
            people.set_administrator(name, administers=not remove, actor=Actor("manage.py"))
        except ServiceError as error:
            raise CommandError(error.message) from None
        now = "no administrator any more" if remove else "an administrator"
        self.stdout.write(f"{name} is {now}")
