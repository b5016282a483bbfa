"""An execution keeps the client tokens of several redrives.

A process of the previous release goes on with ``redrive_token``, that of the last one.
"""

from django.db import migrations, models

from console.db.columns import AddFieldInTurns


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("console", "0050_executions_by_time"),
    ]

    operations = [
        AddFieldInTurns("execution", "redrive_tokens", models.TextField(null=True)),
    ]
