import json
from typing import Any

import django.db.models.deletion
from django.db import migrations, models


def move_inputs(apps: Any, schema_editor: Any) -> None:
    """Give every child that has not started its own row; the rest is in the children already."""
    del schema_editor
    item = apps.get_model("console", "MapItem")
    for run in apps.get_model("console", "MapRun").objects.filter(status="RUNNING").iterator(1):
        waiting = enumerate(json.loads(run.inputs)[run.started :], run.started)
        item.objects.bulk_create(
            [
                item(
                    map_run_id=run.pk,
                    item_index=at,
                    input=json.dumps(value, ensure_ascii=False, separators=(",", ":")),
                )
                for at, value in waiting
            ],
            batch_size=500,
        )


class Migration(migrations.Migration):
    dependencies = [("console", "0004_task_jobs")]
    operations = [
        migrations.CreateModel(
            name="MapItem",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "map_run_id",
                        "item_index",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("item_index", models.IntegerField()),
                ("input", models.TextField()),
                (
                    "map_run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="console.maprun",
                    ),
                ),
            ],
        ),
        migrations.AddField(
            model_name="maprun", name="reading", field=models.BooleanField(default=False)
        ),
        migrations.RunPython(move_inputs, migrations.RunPython.noop),
        migrations.RemoveField(model_name="maprun", name="inputs"),
    ]
