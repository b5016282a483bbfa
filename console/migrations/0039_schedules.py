"""Rows of rules can be schedules of EventBridge Scheduler, which have groups and more columns."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0038_execution_note"),
    ]

    operations = [
        migrations.CreateModel(
            name="ScheduleGroup",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("region", models.CharField(max_length=32)),
                ("name", models.CharField(max_length=64)),
                ("arn", models.CharField(max_length=256, unique=True)),
                ("created_ms", models.BigIntegerField()),
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
                        fields=("project", "region", "name"), name="one_schedule_group_a_name"
                    )
                ]
            },
        ),
        migrations.AddField(
            model_name="eventrule",
            name="after_completion",
            field=models.CharField(db_default="NONE", default="NONE", max_length=6),
        ),
        migrations.AddField(
            model_name="eventrule",
            name="client_token",
            field=models.CharField(db_default="", default="", max_length=64),
        ),
        migrations.AddField(
            model_name="eventrule",
            name="due_ms",
            field=models.BigIntegerField(db_index=True, null=True),
        ),
        migrations.AddField(
            model_name="eventrule",
            name="end_ms",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="eventrule",
            name="kms_key_arn",
            field=models.CharField(db_default="", default="", max_length=2048),
        ),
        migrations.AddField(
            model_name="eventrule",
            name="schedule_group",
            field=models.CharField(db_default="", default="", max_length=64),
        ),
        migrations.AddField(
            model_name="eventrule",
            name="schedule_name",
            field=models.CharField(db_default="", default="", max_length=64),
        ),
        migrations.AddField(
            model_name="eventrule",
            name="start_ms",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="eventrule",
            name="updated_ms",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="eventrule",
            name="window_minutes",
            field=models.IntegerField(db_default=0, default=0),
        ),
        migrations.AddIndex(
            model_name="eventrule",
            index=models.Index(
                fields=["project", "region", "schedule_group", "schedule_name"],
                name="schedule_by_group",
            ),
        ),
    ]
