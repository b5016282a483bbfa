"""Add the injected faults for the children of a Map Run.

NULL and without a default: SQLite adds the column without writing the whole table anew.
"""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0081_former_tags"),
    ]

    operations = [
        migrations.AddField(
            model_name="maprun",
            name="faults",
            field=models.TextField(null=True),
        ),
    ]
