"""Write changes to the database: by one thread with group commit, where they can be grouped.

On SQLite that thread runs the functions, each in a savepoint. On PostgreSQL it writes what they
would write, merged (``merged`` has the theory); a function that cannot be recorded is run in a
transaction of its own, on the thread that called ``write``.

``write(fn)`` runs ``fn`` in a transaction and returns what it returned, after the commit is
durable. Hooks that ``fn`` registers by ``transaction.on_commit`` run after that commit, and not at
all if ``fn`` failed. ``fn`` may be run again, after a rollback: it must read what it decides on.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache, wraps
from typing import Any, Generic, ParamSpec, TypeVar

from django.db import (
    DEFAULT_DB_ALIAS,
    Error,
    IntegrityError,
    InterfaceError,
    OperationalError,
    connection,
    connections,
    transaction,
)

from console.db import merged, outages, overload, postgres, rows, signals

J = TypeVar("J", bound=tuple[Any, Future[Any]])
P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")
_MAX_GROUP = 100  # more take so long that who waits behind them is refused too late
_REST_S = 0.5  # after so long without a change the thread gives its connection back
_RETRIES = 5
# PostgreSQL: serialization failure, deadlock, and a row that somebody else inserted first. All say
# that nothing was committed; whoever reads again finds what is there now.
_NOT_COMMITTED = {"40001", "40P01", "23505"}
_TOO_MUCH = "54"  # PostgreSQL's class of errors for what exceeds a limit: not the server's fault
_FORGET_S = 10.0  # else nobody would be sent here, who could find that writing works again
_refused: tuple[float, str] | None = None


def write(fn: Callable[[], T]) -> T:
    """Run ``fn`` in one transaction and return its result once it is committed."""
    if connection.in_atomic_block or rows.current_recording() is not None:
        return fn()
    try:
        result = _writer.run(fn) if is_embedded() else hand_in_recorded(fn, record_change(fn))()
    except Exception as error:
        _note(error)
        raise
    _note(None)
    return result


def _note(failure: BaseException | None) -> None:
    """Remember whether the last write was refused by the database."""
    global _refused  # noqa: PLW0603 - one a process
    if failure is None:
        _refused = None
        if outages.began is not None:
            outages.note_success()
    elif isinstance(failure, Error) and is_outage(failure):
        _refused = (time.monotonic(), str(failure).strip().partition("\n")[0])


def refusal() -> str:
    """Return why the last write failed, "" if it did not, or nobody has tried for a while."""
    if _refused is None or time.monotonic() - _refused[0] > _FORGET_S:
        return ""
    return _refused[1]


def hand_in(fn: Callable[[], T]) -> Callable[[], T]:
    """Ask for ``write(fn)`` and return what waits for its result, once, where that saves time."""
    if grouped():
        return _writer.put(fn)
    recorded = record_change(fn)
    if recorded is not None:
        return hand_in_recorded(fn, recorded)
    result = write(fn)
    return lambda: result


def record_change(fn: Callable[[], Any]) -> rows.Recorded | None:
    """Return what a function would write to PostgreSQL, None if it has to be run by itself."""
    if is_embedded() or connection.in_atomic_block or not isinstance(fn, rows.Mergeable):
        return None
    return rows.record(fn.fn)


def hand_in_recorded(fn: Callable[[], T], recorded: rows.Recorded | None) -> Callable[[], T]:
    """Return what waits until a change is committed. ``recorded``: what ``fn`` would write."""
    if recorded is None:
        return lambda: _write_here(fn)
    committed = _merger.put(recorded)

    def wait() -> T:
        postgres.spare_connection()
        try:
            result: T = committed()
        except merged.RunAlone:
            return _write_here(fn)
        return result

    return wait


def grouped() -> bool:
    """Tell whether another thread commits what is written here, together with what others write."""
    return is_embedded() and not rows.current_database().in_atomic_block


@cache
def is_embedded() -> bool:
    """Tell whether the database is a part of this process, so that reading a row is no waiting."""
    return str(connections.settings[DEFAULT_DB_ALIAS]["ENGINE"]).endswith("sqlite3")


def hand_over(
    fn: Callable[[], Any],
    callback: Callable[[Any, BaseException | None], None],
    recorded: rows.Recorded | None = None,
    since: float | None = None,
) -> None:
    """Let ``fn`` be written by the thread that commits, if ``grouped``, and return at once.

    ``callback``: called there after the commit with the result, or with why there is none; it must
    be quick and not raise. ``recorded``: what ``fn`` would write to PostgreSQL; ``RunAlone`` says
    that it has to be run by itself. ``since``: as ``overload`` has it; ``WaitedTooLong`` says that
    it was too late.
    """

    def tell(ended: Future[Any]) -> None:
        failure = ended.exception()
        if not isinstance(failure, merged.RunAlone):
            _note(failure)
        callback(None if failure else ended.result(), failure)

    future: Future[Any] = Future()
    future.add_done_callback(tell)
    if recorded is not None:
        _merger.add(recorded, future, since)
    else:
        _writer.add(fn, future, since)


# -- changes that are ready ------------------------------------------------------------------------


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
        self._recorded: rows.Recorded | None = None
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

    def rescued_by(self, rescue: Callable[[Exception], Any]) -> Pending[T]:
        """Return the same change with a ``rescue``, as the constructor has it."""
        return Pending(self._change, self._then, rescue)

    def inside(self, fn: Callable[[Callable[[], T]], S]) -> Pending[S]:
        """Return a change that is ``fn``: it makes this one by calling what it is given.

        So the two are one transaction. What ``then`` was given must change nothing.
        """
        change, made = self._change, self._then
        return Pending(lambda: fn(lambda: made(change())))

    def now(self) -> T:
        """Write it; return the result once it is committed."""
        try:
            result = write(self._change)
        except Exception as error:
            if self._rescue is None:
                raise
            return self.rescued(error)
        return self._then(result)

    def alone(self) -> T:
        """Write it in a transaction of its own; return the result once it is committed."""
        change = self._change
        fn = change.fn if isinstance(change, rows.Mergeable) else change
        return Pending(fn, self._then, self._rescue).now()

    def recorded(self) -> bool:
        """Record the change, if it can be; return whether it may be handed over."""
        self._recorded = record_change(self._change)
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

    def hand_over(
        self, callback: Callable[[Callable[[], T]], None], since: float | None = None
    ) -> None:
        """Let it be written by the thread that commits, if ``grouped``, and return at once.

        ``callback``: called there after the commit with a function that returns the result, or
        raises why there is none; it must be quick and not raise. ``since``: as ``overload`` has it.
        """

        def tell(result: Any, failure: BaseException | None) -> None:
            callback(lambda: self._outcome(result, failure))

        hand_over(self._change, tell, self._recorded, since)

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
    if not isinstance(answer, Pending) or grouped() or answer.recorded():
        return answer
    return answer.alone()


def _same(result: Any) -> Any:
    return result


# -- the connection --------------------------------------------------------------------------------


def drop_broken_connection() -> None:
    """Let a long-lived thread connect anew if its connection had an error; else keep it."""
    if (database := rows.current_database()).errors_occurred:
        database.close_if_unusable_or_obsolete()


def release_connection() -> None:
    """Let other threads have the connection (PostgreSQL); the next query gets another one."""
    if connection.vendor == "postgresql" and not connection.in_atomic_block:
        connection.close()


def is_outage(error: BaseException) -> bool:
    """Tell whether the database failed (gone, restarting, locked, disk full) and not the work.

    The same work may succeed later.
    """
    if isinstance(error, InterfaceError):
        return True
    return isinstance(error, OperationalError) and not _sqlstate(error).startswith(_TOO_MUCH)


def _sqlstate(error: BaseException) -> str:
    """Return PostgreSQL's code of an error, "" if it has none."""
    return getattr(error.__cause__, "sqlstate", None) or ""


