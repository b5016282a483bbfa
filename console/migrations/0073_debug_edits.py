"""What people did to lines of control at breakpoints."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0072_schedule_pause")]

    operations = [
        migrations.CreateModel(
            name="DebugEdit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("event_id", models.IntegerField()),
                ("at_ms", models.BigIntegerField()),
                ("state", models.CharField(max_length=80)),
                ("what", models.CharField(max_length=10)),
                ("by", models.CharField(max_length=150)),
                ("before", models.TextField()),
                ("after", models.TextField()),
                (
                    "execution",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="console.execution",
                    ),
                ),
            ],
        ),
    ]
