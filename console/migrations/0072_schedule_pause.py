"""Projects whose schedules stand still."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0071_bulk_pause")]

    operations = [
        migrations.CreateModel(
            name="SchedulePause",
            fields=[
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        serialize=False,
                        to="console.project",
                    ),
                ),
                ("since_ms", models.BigIntegerField()),
                ("paused_by", models.CharField(default="", max_length=150)),
                ("note", models.TextField(default="")),
            ],
        ),
    ]
