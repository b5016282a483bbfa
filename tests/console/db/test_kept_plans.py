"""What PostgreSQL plans once a connection is right for tables of any size."""

from __future__ import annotations

import gc
import json
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from django.db import DataError, NotSupportedError, connection, transaction
from psycopg.pq import TransactionStatus

from console.db import merged, rows
from console.db.pipeline import _numbered
from console.db.rows import Statement
from console.models import Execution
from console.store.executions import read_steps
from tests.console.db.recorded import recorded_step
from tests.console.store.helpers import PASS, assert_nothing_wrong, create, start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.models import Project

pytestmark = [pytest.mark.postgres_only, pytest.mark.usefixtures("own_connection")]


def statements() -> list[Statement]:
    """Return all statements of the store that look for rows."""
    gc.unfreeze()  # get_objects leaves out what conftest.py has frozen
    # By type, not by isinstance: a lazy object of Django's is asked for its class, and made.
    statements = [statement for statement in gc.get_objects() if type(statement) is Statement]
    gc.freeze()
    return [statement for statement in statements if not statement.for_many.startswith("INSERT")]


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield all parts of a plan."""
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)


@pytest.mark.usefixtures("project")
def test_rows_are_found_by_an_index() -> None:
    """Planned while the tables are empty and never analyzed, as on a new server.

    (PostgreSQL plans anew by itself what it planned for a table that it had analyzed as empty.)
    """
    assert len(statements()) > 10
    tables = [name for name in connection.introspection.table_names() if name[:8] == "console_"]
    with connection.cursor() as cursor, transaction.atomic():
        connection.connection.execute(f"TRUNCATE {', '.join(tables)} CASCADE")
        # what autovacuum has found out about the rows of earlier tests
        connection.connection.execute("DELETE FROM pg_statistic WHERE starelid > 16383")
        cursor.execute(merged._BEGIN[1][0])
        for sql in [*(each.for_many for each in statements()), _numbered(read_steps._OF_MANY)]:
            text = f"EXPLAIN (GENERIC_PLAN, FORMAT JSON) {sql}"
            [[answer]] = connection.connection.execute(text).fetchall()
            plan = answer if isinstance(answer, list) else json.loads(answer)
            for node in nodes(plan[0]["Plan"]):
                reads = "Relation Name" in node and node["Node Type"] != "ModifyTable"
                if reads and node["Relation Name"].startswith("console_"):
                    # a bitmap's index condition is repeated for the rows of the table
                    assert node.get("Index Cond") or node.get("Recheck Cond"), (sql, node)
        transaction.set_rollback(True)


def test_a_plan_of_a_table_that_changed_is_made_anew(project: Project) -> None:
    """A release that changes a column's type does not end what an earlier one has prepared."""
    machine = create(project, PASS)
    executions = [start(machine) for _ in range(3)]
    changes = [recorded_step(execution) for execution in executions]
    assert merged.commit(changes[:1]) == {}
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE console_runrow ALTER execution_id TYPE numeric")
        try:
            merged.commit(changes[1:2])
            assert merged.commit(changes[2:]) == {}
        finally:
            connection.ensure_connection()
            connection.connection.execute(
                "ALTER TABLE console_runrow ALTER execution_id TYPE bigint"
            )
    assert Execution.objects.get(pk=executions[2].pk).status == "SUCCEEDED"
    assert_nothing_wrong()


def test_a_commit_waits_once_a_round_trip(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each wait the thread that commits would have to wait for the other threads, too."""
    machine = create(project, PASS)
    changes = [recorded_step(start(machine)) for _ in range(2)]
    assert merged.commit(changes[:1]) == {}
    waits: list[object] = []
    wait = psycopg.Connection.wait

    def counted(own: psycopg.Connection[Any], *arguments: Any, **options: Any) -> Any:
        waits.append(own)
        return wait(own, *arguments, **options)

    monkeypatch.setattr(psycopg.Connection, "wait", counted)
    assert merged.commit(changes[1:]) == {}
    assert len(waits) == 2


def test_a_statement_that_the_server_has_forgotten_is_parsed_again(project: Project) -> None:
    """After a rollback by Django, psycopg makes the server forget all prepared statements."""
    machine = create(project, PASS)
    changes = [recorded_step(start(machine)) for _ in range(2)]
    assert merged.commit(changes[:1]) == {}
    connection.connection.execute("DEALLOCATE ALL")
    assert merged.commit(changes[1:]) == {}


@pytest.mark.usefixtures("project")
def test_a_read_with_a_kept_plan_leaves_no_transaction() -> None:
    """Neither after its rows nor after an error; the connection can be used for the next read."""
    statement = "SELECT 12 / CAST(%s AS integer) WHERE 1 = ANY(%s::bigint[])"
    assert rows.fetch_rows(statement, [3, [1, 2]], keep_plan=True) == [(4,)]
    with pytest.raises(DataError):
        rows.fetch_rows(statement, [0, [1]], keep_plan=True)
    assert connection.connection.pgconn.transaction_status == TransactionStatus.IDLE
    assert rows.fetch_rows(statement, [2, [1]], keep_plan=True) == [(6,)]


@pytest.mark.usefixtures("project")
def test_a_kept_plan_is_made_once() -> None:
    """The server counts no custom plan of a statement that was read three times."""
    statement = "SELECT name FROM console_project WHERE name = %s"
    for _ in range(3):
        rows.fetch_rows(statement, ["default"], keep_plan=True)
    plans = "SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE statement = %s"
    assert connection.connection.execute(plans, [_numbered(statement)]).fetchall() == [(3, 0)]


@pytest.fixture
def outdated(project: Project) -> Iterator[str]:
    """Yield a statement that was executed before another session changed the type of its row."""
    statement = "SELECT name FROM console_project WHERE name = %s"
    assert rows.fetch_row(statement, [project.name]) == ("default",)
    address = connection.get_connection_params()
    names = ("dbname", "user", "password", "host", "port")
    with psycopg.connect(**{key: address[key] for key in names if key in address}) as other:
        other.execute("ALTER TABLE console_project ALTER name TYPE text")
    yield statement
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE console_project ALTER name TYPE varchar(80)")


def test_a_row_is_read_when_its_table_has_changed(outdated: str) -> None:
    """The connection is left that has the statement of then."""
    assert rows.fetch_row(outdated, ["default"]) == ("default",)


def test_a_transaction_ends_when_its_table_has_changed(outdated: str) -> None:
    """It fails, as any statement in it would; the next one reads."""
    with pytest.raises(NotSupportedError), transaction.atomic():
        rows.fetch_row(outdated, ["default"])
    with transaction.atomic():
        assert rows.fetch_row(outdated, ["default"]) == ("default",)
