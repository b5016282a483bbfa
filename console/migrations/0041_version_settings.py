"""Versions keep the logging, tracing and encryption that they were published with."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0040_fewer_constraints"),
    ]

    operations = [
        migrations.AddField(
            model_name="version",
            name="encryption",
            field=models.TextField(null=True),
        ),
        migrations.AddField(
            model_name="version",
            name="logging",
            field=models.TextField(null=True),
        ),
        migrations.AddField(
            model_name="version",
            name="tracing",
            field=models.TextField(null=True),
        ),
    ]
