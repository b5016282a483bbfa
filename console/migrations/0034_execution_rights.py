"""Add the editor, the starter and the parent of an execution.

The columns of executions and of the audit are NULL and have no default: SQLite would write these
tables anew, payloads included, for any others. What 0035 and 0036 do takes time, and is apart so
that no table is locked meanwhile.
"""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0033_invitations"),
    ]

    operations = [
        migrations.AddField(
            model_name="statemachine",
            name="edited_by",
            field=models.TextField(db_default="", default=""),
        ),
        migrations.AddField(
            model_name="version",
            name="edited_by",
            field=models.TextField(db_default="", default=""),
        ),
        migrations.AddField(
            model_name="eventrule",
            name="edited_by",
            field=models.TextField(db_default="", default=""),
        ),
        migrations.AddField(
            model_name="auditentry",
            name="execution",
            field=models.CharField(max_length=512, null=True),
        ),
        migrations.AddField(
            model_name="execution",
            name="edited_by",
            field=models.TextField(null=True),
        ),
        migrations.AddField(
            model_name="execution",
            name="acting_for",
            field=models.TextField(null=True),
        ),
        migrations.AddField(
            model_name="execution",
            name="depth",
            field=models.IntegerField(null=True),
        ),
        migrations.AddField(
            model_name="execution", name="parent", field=models.BigIntegerField(null=True)
        ),
        migrations.AddField(
            model_name="execution", name="parent_task", field=models.IntegerField(null=True)
        ),
    ]
