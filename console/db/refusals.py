"""Record refused actions and refused sign-ins in the audit, in bounded number.

An entry with the name of an action means that it was done; a refused one is called ``REFUSED`` or
``REFUSED_SIGN_IN``. A process records up to ``MOST_OF_SOURCE`` refusals of one source per minute,
and ``MOST`` of all sources. It counts the rest in memory and adds one row for each source when the
minute is over, so a flood neither fills the disk nor waits for commits.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import structlog

from console.db import audit
from console.db.writer import release_connection, write

if TYPE_CHECKING:
    from console.models import Project

REFUSED = "Refused"
REFUSED_SIGN_IN = "RefusedSignIn"
MORE_REFUSED = "RefusedMore"
"""The action of the row that counts refusals without a row of their own."""
MOST_OF_SOURCE = 20
MOST = 120
WINDOW_S = 60.0
_SERVER = audit.Actor("stateyard")
_OTHERS = "other sources"
log = structlog.get_logger(__name__)


@dataclass
class _Window:
    """The refusals of a source within a minute. ``begun_s``: its start, monotonic."""

    begun_s: float
    project: Project | None
    rows: int = 0
    more: int = 0


class RefusalLimit:
    """Counts the refusals of each source in this process."""

    def __init__(self) -> None:
        """Start without refusals."""
        self._lock = threading.Lock()
        self._windows: dict[str, _Window] = {}
        self._timer: threading.Timer | None = None

    def admit(self, source: str, project: Project | None) -> bool:
        """Return whether a refusal gets a row; if not, count it."""
        now_s = time.monotonic()
        with self._lock:
            self._drop_quiet(now_s)
            window = self._windows.get(source)
            is_full = sum(other.rows for other in self._windows.values()) >= MOST
            if window is None:
                source, project = (_OTHERS, None) if is_full else (source, project)
                window = self._windows.setdefault(source, _Window(now_s, project))
            if not is_full and window.rows < MOST_OF_SOURCE:
                window.rows += 1
                return True
            window.more += 1
            self._arm()
            return False

    def _drop_quiet(self, now_s: float) -> None:
        """Drop the finished minutes without counts."""
        for source, window in list(self._windows.items()):
            if not window.more and now_s - window.begun_s >= WINDOW_S:
                del self._windows[source]

    def _arm(self) -> None:
        if self._timer is None:
            self._timer = threading.Timer(WINDOW_S, self._write_counts_later)
            self._timer.daemon = True
            self._timer.start()

    def _write_counts_later(self) -> None:
        try:
            self.write_counts()
        except Exception as error:  # noqa: BLE001 - the counts are lost, the log has them
            log.warning("refusals could not be counted in the audit", error=str(error))
        finally:
            release_connection()

    def write_counts(self) -> None:
        """Write a row for each source with counted refusals, and reset the counts."""
        windows = self.forget()
        counted = {source: window for source, window in windows.items() if window.more}
        if counted:
            log.warning("more was refused", refusals={s: w.more for s, w in counted.items()})
            write(partial(_record_counts, counted))

    def forget(self) -> dict[str, _Window]:
        """Reset, and return the counts."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
            windows, self._windows, self._timer = self._windows, {}, None
        return windows


def _record_counts(windows: dict[str, _Window]) -> None:
    for source, window in windows.items():
        reason = f"{window.more} more within {WINDOW_S:g} seconds"
        audit.record(window.project, _SERVER, MORE_REFUSED, source[:512], reason)


LIMIT = RefusalLimit()


def record_refused(project: Project, actor: audit.Actor, action: str, where: str) -> None:
    """Write an audit entry for a refused action. ``where``: the page's path."""
    if LIMIT.admit(actor.name, project):
        write(lambda: audit.record(project, actor, REFUSED, where[:512], action))


def record_refused_call(
    project: Project | None, actor: audit.Actor, action: str, reason: str
) -> None:
    """Write an audit entry for a refused API call that ``LIMIT`` has admitted."""
    write(lambda: audit.record(project, actor, REFUSED, action[:512], reason))


def record_refused_sign_in(name: str, address: str, request_id: str, reason: str) -> None:
    """Write an audit entry of the server for a refused sign-in.

    ``name``: an account's name, else "". People type passwords into the name field, so a text that
    is not an account's name is not recorded.
    """
    if LIMIT.admit(address or "an unknown address", None):
        actor = audit.Actor(name, request_id=request_id)
        words = f"{reason}, from {address or 'an unknown address'}"
        target = name or "unknown name"
        write(lambda: audit.record(None, actor, REFUSED_SIGN_IN, target, words))
