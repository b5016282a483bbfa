import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0025_columns"),
    ]

    operations = [
        migrations.CreateModel(
            name="SavedView",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=80)),
                ("query", models.TextField()),
                ("default_of", models.CharField(default="", max_length=80)),
                ("saved_by", models.CharField(max_length=150)),
                ("saved_ms", models.BigIntegerField()),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="console.project"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("project", "name"), name="one_view_per_name"),
                    models.UniqueConstraint(
                        condition=models.Q(("default_of", ""), _negated=True),
                        fields=("project", "default_of"),
                        name="one_default_per_machine",
                    ),
                ],
            },
        ),
    ]
