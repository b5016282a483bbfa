"""Say once that the database is out of reach, and once that it is back.

Many threads find an outage out, each several times a second. The first one that calls
``note_outage`` writes a line; ``note_success`` writes the other one, with how long it lasted.
"""

from __future__ import annotations

import threading
from time import monotonic

import structlog

from console.db import instruments, postgres

log = structlog.get_logger(__name__)
_CALM_S = 1.0
"""An outage is over once something succeeded so long after the last failure.

While a server comes and goes, or refuses some connections, that is one outage.
"""
_lock = threading.Lock()
began: float | None = None
"""When the outage that lasts began (monotonic clock), None if there is none."""
_last = 0.0
_failures = 0


def note_outage(where: str, error: BaseException) -> None:
    """Take note that something found the database out. ``where``: what was wanted, for people."""
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
    """Take note that the database has done something."""
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
