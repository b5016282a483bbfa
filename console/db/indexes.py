"""A migration operation that adds an index to a large table."""

from __future__ import annotations

from typing import Any

from django.db import migrations


class AddIndexConcurrently(migrations.AddIndex):
    """Add an index without blocking writes (on PostgreSQL a lock takes minutes otherwise).

    For migrations with ``atomic = False``. An index of an interrupted migration is built again.
    """

    atomic = False

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Create the index; on SQLite keep an index of this name from an earlier version."""
        model = to_state.apps.get_model(app_label, self.model_name)
        if schema_editor.connection.vendor != "postgresql":
            table = model._meta.db_table  # noqa: SLF001 - Django's documented API
            if self.index.name not in _index_names(schema_editor.connection, table):
                super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        if self.allow_migrate_model(schema_editor.connection.alias, model):
            name = schema_editor.quote_name(self.index.name)
            schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}", None)
            schema_editor.add_index(model, self.index, concurrently=True)


def _index_names(connection: Any, table: str) -> set[str]:
    with connection.cursor() as cursor:
        return set(connection.introspection.get_constraints(cursor, table))
