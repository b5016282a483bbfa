"""Narrow the indexes to the rows that queries look up, and drop the redundant ones.

Activities alone are looked for by their ARN, and children alone by their Map Run: an execution of
one function wrote five entries for nothing. Where a key or a constraint has an index that begins
with a column, another one of that column alone is of no use; nor are those for LIKE (PostgreSQL)
of columns that nobody asks by LIKE. A process of the previous release works on all of it.
"""

from typing import Any

import django.db.models.deletion
from django.db import migrations, models

from console.db.indexes import AddIndexConcurrently

_OLD = ("task_by_activity", "execution_of_map_run")
_USELESS = (
    *(("console_runvalue", "execution_id"), ("console_delivery", "event_id")),
    *(("console_maprun", "parent_id"), ("console_maprun", "arn")),
    ("console_outboxevent", "event_id"),
)
"""Table and column: unique indexes stay."""


def drop_old(apps: Any, schema_editor: Any) -> None:
    """Drop the indexes that have been replaced, and those of no use."""
    del apps
    vendor = schema_editor.connection.vendor
    concurrently = "CONCURRENTLY " if vendor == "postgresql" else ""
    useless = [name for table, column in _USELESS for name in _find(schema_editor, table, column)]
    for name in (*_OLD, *useless):
        schema_editor.execute(f"DROP INDEX {concurrently}IF EXISTS {name}", None)


def _find(schema_editor: Any, table: str, column: str) -> list[str]:
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        constraints = connection.introspection.get_constraints(cursor, table)
    return [
        name
        for name, about in constraints.items()
        if about["index"] and not about["unique"] and about["columns"] == [column]
    ]


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("console", "0045_function_logs"),
    ]

    operations = [
        AddIndexConcurrently(
            "taskrow",
            models.Index(
                fields=["resource", "status", "scheduled_ms"],
                name="task_of_activity",
                condition=models.Q(kind="activity"),
            ),
        ),
        AddIndexConcurrently(
            "execution",
            models.Index(
                fields=["map_run", "item_index"],
                name="child_of_map_run",
                condition=models.Q(map_run__isnull=False),
            ),
        ),
        migrations.RunPython(drop_old, migrations.RunPython.noop),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveIndex("taskrow", "task_by_activity"),
                migrations.RemoveIndex("execution", "execution_of_map_run"),
                migrations.AlterField(
                    "runvalue",
                    "execution",
                    models.ForeignKey(
                        to="console.execution",
                        db_index=False,
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                    ),
                ),
                migrations.AlterField(
                    "delivery",
                    "event",
                    models.ForeignKey(
                        to="console.outboxevent",
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                    ),
                ),
                migrations.AlterField(
                    "maprun",
                    "parent",
                    models.ForeignKey(
                        to="console.execution",
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="map_runs",
                    ),
                ),
            ],
        ),
    ]
