"""Pass the outcome of a commit from the thread that commits to the one that waits."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


class CommitResult:
    """What one asked for, and where its outcome is waited for: a bare lock is the fastest."""

    __slots__ = ("_done", "_failure", "_result")

    def __init__(self) -> None:
        self._done = threading.Lock()
        self._done.acquire()
        self._result: Any = None
        self._failure: BaseException | None = None

    def set_result(self, result: Any) -> None:
        """Tell the one who waits."""
        self._result = result
        self._done.release()

    def set_exception(self, failure: BaseException) -> None:
        """Tell the one who waits what went wrong."""
        self._failure = failure
        self._done.release()

    def result(self) -> Any:
        """Wait; return the result or raise what went wrong. To be called once."""
        self._done.acquire()
        if self._failure is None:
            return self._result
        try:
            raise self._failure
        finally:
            self._failure = None  # or failure, traceback and this would hold each other


class CommitCallback:
    """Where the outcome goes of what nobody waits for."""

    __slots__ = ("_tell",)

    def __init__(self, tell: Callable[[Any, BaseException | None], None]) -> None:
        self._tell = tell

    def set_result(self, result: Any) -> None:
        """Tell of the result."""
        self._tell(result, None)

    def set_exception(self, failure: BaseException) -> None:
        """Tell what went wrong."""
        self._tell(None, failure)
