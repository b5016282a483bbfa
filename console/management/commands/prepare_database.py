"""``manage.py prepare_database``: migrate a PostgreSQL, before an upgrade."""

from __future__ import annotations

from typing import Any

from console.management.base import DataFolderCommand
from console.management.team import prepare


class Command(DataFolderCommand):
    """Runs the database set-up that each process of a team runs at its start."""

    help = "Bring the tables of a PostgreSQL up to date, and end; web and worker do so, too."
    requires_system_checks: list[str] = []
    requires_migrations_checks = False

    def handle(self, *args: Any, **options: Any) -> None:
        """Check the database, and migrate."""
        del args, options
        prepare()
        self.stdout.write("the database is prepared")
