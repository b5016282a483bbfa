"""Settings that owners make for their project on pages."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0060_project_deletion")]

    operations = [
        migrations.CreateModel(
            name="ProjectSetting",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(max_length=40)),
                ("name", models.CharField(default="", max_length=256)),
                ("value", models.TextField()),
                ("sealed", models.TextField(default="")),
                ("version", models.IntegerField(default=1)),
                ("changed_ms", models.BigIntegerField()),
                ("changed_by", models.CharField(max_length=150)),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="console.project"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("project", "kind", "name"), name="one_setting_per_name"
                    )
                ],
            },
        ),
    ]
