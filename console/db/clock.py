"""Return the current time by the database's clock, the same on all machines of a server.

On SQLite the database and the process share a clock. On PostgreSQL each process measures every half
minute how far the database's clock is ahead of its own monotonic clock. Changes of the local system
time therefore have no effect.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache

from django.db import DEFAULT_DB_ALIAS, Error, connection, connections

FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_999
"""Epoch milliseconds of the first and last moment of the years 1 to 9999 in UTC."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MEASURE_EVERY_S = 30.0
_offset: tuple[float, float] | None = None  # (seconds to add, when measured), monotonic clock


def now_ms() -> int:
    """Return epoch milliseconds by the database's clock."""
    if _shares_clock():
        return time.time_ns() // 1_000_000
    return int((offset_s() + time.monotonic()) * 1000)


def moment_of(at_ms: int, zone: tzinfo = UTC) -> datetime:
    """Return epoch milliseconds as a ``datetime`` in a time zone.

    Moments outside of ``FIRST_MS`` to ``LAST_MS`` become the nearest one inside. Schedules and
    imports refuse them; rows that already have one can still be shown.
    """
    moment = _EPOCH + timedelta(milliseconds=min(max(at_ms, FIRST_MS), LAST_MS))
    try:
        return moment.astimezone(zone)
    except OverflowError:  # local time is in the year 0 or 10000: stay in UTC
        return moment


@cache
def _shares_clock() -> bool:
    return str(connections.settings[DEFAULT_DB_ALIAS]["ENGINE"]).endswith("sqlite3")


def offset_s() -> float:
    """Return how far the database's clock is ahead of the monotonic one, in seconds."""
    global _offset  # noqa: PLW0603 - one measurement a process
    if _offset is None or (
        time.monotonic() - _offset[1] > _MEASURE_EVERY_S and not _on_event_loop()
    ):
        _offset = (_measure_offset(), time.monotonic())
    return _offset[0]


def _on_event_loop() -> bool:
    """Return whether the caller runs on an event loop, which must not wait for the database.

    Calls of the API ask for the time there. Other threads renew the measurement.
    """
    return asyncio._get_running_loop() is not None  # noqa: SLF001 - the public one raises


def _measure_offset() -> float:
    """Return the measured offset in seconds; the last one if the database is unavailable."""
    try:
        with connection.cursor() as cursor:
            before = time.monotonic()
            cursor.execute("SELECT EXTRACT(EPOCH FROM clock_timestamp())")
            theirs = float(cursor.fetchone()[0])
    except Error:
        if _offset is None:
            raise
        return _offset[0]
    return theirs - (before + time.monotonic()) / 2
