"""Can the version before work on the tables of this one, while hosts are upgraded one by one?"""

from __future__ import annotations

from typing import Any

from django.db import models
from django.db.migrations import operations
from django.db.migrations.loader import MigrationLoader

from console.migrations import READABLE_SINCE

_ADDS = (operations.CreateModel, operations.AddIndex, operations.RunPython)


def only_adds(operation: Any) -> bool:
    """Tell whether an operation leaves alone what an earlier version reads and writes."""
    if isinstance(operation, operations.AddField):
        field = operation.field
        return bool(field.null or field.has_db_default() or field.many_to_many)
    return isinstance(operation, _ADDS)


def test_later_migrations_only_add() -> None:
    """What does more than that has to move READABLE_SINCE (G16)."""
    found = MigrationLoader(None).disk_migrations
    names = {name for app, name in found if app == "console"}
    assert READABLE_SINCE in names
    wrong = [
        f"{name}: {operation.describe()}"
        for (app, name), migration in sorted(found.items())
        if app == "console" and name > READABLE_SINCE
        for operation in migration.operations
        if not only_adds(operation)
    ]
    assert wrong == []


def test_it_can_fail() -> None:
    """A column that an earlier version does not fill is found, and so is one that is gone."""
    needed = operations.AddField("run", "lane", models.IntegerField(default=0))
    filled = operations.AddField("run", "lane", models.IntegerField(db_default=0))
    assert not only_adds(needed)
    assert only_adds(filled)
    assert not only_adds(operations.RemoveField("run", "lane"))
