"""A project may be archived: since when it is read-only."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0058_first_administrator")]

    operations = [
        migrations.AddField(
            model_name="project",
            name="archived_ms",
            field=models.BigIntegerField(null=True),
        ),
    ]
