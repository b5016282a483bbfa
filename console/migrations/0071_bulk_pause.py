"""Bulk jobs pause executions: what their timers do meanwhile, and the reason."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0070_branches")]

    operations = [
        migrations.AddField(
            model_name="bulkjob",
            name="note",
            field=models.TextField(db_default="", default=""),
        ),
        migrations.AddField(
            model_name="bulkjob",
            name="stops_clock",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
