"""Add the injected faults of an execution.

NULL and without a default: SQLite adds the column without writing the whole table anew.
"""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0077_halted_executions"),
    ]

    operations = [
        migrations.AddField(
            model_name="execution",
            name="faults",
            field=models.TextField(null=True),
        ),
    ]
