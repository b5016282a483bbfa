"""Why a bulk job stops executions, and what uses an access key; rows of before have neither."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0048_alarm_changes"),
    ]

    operations = [
        migrations.AddField(
            model_name="accesskey",
            name="description",
            field=models.CharField(db_default="", default="", max_length=100),
        ),
        migrations.AddField(
            model_name="bulkjob",
            name="cause",
            field=models.TextField(db_default="", default=""),
        ),
        migrations.AddField(
            model_name="bulkjob",
            name="error",
            field=models.CharField(db_default="", default="", max_length=256),
        ),
    ]
