"""A Map Run says whether its child executions are Express ones."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0051_redrive_tokens"),
    ]

    operations = [
        migrations.AddField(
            model_name="maprun",
            name="express",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
