"""A new SQLite database has the tables that migrations make; others are migrated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from console.db import ready_tables
from tests.console.migrations.migration_steps import empty_database
from tests.console.migrations.ready_tables import script
from tests.console.migrations.schema import schema

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.slow
@pytest.mark.sqlite_only
def test_the_script_makes_what_migrations_make(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables, rows and names of migrations; if not: `python -m tests…migrations.ready_tables`."""
    migrated, ready = tmp_path / "migrated", tmp_path / "ready"
    for folder in (migrated, ready):
        folder.mkdir()
    with empty_database(migrated):
        call_command("migrate", verbosity=0)
        statements, tables = sorted(script()), schema()
    monkeypatch.setattr(ready_tables, "call_command", None)
    with empty_database(ready):
        ready_tables.bring_up_to_date()
        assert schema() == tables
        assert sorted(script()) == statements
        connection.check_constraints()
        years = {row.applied.year for row in MigrationRecorder(connection).migration_qs}
    assert min(years) > 2025


@pytest.mark.sqlite_only
def test_a_killed_start_leaves_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next start begins anew: the script is one transaction."""
    text = ready_tables.SCRIPT.read_text(encoding="utf-8")
    broken = tmp_path / "broken.sql"
    broken.write_text(text.replace("COMMIT;", "SELECT * FROM missing;"), encoding="utf-8")
    monkeypatch.setattr(ready_tables, "SCRIPT", broken)
    with empty_database(tmp_path):
        with pytest.raises(Exception, match="missing"):
            ready_tables.bring_up_to_date()
        connection.close()
        assert connection.introspection.table_names() == []


@pytest.mark.slow
def test_a_database_that_lacks_a_migration_is_migrated(tmp_path: Path) -> None:
    """Then it has all of them, and the next start has nothing to do."""
    with empty_database(tmp_path):
        call_command("migrate", "console", "0075", verbosity=0)
        recorder = MigrationRecorder(connection)
        before = recorder.applied_migrations()
        ready_tables.bring_up_to_date()
        after = recorder.applied_migrations()
        assert len(after) > len(before)
        call_command("migrate", "--check", verbosity=0)
        ready_tables.bring_up_to_date()
        assert recorder.applied_migrations().keys() == after.keys()
