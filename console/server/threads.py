"""Thread pool for API operations; short reads may run in the event loop's thread instead."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import queue
import threading
import time
from collections import deque
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections

from console.db.overload import MANY_WAITING, WaitedTooLong, is_too_late
from console.db.rows import call_with, keep_connection
from console.db.writer import Change, is_embedded, release_connection

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

COUNT = 8
"""The number of threads.

More get in each other's way: 16 took a fifth more time for the same work.
"""


_SETTLED_LATER = object()
"""The result of a job whose future another thread settles."""


def _tell(future: asyncio.Future[T], settle: Callable[[Any], None], value: object) -> None:
    """Settle an event loop's future from another thread. ``settle``: the future's method.

    ``asyncio.wrap_future`` takes three times as long: it chains two futures, each with a lock of
    its own. The waiting task may be cancelled; the work on the thread is not taken back.
    """

    def settle_once() -> None:
        if not future.done():  # else the waiting task was cancelled
            settle(value)

    with contextlib.suppress(RuntimeError):  # the loop is closed: no caller is waiting
        future.get_loop().call_soon_threadsafe(settle_once)


async def await_write(change: Change[T], spare: Threads, since: float | None = None) -> T:
    """Write a change and await its commit without holding a thread.

    ``spare``: the threads on which a failed commit is examined. ``since``: the arrival of its call,
    None if it may not be refused. Raise ``WaitedTooLong`` for a refused change, which is not
    written.
    """
    future: asyncio.Future[Change[T]] = asyncio.get_running_loop().create_future()
    change.hand_over(lambda change: _tell(future, future.set_result, change), since)
    return await _result_of(await future, spare)


async def _result_of(change: Change[T], spare: Threads) -> T:
    """Return the result of a submitted change, or raise its error."""
    if change.needs_thread:
        result: T = await spare.run(change.result)
        return result
    return change.result()


class _LoopContext(threading.local):
    """The context for database reads in the event loop's thread."""

    def __init__(self) -> None:
        self.context = contextvars.Context()
        self.database = self.context.run(lambda: connections[DEFAULT_DB_ALIAS])


_loop_context = _LoopContext()


def run_in_loop(fn: Callable[..., T], *args: Any) -> T:
    """Call a short function that reads SQLite, in the event loop's thread.

    Reading a row of SQLite takes less time than waking another thread. Django keeps a connection
    for each context, and asyncio gives each task its own context: each call would open a
    connection, which takes longer than the call. So all these calls run in one context of their
    thread. They cannot overlap, because ``fn`` does not await. ``serving.read_in_the_event_loop``
    explains the switch by which Django allows this.
    """
    return _loop_context.context.run(call_with, _loop_context.database, fn, *args)


_Job = tuple["asyncio.Future[Any]", "Callable[..., Any]", tuple[Any, ...]]


class Threads:
    """Pool of a fixed number of daemon threads that run operations.

    A further thread is started only if none is free: each opens its own connection, and few busy
    threads have warm statements and caches.

    Unlike threads of ``ThreadPoolExecutor`` they do not delay the exit of the process: an operation
    may wait for a silent database, and a server has ten seconds to stop.

    A thread returns its PostgreSQL connection to the pool before it takes another job. An idle
    thread's connection would be unavailable to others and unchecked: after a restart of the
    database the thread's next call would fail.
    """

    def __init__(self, count: int, name: str) -> None:
        """Start up to ``count`` threads; they live as long as the process."""
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._waiting_since: deque[float] = deque()  # of each job that waits
        self._name = name
        self._started, self._left = 0, count  # threads, the others when they are needed
        self._idle = 0  # threads that wait for a job
        self._idle_lock = threading.Lock()

    def run(self, fn: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Call ``fn(*args)`` on a thread; await its result or error."""
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._put(future, fn, args)
        return future

    def run_in_time(self, since: float, fn: Callable[..., Any]) -> asyncio.Future[Any]:
        """Call ``fn`` like ``run``, but raise ``WaitedTooLong`` if no thread was free in time.

        ``since``: the arrival of the call, by the monotonic clock.
        """
        return self.run(self._unless_late, since, fn)

    async def run_to_commit(self, since: float | None, fn: Callable[[], Any]) -> Any:
        """Call ``fn`` like ``run_in_time``, then await the commit of the change that it returns.

        ``since``: None if the call may not be refused.

        The thread passes the change to the thread that commits, so the loop is woken once.
        """
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._put(future, self._hand_over, (future, since, fn))
        answer = await future
        return await _result_of(answer, self) if isinstance(answer, Change) else answer

    def _hand_over(
        self, future: asyncio.Future[Any], since: float | None, fn: Callable[[], Any]
    ) -> Any:
        answer = fn() if since is None else self._unless_late(since, fn)
        if not isinstance(answer, Change):
            return answer
        answer.hand_over(lambda change: _tell(future, future.set_result, change), since)
        return _SETTLED_LATER

    def _put(
        self, future: asyncio.Future[Any], fn: Callable[..., Any], args: tuple[Any, ...]
    ) -> None:
        if self._left and len(self._waiting_since) >= self._idle:
            self._start_thread()
        self._waiting_since.append(time.monotonic())
        self._jobs.put((future, fn, args))

    def _start_thread(self) -> None:
        """Start one more thread, from the event loop's thread; raise if none can run."""
        label = f"{self._name}-{self._started}"
        try:
            threading.Thread(target=self._work, name=label, daemon=True).start()
        except RuntimeError:  # the system cannot start another thread
            if not self._started:
                raise
        else:
            self._left -= 1
            self._started += 1

    def _unless_late(self, since: float, fn: Callable[..., Any]) -> Any:
        if is_too_late(since, len(self._waiting_since)):
            raise WaitedTooLong
        return fn()

    @property
    def idle(self) -> bool:
        """Whether no job is queued."""
        return not self._waiting_since

    @property
    def overloaded(self) -> bool:
        """Whether a new job would wait for long: many jobs wait, and the first has waited for long.

        One of the two is not enough: a few jobs may wait for a slow database, and many may arrive
        at the same time.
        """
        waiting = self._waiting_since
        if len(waiting) < MANY_WAITING:
            return False
        try:
            return is_too_late(waiting[0], len(waiting))
        except IndexError:  # the other threads have just taken them all
            return False

    def _work(self) -> None:
        keep_connection()
        while True:
            job = self._next_job()
            self._waiting_since.popleft()
            self._run_job(*job)
            del job

    def _next_job(self) -> _Job:
        with self._idle_lock:
            self._idle += 1
        job = self._jobs.get()
        with self._idle_lock:
            self._idle -= 1
        return job

    @staticmethod
    def _run_job(
        future: asyncio.Future[Any], fn: Callable[..., Any], args: tuple[Any, ...]
    ) -> None:
        """Run one function, in its own frame so that its objects are freed afterwards."""
        try:
            try:
                result = fn(*args)
            finally:
                if not is_embedded():
                    release_connection()
        except BaseException as error:  # noqa: BLE001 - it goes to the caller
            if isinstance(error, StopIteration):  # asyncio refuses it; the caller would hang
                error = RuntimeError(f"StopIteration: {error}")
            _tell(future, future.set_exception, error)
        else:
            if result is not _SETTLED_LATER:
                _tell(future, future.set_result, result)


@lru_cache(maxsize=1)
def threads() -> Threads:
    """Return the threads of this process."""
    return Threads(COUNT, "aws")
