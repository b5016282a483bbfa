"""Executions that somebody has paused."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0066_service_account")]

    operations = [
        migrations.CreateModel(
            name="Pause",
            fields=[
                (
                    "execution",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        serialize=False,
                        to="console.execution",
                    ),
                ),
                ("since_ms", models.BigIntegerField()),
                ("paused_by", models.CharField(default="", max_length=150)),
                ("stops_clock", models.BooleanField(default=False)),
                ("note", models.TextField(default="")),
            ],
        ),
    ]
