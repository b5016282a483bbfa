"""The note and the assignee of an execution get their names in Django; the table keeps its own.

A process of the previous release that still runs during an upgrade reads and writes the table.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0037_no_history_digest"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RenameModel("Remark", "ExecutionNote"),
                migrations.AlterModelTable("ExecutionNote", "console_remark"),
                migrations.RenameField("ExecutionNote", "note", "text"),
                migrations.RenameField("ExecutionNote", "looker", "assignee"),
                migrations.RenameField("ExecutionNote", "looking_ms", "assigned_ms"),
                migrations.AlterField(
                    "ExecutionNote", "text", models.TextField(default="", db_column="note")
                ),
                migrations.AlterField(
                    "ExecutionNote",
                    "assignee",
                    models.CharField(max_length=150, default="", db_column="looker"),
                ),
                migrations.AlterField(
                    "ExecutionNote",
                    "assigned_ms",
                    models.BigIntegerField(null=True, db_column="looking_ms"),
                ),
                migrations.AlterField(
                    "ExecutionNote",
                    "execution",
                    models.OneToOneField(
                        "console.Execution",
                        on_delete=models.CASCADE,
                        primary_key=True,
                        related_name="note",
                        serialize=False,
                    ),
                ),
            ],
        ),
    ]
