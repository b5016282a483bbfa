"""A target that does not answer in time is paused."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0053_worker_problem"),
    ]

    operations = [
        migrations.AddField(
            model_name="eventtarget",
            name="timeouts",
            field=models.IntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="eventtarget",
            name="paused_until_ms",
            field=models.BigIntegerField(null=True),
        ),
    ]
