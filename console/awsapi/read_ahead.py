"""Prefetch the next page of GetExecutionHistory while the client handles the current one.

A client needs about as long to handle a page as the server to make it. So after a page is sent, the
next one is read and cached:

1. The operation takes the prefetched page, if there is one, and names the next one.
2. The answer is sent. An earlier read of the next page would delay this answer.
3. A thread reads the named page, if no call waits for a thread.

Permissions are checked at each request as usual. A cached page is still correct then: events are
only appended, so a full page never changes, and the last page of a finished execution changes only
by a redrive, which changes its key.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict, deque
from concurrent.futures import Future
from typing import TYPE_CHECKING, NamedTuple

import structlog

from console.db.writer import release_connection
from console.statuses import ExecutionStatus
from console.store.state.history_pages import HistoryPage, read_page

if TYPE_CHECKING:
    from console.models import Execution
    from console.server.threads import Threads

log = structlog.get_logger(__name__)
KEPT_S = 2.0
"""Seconds for which a page may be taken; it is forgotten when a later one is read ahead."""
MOST_PAGES, MOST_BYTES = 16, 1024 * 1024
"""The maximum number of cached pages, and the maximum size of one: 16 MiB together.

Nothing is read ahead behind a larger page.
"""


class PageKey(NamedTuple):
    """Key of a page: execution, its state at the request, position. ``after``: as ``read_page``."""

    execution_id: int
    status: str
    stop_ms: int | None
    redrive_count: int
    after: int
    size: int
    reverse: bool


def page_key(execution: Execution, after: int, size: int, *, reverse: bool) -> PageKey:
    """Return the key of a page of an execution just read."""
    state = (execution.status, execution.stop_ms, execution.redrive_count)
    return PageKey(execution.pk, *state, after, size, reverse)


class PagesAhead:
    """Prefetched history pages, and the queue of pages to prefetch."""

    def __init__(self) -> None:
        """Start empty."""
        self._named: deque[PageKey] = deque(maxlen=MOST_PAGES)
        self._kept: OrderedDict[PageKey, tuple[float, Future[HistoryPage | None]]] = OrderedDict()
        self._lock = threading.Lock()

    def read(self, key: PageKey) -> HistoryPage:
        """Return a page: a prefetched one (once), one being read, or from the database."""
        with contextlib.suppress(ValueError):  # it was not named, or is being read
            self._named.remove(key)
        with self._lock:
            until, reading = self._kept.pop(key, (0.0, None))
        if reading is None or time.monotonic() >= until:
            return read_key(key)
        if not reading.done():  # a thread reads it, which may need the connection of this one
            release_connection()
        return reading.result() or read_key(key)

    def name_next(self, key: PageKey, page: HistoryPage) -> None:
        """Queue the page after a page for prefetching."""
        if page.last is not None and len(page.events) <= MOST_BYTES:
            self._named.append(key._replace(after=page.last))

    def begin(self, threads: Threads) -> None:
        """Let a thread read the queued pages, unless calls wait for one (in the event loop)."""
        if not self._named:
            return
        if threads.idle:
            threads.run(self.read_named)
        else:
            self._named.clear()

    def read_named(self) -> None:
        """Read the queued pages (on a thread)."""
        with contextlib.suppress(IndexError):  # another thread was first
            while True:
                self._read_ahead(self._named.popleft())

    def _read_ahead(self, key: PageKey) -> None:
        """Read a page and cache it if it is final; requests wait for a read in progress."""
        reading: Future[HistoryPage | None] = Future()
        self._keep(key, reading)
        page = None
        try:
            candidate = read_key(key)
            # events may follow the last one of an execution that runs
            if candidate.last is not None or key.reverse or key.status != ExecutionStatus.RUNNING:
                page = candidate
        except Exception as error:  # noqa: BLE001 - whoever asks for the page meets it again
            log.debug("a page of a history could not be read ahead", why=type(error).__name__)
        finally:
            reading.set_result(page)
        if page is None or len(page.events) > MOST_BYTES:
            with self._lock:
                self._kept.pop(key, None)

    def _keep(self, key: PageKey, reading: Future[HistoryPage | None]) -> None:
        now = time.monotonic()
        with self._lock:
            for old in [old for old, (until, _) in self._kept.items() if until < now]:
                del self._kept[old]
            self._kept[key] = (now + KEPT_S, reading)
            while len(self._kept) > MOST_PAGES:
                self._kept.popitem(last=False)


def read_key(key: PageKey) -> HistoryPage:
    """Read a page from the database."""
    return read_page(key.execution_id, after=key.after, size=key.size, reverse=key.reverse)


PAGES_AHEAD = PagesAhead()
