"""What must be true before a process of a team begins?"""

from __future__ import annotations

import importlib.util
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection

from console.store import identity

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOCK = 0x5354455059415245  # beside the workers' lock: who migrates


def prepare() -> None:
    """Check what a team needs, and bring the tables up to date; raise CommandError otherwise."""
    if connection.vendor != "postgresql":
        raise CommandError(
            "STEPYARD_DATABASE_URL: got none, wanted postgres://user:password@host/name: the "
            "processes of a team share a PostgreSQL. `manage.py up` runs all in one process."
        )
    lacking = [name for name in ("pgqueuer", "asyncpg") if importlib.util.find_spec(name) is None]
    if lacking:
        raise CommandError(f"not installed: {', '.join(lacking)}; try pip install 'stepyard[team]'")
    from console.worker import consumer

    with one_at_a_time():
        call_command("migrate", verbosity=0, interactive=False)
        consumer.install()
    identity.claim()


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Let processes that start together migrate one after another."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])
