"""Write ``console/db/ready_tables.sql`` again, after a new migration.

``python -m tests.console.migrations.ready_tables``
"""

from __future__ import annotations

import os
import re
import tempfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_APPLIED = re.compile(r"'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+'\);$")


def script() -> Iterator[str]:
    """Yield the statements that make the connected SQLite database; rows after all tables."""
    from django.db import connection

    connection.ensure_connection()
    begin, *statements = connection.connection.iterdump()
    yield begin
    for statement in sorted(statements, key=lambda each: not each.startswith("CREATE TABLE")):
        yield _APPLIED.sub("'2000-01-01 00:00:00');", statement)


def main() -> None:
    """Migrate a new database, and write it down."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["STATEYARD_DATA"] = folder
        os.environ["DJANGO_SETTINGS_MODULE"] = "console.config.settings"
        import django
        from django.core.management import call_command

        django.setup()
        from console.db.ready_tables import SCRIPT

        call_command("migrate", verbosity=0)
        SCRIPT.write_text("\n".join(script()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
