"""How far the audit was sent to another system."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0073_debug_edits")]

    operations = [
        migrations.CreateModel(
            name="AuditStream",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("position", models.BigIntegerField(default=0)),
                ("problem", models.CharField(default="", max_length=300)),
                ("failing_since_ms", models.BigIntegerField(default=0)),
            ],
        ),
    ]
