"""Scope and expiry of access keys, and from where they were last used."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("console", "0061_project_setting")]

    operations = [
        migrations.AddField(
            model_name="accesskey",
            name="expires_ms",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="accesskey",
            name="last_used_client",
            field=models.CharField(db_default="", default="", max_length=200),
        ),
        migrations.AddField(
            model_name="accesskey",
            name="last_used_from",
            field=models.CharField(db_default="", default="", max_length=45),
        ),
        migrations.AddField(
            model_name="accesskey",
            name="replaced_by",
            field=models.CharField(db_default="", default="", max_length=32),
        ),
        migrations.AddField(
            model_name="accesskey",
            name="scope",
            field=models.TextField(db_default="", default=""),
        ),
        migrations.AddField(
            model_name="accesskey",
            name="warned_ms",
            field=models.BigIntegerField(null=True),
        ),
    ]
