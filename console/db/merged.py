"""Commit many recorded changes in one PostgreSQL transaction, with one statement per table.

Theory of operation
===================

``write`` passes a recorded change (``rows``) to one thread of the process. That thread takes all
waiting changes, and sends them in two round trips (``pipeline``):

    first trip    BEGIN, then each statement that must find its row: the version of a run, a task
                  that is still open, a machine that is not being deleted, a name that is free
    second trip   inserts, deletes, signals to other processes, COMMIT

Between the trips a change may add statements that depend on the first trip. An example: only then
is it known which task of an activity a poller gets, and so the message of the task's start.

Statements of the same text are merged: the values of all changes are passed as arrays, which
``unnest`` turns into a table. A statement returns the keys of the rows that it changed. Hundreds
of rows, such as the events of a loop, are sent by COPY instead, between two pipelines: that takes
more round trips but half the processor time, and PostgreSQL inserts the first rows while the last
are being sent.

**Plans.** Parsing and planning a statement takes longer than executing it, so each connection does
it once. The plan must be good for any size of the tables:

    1. A new server updates a run: the table has a few rows, and the plan reads all of them.
    2. A minute later it has 30,000 rows, and PostgreSQL still uses the plan.

So ``_SETTINGS`` allow only plans that find each row by an index.

**One change fails.** If a required row is missing, only the change that requires it fails:

    1. A, B and C are in one transaction. The first trip returns the keys of A and C only.
    2. ROLLBACK. B returns to the thread that wrote it, which runs its function in a transaction of
       its own. There the function raises its error (``Fenced``, a closed task, a name that is
       taken), as if there were no merging.
    3. A and C are sent again, without B.

If a statement raises an error, it is not known which change caused it: after ROLLBACK each change
runs alone.

**Two changes of one execution.** A task's outcome and a step of the same execution are never in the
same transaction, because the step deletes messages that the outcome inserts. The later change waits
for the next transaction:

    1. The outcome of task 5 is waiting, and behind it a step that ends the execution.
    2. The first transaction closes the task and inserts the message.
    3. The second one ends the execution, and deletes the message.

Outcomes of different tasks may share a transaction. No row is changed twice in one.

**Locks.** A transaction waits for a lock only briefly (``lock_timeout``), because all its changes
wait with it:

    1. A worker is stopped in the middle of a transaction, and holds the row of a run.
    2. Another worker takes the execution over. Its step waits for a quarter of a second.
    3. ROLLBACK; each change runs alone, and only that step still waits, on its own thread.

Two processes that lock each other's rows end in the same way, before the deadlock is detected. A
transaction also holds its locks only briefly, because the second trip follows the first at once
(``idle_in_transaction_session_timeout``):

    1. The network falls silent between the trips of a web process, which is killed then.
    2. The server hears nothing of that, and its session holds the names of new executions.
    3. After five seconds it ends the session. A client that starts such a name waits until then.

**The connection breaks.** Before COMMIT was sent, nothing is committed, and the changes are sent
again on a new connection, once. Afterwards it is not known whether they are committed, so each
caller gets an outage:

    1. COMMIT is sent, the server commits, and the connection breaks before its answer.
    2. A step: the sweep finds the execution, and continues from its current version.
       An outcome: it is recorded again, finds its task closed, and changes nothing.
       A claim: the sweep finds a started task that no thread has, and offers it again.
       A start: the client gets an error, calls again, and by the name gets the execution.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import psycopg
import structlog
from django.db import connection
from django.db.utils import IntegrityError, InterfaceError, OperationalError

from console.db import postgres, signals
from console.db.pipeline import KEPT_PLANS, array_text, roll_back, run_together, set_locally
from console.db.rows import (
    INSERT_ORDER,
    Statement,
    Unmergeable,
    WriteSet,
    is_recording,
    record,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from concurrent.futures import Future

    from console.db.rows import Key, Row

    QueuedChange = tuple[WriteSet, Future[Any]]

log = structlog.get_logger(__name__)
_WORTH_A_COPY = 400
"""The number of rows from which COPY is faster, despite its two more round trips."""
_SETTINGS = {
    "lock_timeout": "250ms",
    "idle_in_transaction_session_timeout": "5s",
    **KEPT_PLANS,
}
_BEGIN = (("BEGIN", ()), set_locally(_SETTINGS))
_ROLLBACK = (("ROLLBACK", ()),)


class RunAlone(Exception):
    """A change could not be written with the others; its function must run alone."""


# -- a group ---------------------------------------------------------------------------------------


def take_together(waiting: Iterable[WriteSet]) -> tuple[list[WriteSet], list[WriteSet]]:
    """Split changes into a group for one transaction, and changes that wait for it to commit."""
    group: list[WriteSet] = []
    later: list[WriteSet] = []
    owned: dict[Any, bool] = {}
    keys: set[tuple[Statement, Key]] = set()
    for change in waiting:
        touched = _touched_executions(change)
        clash = any(
            number in owned and (owned[number] or owns) for number, owns in touched.items()
        ) or any(key in keys for key in change.keys if key[0].owns or key[0].joins)
        (later if clash else group).append(change)
        for number, owns in touched.items():
            owned[number] = owns or clash or owned.get(number, False)
        if not clash:
            keys.update(change.keys)
    return group, later


def _touched_executions(change: WriteSet) -> dict[Any, bool]:
    """Return execution -> whether the change needs it exclusively."""
    touched: dict[Any, bool] = {}
    for statement, key in change.keys:
        if statement.owns or statement.joins:
            touched[key[0]] = statement.owns or touched.get(key[0], False)
    return touched


def commit(group: Sequence[WriteSet]) -> dict[int, BaseException]:
    """Commit changes together; return place -> error of each change that was not written.

    Raise an outage of the database: it is not known whether they were written.
    """
    failed: dict[int, BaseException] = {}
    places = list(range(len(group)))
    while places:
        try:
            missing = _try_commit([group[place] for place in places])
        except (InterfaceError, OperationalError) as error:
            if _is_broken():
                raise
            missing = dict.fromkeys(range(len(places)), error)
        except Exception as error:  # noqa: BLE001 - nobody knows whose row it was
            _forget_plans(error)
            missing = dict.fromkeys(range(len(places)), error)
        if not missing:
            break
        failed |= {places[place]: RunAlone() for place in missing}
        places = [place for index, place in enumerate(places) if index not in missing]
    return failed


def commit_changes(waiting: list[QueuedChange]) -> list[QueuedChange]:
    """Commit the changes that fit into one transaction; return the others."""
    futures = {id(recorded): future for recorded, future in waiting}
    group, later = take_together([recorded for recorded, _ in waiting])
    try:
        failed = commit(group)
    except BaseException as error:  # noqa: BLE001 - it goes to those who asked
        for recorded in group:
            futures[id(recorded)].set_exception(error)
        connection.close()
    else:
        for place, recorded in enumerate(group):
            if place in failed:
                futures[id(recorded)].set_exception(failed[place])
            else:
                _settle(recorded, futures[id(recorded)])
    return [(recorded, futures[id(recorded)]) for recorded in later]


def write_together(fn: Callable[[], object]) -> None:
    """Run a function in this transaction; write its rows by one statement per table.

    On SQLite, and if the writes cannot be recorded, the function writes its rows directly.
    """
    embedded = connection.vendor != "postgresql"
    recorded = None if embedded or is_recording() else record(fn)
    if recorded is None:
        fn()
        return
    returned: set[tuple[Statement, Key]] = set()
    with connection.wrap_database_errors, connection.connection.pipeline():
        cursors = [
            (each, _execute_once(each, recorded.rows[each])) for each in _ordered(recorded.rows)
        ]
    for statement, cursor in cursors:
        if statement.key:
            size = len(statement.key)
            returned.update((statement, tuple(row[:size])) for row in cursor.fetchall())
    if missing := [key for key in recorded.keys if key not in returned and not key[0].may_miss]:
        raise IntegrityError(f"not written: {missing[0]}")
    for channel, values in recorded.signals:
        signals.publish(channel, *values)
    for hook in recorded.after:
        signals.after_commit(hook)


def _settle(recorded: WriteSet, future: Future[Any]) -> None:
    """Settle a committed change: publish its signals, then set its result."""
    publish(recorded)
    if recorded.following is not None:
        publish(recorded.following)
    result = recorded.result
    try:
        if recorded.make is not None:
            result = recorded.make(recorded.returned)
    except Exception as error:  # noqa: BLE001 - of one caller; the others wait for their answers
        future.set_exception(error)
    else:
        future.set_result(result)


def _forget_plans(error: Exception) -> None:
    """Close a connection with outdated prepared statements: a migration changed a table."""
    if isinstance(error.__cause__, psycopg.errors.FeatureNotSupported):
        connection.connection.close()
        connection.close()


def _is_broken() -> bool:
    own = connection.connection
    return own is None or own.closed or own.broken


def _try_commit(changes: Sequence[WriteSet]) -> dict[int, BaseException | None]:
    """Commit changes; if rows are missing, return the places of their changes and roll back.

    Raise what the database raises, after ROLLBACK.
    """
    merged: dict[Statement, list[Row]] = defaultdict(list)
    for change in changes:
        for statement, rows in change.rows.items():
            merged[statement].extend(rows)
    needed = [statement for statement in _ordered(merged) if statement.key]
    returned = _begin(needed, merged)
    missing: dict[int, BaseException | None] = {
        place: None
        for place, change in enumerate(changes)
        if any(key not in returned and not key[0].may_miss for key in change.keys)
    }
    if missing:
        with connection.wrap_database_errors:
            run_together(connection.connection, _ROLLBACK)
        return missing
    try:
        for change in changes:
            change.returned = {key: returned[key] for key in change.keys if key in returned}
        following = [_follow(change) for change in changes if change.follow is not None]
        for more in following:
            for statement, rows in more.rows.items():
                merged[statement].extend(rows)
        others = [statement for statement in _ordered(merged) if not statement.key]
        with connection.wrap_database_errors:
            _write_and_commit(others, merged, [*changes, *following])
    except BaseException:
        _roll_back()
        raise
    return {}


def _ordered(statements: Iterable[Statement]) -> list[Statement]:
    return sorted(statements, key=lambda statement: statement.order)


def _follow(change: WriteSet) -> WriteSet:
    """Return the dependent writes of a change whose rows have been read."""
    change.following = record(partial(change.follow, change.returned)) if change.follow else None
    if change.following is None or change.following.keys:
        raise Unmergeable
    return change.following


def _begin(
    needed: Sequence[Statement], rows: dict[Statement, list[Row]]
) -> dict[tuple[Statement, Key], Row]:
    """Begin, run the statements that must find their rows, and return the found rows.

    Nothing is committed yet, so a connection that has died meanwhile is replaced, once.
    """
    for last in (False, True):
        with nullcontext() if last else postgres.unchecked():
            connection.ensure_connection()
        own = connection.connection
        try:
            texts = [*_BEGIN, *(_text(each, rows[each]) for each in needed)]
            with connection.wrap_database_errors:
                answers = run_together(own, texts)[len(_BEGIN) :]
            returned: dict[tuple[Statement, Key], Row] = {}
            for statement, answer in zip(needed, answers, strict=True):
                size = len(statement.key)
                for row in answer:
                    returned[statement, tuple(row[:size])] = row[size:]
        except (InterfaceError, OperationalError):
            if last or not _is_broken():
                _roll_back()
                raise
            connection.close()
        except BaseException:
            _roll_back()
            raise
        else:
            return returned
    raise AssertionError  # the loop returns or raises


def _write_and_commit(
    statements: Sequence[Statement],
    rows: dict[Statement, list[Row]],
    changes: Sequence[WriteSet],
) -> None:
    """Run the other statements in their order, send the signals, and commit."""
    own = connection.connection
    remaining = list(statements)
    copied = [each for each in remaining if each.copy and len(rows[each]) >= _WORTH_A_COPY]
    if copied:
        before = [each for each in remaining if each.order < INSERT_ORDER]
        run_together(own, [_text(each, rows[each]) for each in before])
        for statement in copied:
            _copy(statement, rows[statement])
        remaining = [each for each in remaining if each not in before and each not in copied]
    texts = [_text(each, rows[each]) for each in remaining]
    run_together(own, [*texts, *_signals(changes), ("COMMIT", ())])


def _copy(statement: Statement, rows: Sequence[Row]) -> None:
    with connection.connection.cursor() as cursor, cursor.copy(statement.copy) as copy:
        for row in rows:
            copy.write_row(row)


def _roll_back() -> None:
    """Roll back; close the connection if it does not answer."""
    if connection.connection is not None:
        roll_back(connection.connection)


def _text(statement: Statement, rows: Sequence[Row]) -> tuple[str, list[str]]:
    return statement.for_many, _arrays(rows)


def _execute_once(statement: Statement, rows: Sequence[Row]) -> psycopg.Cursor[Any]:
    """Execute a statement without keeping its plan."""
    return psycopg.RawCursor(connection.connection).execute(statement.for_many, _arrays(rows))


def _arrays(rows: Sequence[Row]) -> list[str]:
    return [array_text(column) for column in zip(*rows, strict=True)]


def _signals(changes: Sequence[WriteSet]) -> Sequence[tuple[str, Sequence[str]]]:
    """Return the statements that send the signals of changes."""
    transport = signals.get_transport()
    if transport is None:
        return ()
    outgoing = [signal for change in changes for signal in change.signals]
    return transport.statements([signal for signal in outgoing if transport.takes(signal[0])])


def publish(change: WriteSet) -> None:
    """Run a committed change's hooks, and deliver its signals in this process."""
    transport = signals.get_transport()
    hooks = list(change.after)
    for channel, values in change.signals:
        if transport is None or not transport.takes(channel) or transport.keeps(channel):
            hooks.append(partial(signals.deliver, channel, *values))
    for hook in hooks:
        try:
            hook()
        except Exception:  # the commit is done; the other listeners must be called, too
            log.exception("a listener failed after a commit")
