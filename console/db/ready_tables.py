"""Bring the tables of the database up to date, without Django's ``migrate`` where it can be spared.

``migrate`` builds the models as each migration leaves them, which takes most of the time of a first
start. So a new SQLite database gets its tables and the names of the migrations from
``ready_tables.sql``: what a database has after all of them. A test compares the two, and
``python -m tests.console.migrations.ready_tables`` writes the file again.
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
    """Make the tables of a new database; migrate one that lacks a migration."""
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
