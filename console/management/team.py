"""Prepare the database for a process of a team: check the PostgreSQL, migrate, set up the queue."""

from __future__ import annotations

import importlib.util
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import psycopg
from django.core.management.base import CommandError
from django.db import connection

from console.command_line import program
from console.db import identity, postgres, ready_tables
from console.management import capacity, pooler
from console.store.state import wait_scale
from console.worker.worker_lock import server_parameters

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOCK = 0x5354455059415245  # beside the workers' lock: who migrates
_LOCK_TICK_S = 0.1


def prepare(processes: int = 1) -> None:
    """Check the requirements and migrate; raise CommandError otherwise.

    ``processes``: as which this one will work.
    """
    if connection.vendor != "postgresql":
        raise CommandError(
            "STATEYARD_DATABASE_URL: got none, wanted postgres://user:password@host/name: the "
            f"processes of a team share a PostgreSQL. `{program()} up` runs all in one process."
        )
    lacking = [name for name in ("pgqueuer", "asyncpg") if importlib.util.find_spec(name) is None]
    if lacking:
        raise CommandError(f"not installed: {', '.join(lacking)}; pip install {' '.join(lacking)}")
    reach_database()
    capacity.fit_pool(processes - 1)
    from console.worker import queue_consumer

    with one_at_a_time():
        ready_tables.bring_up_to_date()
        queue_consumer.install_queue()
    identity.claim_database()
    wait_scale.note_scale()


def reach_database() -> None:
    """Raise a one-line CommandError if the configured PostgreSQL cannot be used."""
    if connection.vendor != "postgresql":
        return
    try:
        address = server_parameters()
        if postgres.answer(address, postgres.READ_ONLY) == [("on",)]:
            raise postgres.TakesNoWrites
        line = pooler.unfit_pooler(address)
    except psycopg.Error as error:
        line = str(error).strip().partition("\n")[0].removeprefix("connection failed: ")
    if line:
        where = connection.settings_dict
        place = where["HOST"] or "localhost"
        place += f":{where['PORT']}" if where["PORT"] else ""
        raise CommandError(
            f"STATEYARD_DATABASE_URL: cannot use database {where['NAME']!r} at {place}: {line}"
        )


def _has_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK])
        return bool(cursor.fetchone()[0])


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Let processes that start together migrate one by one.

    Who waits asks again and again: a statement that waits for the lock has a snapshot, for whose
    end CREATE INDEX CONCURRENTLY waits in the process that has the lock, a deadlock.
    """
    while not _has_lock():
        time.sleep(_LOCK_TICK_S)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])
