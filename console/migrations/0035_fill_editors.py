"""Let machines and versions of earlier releases have the last editor that the audit names.

An actor who is no user - a command, the samples - is left out: the editor is unknown then.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from typing import Any

from django.conf import settings
from django.db import migrations

_EDITS = (
    "SELECT target, at_ms, actor FROM console_auditentry"
    # written as in the index, which holds no starts: most rows of the audit are some
    " WHERE NOT (action = 'StartExecution')"
    " AND action IN ('CreateStateMachine', 'UpdateStateMachine')"
    " AND target IN (SELECT arn FROM console_statemachine) ORDER BY at_ms, id"
)


def fill(apps: Any, schema_editor: Any) -> None:
    """Fill in what is still unknown: a host of this release may edit machines meanwhile."""
    app, _, model = settings.AUTH_USER_MODEL.partition(".")
    users = apps.get_model(app, model).objects
    names = set(users.values_list("username", flat=True))
    edits: dict[str, tuple[list[int], list[str]]] = {}
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(_EDITS)
        for arn, at_ms, actor in cursor:
            times, actors = edits.setdefault(arn, ([], []))
            times.append(at_ms)
            actors.append(actor)

    def editor(arn: str, until_ms: int | None) -> str:
        times, actors = edits.get(arn, ([], []))
        count = len(times) if until_ms is None else bisect_right(times, until_ms)
        is_user = count > 0 and actors[count - 1] in names
        return json.dumps([actors[count - 1]]) if is_user else ""

    machines = apps.get_model("console", "StateMachine").objects.filter(edited_by="")
    for number, arn in list(machines.values_list("pk", "arn")):
        if edited_by := editor(arn, None):
            machines.filter(pk=number).update(edited_by=edited_by)
    versions = apps.get_model("console", "Version").objects.filter(edited_by="")
    rows = versions.values_list("pk", "state_machine__arn", "created_ms")
    for number, arn, at_ms in list(rows):
        if edited_by := editor(arn, at_ms):
            versions.filter(pk=number).update(edited_by=edited_by)


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0034_execution_rights"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [migrations.RunPython(fill, migrations.RunPython.noop)]