# -- the thread that commits -----------------------------------------------------------------------


def _write_here(fn: Callable[[], T]) -> T:
    """Run in a transaction of this thread's connection; again only if surely not committed."""
    for attempt in range(_RETRIES):
        drop_broken_connection()
        try:
            with transaction.atomic():
                result = _with_signals(fn)
                _check_transaction(None)
                return result
        except (OperationalError, IntegrityError) as error:
            if _sqlstate(error) not in _NOT_COMMITTED or attempt == _RETRIES - 1:
                raise
    raise AssertionError  # the loop returns or raises


def _with_signals(fn: Callable[[], T]) -> T:
    """Run ``fn``, and write its signals to other processes in the same transaction."""
    transport = signals.get_transport()
    if transport is None:
        return fn()
    transport.drop()
    result = fn()
    transport.flush()
    return result


_Waiting = tuple[J, float | None]


class _Grouping(Generic[J]):
    """One thread that commits what many threads ask for, as many at a time as are waiting."""

    def __init__(self, commit: Callable[[list[J]], list[J]], rest: Callable[[], None]) -> None:
        """``commit``: takes what is waiting, and returns what has to wait for the next commit.

        ``rest``: called when nothing has been asked for a while.
        """
        self._commit = commit
        self._rest = rest
        self._jobs: queue.SimpleQueue[_Waiting[J]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def put(self, job: J, since: float | None = None) -> None:
        """Ask for a commit. ``since``: as ``overload`` has it."""
        self._jobs.put((job, since))
        if self._thread is None or not self._thread.is_alive():
            self._start()

    def _start(self) -> None:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._loop, name="writer", daemon=True)
                self._thread.start()

    def _loop(self) -> None:
        rows.keep_connection()
        left: list[J] = []
        while True:
            group: list[_Waiting[J]] = [(job, None) for job in left] or [self._wait()]
            with contextlib.suppress(queue.Empty):
                while len(group) < _MAX_GROUP:
                    group.append(self._jobs.get_nowait())
            behind = self._jobs.qsize()
            many = len(group) + behind >= overload.MANY_WAITING or overload.closed_until
            jobs = overload.refuse_late(group, behind) if many else [job for job, _ in group]
            left = self._commit(jobs) if jobs else []
            if not is_embedded():
                postgres.spare_connection()

    def _wait(self) -> _Waiting[J]:
        try:
            return self._jobs.get(timeout=_REST_S)
        except queue.Empty:
            self._rest()
            return self._jobs.get()


