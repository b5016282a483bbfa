"""Keep worker threads alive: log an error of a job, or retry the job during a database outage."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

import structlog

from console.db import outages
from console.db.writer import drop_broken_connection, is_outage

if TYPE_CHECKING:
    from collections.abc import Callable

log = structlog.get_logger(__name__)
T = TypeVar("T")
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 1.0


def log_errors(message: str, job: Callable[[], T], otherwise: T) -> T:
    """Run a job; log its exception, reset the connection and return ``otherwise``.

    An outage of the database is logged once (``outages``), not by everybody who meets it.
    """
    try:
        return job()
    except Exception as error:
        if is_outage(error):
            outages.note_outage(message, error)
        else:
            log.exception(message)
        drop_broken_connection()
        return otherwise


def retry_during_outage(job: Callable[[], T], seconds: float) -> T:
    """Run a job, again and again during a database outage, up to a time limit."""
    deadline = time.monotonic() + seconds
    pause_s = _FIRST_PAUSE_S
    while True:
        try:
            return job()
        except Exception as error:
            if not is_outage(error) or time.monotonic() > deadline:
                raise
            outages.note_outage("trying again", error)
        drop_broken_connection()
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
