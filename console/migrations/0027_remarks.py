import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0026_views"),
    ]

    operations = [
        migrations.CreateModel(
            name="Remark",
            fields=[
                (
                    "execution",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="remark",
                        serialize=False,
                        to="console.execution",
                    ),
                ),
                ("note", models.TextField(default="")),
                ("noted_by", models.CharField(default="", max_length=150)),
                ("noted_ms", models.BigIntegerField(null=True)),
                ("looker", models.CharField(default="", max_length=150)),
                ("looking_ms", models.BigIntegerField(null=True)),
            ],
        ),
    ]
