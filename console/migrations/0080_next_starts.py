"""Add breakpoints and faults for the next starts of a state machine.

NULL and without a default: SQLite adds the columns without writing the whole tables anew.
"""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0079_execution_summaries"),
    ]

    operations = [
        migrations.AddField(
            model_name="statemachine",
            name="next_starts",
            field=models.TextField(null=True),
        ),
        migrations.AddField(
            model_name="execution",
            name="next_starts",
            field=models.TextField(null=True),
        ),
    ]
