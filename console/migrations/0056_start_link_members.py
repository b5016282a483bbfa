"""A start link says as whose membership it was made."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0055_deliveries_of_target"),
    ]

    operations = [
        migrations.AddField(
            model_name="startlink",
            name="membership",
            field=models.BigIntegerField(null=True),
        ),
    ]
