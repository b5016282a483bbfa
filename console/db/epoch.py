"""Detect that the database was restored from a backup while this process was running.

After a restore the rows are older than the memory of a running process. The operator who restores
begins a new epoch (``manage.py bump_epoch``); the database then rejects steps of processes from an
older epoch.
"""

from __future__ import annotations

import time

from console.db import clock, rows
from console.db.writer import write
from console.models import ServerFact

NAME = "epoch"
GUARD = "COALESCE((SELECT value FROM console_serverfact WHERE name = 'epoch'), '0') = %s"
"""A condition of every step's commit; its parameter is ``mine()``."""
_mine: str | None = None
_recent: tuple[str, float] | None = None  # and when it was read, by the monotonic clock
_RECENT_S = 1.0


def process_epoch() -> str:
    """Return the epoch in which this process began."""
    global _mine  # noqa: PLW0603 - one a process
    if _mine is None:
        _mine = current_epoch()
    return _mine


def current_epoch() -> str:
    """Return the database's epoch."""
    row = rows.fetch_row("SELECT value FROM console_serverfact WHERE name = %s", [NAME])
    return "0" if row is None else str(row[0])


def recent_epoch() -> str:
    """Return the database's epoch as of up to a second ago, or longer.

    For a process that outlives a restore. The epoch may be older than rows that are read next, and
    is never newer; so a commit that checks it never writes results of older rows.
    """
    global _recent  # noqa: PLW0603 - one a process
    recent = _recent
    if recent is None or time.monotonic() - recent[1] > _RECENT_S:
        recent = _recent = (current_epoch(), time.monotonic())
    return recent[0]


def is_over() -> bool:
    """Return whether the database has a newer epoch than this process."""
    return current_epoch() != process_epoch()


def begin_epoch() -> str:
    """Begin a new epoch and return it; processes of older epochs end.

    An epoch is never reused: a backup does not have the later epochs.
    """

    def store() -> str:
        fact, _ = ServerFact.objects.get_or_create(name=NAME, defaults={"value": "0"})
        fact.value = str(max(int(fact.value) + 1, clock.now_ms()))
        fact.save()
        return fact.value

    return write(store)


def forget_epoch() -> None:
    """Forget the cached epoch, before the process begins to work on a database."""
    global _mine, _recent  # noqa: PLW0603
    _mine = _recent = None
