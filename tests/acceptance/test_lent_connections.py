"""Connections that the pool lends again at once are used without a check of their own."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError
from django.db.utils import ConnectionHandler

from console.config import settings as configured
from console.db import postgres, rows
from tests.postgres import FAST, Postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.acceptance, pytest.mark.postgres_only]
_ASK = "SELECT pg_backend_pid(), %s::int"


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    """A PostgreSQL."""
    folder = Path(tempfile.mkdtemp(prefix="stateyard-lent-"))
    folder.chmod(0o755)
    server = Postgres(folder / "pg", *FAST)
    yield server
    server.stop("fast")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def database(server: Postgres, django_db_blocker: Any) -> Iterator[Any]:
    """Django's connection of this thread, from a pool that has lent and got back its only one."""
    pool = {**configured._POOL, "min_size": 1, "max_size": 1}
    options = {"pool": pool, "prepare_threshold": configured._NEVER}
    about = {"ENGINE": "django.db.backends.postgresql", "HOST": str(server.folder)}
    about |= {"NAME": "postgres", "USER": "postgres"}
    handler = ConnectionHandler(
        {"default": {**about, "CONN_HEALTH_CHECKS": True, "OPTIONS": options}}
    )
    database: Any = handler["default"]
    with django_db_blocker.unblock():
        session(database)
        database.close()
        yield database
        database.close()
        database.close_pool()


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """A list with an entry for each answer of the server."""
    answers: list[None] = []
    note = postgres._Silence.note

    def counted(silence: postgres._Silence, *, heard: bool) -> None:
        answers.extend([None] * heard)
        note(silence, heard=heard)

    monkeypatch.setattr(postgres._Silence, "note", counted)
    return answers


def session(database: Any) -> int:
    """Ask by a prepared statement; return the server's number of the session."""
    number, echoed = postgres.fetch_prepared(database, _ASK, [7])
    assert echoed == 7
    return int(number)


def test_a_recent_connection_is_not_asked_before_a_read(database: Any, answers: list[None]) -> None:
    """A read by key is one round trip."""
    session(database)
    assert len(answers) == 1


def test_all_rows_are_read_in_one_round_trip(database: Any, answers: list[None]) -> None:
    """As the first one is."""
    asked = ("SELECT generate_series(1, %s::int)", [2])
    assert rows.call_with(database, rows.fetch_rows, *asked) == [(1,), (2,)]  # parses it
    database.close()
    answers.clear()
    assert rows.call_with(database, rows.fetch_rows, *asked) == [(1,), (2,)]
    assert len(answers) == 1


def test_an_older_connection_is_asked(
    database: Any, answers: list[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network may have dropped it meanwhile."""
    monkeypatch.setattr(postgres, "RECENT_S", -1.0)
    session(database)
    assert len(answers) == 2


def test_it_is_asked_where_a_socket_cannot_be_polled(
    database: Any, answers: list[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows has no ``poll``, so unread bytes would stay unseen."""
    monkeypatch.delattr("select.poll")
    session(database)
    assert len(answers) == 2


def test_a_connection_from_before_a_failover_is_replaced(
    database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have answered since, but reaches the former primary."""
    before = session(database)
    own = database.connection
    database.close()
    monkeypatch.setattr(postgres, "_left_at", own.begun + 1e-6)
    assert session(database) != before


def test_other_statements_are_not_repeated_and_so_ask(database: Any, answers: list[None]) -> None:
    """Only what runs again on a new connection may go without."""
    with database.cursor() as cursor:
        cursor.execute("SELECT 1")
    assert len(answers) == 2


def test_a_suspect_connection_is_asked(
    database: Any, answers: list[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another connection has fallen silent since this one was used."""
    monkeypatch.setattr(postgres, "_cut_at", monotonic())
    session(database)
    assert len(answers) == 2


@pytest.mark.parametrize("is_seen", [True, False])
def test_a_session_that_has_just_ended_is_replaced(
    server: Postgres, database: Any, monkeypatch: pytest.MonkeyPatch, *, is_seen: bool
) -> None:
    """Whether its last message has arrived when it is lent, or arrives after that."""
    before = session(database)
    database.close()
    if not is_seen:
        monkeypatch.setattr(postgres.WatchedConnection, "_is_recent", lambda _: True)  # each time
    server.end_sessions()
    assert session(database) != before


def test_an_outage_is_raised(server: Postgres, database: Any) -> None:
    """A server that is gone is no session that has ended."""
    database.pool.timeout = 0.5
    server.stop("immediate")
    try:
        with pytest.raises(OperationalError):
            session(database)
    finally:
        server.start()
