"""Which executions have lines of control at breakpoints, for lists."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0076_named_inputs")]

    operations = [
        migrations.CreateModel(
            name="HaltedExecution",
            fields=[
                (
                    "execution",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="halted",
                        serialize=False,
                        to="console.execution",
                    ),
                ),
                ("since_ms", models.BigIntegerField()),
                ("count", models.IntegerField()),
                ("newest", models.IntegerField()),
                ("lines", models.TextField()),
            ],
        ),
    ]
