"""Write changes to the database: ``write(fn)``, with group commit where changes can be grouped.

Theory of operation
===================

``write(fn)`` runs ``fn`` in a transaction and returns its result after the commit is durable. Hooks
that ``fn`` registers by ``transaction.on_commit`` run after that commit, and not at all if ``fn``
failed. ``fn`` may run again after a rollback, so it must read all data for its decisions itself.

**Two types.** A ``Change`` holds a function like ``fn``. ``result()`` writes it and waits for the
commit. ``begin()`` only starts the commit, for which ``result()`` waits later. ``hand_over()`` is
for event loops: it calls back after the commit. A ``rows.WriteSet`` is a recorded change: the rows
and signals that ``fn`` would write. It never leaves this package.

**Four ways to run.** This module chooses one of them; ``fn`` does not know in which it runs:

    inside another change   there is a transaction already: ``fn`` is called, and is a part of it
    in a savepoint          SQLite: the thread that commits runs ``fn``, and many in one transaction
    recorded                PostgreSQL, ``mergeable``: ``fn`` runs on the calling thread and writes
                            nothing; its write set is committed with others (``merged``)
    alone                   PostgreSQL, else: in a transaction of the calling thread

**From recorded to alone.** A recorded change does not query the database. It declares its
assumptions by three functions of ``rows``, which simply query in the other three ways to run:

    read_or_assume   assume an answer; a statement of the change finds no row if that is wrong
    require          note a statement that finds its row only if the condition holds
    returning        note a statement; the result of the change is made of the row it returns

If a statement finds no row, nothing of the change is written (``RunAlone``), and it runs alone: it
then queries, and raises the right error, such as that a name is taken.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache, partial, wraps
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

from console.db import instruments, merged, outages, overload, postgres, rows, signals

J = TypeVar("J", bound=tuple[Any, Future[Any]])
P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")
_MAX_GROUP = 100  # with more changes, waiting calls would be refused too late
_REST_S = 0.5  # idle time after which the thread returns its connection
_RETRIES = 5
# PostgreSQL: serialization failure, deadlock, and a row that another transaction inserted first.
# In all cases nothing was committed, and a repetition reads the current rows.
_NOT_COMMITTED = {"40001", "40P01", "23505"}
_TOO_MUCH = "54"  # PostgreSQL's error class for exceeded limits: not the server's fault
_FORGET_S = 10.0  # a refusal is then forgotten, else no write would be tried again
_refused: tuple[float, str] | None = None


def write(fn: Callable[[], T], *, mergeable: bool = False) -> T:
    """Run ``fn`` in one transaction and return its result after the commit.

    ``mergeable``: it usually writes by ``rows`` only, so recording it makes sense.
    """
    if connection.in_atomic_block or rows.is_recording():
        return fn()
    try:
        result = _writer.run(fn) if is_embedded() else _write_merged(fn, mergeable=mergeable)
    except Exception as error:
        _note(error)
        raise
    _note(None)
    return result


def _write_merged(fn: Callable[[], T], *, mergeable: bool) -> T:
    """Record ``fn`` and wait for the merged commit; otherwise run it on this thread."""
    write_set = _record_change(fn) if mergeable else None
    if write_set is not None:
        with contextlib.suppress(merged.RunAlone):
            result: T = _wait_merged(_merger.put(write_set))
            return result
    return _write_here(fn)


def _record_change(fn: Callable[[], Any]) -> rows.WriteSet | None:
    """Return the recorded writes of a function on PostgreSQL, None if it must run alone."""
    return None if is_embedded() or connection.in_atomic_block else rows.record(fn)


def _wait_merged(committed: Callable[[], Any]) -> Any:
    """Wait for a merged commit after returning this thread's connection to the pool."""
    postgres.spare_connection()
    return committed()


def _note(failure: BaseException | None) -> None:
    """Remember whether the database refused the last write."""
    global _refused  # noqa: PLW0603 - one a process
    if failure is None:
        _refused = None
        if outages.began is not None:
            outages.note_success()
    elif isinstance(failure, Error) and is_outage(failure):
        _refused = (time.monotonic(), str(failure).strip().partition("\n")[0])


def refusal() -> str:
    """Return why the last write failed, "" if it succeeded or was long ago."""
    if _refused is None or time.monotonic() - _refused[0] > _FORGET_S:
        return ""
    return _refused[1]


def grouped() -> bool:
    """Return whether another thread commits this thread's writes, in groups."""
    return is_embedded() and not rows.current_database().in_atomic_block


@cache
def is_embedded() -> bool:
    """Return whether the database is SQLite, so reading a row never waits."""
    return str(connections.settings[DEFAULT_DB_ALIAS]["ENGINE"]).endswith("sqlite3")


