"""Detect that the database was restored while this process was running.

After a restore the rows are older than what a running process remembers. The operator who restores
begins a new epoch (``manage.py bump_epoch``); steps of a process of an older epoch are not written.
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
    """Return the epoch this process began in."""
    global _mine  # noqa: PLW0603 - one a process
    if _mine is None:
        _mine = current_epoch()
    return _mine


def current_epoch() -> str:
    """Return the epoch of the database."""
    with rows.open_cursor() as cursor:
        cursor.execute("SELECT value FROM console_serverfact WHERE name = %s", [NAME])
        row = cursor.fetchone()
    return "0" if row is None else str(row[0])


def recent_epoch() -> str:
    """Return the epoch of the database as it was read a second ago, or later.

    For a process that outlives a restore. The epoch may be older than rows that are read next, and
    is never newer; so a commit that asks for it writes nothing that was computed from other rows.
    """
    global _recent  # noqa: PLW0603 - one a process
    recent = _recent
    if recent is None or time.monotonic() - recent[1] > _RECENT_S:
        recent = _recent = (current_epoch(), time.monotonic())
    return recent[0]


def is_over() -> bool:
    """Tell whether the database has begun a newer epoch than this process'."""
    return current_epoch() != process_epoch()


def begin_epoch() -> str:
    """Begin a new epoch and return it; processes of older ones end.

    None is ever the same again: what was restored may know nothing of the epochs since its backup.
    """

    def store() -> str:
        fact, _ = ServerFact.objects.get_or_create(name=NAME, defaults={"value": "0"})
        fact.value = str(max(int(fact.value) + 1, clock.now_ms()))
        fact.save()
        return fact.value

    return write(store)


def forget_epoch() -> None:
    """Read the epoch anew: the process begins to work on a database."""
    global _mine, _recent  # noqa: PLW0603
    _mine = _recent = None
