"""Rename the tags ``stepyard:...`` of releases until 0.2.0, which this release does not read.

Where a resource also has the tag ``stateyard:...``, that one counts, and the former one stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import migrations

if TYPE_CHECKING:
    from django.apps.registry import Apps
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor

FORMER, CURRENT = "stepyard:", "stateyard:"


def rename(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    """Rename each former tag, unless its resource has the current one."""
    tags = apps.get_model("console", "Tag").objects.using(editor.connection.alias)
    for tag in tags.filter(key__startswith=FORMER):
        key = tag.key.replace(FORMER, CURRENT, 1)
        if not tags.filter(arn=tag.arn, key=key).exists():
            tag.key = key
            tag.save()


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0080_next_starts"),
    ]

    operations = [migrations.RunPython(rename, migrations.RunPython.noop)]