# -- changes that are ready ------------------------------------------------------------------------


class Change(Generic[T]):
    """A change that can be written, and the ``result`` of its commit.

    Like a ``Future``, but nothing happens before ``result``, ``begin`` or ``hand_over`` is called.
    """

    def __init__(
        self,
        write_rows: Callable[[], Any],
        then: Callable[[Any], T] | None = None,
        rescue: Callable[[Exception], Any] | None = None,
        *,
        mergeable: bool = False,
    ) -> None:
        """``write_rows``: as in ``write``; ``then``: maps its result after the commit.

        ``rescue``: called with the error if the commit failed; returns the result in its place, or
        raises; it may take a while. ``mergeable``: see ``write``.
        """
        self.write_rows = write_rows
        self._then: Callable[[Any], T] = then or _same
        self._rescue = rescue
        self._mergeable = mergeable
        self._write_set: rows.WriteSet | None = None
        self._wait: Callable[[], Any] | None = None
        self._failure: BaseException | None = None

    def then(self, fn: Callable[[T], S]) -> Change[S]:
        """Return the same change with the result ``fn(result)``."""
        first = self._then
        return Change(
            self.write_rows,
            lambda result: fn(first(result)),
            self._rescue,
            mergeable=self._mergeable,
        )

    def rescued_by(self, rescue: Callable[[Exception], Any]) -> Change[T]:
        """Return the same change with a function that handles a failed commit (``__init__``)."""
        return Change(self.write_rows, self._then, rescue, mergeable=self._mergeable)

    def inside(self, fn: Callable[[Callable[[], T]], S]) -> Change[S]:
        """Return a change that runs ``fn`` and this change in one transaction.

        ``fn`` gets a function that applies this change. The function of ``then`` must not write.
        """
        write_rows, then = self.write_rows, self._then
        return Change(lambda: fn(lambda: then(write_rows())))

    def result(self) -> T:
        """Return the result after the commit; write the change, unless that has begun."""
        try:
            result = self._written()
        except overload.WaitedTooLong:
            raise
        except Exception as error:
            if self._rescue is None:
                raise
            result = self._rescue(error)
        return self._then(result)

    def _written(self) -> Any:
        if self._wait is None:
            return write(self.write_rows, mergeable=self._mergeable)
        try:
            return self._wait()
        except merged.RunAlone:
            return write(self.write_rows)

    def begin(self) -> None:
        """Start the commit if another thread makes it; ``result`` waits for it.

        Else the change is written when this returns.
        """
        if grouped():
            self._wait = _writer.put(self.write_rows)
        elif (write_set := self._recorded()) is not None:
            self._wait = partial(_wait_merged, _merger.put(write_set))
        else:
            result = write(self.write_rows)
            self._wait = lambda: result

    def may_be_handed_over(self) -> bool:
        """Record the change (PostgreSQL); return whether another thread can make the commit."""
        return grouped() or self._recorded() is not None

    def _recorded(self) -> rows.WriteSet | None:
        if self._mergeable:
            self._write_set = _record_change(self.write_rows)
            self._mergeable = self._write_set is not None  # otherwise do not try again
        return self._write_set

    def hand_over(self, callback: Callable[[Change[T]], None], since: float | None = None) -> None:
        """Pass the change to the commit thread, and return at once.

        Only if it ``may_be_handed_over``. ``callback``: called there with this change, whose
        ``result`` is ready then; it must be quick and not raise. ``since``: the arrival of the call
        (``overload``); ``result`` raises ``WaitedTooLong`` if the change was too late.
        """

        def tell(ended: Future[Any]) -> None:
            self._wait, self._failure = ended.result, ended.exception()
            if not isinstance(self._failure, merged.RunAlone):
                _note(self._failure)
            callback(self)

        future: Future[Any] = Future()
        future.add_done_callback(tell)
        if self._write_set is not None:
            _merger.add(self._write_set, future, since)
        else:
            _writer.add(self.write_rows, future, since)

    @property
    def needs_thread(self) -> bool:
        """Return whether ``result`` of a change passed to ``hand_over`` may use the database again.

        It is written alone then, or its ``rescue`` is called.
        """
        if self._failure is None or isinstance(self._failure, overload.WaitedTooLong):
            return False
        return self._rescue is not None or isinstance(self._failure, merged.RunAlone)


def immediate(ready: Callable[P, Change[T]]) -> Callable[P, T]:
    """Turn a function that prepares a change into a function that writes it."""

    @wraps(ready)
    def write_now(*args: P.args, **kwargs: P.kwargs) -> T:
        return ready(*args, **kwargs).result()

    return write_now


