"""Add a column to a table that others use, in a migration."""

from __future__ import annotations

import time
from typing import Any

from django.db import OperationalError, migrations

_TRIES = 60
_PAUSE_S = 0.5


class AddFieldInTurns(migrations.AddField):
    """Add a column that is NULL, and let the others go on while the table is not free.

    1. A backup reads a table for an hour.  2. ALTER TABLE waits for it, and everybody else for
    ALTER TABLE.  So on PostgreSQL it gives up after a second and tries again. For migrations with
    ``atomic = False``.
    """

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Add the column."""
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        for left in reversed(range(_TRIES)):
            try:
                schema_editor.execute("SET lock_timeout = '1s'", None)
                super().database_forwards(app_label, schema_editor, from_state, to_state)
            except OperationalError:
                if not left:
                    raise
                time.sleep(_PAUSE_S)
            else:
                return
            finally:
                schema_editor.execute("RESET lock_timeout", None)
