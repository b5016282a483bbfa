"""Which executions another one has started: found by an index."""

from __future__ import annotations

from django.db import migrations, models

from console.store.db.indexes import AddIndexConcurrently


class Migration(migrations.Migration):
    atomic = False  # for the index

    dependencies = [
        ("console", "0035_fill_editors"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="execution",
            index=models.Index(
                fields=["parent"],
                name="execution_by_parent",
                condition=models.Q(("parent__isnull", False)),
            ),
        ),
    ]