def settled(answer: T) -> T | Any:
    """Write a ``Change`` that must run on this thread and return its result; return other answers.

    A ``Change`` that another thread can commit is returned unwritten: an event loop can wait for it
    without holding a thread.
    """
    if not isinstance(answer, Change) or answer.may_be_handed_over():
        return answer
    return answer.result()


def _same(result: Any) -> Any:
    return result


# -- the connection --------------------------------------------------------------------------------


def drop_broken_connection() -> None:
    """Reconnect a long-lived thread if its connection had an error."""
    if (database := rows.current_database()).errors_occurred:
        database.close_if_unusable_or_obsolete()


def release_connection() -> None:
    """Return the thread's connection to the pool (PostgreSQL)."""
    if connection.vendor == "postgresql" and not connection.in_atomic_block:
        connection.close()


def is_outage(error: BaseException) -> bool:
    """Return whether the database caused an error (unreachable, restarting, locked, disk full).

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
    """Run in a transaction of this thread; repeat only if surely nothing was committed."""
    for attempt in range(_RETRIES):
        drop_broken_connection()
        since = time.perf_counter()
        try:
            with transaction.atomic():
                result = _with_signals(fn)
                _check_transaction(None)
        except (OperationalError, IntegrityError) as error:
            if _sqlstate(error) not in _NOT_COMMITTED or attempt == _RETRIES - 1:
                raise
        else:
            instruments.COMMITS.add(time.perf_counter() - since, "alone")
            return result
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
    """A thread that commits the changes of many threads in groups."""

    def __init__(self, commit: Callable[[list[J]], list[J]], rest: Callable[[], None]) -> None:
        """``commit``: takes the waiting jobs, and returns the ones left for the next commit.

        ``rest``: called when nothing has been asked for a while.
        """
        self._commit = commit
        self._rest = rest
        self._jobs: queue.SimpleQueue[_Waiting[J]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def put(self, job: J, since: float | None = None) -> None:
        """Queue a job for the commit. ``since``: see ``overload``."""
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
        later: list[J] = []
        while True:
            group: list[_Waiting[J]] = [(job, None) for job in later] or [self._wait()]
            with contextlib.suppress(queue.Empty):
                while len(group) < _MAX_GROUP:
                    group.append(self._jobs.get_nowait())
            behind = self._jobs.qsize()
            many = len(group) + behind >= overload.MANY_WAITING or overload.starts_refused_until
            jobs = overload.refuse_late(group, behind) if many else [job for job, _ in group]
            later = self._timed_commit(jobs) if jobs else []
            if not is_embedded():
                postgres.spare_connection()

    def _timed_commit(self, jobs: list[J]) -> list[J]:
        since = time.perf_counter()
        try:
            return self._commit(jobs)
        finally:
            instruments.COMMITS.add(time.perf_counter() - since, "grouped")

    def _wait(self) -> _Waiting[J]:
        try:
            return self._jobs.get(timeout=_REST_S)
        except queue.Empty:
            self._rest()
            return self._jobs.get()


_Job = tuple[Callable[[], Any], Future[Any]]


class _Writer:
    """The thread that runs and commits functions (SQLite)."""

    def __init__(self) -> None:
        self._grouping: _Grouping[_Job] = _Grouping(_commit_group, lambda: None)

    def run(self, fn: Callable[[], T]) -> T:
        """Queue ``fn`` and wait for its commit."""
        return self.put(fn)()

    def put(self, fn: Callable[[], T]) -> Callable[[], T]:
        """Queue ``fn``; return a function that waits for its commit."""
        future: Future[T] = Future()
        self.add(fn, future)
        return future.result

    def add(self, fn: Callable[[], Any], future: Future[Any], since: float | None = None) -> None:
        """Queue ``fn``; ``future`` gets its outcome after the commit."""
        self._grouping.put((fn, future), since)


class _Merger:
    """The thread that commits recorded changes (PostgreSQL)."""

    def __init__(self) -> None:
        self._grouping: _Grouping[merged.QueuedChange] = _Grouping(
            merged.commit_changes, release_connection
        )

    def put(self, write_set: rows.WriteSet) -> Callable[[], Any]:
        """Queue a recorded change; return a function that waits for its commit."""
        future: Future[Any] = Future()
        self.add(write_set, future)
        return future.result

    def add(
        self, write_set: rows.WriteSet, future: Future[Any], since: float | None = None
    ) -> None:
        """Queue a recorded change; ``future`` gets its outcome after the commit."""
        self._grouping.put((write_set, future), since)


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
            # COMMIT checks constraints. One job's violation must not fail the other jobs.
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
    """Run a function in a savepoint; return its result and its exception.

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
    """Raise an outage if SQLite has rolled back the transaction; ``COMMIT`` would not.

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
