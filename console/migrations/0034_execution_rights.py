"""Who wrote what an execution runs, who started it, and which one it is a child of."""

from __future__ import annotations

import json
from typing import Any

from django.conf import settings
from django.db import migrations, models

_EDITS = ("CreateStateMachine", "UpdateStateMachine")


def fill(apps: Any, schema_editor: Any) -> None:
    """Let machines and versions of earlier releases have the last editor that the audit names.

    An actor who is no user - a command, the samples - is left out: the editor is unknown then.
    """
    del schema_editor
    app, _, model = settings.AUTH_USER_MODEL.partition(".")
    users = apps.get_model(app, model).objects
    entries = apps.get_model("console", "AuditEntry").objects.filter(action__in=_EDITS)

    def editor(arn: str, before_ms: int | None) -> str:
        found = entries.filter(target=arn)
        if before_ms is not None:
            found = found.filter(at_ms__lte=before_ms)
        name = found.order_by("-at_ms", "-pk").values_list("actor", flat=True).first()
        known = bool(name) and users.filter(username=name).exists()
        return json.dumps([name]) if known else ""

    machines = apps.get_model("console", "StateMachine").objects
    for number, arn in machines.values_list("pk", "arn"):
        machines.filter(pk=number).update(edited_by=editor(arn, None))
    versions = apps.get_model("console", "Version").objects
    for number, arn, at_ms in versions.values_list("pk", "state_machine__arn", "created_ms"):
        versions.filter(pk=number).update(edited_by=editor(arn, at_ms))


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0033_invitations"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="statemachine",
            name="edited_by",
            field=models.TextField(db_default="", default=""),
        ),
        migrations.AddField(
            model_name="version",
            name="edited_by",
            field=models.TextField(db_default="", default=""),
        ),
        migrations.AddField(
            model_name="eventrule",
            name="edited_by",
            field=models.TextField(db_default="", default=""),
        ),
        migrations.AddField(
            model_name="auditentry",
            name="execution",
            field=models.CharField(db_default="", default="", max_length=512),
        ),
        migrations.AddField(
            model_name="execution",
            name="edited_by",
            field=models.TextField(db_default="", default=""),
        ),
        migrations.AddField(
            model_name="execution",
            name="acting_for",
            field=models.TextField(db_default="", default=""),
        ),
        migrations.AddField(
            model_name="execution",
            name="depth",
            field=models.IntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="execution", name="parent", field=models.BigIntegerField(null=True)
        ),
        migrations.AddField(
            model_name="execution", name="parent_task", field=models.IntegerField(null=True)
        ),
        migrations.AddIndex(
            model_name="execution",
            index=models.Index(
                fields=["parent"],
                name="execution_by_parent",
                condition=models.Q(("parent__isnull", False)),
            ),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop),
    ]
