"""Processes that start at the same time run the migrations one after another."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from django.db import connection

from console.management.team import one_at_a_time

if TYPE_CHECKING:
    from console.models import Project


@pytest.mark.postgres_only
def test_who_waits_does_not_stop_who_migrates(project: Project) -> None:
    """CREATE INDEX CONCURRENTLY waits for every statement, so nobody may wait by one for it."""
    del project
    asked, has_it = threading.Event(), threading.Event()

    def wait() -> None:
        try:
            asked.set()
            with one_at_a_time():
                has_it.set()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as others:
        with one_at_a_time():
            waiting = others.submit(wait)
            assert asked.wait(10)
            for _ in range(20):
                assert not has_it.wait(0.05)
                with connection.cursor() as cursor:
                    cursor.execute("CREATE INDEX CONCURRENTLY now ON console_project (name)")
                    cursor.execute("DROP INDEX CONCURRENTLY now")
        waiting.result(10)
    assert has_it.is_set()
