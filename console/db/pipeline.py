"""Run several prepared statements in one round trip to PostgreSQL, with one wait.

psycopg's pipeline sends each statement by itself, and looks for results after each. A commit of
twelve statements takes seventeen waits then. Each of them releases the interpreter, and the thread
that commits has to wait for the other threads each time. Here libpq collects all messages, sends
them together, and the thread waits once.
"""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import psycopg
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.waiting import Ready, Wait

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from psycopg.abc import PQGen
    from psycopg.pq.abc import PGconn, PGresult

    Text = tuple[str, Sequence[str]]
    """A statement with ``$1``, ``$2``, ... and the texts of their values."""

_prepared: WeakKeyDictionary[psycopg.Connection[Any], dict[str, bytes]] = WeakKeyDictionary()
"""Of each connection: the text of a statement, with the name under which the server has it."""
_numbers = itertools.count()
KEPT_PLANS = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
"""Settings of a transaction whose statements are planned once per connection.

They allow only plans that find each row by an index, which are good for tables of any size.
"""
_FAILURES = {ExecStatus.FATAL_ERROR, ExecStatus.BAD_RESPONSE}


def run_together(own: psycopg.Connection[Any], statements: Sequence[Text]) -> list[list[Any]]:
    """Run statements in one round trip; return the rows of each.

    The server parses each statement once per connection. After an error it skips the others, and
    the first error is raised. ``own`` must not be in psycopg's pipeline.
    """
    try:
        return _execute_all(own, statements)
    except psycopg.errors.InvalidSqlStatementName:
        # After a rollback by Django, psycopg makes the server forget all prepared statements. The
        # first statement of the transaction has failed then, and nothing has happened.
        _prepared.pop(own, None)
        if own.pgconn.transaction_status != TransactionStatus.IDLE:
            raise
        return _execute_all(own, statements)


def set_locally(settings: Mapping[str, str]) -> Text:
    """Return the statement that changes settings until the end of the transaction."""
    values = ", ".join(f"set_config('{name}', '{to}', true)" for name, to in settings.items())
    return f"SELECT {values}", ()


_BEGIN_READ: Sequence[Text] = (("BEGIN READ ONLY", ()), set_locally(KEPT_PLANS))
_END_READ: Text = ("COMMIT", ())


def read_by_kept_plan(
    own: psycopg.Connection[Any], sql: str, values: Sequence[object]
) -> list[tuple[Any, ...]]:
    """Return the rows of a statement with ``%s``, in one round trip; its plan is kept.

    The connection must not be in a transaction.
    """
    texts = [array_text(value) if isinstance(value, list) else str(value) for value in values]
    try:
        answers = run_together(own, [*_BEGIN_READ, (_numbered(sql), texts), _END_READ])
    except BaseException:
        roll_back(own)
        raise
    return answers[len(_BEGIN_READ)]


def roll_back(own: psycopg.Connection[Any]) -> None:
    """Roll back; close the connection if it does not answer."""
    if own.closed or own.broken:
        return
    try:
        run_together(own, (("ROLLBACK", ()),))
    except psycopg.Error:
        own.close()


@lru_cache(maxsize=64)
def _numbered(sql: str) -> str:
    """Return a statement with ``$1``, ``$2``, ... for its ``%s``."""
    parts = sql.split("%s")
    return "".join(f"{part}${place}" for place, part in enumerate(parts[:-1], 1)) + parts[-1]


def _execute_all(own: psycopg.Connection[Any], statements: Sequence[Text]) -> list[list[Any]]:
    pgconn, names = own.pgconn, _prepared.setdefault(own, {})
    prepared = [text for text, _ in statements if text not in names]
    pgconn.enter_pipeline_mode()
    try:
        for text in prepared:
            names[text] = b"together_%d" % next(_numbers)
            pgconn.send_prepare(names[text], text.encode())
        for text, values in statements:
            pgconn.send_query_prepared(names[text], [value.encode() for value in values])
        pgconn.pipeline_sync()
        results = own.wait(_collect(pgconn))
    except BaseException:
        for text in prepared:  # perhaps skipped: it gets another name
            names.pop(text, None)
        raise
    return [_rows(own, result) for result in results[len(prepared) :]]


def _collect(pgconn: PGconn) -> PQGen[list[PGresult]]:
    """Send what is queued; return the result of each message before the sync.

    Errors are raised within the wait, because ``WatchedConnection.wait`` handles some of them.
    """
    while pgconn.flush():
        if (yield Wait.RW) & Ready.R:  # the server reads on only if its answers are read
            pgconn.consume_input()
    results: list[PGresult] = []
    ended = False
    while True:
        while pgconn.is_busy():
            if (yield Wait.R) & Ready.R:
                pgconn.consume_input()
        result = pgconn.get_result()
        if result is None:
            if ended:
                raise psycopg.OperationalError("the connection was closed before the answer")
            ended = True
        elif result.status == ExecStatus.PIPELINE_SYNC:
            pgconn.exit_pipeline_mode()
            _raise_first_error(results)
            return results
        else:
            ended = False
            results.append(result)


def _raise_first_error(results: Sequence[PGresult]) -> None:
    for result in results:
        if result.status in _FAILURES:
            raise error_from_result(result)


def _rows(own: psycopg.Connection[Any], result: PGresult) -> list[Any]:
    """Return the rows of a result as tuples of Python values."""
    if result.status != ExecStatus.TUPLES_OK:
        return []
    transformer = Transformer(own)
    transformer.set_pgresult(result)
    return transformer.load_rows(0, result.ntuples, tuple)


def array_text(values: Sequence[Any]) -> str:
    """Return values as the text of an SQL array, which is faster than psycopg's conversion."""
    first = next((value for value in values if value is not None), None)
    if isinstance(first, str):
        return (
            "{" + ",".join(["NULL" if value is None else _quoted(value) for value in values]) + "}"
        )
    if isinstance(first, bool):
        return "{" + ",".join(["NULL" if value is None else "ft"[value] for value in values]) + "}"
    return "{" + ",".join(["NULL" if value is None else str(value) for value in values]) + "}"


def _quoted(text: str) -> str:
    if "\\" in text:
        text = text.replace("\\", "\\\\")
    return '"' + text.replace('"', '\\"') + '"'
