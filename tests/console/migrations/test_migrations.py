"""The version before works on this version's tables while hosts are upgraded in turn."""

from __future__ import annotations

import contextlib
import sqlite3
from importlib import import_module
from io import StringIO
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection, models
from django.db.migrations import operations
from django.db.migrations.loader import MigrationLoader

from console.db.columns import AddFieldInTurns
from console.db.indexes import AddIndexConcurrently
from console.migrations import READABLE_SINCE
from console.models import Tag
from tests.console.config.test_settings import run
from tests.console.migrations.migration_steps import (
    StepLoader,
    empty_database,
    migrate_by_steps,
    models_of,
)
from tests.console.store.helpers import PASS, create

if TYPE_CHECKING:
    from pathlib import Path

    from console.models import Project

_COPIED_UNTIL = "0033_invitations"
"""Migrations up to here were released, or came before anybody thought of it."""
_LARGE = ("execution", "historyevent", "auditentry", "runrow", "runvalue")
_ADDS = (operations.CreateModel, operations.AddIndex, operations.RunPython)


def only_adds(operation: Any) -> bool:
    """Return whether an operation leaves alone what an earlier version reads and writes."""
    if isinstance(operation, operations.AddField):
        field = operation.field
        return bool(field.null or field.has_db_default() or field.many_to_many)
    if isinstance(operation, operations.SeparateDatabaseAndState):
        return not operation.database_operations  # a model goes, and its table stays
    return isinstance(operation, _ADDS)


def test_later_migrations_only_add() -> None:
    """What does more than that has to move READABLE_SINCE (G16)."""
    migrations = MigrationLoader(None).disk_migrations
    names = {name for app, name in migrations if app == "console"}
    assert READABLE_SINCE in names
    wrong = [
        f"{name}: {operation.describe()}"
        for (app, name), migration in sorted(migrations.items())
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
    gone = [operations.DeleteModel("run")]
    assert only_adds(operations.SeparateDatabaseAndState(state_operations=gone))
    assert not only_adds(operations.SeparateDatabaseAndState(gone, gone))


@pytest.mark.postgres_only
@pytest.mark.django_db(transaction=True)
def test_a_column_waits_for_no_backup(monkeypatch: pytest.MonkeyPatch) -> None:
    """It tries again until the table is free, and lets others read it meanwhile."""
    state = StepLoader(None).project_state([("console", "0052_express_children")])
    field = models.TextField(null=True)
    adding = AddFieldInTurns("tag", "spare", field)
    after = state.clone()
    adding.state_forwards("console", after)
    tries: list[float] = []
    named = connection.get_connection_params()
    address = {key: named[key] for key in ("host", "port", "dbname", "user") if named.get(key)}
    with psycopg.connect(**address) as backup:
        backup.execute("SELECT 1 FROM console_tag")

        def pause(seconds: float) -> None:
            tries.append(seconds)
            backup.rollback()

        monkeypatch.setattr("console.db.columns.time.sleep", pause)
        with connection.schema_editor(atomic=False) as editor:
            adding.database_forwards("console", editor, state, after)
    assert len(tries) == 1
    with connection.cursor() as cursor:
        cursor.execute("SELECT spare FROM console_tag")
        cursor.execute("ALTER TABLE console_tag DROP COLUMN spare")


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_large_tables_are_not_written_anew() -> None:
    """SQLite adds a column at once if it is NULL without a default, else it copies the table.

    Payloads of many GB were copied, with the server down and twice the space on the disk.
    """
    migrations = MigrationLoader(None).disk_migrations
    names = [name for app, name in sorted(migrations) if app == "console" and name > _COPIED_UNTIL]
    assert names
    for name in names:
        sql = StringIO()
        with connection.constraint_checks_disabled():
            call_command("sqlmigrate", "console", name, stdout=sql)
        for table in _LARGE:
            assert f'"new__console_{table}"' not in sql.getvalue(), (name, table)


def test_postgresql_indexes_large_tables_while_others_write() -> None:
    """An index in a transaction locks its table until the last operation is done."""
    wrong = [
        f"{name}: {operation.describe()}"
        for (app, name), migration in sorted(MigrationLoader(None).disk_migrations.items())
        if app == "console" and name > _COPIED_UNTIL
        for operation in migration.operations
        if isinstance(operation, operations.AddIndex)
        and operation.model_name_lower in _LARGE
        and (migration.atomic or not isinstance(operation, AddIndexConcurrently))
    ]
    assert wrong == []


@pytest.mark.django_db
def test_the_release_before_deletes_a_machine_that_has_revisions(project: Project) -> None:
    """It knows nothing of their table, and a constraint would refuse its commit."""
    machine = create(project, PASS)
    assert machine.revisions.exists()
    before = models_of("0041_version_settings")
    before.get_model("console", "StateMachine").objects.get(pk=machine.pk).delete()
    connection.check_constraints()


@pytest.mark.postgres_only
@pytest.mark.django_db
def test_rows_of_steps_refer_to_nothing_that_postgresql_checks() -> None:
    """An execution with a Map of five calls made 63 checks; invariant I17 looks for the same."""
    hot = ("execution", "runrow", "runvalue", "historyevent", "inboxmessage", "timer", "taskrow")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT conrelid::regclass::text, confrelid::regclass::text FROM pg_constraint"
            " WHERE contype = 'f' AND conrelid = ANY(%s::regclass[])",
            [[f"console_{table}" for table in (*hot, "auditentry")]],
        )
        assert cursor.fetchall() == [("console_execution", "console_maprun")]


@pytest.mark.slow
@pytest.mark.sqlite_only
@pytest.mark.django_db(transaction=True)
def test_a_database_of_a_version_between_two_releases_is_upgraded(tmp_path: Path) -> None:
    """Its index exists already, and columns are NOT NULL that this version leaves NULL."""
    with empty_database(tmp_path):
        migrate_by_steps("0035_fill_editors")
    with contextlib.closing(sqlite3.connect(tmp_path / "stateyard.sqlite3")) as database:
        database.execute(
            "CREATE INDEX execution_by_parent ON console_execution (parent) WHERE parent NOT NULL"
        )
        database.execute("ALTER TABLE console_auditentry DROP COLUMN execution")
        database.execute(
            "ALTER TABLE console_auditentry ADD COLUMN execution varchar(512) NOT NULL DEFAULT ''"
        )
        database.commit()
    done = run(tmp_path, "migrate", "-v", "0")
    assert done.returncode == 0, done.stderr
    with contextlib.closing(sqlite3.connect(tmp_path / "stateyard.sqlite3")) as database:
        columns = database.execute("PRAGMA table_info(console_auditentry)").fetchall()
    assert [column[3] for column in columns if column[1] == "execution"] == [0]


@pytest.mark.django_db
def test_tags_of_the_former_name_are_renamed() -> None:
    """Both names were read until 0.3.0. Where a resource has both tags, the current one counts."""
    pairs = [("a", "stepyard:simulate", "NONE"), ("a", "team", "blue")]
    pairs += [("b", "stepyard:simulate", "NONE"), ("b", "stateyard:simulate", "ALL")]
    Tag.objects.bulk_create(Tag(arn=arn, key=key, value=value) for arn, key, value in pairs)
    editor = SimpleNamespace(connection=connection)
    import_module("console.migrations.0081_former_tags").rename(apps, editor)
    assert set(Tag.objects.values_list("arn", "key", "value")) == {
        ("a", "stateyard:simulate", "NONE"),
        *pairs[1:],
    }
