"""Index deliveries by target, in a migration of its own that can be run again."""

from django.db import migrations, models

from console.db.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
    dependencies = [
        ("console", "0054_silent_targets"),
    ]

    operations = [
        AddIndexConcurrently(
            "delivery",
            models.Index(
                fields=["target", "next_ms"],
                name="delivery_of_target",
                condition=models.Q(status="waiting"),
            ),
        ),
    ]
