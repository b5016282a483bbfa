"""Changes of many threads that PostgreSQL writes in one transaction fail one by one."""

from __future__ import annotations

import itertools
import json
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from django.db import OperationalError, connection

import engine
from console.db import merged, rows, writer
from console.errors import ServiceError
from console.models import Execution, HistoryEvent, InboxMessage, RunRow, Timer
from console.store.executions import start as start_module
from console.store.state import inbox
from tests.console.db.recorded import recorded_start, recorded_step
from tests.console.store.helpers import (
    PASS,
    WAIT,
    assert_nothing_wrong,
    create,
    drain,
    function,
    one,
    start,
)

if TYPE_CHECKING:
    from console.models import Project

pytestmark = [pytest.mark.postgres_only, pytest.mark.usefixtures("own_connection")]
TWO_WAITS = {
    "StartAt": "First",
    "States": {
        "First": {"Type": "Wait", "Seconds": 60, "Next": "Second"},
        "Second": {"Type": "Wait", "Seconds": 3600, "End": True},
    },
}
AWKWARD = '{"a": "\\"quoted\\" \\\\ {braces}, NULL \\n \u00fc \U0001f600"}'


def test_one_that_is_fenced_leaves_the_others(project: Project) -> None:
    """The others are committed whole; the fenced one is run by itself, and writes nothing."""
    machine = create(project, PASS)
    executions = [start(machine) for _ in range(3)]
    changes = [recorded_step(execution) for execution in executions]
    drain(executions[1])
    before = HistoryEvent.objects.filter(execution=executions[1]).count()
    failed = merged.commit(changes)
    assert list(failed) == [1]
    assert isinstance(failed[1], merged.RunAlone)
    assert set(Execution.objects.values_list("status", flat=True)) == {"SUCCEEDED"}
    assert HistoryEvent.objects.filter(execution=executions[1]).count() == before
    assert_nothing_wrong()


def test_a_statement_is_parsed_and_planned_once(project: Project) -> None:
    """A second commit finds its statements prepared; no plan reads a table whole."""
    machine = create(project, PASS)
    for _ in range(2):
        assert not merged.commit([recorded_step(start(machine))])
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT statement, custom_plans FROM pg_prepared_statements WHERE generic_plans > 1"
        )
        prepared = dict(cursor.fetchall())
        assert {text.split(" ")[0] for text in prepared} >= {"BEGIN", "UPDATE", "INSERT", "COMMIT"}
        assert not any(prepared.values())
        cursor.execute("SHOW enable_seqscan")
        assert cursor.fetchone() == ("on",), "a setting outlived its transaction"


def test_a_late_step_without_events_takes_nothing_back(project: Project) -> None:
    """Only the version refuses it: no event stands twice, and no execution ends a second time.

    1. A reads version 1 in the first state, and a message that changes nothing.
    2. B commits version 2: the execution is in its second state.
    3. A's commit would put the run back into the first state.
    """
    execution = start(create(project, TWO_WAITS))
    drain(execution)
    writer.write(lambda: inbox.post_message(execution.pk, engine.TaskStarted(1000)))
    late = recorded_step(execution)
    Timer.objects.update(due_ms=1)
    drain(execution)
    in_second_state = RunRow.objects.get().snapshot
    other = start(create(project, PASS, "other"))
    assert list(merged.commit([late, recorded_step(other)])) == [0]
    assert RunRow.objects.get(pk=execution.pk).snapshot == in_second_state
    assert Execution.objects.get(pk=other.pk).status == "SUCCEEDED"
    Timer.objects.update(due_ms=1)
    assert drain(execution).status == "SUCCEEDED"
    assert_nothing_wrong()


def test_a_statement_that_fails_writes_nothing_of_any(project: Project) -> None:
    """Nobody knows whose row it was, so each is run by itself."""
    machine = create(project, PASS)
    executions = [start(machine) for _ in range(2)]
    changes = [recorded_step(execution) for execution in executions]
    doubled = rows.inserting("console_timer", "execution_id, name, due_ms")
    changes[0].add(doubled, [(executions[0].pk, "t", 1), (executions[0].pk, "t", 1)])
    failed = merged.commit(changes)
    assert sorted(failed) == [0, 1]
    assert set(Execution.objects.values_list("status", flat=True)) == {"RUNNING"}
    assert merged.commit([recorded_step(executions[1])]) == {}


def test_one_name_starts_once(project: Project) -> None:
    """Of two starts of a name in one transaction one is written; the other one finds it."""
    machine = create(project, WAIT)
    failed = merged.commit([recorded_start(machine, name) for name in ("a", "b", "a")])
    assert list(failed) in ([0], [2])
    assert sorted(Execution.objects.values_list("name", flat=True)) == ["a", "b"]
    assert_nothing_wrong()


def test_nothing_starts_while_its_machine_is_deleted(project: Project) -> None:
    """The start is run by itself, and says why it is refused."""
    machine = create(project, PASS)
    change = recorded_start(machine, "late")
    type(machine).objects.update(status="DELETING")
    assert list(merged.commit([change])) == [0]
    with pytest.raises(ServiceError, match="is being deleted"):
        start_module.start_execution(machine, name="late")
    assert not Execution.objects.exists()


def test_two_changes_of_an_execution_wait_for_each_other(project: Project) -> None:
    """Claims of its tasks go together; a step goes by itself, and what comes later behind it."""
    execution = start(create(project, PASS))
    other = start(create(project, PASS, "other"))
    first, second = recorded_step(execution), recorded_step(execution)
    third, stranger = recorded_step(execution), recorded_step(other)
    group, rest = merged.take_together([first, second, stranger, third])
    assert group == [first, stranger]
    assert [id(change) for change in rest] == [id(second), id(third)]


