"""Where does an operation run?  On a few long-lived threads, each with its database connection.

The standard library's executor makes a future with a lock and a condition for each call and another
one for the event loop, which took as long as a small operation itself.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = 8
"""More get in each other's way: 16 took a fifth more time for the same work."""
_Job = tuple[Any, "asyncio.Future[Any]", "Callable[..., Any]", tuple[Any, ...]]  # first a loop


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
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._jobs.put((loop, future, fn, args))
        return future

    def _work(self) -> None:
        while True:
            self._do(*self._jobs.get())

    @staticmethod
    def _do(
        loop: asyncio.AbstractEventLoop,
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
        try:
            loop.call_soon_threadsafe(_settle, future, result, failure)
        except RuntimeError:  # the loop has ended, and with it whoever asked
            return


def _settle(future: asyncio.Future[Any], result: Any, failure: BaseException | None) -> None:
    if future.cancelled():
        return
    if failure is None:
        future.set_result(result)
    else:
        future.set_exception(failure)


@lru_cache(maxsize=1)
def threads() -> Threads:
    """Return the threads of this process."""
    return Threads(COUNT, "aws")
