"""Roles of groups that administrators set on the page Sign-in."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0062_key_limits")]

    operations = [
        migrations.CreateModel(
            name="GroupRole",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("provider_id", models.CharField(max_length=32)),
                ("group", models.CharField(max_length=255)),
                ("role", models.CharField(max_length=16)),
                (
                    "project",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="console.project",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=["provider_id", "group", "project"], name="group_role_of_project"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(project=None),
                        fields=["provider_id", "group"],
                        name="group_role_of_server",
                    ),
                ],
            },
        ),
    ]
