"""Run operations on a few long-lived threads, each with its own database connection.

The standard library's executor makes a future with a lock and a condition for each call and another
one for the event loop, which took as long as a small operation itself.
"""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from collections import deque
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.store.db.pending import Pending

T = TypeVar("T")

COUNT = 8
"""More get in each other's way: 16 took a fifth more time for the same work."""


class _Outcomes:
    """Takes results to an event loop, many at a time: waking it costs more than most of them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[tuple[asyncio.Future[Any], Any, BaseException | None]] = deque()
        self._awake = False

    def put(
        self, future: asyncio.Future[Any], result: Any, failure: BaseException | None = None
    ) -> None:
        """Give a future of the loop its result or failure; from any thread."""
        self._waiting.append((future, result, failure))
        if self._awake:  # it will look once more after it has said that it sleeps
            return
        self._awake = True
        try:
            self._loop.call_soon_threadsafe(self._settle)
        except RuntimeError:  # the loop has ended, and with it whoever asked
            return

    def _settle(self) -> None:
        self._awake = False
        while self._waiting:
            future, result, failure = self._waiting.popleft()
            if future.cancelled():
                continue
            if failure is None:
                future.set_result(result)
            else:
                future.set_exception(failure)


_outcomes: WeakKeyDictionary[asyncio.AbstractEventLoop, _Outcomes] = WeakKeyDictionary()


def _of_this_loop() -> tuple[asyncio.Future[Any], _Outcomes]:
    """Return a new future of the running loop, and who takes its result there."""
    loop = asyncio.get_running_loop()
    if (found := _outcomes.get(loop)) is None:
        found = _outcomes[loop] = _Outcomes(loop)
    return loop.create_future(), found


async def written(pending: Pending[T], spare: Threads) -> T:
    """Let a change be written and wait for its commit, holding no thread.

    ``spare``: where it is found out what became of a commit that failed.
    """
    future, outcomes = _of_this_loop()
    pending.hand_over(lambda outcome: outcomes.put(future, outcome))
    outcome: Callable[[], T] = await future
    try:
        return outcome()
    except Exception as error:
        if not pending.has_rescue:
            raise
        rescued: T = await spare.run(pending.rescued, error)
        return rescued


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


_Job = tuple[_Outcomes, "asyncio.Future[Any]", "Callable[..., Any]", tuple[Any, ...]]


class Threads:
    """``run`` calls a function on one of them and returns what to await."""

    def __init__(self, count: int, name: str) -> None:
        """Start so many threads; they live as long as the process."""
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        for number in range(count):
            label = f"{name}-{number}"
            threading.Thread(target=self._work, name=label, daemon=True).start()

    def run(self, fn: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Call ``fn(*args)`` on a thread; await what this returns for its result or error."""
        future, outcomes = _of_this_loop()
        self._jobs.put((outcomes, future, fn, args))
        return future

    def _work(self) -> None:
        while True:
            self._do(*self._jobs.get())

    @staticmethod
    def _do(
        outcomes: _Outcomes,
        future: asyncio.Future[Any],
        fn: Callable[..., Any],
        args: tuple[Any, ...],
    ) -> None:
        """Run one function; keep nothing of it afterwards."""
        result: Any = None
        failure: BaseException | None = None
        try:
            result = fn(*args)
        except BaseException as error:  # noqa: BLE001 - it goes to the one who asked
            failure = error
        outcomes.put(future, result, failure)


@lru_cache(maxsize=1)
def threads() -> Threads:
    """Return the threads of this process."""
    return Threads(COUNT, "aws")
