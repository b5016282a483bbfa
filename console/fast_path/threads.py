"""Where the operations of the API run: on a few long-lived threads, or in the event loop's own."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import queue
import threading
import time
from collections import deque
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from console.fast_path.overload import MANY_WAITING, WaitedTooLong, is_too_late
from console.fast_path.rows import keep_connection
from console.store.db.merged import RunAlone
from console.store.db.writer import Pending, release_connection

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

COUNT = 8
"""More get in each other's way: 16 took a fifth more time for the same work."""
SHORT_COUNT = 2
"""One prepares a change while the other is in the database."""


class Told(Generic[T]):
    """A future of an event loop that a thread settles, once. ``waiter``: what the loop awaits.

    ``asyncio.wrap_future`` takes three times as long: it chains two futures, each with a lock of
    its own. Who waits may be cancelled; what is under way on the thread is not taken back.
    """

    __slots__ = ("_loop", "waiter")

    def __init__(self) -> None:
        """To be made in the event loop."""
        self._loop = asyncio.get_running_loop()
        self.waiter: asyncio.Future[T] = self._loop.create_future()

    def set_result(self, result: T) -> None:
        """Tell the result, on any thread."""
        self._tell(self.waiter.set_result, result)

    def set_exception(self, error: BaseException) -> None:
        """Tell why there is no result, on any thread."""
        self._tell(self.waiter.set_exception, error)

    def _tell(self, settle: Callable[[Any], None], value: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._settle, settle, value)

    def _settle(self, settle: Callable[[Any], None], value: Any) -> None:
        if not self.waiter.done():  # else who waited was cancelled
            settle(value)


class _Committed(NamedTuple):
    """A change that was handed over, and what the writer told of it."""

    pending: Pending[Any]
    outcome: Callable[[], Any]


_TOLD_LATER = object()
"""What a job returns whose future another thread settles."""


async def written(pending: Pending[T], spare: Threads, since: float | None = None) -> T:
    """Let a change be written and wait for its commit, holding no thread.

    ``spare``: where it is found out what became of a commit that failed. ``since``: when its call
    came, if it may be refused; raise ``WaitedTooLong`` then, and nothing is written.
    """
    told: Told[Callable[[], T]] = Told()
    pending.hand_over(told.set_result, since)
    result: T = await _result_of(_Committed(pending, await told.waiter), spare)
    return result


async def _result_of(committed: _Committed, spare: Threads) -> Any:
    """Return the result of a change, or raise; ``spare`` as ``written`` has it."""
    try:
        return committed.outcome()
    except RunAlone:
        return await spare.run(_written_alone, committed.pending)
    except WaitedTooLong:  # nothing to find out, and no thread to wait for once more
        raise
    except Exception as error:
        if not committed.pending.has_rescue:
            raise
        return await spare.run(committed.pending.rescued, error)


def _written_alone(pending: Pending[T]) -> T:
    try:
        return pending.alone()
    finally:
        release_connection()


class _LoopContext(threading.local):
    """The context in which an event loop's thread reads the database."""

    def __init__(self) -> None:
        self.context = contextvars.Context()
        self.context.run(keep_connection)


_loop_context = _LoopContext()


def run_in_loop(fn: Callable[..., T], *args: Any) -> T:
    """Call a short function that reads an embedded database, in the event loop's own thread.

    A row of SQLite comes in less time than another thread takes to wake. Django keeps a connection
    for each context, and asyncio gives each task a context of its own: each call would connect
    anew, which takes longer than the call. So all these calls run in one context of their thread.
    They cannot overlap, because ``fn`` does not await. ``serving.read_in_the_event_loop`` says how
    Django is told that this may be done.
    """
    return _loop_context.context.run(fn, *args)


_Job = tuple[Told[Any], "Callable[..., Any]", tuple[Any, ...]]


