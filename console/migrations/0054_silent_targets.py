"""A target that does not answer in time is paused, and what each target has to get has an index."""

from django.db import migrations, models

from console.store.db.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False
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
        AddIndexConcurrently(
            "delivery",
            models.Index(
                fields=["target", "next_ms"],
                name="delivery_of_target",
                condition=models.Q(status="waiting"),
            ),
        ),
    ]
