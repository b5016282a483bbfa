"""``redrive_token`` holds the client tokens of several redrives.

On SQLite the table stays as it is: it does not bound the length of a text, and to change a column
would write all rows anew. On PostgreSQL the change touches no row.
"""

from typing import Any

from django.db import migrations, models


def lift_bound(apps: Any, schema_editor: Any) -> None:
    """Let the column have any length."""
    del apps
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            "ALTER TABLE console_execution ALTER COLUMN redrive_token TYPE text", None
        )


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0050_executions_by_time"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunPython(lift_bound, migrations.RunPython.noop)],
            state_operations=[
                migrations.AlterField("execution", "redrive_token", models.TextField(default="")),
            ],
        ),
    ]