class Threads:
    """Up to a fixed number of daemon threads that run operations.

    One more is started when a job comes and none is free: each opens a connection of its own, and
    a few that are used again and again have their statements and pages at hand.

    Unlike those of ``ThreadPoolExecutor`` they do not hold the process up at its end: an operation
    may wait for a database that does not answer, and a server has ten seconds to stop.
    """

    def __init__(self, count: int, name: str) -> None:
        """Start up to ``count`` threads; they live as long as the process."""
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._waiting_since: deque[float] = deque()  # of each job that waits
        self._names = iter([f"{name}-{number}" for number in range(count)])
        self._more = True  # threads to be started
        self._free = threading.Semaphore(0)  # how many wait for a job, as long as there are more

    def run(self, fn: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Call ``fn(*args)`` on a thread; await what this returns for its result or error."""
        told: Told[Any] = Told()
        self._put(told, fn, args)
        return told.waiter

    def run_in_time(self, since: float, fn: Callable[..., Any]) -> asyncio.Future[Any]:
        """Do as ``run``, or raise ``WaitedTooLong`` if it is too late when its turn comes.

        ``since``: when the call came, by the monotonic clock.
        """
        return self.run(self._unless_late, since, fn)

    async def run_to_commit(self, since: float, fn: Callable[[], Any]) -> Any:
        """Do as ``run_in_time``, and wait for the commit of a change that ``fn`` returns.

        The thread hands the change to the one that commits, so that the loop is woken once.
        """
        told: Told[Any] = Told()
        self._put(told, self._hand_over, (told, since, fn))
        answer = await told.waiter
        return await _result_of(answer, self) if isinstance(answer, _Committed) else answer

    def _hand_over(self, told: Told[Any], since: float, fn: Callable[[], Any]) -> Any:
        found = self._unless_late(since, fn)
        if not isinstance(found, Pending):
            return found
        found.hand_over(lambda outcome: told.set_result(_Committed(found, outcome)), since)
        return _TOLD_LATER

    def _put(self, told: Told[Any], fn: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._waiting_since.append(time.monotonic())
        self._jobs.put((told, fn, args))
        if self._more and not self._free.acquire(blocking=False):
            self._start_thread()

    def _start_thread(self) -> None:
        """Start one more thread, if there may be more (in the loop's thread)."""
        label = next(self._names, None)
        if label is None:
            self._more = False
        else:
            threading.Thread(target=self._work, name=label, daemon=True).start()

    def _unless_late(self, since: float, fn: Callable[..., Any]) -> Any:
        if is_too_late(since, len(self._waiting_since)):
            raise WaitedTooLong
        return fn()

    @property
    def idle(self) -> bool:
        """Tell whether no job waits for its turn."""
        return not self._waiting_since

    @property
    def overloaded(self) -> bool:
        """Tell whether another job would wait for long: many wait, and the first has for long.

        Either alone is none: a few jobs may wait for a slow database, and many may come at once.
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
        with contextlib.suppress(queue.Empty):
            return self._jobs.get_nowait()
        if self._more:
            self._free.release()
        return self._jobs.get()

    @staticmethod
    def _run_job(told: Told[Any], fn: Callable[..., Any], args: tuple[Any, ...]) -> None:
        """Run one function; a frame of its own keeps nothing of it afterwards."""
        try:
            result = fn(*args)
        except BaseException as error:  # noqa: BLE001 - it goes to the caller
            told.set_exception(error)
        else:
            if result is not _TOLD_LATER:
                told.set_result(result)


@lru_cache(maxsize=1)
def threads() -> Threads:
    """Return the threads of this process."""
    return Threads(COUNT, "aws")


@lru_cache(maxsize=1)
def short_threads() -> Threads:
    """Return the threads of this process for short operations on an embedded database.

    They run one at a time, for they are all computation: more threads only take turns, each with a
    connection whose cached pages the next commit makes useless.
    """
    return Threads(SHORT_COUNT, "aws-short")
