"""A PostgreSQL that is lost while a process starts ends it with one line, or is done without."""

from __future__ import annotations

from typing import Any, NoReturn

import psycopg
import pytest
from django.core.management.base import CommandError
from django.db import connection

from console.management import capacity
from console.management.base import DataFolderCommand

_LOST = psycopg.OperationalError("connection refused")


def test_a_pool_that_cannot_be_fitted_keeps_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """The count is a question beside the work, so the start goes on."""
    pool = {"max_size": 12}
    monkeypatch.setitem(connection.settings_dict, "OPTIONS", {"pool": pool})

    def refuse() -> NoReturn:
        raise _LOST

    monkeypatch.setattr(capacity, "count_capacity", refuse)
    capacity.fit_pool()
    assert pool == {"max_size": 12}


def test_a_command_says_in_one_line_that_a_driver_was_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where a connection of its own is used, beside those of Django."""

    class Command(DataFolderCommand):
        requires_system_checks = ()

        def handle(self, **options: Any) -> NoReturn:
            del options
            raise _LOST

    with pytest.raises(CommandError, match=r"^the database refused: connection refused$"):
        Command().execute(no_color=True, force_color=False, skip_checks=True)