def test_nobody_waits_for_a_row_that_another_holds(project: Project) -> None:
    """A step whose row is locked is run by itself, and the writer goes on."""
    execution = start(create(project, PASS))
    change = recorded_step(execution)
    with psycopg.connect(**_address()) as holder:
        holder.execute(
            "SELECT 1 FROM console_runrow WHERE execution_id = %s FOR UPDATE", [execution.pk]
        )
        assert list(merged.commit([change])) == [0]
        holder.rollback()
    assert merged.commit([recorded_step(execution)]) == {}


def test_a_connection_that_died_before_is_replaced(project: Project) -> None:
    """Nothing had been committed on it, so the changes are written on a new one."""
    execution = start(create(project, PASS))
    change = recorded_step(execution)
    connection.ensure_connection()
    pid = connection.connection.info.backend_pid
    with psycopg.connect(**_address(), autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
    assert merged.commit([change]) == {}
    execution.refresh_from_db()
    assert execution.status == "SUCCEEDED"


def test_a_connection_that_dies_at_the_commit_is_an_outage(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows what became of it: the callers hear so, and the sweep looks at the rows."""
    execution = start(create(project, PASS))
    change = recorded_step(execution)
    send = merged._signals

    def cut(changes: Any) -> Any:
        pid = connection.connection.info.backend_pid
        with psycopg.connect(**_address(), autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        return send(changes)

    with monkeypatch.context() as patch:
        patch.setattr(merged, "_signals", cut)
        with pytest.raises(OperationalError) as caught:
            merged.commit([change])
    assert writer.is_outage(caught.value)
    connection.close()
    drain(execution)
    assert_nothing_wrong()


def test_texts_come_back_as_they_were(project: Project) -> None:
    """Quotes, backslashes, braces, NULL and what is outside of ASCII."""
    execution = start(create(project, one("T", **function("f"))))
    execution.input = AWKWARD
    messages = [(execution.pk, "Stop", AWKWARD, 1), (execution.pk, "Stop", "", 2)]
    change = rows.WriteSet()
    statement = rows.inserting("console_inboxmessage", "execution_id, kind, body, created_ms")
    change.add(statement, messages)
    assert merged.commit([change]) == {}
    stored = InboxMessage.objects.order_by("created_ms").values_list("body", flat=True)
    assert list(stored) == [AWKWARD, ""]


def test_many_rows_are_copied(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between what stands before and behind them, and with the same values."""
    copied: list[int] = []
    copy = merged._copy

    def noted(statement: rows.Statement, values: Any) -> None:
        copied.append(len(values))
        copy(statement, values)

    monkeypatch.setattr(merged, "_WORTH_A_COPY", 5)
    monkeypatch.setattr(merged, "_copy", noted)
    states = {name: {"Type": "Pass", "Next": after} for name, after in itertools.pairwise("ABCD")}
    machine = create(project, {"StartAt": "A", "States": {**states, "D": PASS["States"]["P"]}})
    executions = [start(machine, json.loads(AWKWARD)) for _ in range(2)]
    assert merged.commit([recorded_step(execution) for execution in executions]) == {}
    assert copied == [2 * 9]
    for execution in executions:
        execution.refresh_from_db()
        assert json.loads(str(execution.output)) == json.loads(AWKWARD)
        last = HistoryEvent.objects.filter(execution=execution).order_by("-event_id")[0]
        assert json.loads(last.details)["output"] == execution.output
    assert_nothing_wrong()


def test_nobody_waits_for_the_keys_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database is silent to one caller; the next one asks by itself."""
    silent, asked, keys = threading.Event(), threading.Event(), itertools.count(1)

    def take(*_: object) -> list[int]:
        if threading.current_thread().name == "silent":
            asked.set()
            silent.wait(30)
        return [next(keys)]

    monkeypatch.setattr(rows, "take_keys", take)
    with ThreadPoolExecutor(2) as threads:

        def ask(name: str) -> int:
            threading.current_thread().name = name
            return rows.next_key("nowhere", "id")

        first = threads.submit(ask, "silent")
        assert asked.wait(30)
        assert threads.submit(ask, "other").result(30) == 1
        silent.set()
        assert first.result(30) == 2


def test_an_answer_that_cannot_be_made_ends_no_other(project: Project) -> None:
    """The thread that commits goes on, and the others get their answers."""
    execution = start(create(project, PASS))
    wrong, right = rows.WriteSet(), recorded_step(execution)
    wrong.make = lambda _: {}["nothing"]
    futures: list[Future[Any]] = [Future(), Future()]
    assert merged.commit_changes([*zip((wrong, right), futures, strict=True)]) == []
    assert isinstance(futures[0].exception(1), KeyError)
    assert futures[1].result(1) is None
    execution.refresh_from_db()
    assert execution.status == "SUCCEEDED"


def test_what_asks_the_database_is_not_recorded(project: Project) -> None:
    """Neither by a query of the ORM, nor by a row lock, nor by a cursor."""
    start(create(project, WAIT))
    assert rows.record(RunRow.objects.count) is None
    assert rows.record(lambda: RunRow.objects.select_for_update().first()) is None
    assert rows.record(lambda: RunRow.objects.update(failures=7)) is None
    assert set(RunRow.objects.values_list("failures", flat=True)) == {0}


def _address() -> dict[str, Any]:
    settings = connection.settings_dict
    return {
        "host": settings["HOST"],
        "user": settings["USER"],
        "dbname": settings["NAME"],
    }
