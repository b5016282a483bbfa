"""Create or migrate the tables of the database; a new SQLite database gets them from one script.

Django's ``migrate`` builds the models of each migration, which takes most of the time of a first
start. So a new SQLite database runs ``ready_tables.sql``: the tables and the migration names after
all migrations. A test compares the two, and ``python -m tests.console.migrations.ready_tables``
writes the file again.
"""

from __future__ import annotations

import pkgutil
from pathlib import Path

from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

SCRIPT = Path(__file__).with_suffix(".sql")
"""One transaction: a process that is killed leaves an empty database."""


def bring_up_to_date() -> None:
    """Create the tables of a new database; migrate an older one."""
    if connection.vendor == "sqlite" and not connection.introspection.table_names():
        _run_script()
    if not _has_all_migrations():
        call_command("migrate", verbosity=0, interactive=False)


def _run_script() -> None:
    connection.ensure_connection()
    connection.connection.executescript(SCRIPT.read_text(encoding="utf-8"))
    MigrationRecorder(connection).migration_qs.update(applied=timezone.now())


def _has_all_migrations() -> bool:
    names = {
        (app.label, name)
        for app in apps.get_app_configs()
        for _, name, _ in pkgutil.iter_modules([str(Path(app.path) / "migrations")])
    }
    return names <= MigrationRecorder(connection).applied_migrations().keys()
