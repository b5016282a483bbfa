"""The packed summaries of long histories are no longer kept.

The table stays, empty: a process of the previous release that still runs during an upgrade reads
and writes it. A later release drops it.
"""

from typing import Any

from django.db import migrations


def empty(apps: Any, schema_editor: Any) -> None:
    """Remove the summaries: nothing reads them any more."""
    apps.get_model("console", "Gist").objects.all().delete()


class Migration(migrations.Migration):
    dependencies = [
        ("console", "0036_children_of_execution"),
    ]

    operations = [
        migrations.RunPython(empty, migrations.RunPython.noop),
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.DeleteModel(name="Gist")],
        ),
    ]
