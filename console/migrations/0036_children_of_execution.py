"""Index executions by their parent execution.

A version between 0.1.0 and 0.2.0 made four columns of 0034 NOT NULL, and the index with them. Its
columns are made as those of every other database.
"""

from __future__ import annotations

from typing import Any

from django.db import migrations, models

from console.db.indexes import AddIndexConcurrently


_NULLABLE = {"auditentry": ("execution",), "execution": ("edited_by", "acting_for", "depth")}


def allow_null(apps: Any, schema_editor: Any) -> None:
    """Let the columns be NULL where they are not; elsewhere do nothing."""
    connection = schema_editor.connection
    for name, fields in _NULLABLE.items():
        model = apps.get_model("console", name)
        with connection.cursor() as cursor:
            columns = connection.introspection.get_table_description(cursor, model._meta.db_table)
        never_null = {column.name for column in columns if not column.null_ok}
        for field in (model._meta.get_field(field) for field in fields):
            if field.column in never_null:
                strict = field.clone()
                strict.null = False
                strict.set_attributes_from_name(field.name)
                strict.model = model
                schema_editor.alter_field(model, strict, field)


class Migration(migrations.Migration):
    atomic = False  # for the index

    dependencies = [
        ("console", "0035_fill_editors"),
    ]

    operations = [
        migrations.RunPython(allow_null, migrations.RunPython.noop),
        AddIndexConcurrently(
            model_name="execution",
            index=models.Index(
                fields=["parent"],
                name="execution_by_parent",
                condition=models.Q(("parent__isnull", False)),
            ),
        ),
    ]
