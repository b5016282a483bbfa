"""Write a change without a caller's thread that waits for the commit."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from console.store.db import recording, writer

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")


class Pending(Generic[T]):
    """A change that is ready to be written, and what its caller makes of the result."""

    def __init__(
        self,
        change: Callable[[], Any],
        then: Callable[[Any], T] | None = None,
        rescue: Callable[[Exception], Any] | None = None,
    ) -> None:
        """``change``: as ``write`` takes it; ``then``: makes the result of its, after the commit.

        ``rescue``: called with why there was no commit, returns a result in its place or raises;
        it may take a while.
        """
        self._recorded: recording.Recorded | None = None
        self._change = change
        self._then: Callable[[Any], T] = then or _same
        self._rescue = rescue

    def then(self, fn: Callable[[T], S]) -> Pending[S]:
        """Return the same change with another result: ``fn`` of this one's."""
        made = self._then
        return Pending(
            self._change,
            lambda result: fn(made(result)),
            self._rescue,
        )

    def inside(self, fn: Callable[[Callable[[], T]], S]) -> Pending[S]:
        """Return a change that is ``fn``: it makes this one by calling what it is given.

        So the two are one transaction. What ``then`` was given must change nothing.
        """
        change, made = self._change, self._then
        return Pending(lambda: fn(lambda: made(change())))

    def now(self) -> T:
        """Write it; return the result once it is committed."""
        try:
            result = writer.write(self._change)
        except Exception as error:
            if self._rescue is None:
                raise
            return self.rescued(error)
        return self._then(result)

    def alone(self) -> T:
        """Write it in a transaction of its own; return the result once it is committed."""
        change = self._change
        fn = change.fn if isinstance(change, recording.Mergeable) else change
        return Pending(fn, self._then, self._rescue).now()

    def recorded(self) -> bool:
        """Record the change, if it can be; return whether it may be handed over."""
        self._recorded = writer.record_change(self._change)
        return self._recorded is not None

    @property
    def has_rescue(self) -> bool:
        """Tell whether ``rescued`` may know better than an error."""
        return self._rescue is not None

    def rescued(self, error: Exception) -> T:
        """Return the result in spite of an error, or raise; not for an event loop."""
        if self._rescue is None:
            raise error
        return self._then(self._rescue(error))

    def hand_over(self, callback: Callable[[Callable[[], T]], None]) -> None:
        """Let it be written by the thread that commits, if ``grouped``, and return at once.

        ``callback``: called there after the commit with a function that returns the result, or
        raises why there is none; it must be quick and not raise.
        """

        def tell(result: Any, failure: BaseException | None) -> None:
            callback(lambda: self._outcome(result, failure))

        writer.hand_over(self._change, tell, self._recorded)

    def _outcome(self, result: Any, failure: BaseException | None) -> T:
        if failure is not None:
            raise failure
        return self._then(result)


def immediate(ready: Callable[P, Pending[T]]) -> Callable[P, T]:
    """Return a function that makes a change ready and writes it."""

    @wraps(ready)
    def done(*args: P.args, **kwargs: P.kwargs) -> T:
        return ready(*args, **kwargs).now()

    return done


def settled(answer: T) -> T | Any:
    """Write an answer that is pending, unless it can be handed over, and return what came of it."""
    if not isinstance(answer, Pending) or writer.grouped() or answer.recorded():
        return answer
    return answer.alone()


def _same(result: Any) -> Any:
    return result
