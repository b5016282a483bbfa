"""PostgreSQL no longer checks what the store and ``check_invariants`` see to (I17).

The rows of a step referred to their execution, project and definition by constraints: 63 checks for
an execution with a Map of five calls. Two indexes for LIKE, which no query used, go as well, and
the indexes of due times leave out tasks without one. Pages of runs keep room, so that a new
snapshot needs no new entry of an index. A process of the previous release works on all of it.
"""

import time
from typing import Any

import django.db.models.deletion
from django.db import OperationalError, migrations, models

from console.db.indexes import AddIndexConcurrently

_TABLES = (
    *("console_execution", "console_runrow", "console_runvalue", "console_historyevent"),
    *("console_inboxmessage", "console_timer", "console_taskrow", "console_auditentry"),
)
_REFERRED = ("console_execution", "console_project", "console_definition", "console_statemachine")
_CONSTRAINTS = (
    "SELECT conrelid::regclass::text, conname FROM pg_constraint"
    " WHERE contype = 'f' AND conrelid = ANY(%s::regclass[]) AND confrelid = ANY(%s::regclass[])"
)
_UNUSED = (
    "SELECT indexrelid::regclass::text FROM pg_stat_user_indexes"
    " WHERE relname IN ('console_execution', 'console_taskrow')"
    r" AND indexrelname ~ '_(arn|token_hash)_\w+_like$'"
)
_OLD = ("task_timeout", "task_heartbeat", "task_look")
_TRIES = 60


def relieve(apps: Any, schema_editor: Any) -> None:
    """Drop constraints and indexes, and leave room in the pages of runs."""
    del apps
    if schema_editor.connection.vendor != "postgresql":
        return
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(_CONSTRAINTS, [list(_TABLES), list(_REFERRED)])
        constraints = cursor.fetchall()
        cursor.execute(_UNUSED)
        unused = [name for (name,) in cursor.fetchall()]
    for table, name in constraints:
        _alter(schema_editor, f'ALTER TABLE {table} DROP CONSTRAINT IF EXISTS "{name}"')
    _alter(schema_editor, "ALTER TABLE console_runrow SET (fillfactor = 50)")
    for name in unused:
        schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}", None)


def drop_old(apps: Any, schema_editor: Any) -> None:
    """Drop the indexes that have been replaced."""
    del apps
    concurrently = "CONCURRENTLY " if schema_editor.connection.vendor == "postgresql" else ""
    for name in _OLD:
        schema_editor.execute(f"DROP INDEX {concurrently}IF EXISTS {name}", None)


def _alter(schema_editor: Any, sql: str) -> None:
    """Alter a table that others use.

    1. A backup reads a table for an hour.  2. ALTER TABLE waits for it, and everybody else for
    ALTER TABLE.  So it gives up after a second, lets the others go on, and tries again.
    """
    for tries_left in reversed(range(_TRIES)):
        try:
            schema_editor.execute("SET lock_timeout = '1s'", None)
            schema_editor.execute(sql, None)
        except OperationalError:
            if not tries_left:
                raise
            time.sleep(0.5)
        else:
            return
        finally:
            schema_editor.execute("RESET lock_timeout", None)


def _plain_key(to: str, **options: Any) -> Any:
    """Return a foreign key without a constraint."""
    options.setdefault("on_delete", django.db.models.deletion.CASCADE)
    return models.ForeignKey(to=to, db_constraint=False, **options)


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("console", "0039_schedules"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    "execution", "project", _plain_key("console.project", db_index=False)
                ),
                migrations.AlterField(
                    "execution",
                    "state_machine",
                    _plain_key(
                        "console.statemachine",
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                    ),
                ),
                migrations.AlterField(
                    "execution",
                    "definition",
                    _plain_key(
                        "console.definition",
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                    ),
                ),
                migrations.AlterField(
                    "runrow",
                    "execution",
                    models.OneToOneField(
                        "console.execution",
                        db_constraint=False,
                        primary_key=True,
                        serialize=False,
                        on_delete=django.db.models.deletion.CASCADE,
                    ),
                ),
                migrations.AlterField("runvalue", "execution", _plain_key("console.execution")),
                *(
                    migrations.AlterField(
                        model, "execution", _plain_key("console.execution", db_index=False)
                    )
                    for model in ("historyevent", "timer", "taskrow")
                ),
                migrations.AlterField("inboxmessage", "execution", _plain_key("console.execution")),
                migrations.AlterField(
                    "auditentry", "project", _plain_key("console.project", null=True)
                ),
            ],
        ),
        migrations.RunPython(relieve, migrations.RunPython.noop),
        *(
            AddIndexConcurrently(
                "taskrow",
                models.Index(
                    fields=[f"{clock}_due_ms"],
                    name=f"task_{clock}_due",
                    condition=models.Q(**{f"{clock}_due_ms__isnull": False}),
                ),
            )
            for clock in ("timeout", "heartbeat", "look")
        ),
        migrations.RunPython(drop_old, migrations.RunPython.noop),
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.RemoveIndex("taskrow", name) for name in _OLD],
        ),
    ]