_Job = tuple[Callable[[], Any], Future[Any]]


class _Writer:
    """Runs functions on the thread that commits (SQLite)."""

    def __init__(self) -> None:
        self._grouping: _Grouping[_Job] = _Grouping(_commit_group, lambda: None)

    def run(self, fn: Callable[[], T]) -> T:
        """Hand ``fn`` to the thread and wait for its commit."""
        return self.put(fn)()

    def put(self, fn: Callable[[], T]) -> Callable[[], T]:
        """Hand ``fn`` to the thread; return what waits for its commit."""
        future: Future[T] = Future()
        self.add(fn, future)
        return future.result

    def add(self, fn: Callable[[], Any], future: Future[Any], since: float | None = None) -> None:
        """Hand ``fn`` to the thread; its outcome goes to ``future`` after the commit."""
        self._grouping.put((fn, future), since)


class _Merger:
    """Writes recorded changes on the thread that commits (PostgreSQL)."""

    def __init__(self) -> None:
        self._grouping: _Grouping[merged.Change] = _Grouping(
            merged.commit_changes, release_connection
        )

    def put(self, recorded: rows.Recorded) -> Callable[[], Any]:
        """Hand a change to the thread; return what waits for its commit."""
        future: Future[Any] = Future()
        self.add(recorded, future)
        return future.result

    def add(self, recorded: rows.Recorded, future: Future[Any], since: float | None = None) -> None:
        """Hand a change to the thread; its outcome goes to ``future`` after the commit."""
        self._grouping.put((recorded, future), since)


def _commit_group(group: list[_Job]) -> list[_Job]:
    """Run each function in a savepoint of one transaction; settle the futures after the commit."""
    outcomes: list[tuple[Future[Any], Any, BaseException | None]] = []
    try:
        with transaction.atomic():
            for fn, future in group:
                outcomes.append((future, *_outcome(fn)))
    except BaseException as error:  # noqa: BLE001 - BEGIN or COMMIT failed: nothing is stored
        connection.close()
        if isinstance(error, IntegrityError) and len(group) > 1:
            # Constraints are checked by COMMIT. The others must not fail for the one that broke it.
            for job in group:
                _commit_group([job])
            return []
        for _, future in group:
            future.set_exception(error)
        return []
    for future, result, failure in outcomes:
        if failure is None:
            future.set_result(result)
        else:
            future.set_exception(failure)
    return []


def _outcome(fn: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """Run a function in a savepoint; return its result and what it raised.

    Raise if the whole transaction went with it.
    """
    result: Any = None
    failure: Exception | None = None
    database = connections[DEFAULT_DB_ALIAS]  # once: to look it up takes half a statement's time
    hooks = len(database.run_on_commit)
    # Not by atomic(), which takes ten times as long; nor by a cursor of Django, which refuses every
    # statement, "ROLLBACK TO" as well, once a statement has failed.
    with database.wrap_database_errors:
        database.connection.execute("SAVEPOINT job")
    try:
        result = fn()
    except Exception as error:  # noqa: BLE001 - it goes to the one who asked
        failure = error
    if database.needs_rollback and failure is None:
        failure = OperationalError("the database rolled the transaction back")
    with database.wrap_database_errors:
        if failure is not None and database.connection.in_transaction:
            database.connection.execute("ROLLBACK TO job")
            del database.run_on_commit[hooks:]
            database.needs_rollback = False
    _check_transaction(failure)  # also after a success: the function may have caught the error
    with database.wrap_database_errors:
        database.connection.execute("RELEASE job")
    return result, failure


def _check_transaction(cause: Exception | None) -> None:
    """Raise an outage if the transaction was rolled back under us; else ``COMMIT`` says nothing.

    SQLite does so when the disk is full, fails, or the memory is out, in the middle of a statement.
    """
    database = connections[DEFAULT_DB_ALIAS]
    lost = database.needs_rollback
    if is_embedded():
        lost = lost or not database.connection.in_transaction
    if not lost:
        return
    if cause is not None and is_outage(cause):
        raise cause
    raise OperationalError("the database rolled the transaction back") from cause


_writer = _Writer()
_merger = _Merger()
