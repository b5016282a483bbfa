"""Where the operations of the API run: on a few long-lived threads, or in the event loop's own."""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
import time
from collections import deque
from concurrent.futures import Future
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from console.fast_path.overload import MANY_WAITING, WaitedTooLong, is_too_late
from console.fast_path.rows import keep_connection
from console.store.db.merged import RunAlone
from console.store.db.writer import release_connection

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.store.db.writer import Pending

T = TypeVar("T")

COUNT = 8
"""More get in each other's way: 16 took a fifth more time for the same work."""


def _new_future() -> Future[Any]:
    """Return a future that an awaiting task cannot cancel: what is under way is not taken back."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()
    return future


async def written(pending: Pending[T], spare: Threads, since: float | None = None) -> T:
    """Let a change be written and wait for its commit, holding no thread.

    ``spare``: where it is found out what became of a commit that failed. ``since``: when its call
    came, if it may be refused; raise ``WaitedTooLong`` then, and nothing is written.
    """
    future = _new_future()
    pending.hand_over(future.set_result, since)
    outcome: Callable[[], T] = await asyncio.wrap_future(future)
    try:
        return outcome()
    except RunAlone:
        lone: T = await spare.run(_written_alone, pending)
        return lone
    except WaitedTooLong:  # nothing to find out, and no thread to wait for once more
        raise
    except Exception as error:
        if not pending.has_rescue:
            raise
        rescued: T = await spare.run(pending.rescued, error)
        return rescued


def _written_alone(pending: Pending[T]) -> T:
    try:
        return pending.alone()
    finally:
        release_connection()


class _LoopContext(threading.local):
    """The context in which an event loop's thread reads the database."""

    def __init__(self) -> None:
        self.context = contextvars.Context()


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


_Job = tuple["Future[Any]", "Callable[..., Any]", tuple[Any, ...]]


class Threads:
    """A fixed number of daemon threads that run operations.

    Unlike those of ``ThreadPoolExecutor`` they do not hold the process up at its end: an operation
    may wait for a database that does not answer, and a server has ten seconds to stop.
    """

    def __init__(self, count: int, name: str) -> None:
        """Start ``count`` threads; they live as long as the process."""
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._waiting_since: deque[float] = deque()  # of each job that waits
        for number in range(count):
            label = f"{name}-{number}"
            threading.Thread(target=self._work, name=label, daemon=True).start()

    def run(self, fn: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Call ``fn(*args)`` on a thread; await what this returns for its result or error."""
        future = _new_future()
        self._waiting_since.append(time.monotonic())
        self._jobs.put((future, fn, args))
        return asyncio.wrap_future(future)

    def run_in_time(self, since: float, fn: Callable[..., Any]) -> asyncio.Future[Any]:
        """Do as ``run``, or raise ``WaitedTooLong`` if it is too late when its turn comes.

        ``since``: when the call came, by the monotonic clock.
        """
        return self.run(self._unless_late, since, fn)

    def _unless_late(self, since: float, fn: Callable[..., Any]) -> Any:
        if is_too_late(since, len(self._waiting_since)):
            raise WaitedTooLong
        return fn()

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
            job = self._jobs.get()
            self._waiting_since.popleft()
            self._run_job(*job)
            del job

    @staticmethod
    def _run_job(future: Future[Any], fn: Callable[..., Any], args: tuple[Any, ...]) -> None:
        """Run one function; a frame of its own keeps nothing of it afterwards."""
        try:
            result = fn(*args)
        except BaseException as error:  # noqa: BLE001 - it goes to the caller
            future.set_exception(error)
        else:
            future.set_result(result)


@lru_cache(maxsize=1)
def threads() -> Threads:
    """Return the threads of this process."""
    return Threads(COUNT, "aws")
