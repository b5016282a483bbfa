"""A squashed migration makes the tables of a new database; those of earlier versions go on."""

from __future__ import annotations

import functools
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection, models
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from tests.console.migrations.migration_steps import (
    StepLoader,
    empty_database,
    migrate_by_steps,
)
from tests.console.migrations.schema import schema

pytestmark = pytest.mark.django_db(transaction=True)

VERSIONS = {
    "0.1.0": "0030_error_names",
    "0.2.0": "0045_function_logs",
    "between 0.2.0 and 0.3.0": "0052_express_children",
}
"""Version and its last migration."""
EMPTIED = "console_gist"
"""The table whose rows 0037 removes."""
_numbers = count(1)


@functools.cache
def _new_database() -> tuple[list[str], set[str]]:
    """Return the schema of a new database, and the migrations that it names as applied."""
    with TemporaryDirectory() as folder, empty_database(Path(folder)):
        call_command("migrate", verbosity=0)
        return schema(), {name for _, name in MigrationRecorder(connection).applied_migrations()}


@pytest.mark.slow
def test_a_new_database_names_the_replaced_migrations() -> None:
    """A process of the version before knows those, and refuses tables that it cannot place."""
    _, applied = _new_database()
    disk = {name for app, name in MigrationLoader(None).disk_migrations if app == "console"}
    assert disk <= applied


def test_a_squashed_migration_leaves_the_models_of_the_replaced_ones() -> None:
    """Later migrations begin with the same models, on either way."""
    squashed = MigrationLoader(None).project_state().models
    replaced = StepLoader(None).project_state().models
    assert squashed.keys() == replaced.keys()
    for key, model in squashed.items():
        assert _deconstructed(model) == _deconstructed(replaced[key]), key


@pytest.mark.slow
@pytest.mark.parametrize("last", VERSIONS.values(), ids=list(VERSIONS))
def test_a_database_of_an_earlier_version_is_upgraded(last: str, tmp_path: Path) -> None:
    """Its rows stay as they are, and its tables become those of a new database."""
    new, _ = _new_database()
    with empty_database(tmp_path):
        registry = migrate_by_steps(last)
        _fill(registry)
        before = _content()
        assert len(before) >= 35
        assert all(rows for table, rows in before.items() if table != EMPTIED)
        call_command("migrate", verbosity=0)
        connection.check_constraints()
        after = _content()
        assert schema() == new
    for table, rows in before.items():
        if table == EMPTIED:
            assert not after[table]
        else:
            assert _narrowed(after[table], rows) == rows, table


def _deconstructed(model: Any) -> Any:
    fields = {name: field.deconstruct()[1:] for name, field in model.fields.items()}
    names = ("indexes", "constraints")
    options = {name: value for name, value in model.options.items() if name not in names and value}
    parts = sorted(
        str(part.deconstruct()) for name in names for part in model.options.get(name, ())
    )
    return fields, options, parts, model.bases


def _fill(registry: Any) -> None:
    """Put a row into every table of the console."""
    rows: dict[Any, Any] = {}
    for model in registry.get_models(include_auto_created=False):
        if model._meta.app_label == "console":
            _row(model, rows)
    execution, map_run = (
        rows[registry.get_model("console", name)] for name in ("Execution", "MapRun")
    )
    type(execution).objects.filter(pk=execution.pk).update(map_run=map_run)


def _row(model: Any, rows: dict[Any, Any]) -> Any:
    """Return the row of a model; make it, and the rows that it refers to, if it is not there."""
    if model not in rows:
        values = {}
        for field in model._meta.concrete_fields:
            if isinstance(field, models.ForeignKey):
                if not field.null:
                    values[field.name] = _row(field.related_model, rows)
            elif not isinstance(field, (models.CompositePrimaryKey, models.AutoField)):
                values[field.name] = _value(field)
        rows[model] = model.objects.create(**values)
    return rows[model]


def _value(field: Any) -> Any:
    number = next(_numbers)
    if field.choices:
        return field.choices[0][0]
    if isinstance(field, models.CharField):
        return str(number)[-field.max_length :]
    if isinstance(field, models.TextField):
        return f'{{"number": {number}}}'
    if isinstance(field, models.BinaryField):
        return str(number).encode()
    if isinstance(field, models.DateTimeField):
        return None if field.null else "2026-11-21T00:00:00Z"
    return True if isinstance(field, models.BooleanField) else number


def _content() -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each table of the console, as columns and values."""
    content = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            if table.startswith("console_"):
                cursor.execute(f"SELECT * FROM {table}")
                columns = [column[0] for column in cursor.description]
                content[table] = [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]
    return content


def _narrowed(rows: list[dict[str, Any]], before: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{column: row[column] for column in before[0]} for row in rows]
