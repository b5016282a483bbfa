"""Add log groups and log routes; machines that log already keep logging."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import django.db.models.deletion
from django.db import migrations, models


if TYPE_CHECKING:
    from django.apps.registry import Apps as StateApps
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def note_routes(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Give machines with a logging configuration the group and the route that it says."""
    models = {name: apps.get_model("console", name) for name in ("LogGroup", "LogRoute")}
    for machine in apps.get_model("console", "StateMachine").objects.exclude(logging=""):
        logging = json.loads(machine.logging)
        for destination in (logging.get("destinations") or [])[:1]:
            arn = (destination.get("cloudWatchLogsLogGroup") or {}).get("logGroupArn") or ""
            name = arn.partition(":log-group:")[2].removesuffix(":*")
            place = {"project_id": machine.project_id, "region": machine.region}
            if not name:
                continue
            models["LogGroup"].objects.get_or_create(
                **place, name=name, defaults={"created_ms": machine.updated_ms}
            )
            models["LogRoute"].objects.create(
                **place,
                machine_arn=machine.arn,
                since_ms=machine.updated_ms,
                level=logging.get("level", "OFF"),
                with_data=bool(logging.get("includeExecutionData")),
                group=name,
            )


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0020_tasks"),
    ]

    operations = [
        migrations.CreateModel(
            name="LogGroup",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("region", models.CharField(max_length=32)),
                ("name", models.CharField(max_length=512)),
                ("created_ms", models.BigIntegerField()),
                ("deleted_ms", models.BigIntegerField(null=True)),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="console.project",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("project", "region", "name"), name="one_group_a_name"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="LogRoute",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("region", models.CharField(max_length=32)),
                ("machine_arn", models.CharField(max_length=256)),
                ("since_ms", models.BigIntegerField()),
                ("level", models.CharField(default="OFF", max_length=5)),
                ("with_data", models.BooleanField(default=False)),
                ("group", models.CharField(default="", max_length=512)),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="console.project",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["project", "group"], name="route_by_group")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("machine_arn", "since_ms"), name="one_route_a_moment"
                    )
                ],
            },
        ),
        migrations.RunPython(note_routes, migrations.RunPython.noop),
    ]
