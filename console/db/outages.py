"""Log the start and the end of a database outage once each.

During an outage many threads fail, several times a second. The first ``note_outage`` logs the start
of the outage; the next ``note_success`` logs its end, with the duration.
"""

from __future__ import annotations

import threading
from time import monotonic

import structlog

from console.db import instruments, postgres

log = structlog.get_logger(__name__)
_CALM_S = 1.0
"""An outage is over at the first success this long after the last failure.

A server that comes and goes, or refuses some connections, has one outage.
"""
_lock = threading.Lock()
began: float | None = None
"""Start of the current outage (monotonic clock), None without one."""
_last = 0.0
_failures = 0


def note_outage(where: str, error: BaseException) -> None:
    """Record a failure of the database. ``where``: the attempted action, for the log."""
    global began, _last, _failures  # noqa: PLW0603 - one database a process
    with _lock:
        first = began is None
        _last = monotonic()
        _failures = 1 if first else _failures + 1
        if first:
            began = _last
    if first:
        instruments.OUTAGES.add()
        line = str(error).strip().partition("\n")[0] or type(error).__name__
        none_left = postgres.lacks_connections(error)
        event = (
            "the database has no connection left" if none_left else "the database is out of reach"
        )
        log.warning(event, where=where, error=line)


def note_success() -> None:
    """Record a success of the database."""
    global began
    if began is None:
        return
    with _lock:
        now = monotonic()
        if began is None or now - _last < _CALM_S:
            return
        lasted_s, began = now - began, None
        failures = _failures
    instruments.OUTAGE_S.add(amount=lasted_s)
    log.warning("the database is back", after_s=round(lasted_s, 1), failures=failures)
