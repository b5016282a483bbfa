"""Projects that are being deleted."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0059_archived_projects")]

    operations = [
        migrations.CreateModel(
            name="ProjectDeletion",
            fields=[
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="deletion",
                        serialize=False,
                        to="console.project",
                    ),
                ),
                ("actor", models.CharField(default="", max_length=150)),
                ("began_ms", models.BigIntegerField()),
                ("total", models.BigIntegerField()),
                ("removed", models.BigIntegerField(default=0)),
                ("runner", models.CharField(default="", max_length=40)),
                ("lease_until_ms", models.BigIntegerField(default=0)),
            ],
        ),
    ]
