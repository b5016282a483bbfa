from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import migrations

if TYPE_CHECKING:
    from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def compare_by_bytes(apps: Any, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Let ranges of keys mean the same as on SQLite, and use the primary key."""
    del apps
    if schema_editor.connection.vendor == "postgresql":
        schema_editor.execute(
            'ALTER TABLE console_runvalue ALTER COLUMN key TYPE varchar(64) COLLATE "C"'
        )


class Migration(migrations.Migration):
    dependencies = [("console", "0001_initial")]
    operations = [migrations.RunPython(compare_by_bytes, migrations.RunPython.noop)]
