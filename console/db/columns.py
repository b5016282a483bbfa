"""A migration operation that adds a column to a busy table."""

from __future__ import annotations

import time
from typing import Any

from django.db import OperationalError, migrations

_TRIES = 60
_PAUSE_S = 0.5


class AddFieldInTurns(migrations.AddField):
    """Add a nullable column without blocking other queries of the table for long.

    While a long query such as a backup reads the table, ALTER TABLE waits for it, and all other
    queries wait for ALTER TABLE. On PostgreSQL this operation therefore waits one second at most,
    pauses for half a second and tries again, 60 times in all. Then it raises
    ``OperationalError``. The migration must have ``atomic = False``.
    """

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Add the column."""
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        for tries_left in reversed(range(_TRIES)):
            try:
                schema_editor.execute("SET lock_timeout = '1s'", None)
                super().database_forwards(app_label, schema_editor, from_state, to_state)
            except OperationalError:
                if not tries_left:
                    raise
                time.sleep(_PAUSE_S)
            else:
                return
            finally:
                schema_editor.execute("RESET lock_timeout", None)
