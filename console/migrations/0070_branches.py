"""Branches: projects that are copies of others for some days, and their keys."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0069_second_factor_rule")]

    operations = [
        migrations.CreateModel(
            name="Branch",
            fields=[
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="branch",
                        serialize=False,
                        to="console.project",
                    ),
                ),
                (
                    "parent",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="branches",
                        to="console.project",
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                ("made_by", models.CharField(max_length=150)),
                ("made_ms", models.BigIntegerField()),
                ("expires_ms", models.BigIntegerField(db_index=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("parent", "name"), name="one_project_a_branch")
                ],
            },
        ),
        migrations.CreateModel(
            name="BranchKey",
            fields=[
                (
                    "key",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        serialize=False,
                        to="console.accesskey",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="console.project",
                    ),
                ),
                ("origin", models.CharField(max_length=32)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("project", "origin"), name="one_branch_key_a_key"
                    )
                ],
            },
        ),
    ]
