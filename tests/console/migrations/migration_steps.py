"""Databases of earlier versions, made by the migrations that squashed ones replace."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.db import connection, connections
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class StepLoader(MigrationLoader):
    """Leaves out the squashed migrations, so that each replaced one can be a target."""

    def load_disk(self) -> None:
        """Load the migrations that replace no others."""
        super().load_disk()
        squashed = [key for key, migration in self.disk_migrations.items() if migration.replaces]
        for key in squashed:
            del self.disk_migrations[key]


LAST = StepLoader(None).graph.leaf_nodes("console")[0][1]


def models_of(name: str) -> Any:
    """Return the registry of the models as a migration leaves them."""
    return StepLoader(None).project_state([("console", name)]).apps


def migrate_by_steps(name: str) -> Any:
    """Bring the tables to a migration, forwards or backwards; return its registry of models."""
    executor = MigrationExecutor(connection)
    executor.loader = StepLoader(connection)
    return executor.migrate([("console", name)]).apps


@contextmanager
def empty_database(folder: Path) -> Iterator[None]:
    """Let ``connection`` of this thread be that of a new database without tables."""
    usual = connections["default"]
    named = dict(usual.settings_dict)
    on_postgres = usual.vendor == "postgresql"
    name = f"{named['NAME']}_empty" if on_postgres else str(folder / "stateyard.sqlite3")
    if on_postgres:
        with usual.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
    other = type(usual)({**named, "NAME": name}, "default")
    connections["default"] = other
    try:
        yield
    finally:
        connections["default"] = usual
        other.close()
        if on_postgres:
            with usual.cursor() as cursor:
                cursor.execute(f"DROP DATABASE {name}")
