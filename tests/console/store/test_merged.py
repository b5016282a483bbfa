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
from console.errors import ServiceError
from console.fast_path import rows
from console.models import (
    EventRule,
    Execution,
    HistoryEvent,
    InboxMessage,
    MapRun,
    OutboxEvent,
    RunRow,
    TaskRow,
    Timer,
)
from console.store.db import merged, writer
from console.store.events import outbox
from console.store.executions import start as start_module
from console.store.executions import step
from console.store.state import inbox
from console.store.tasks import activities, claim, complete
from tests.console.store.helpers import (
    ACTIVITY,
    PASS,
    WAIT,
    WORK,
    assert_nothing_wrong,
    create,
    drain,
    function,
    one,
    start,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.models import Project

pytestmark = pytest.mark.postgres_only
TWO_WAITS = {
    "StartAt": "First",
    "States": {
        "First": {"Type": "Wait", "Seconds": 60, "Next": "Second"},
        "Second": {"Type": "Wait", "Seconds": 3600, "End": True},
    },
}
FAIL = {"StartAt": "F", "States": {"F": {"Type": "Fail"}}}
AWKWARD = '{"a": "\\"quoted\\" \\\\ {braces}, NULL \\n \u00fc \U0001f600"}'


@pytest.fixture(autouse=True)
def own_connection() -> Iterator[None]:
    """Leave no connection in a state of its own behind."""
    yield
    connection.close()


def recorded_step(execution: Execution) -> rows.Recorded:
    """Return what the next step of an execution would write."""
    loaded = step.load_step(execution.pk)
    assert loaded is not None
    steps = step.advance_run(loaded)
    step._ask_ahead(loaded)
    change = rows.record(lambda: step.commit_step(loaded, steps))
    assert change is not None
    return change


def recorded_start(project: Project, machine: Any, name: str) -> rows.Recorded:
    """Return what a start would write."""
    del project
    change = rows.record(start_module.pending_start(machine, name=name, ahead=True)._change)
    assert change is not None
    return change


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
    failed = merged.commit([recorded_start(project, machine, name) for name in ("a", "b", "a")])
    assert list(failed) in ([0], [2])
    assert sorted(Execution.objects.values_list("name", flat=True)) == ["a", "b"]
    assert_nothing_wrong()


def test_nothing_starts_while_its_machine_is_deleted(project: Project) -> None:
    """The start is run by itself, and says why it is refused."""
    machine = create(project, PASS)
    change = recorded_start(project, machine, "late")
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
    group, left = merged.take_together([first, second, stranger, third])
    assert group == [first, stranger]
    assert [id(change) for change in left] == [id(second), id(third)]


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
    send = merged._send_signals

    def cut(changes: Any) -> None:
        send(changes)
        pid = connection.connection.info.backend_pid
        with psycopg.connect(**_address(), autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])

    with monkeypatch.context() as patch:
        patch.setattr(merged, "_send_signals", cut)
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
    change = rows.Recorded()
    statement = rows.inserting("console_inboxmessage", "execution_id, kind, body, created_ms")
    change.add(statement, messages)
    assert merged.commit([change]) == {}
    stored = InboxMessage.objects.order_by("created_ms").values_list("body", flat=True)
    assert list(stored) == [AWKWARD, ""]


def test_nobody_waits_for_the_keys_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database is silent to one caller; the next one asks by itself."""
    silent, asked, keys = threading.Event(), threading.Event(), itertools.count(1)

    def take(table: str, key: str) -> list[int]:
        del table, key
        if threading.current_thread().name == "silent":
            asked.set()
            silent.wait(30)
        return [next(keys)]

    monkeypatch.setattr(rows, "_take_keys", take)
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
    wrong, right = rows.Recorded(), recorded_step(execution)
    wrong.result = rows.Late(lambda returned: returned["nothing"])
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


# -- what commits with others ----------------------------------------------------------------------


def test_children_of_map_runs_are_counted_together(project: Project) -> None:
    """Each Map Run gets the sum of its own, by one statement."""
    passes, fails = create(project, PASS), create(project, FAIL, "fails")
    parent = start(create(project, WAIT, "parent"))
    map_runs = [map_run(parent, task) for task in (1, 2)]
    executions = [start(machine) for machine in (passes, passes, fails, passes, fails)]
    for number, execution in enumerate(executions):
        execution.map_run = map_runs[number // 3]
        execution.save()
    assert merged.commit([recorded_step(execution) for execution in executions]) == {}
    counted = MapRun.objects.order_by("task").values_list("succeeded", "failed", "aborted")
    assert list(counted) == [(2, 1, 0), (1, 1, 0)]


def map_run(parent: Execution, task: int) -> MapRun:
    """Return a Map Run."""
    return MapRun.objects.create(
        parent=parent,
        task=task,
        arn=f"{parent.arn}/{task}",
        state_machine_arn=f"{parent.state_machine_arn}/label",
        definition_id=parent.definition_id,
        total=3,
        start_ms=1,
    )


def test_the_event_of_an_end_is_written_with_others(project: Project) -> None:
    """It says what the one says that a step makes which is written by itself."""
    EventRule.objects.create(
        project=project, arn="rule", name="rule", region="us-east-1", pattern="{}", created_ms=1
    )
    outbox.forget_rules()
    machine = create(project, one("P", Type="Pass", Result={"a": "b"}))
    executions = [start(machine, number) for number in range(3)]
    OutboxEvent.objects.all().delete()
    alone = executions.pop()
    drain_alone(alone)
    assert merged.commit([recorded_step(execution) for execution in executions]) == {}
    bodies = [json.loads(event.body) for event in OutboxEvent.objects.order_by("pk")]
    assert [body["detail"].pop("executionArn") for body in bodies] == [
        execution.arn for execution in (alone, *executions)
    ]
    details = [body["detail"] for body in bodies]
    assert [detail["status"] for detail in details] == ["SUCCEEDED"] * 3
    assert [detail["output"] for detail in details] == ['{"a":"b"}'] * 3
    for detail in details:
        assert detail.pop("stopDate") >= detail.pop("startDate")
        assert detail.pop("name")
        assert detail.pop("input") is not None
    assert details[1:] == details[:1] * 2
    outbox.forget_rules()


def drain_alone(execution: Execution) -> None:
    """Take a step whose change is not recorded."""
    loaded = step.load_step(execution.pk)
    assert loaded is not None
    steps = step.advance_run(loaded)
    writer.write(lambda: step.commit_step(loaded, steps))


def test_an_outcome_by_its_token_is_written_with_others(project: Project) -> None:
    """The second one of a task is refused, as if there were no merging."""
    activities.create_activity(project, "us-east-1", "work")
    executions = [start(create(project, WORK, f"works-{number}")) for number in range(2)]
    for execution in executions:
        drain(execution)
    taken = [claim.take_activity_task(ACTIVITY) for _ in executions]
    outcomes = [complete.pending_success(task.token, "1", project) for task in taken if task]
    late = complete.pending_failure(taken[0].token, "Late", None, project) if taken[0] else None
    changes = [rows.record(outcome._change) for outcome in outcomes]
    assert late is not None
    late_change = rows.record(late._change)
    assert merged.commit([change for change in changes if change]) == {}
    assert late_change is not None
    assert list(merged.commit([late_change])) == [0]
    with pytest.raises(ServiceError, match="Task Timed Out"):
        late.now()
    assert [drain(execution).status for execution in executions] == ["SUCCEEDED"] * 2
    assert_nothing_wrong()


def test_many_rows_are_copied(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between what stands before and behind them, and with the same values."""
    copied: list[int] = []
    copy = merged._copy

    def noted(statement: rows.Statement, given: Any) -> None:
        copied.append(len(given))
        copy(statement, given)

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


def test_an_execution_that_ends_at_once_is_written_once(project: Project) -> None:
    """As PostgreSQL writes a new version of a row and of its entries in indexes for an update."""
    change = recorded_start(project, create(project, PASS), "quick")
    assert not [each.text for each in change.rows if each.text.startswith(("UPDATE", "DELETE"))]
    assert merged.commit([change]) == {}
    row = Execution.objects.get(name="quick")
    assert (row.status, row.output, row.stop_ms is not None) == ("SUCCEEDED", "{}", True)
    assert_nothing_wrong()


def recorded_claim(activity: str, worker: str) -> rows.Recorded:
    """Return what a poller's claim would write."""
    taking = claim.pending_activity_task(activity, worker)
    assert taking is not None
    change = rows.record(taking._change)
    assert change is not None
    return change


def given_task(change: rows.Recorded) -> claim.ClaimedTask | None:
    """Return which task a poller gets by its committed claim."""
    assert isinstance(change.result, rows.Late)
    work: claim.ClaimedTask | None = change.result.make(change.returned)
    return work


def test_pollers_that_ask_together_get_a_task_each(project: Project) -> None:
    """The oldest tasks go to those who asked first, of each activity; the others get none."""
    for name in ("work", "other"):
        activities.create_activity(project, "us-east-1", name)
    other = ACTIVITY.replace(":work", ":other")
    states = {"A": {"Type": "Task", "Resource": other, "End": True}}
    machines = [
        *[create(project, WORK, f"work-{number}") for number in range(2)],
        create(project, {"StartAt": "A", "States": states}, "elsewhere"),
    ]
    executions = [start(machine) for machine in machines]
    for execution in executions:
        drain(execution)
    step_of_another = recorded_step(start(create(project, PASS, "pass")))
    pollers = [recorded_claim(ACTIVITY, f"w{number}") for number in range(3)]
    pollers.append(recorded_claim(other, 'w "quoted"'))
    assert merged.commit([*pollers, step_of_another]) == {}
    works = [given_task(change) for change in pollers]
    assert [work and work.execution_id for work in works] == [
        *(execution.pk for execution in executions[:2]),
        None,
        executions[2].pk,
    ]
    assert list(TaskRow.objects.order_by("execution_id").values_list("worker", flat=True)) == [
        *("w0", "w1"),
        'w "quoted"',
    ]
    assert InboxMessage.objects.filter(kind="TaskStarted").count() == 3
    for work in filter(None, works):
        complete.succeed(work.token, "1", project)
    assert [drain(execution).status for execution in executions] == ["SUCCEEDED"] * 3
    assert_nothing_wrong()


def test_a_claim_as_by_itself_has_the_same_rows(project: Project) -> None:
    """Clocks, dispatches and name of a task are those of a claim that is not merged."""
    activities.create_activity(
        project, "us-east-1", "work", tags={"stepyard:startToCloseTimeout": "30"}
    )
    definition = one("A", Type="Task", Resource=ACTIVITY, HeartbeatSeconds=10, TimeoutSeconds=20)
    executions = [start(create(project, definition, f"m{number}")) for number in range(2)]
    for execution in executions:
        drain(execution)
    assert merged.commit([recorded_claim(ACTIVITY, "w")]) == {}
    taking = claim.pending_activity_task(ACTIVITY, "w")
    assert taking is not None
    assert taking.alone() is not None
    first, second = TaskRow.objects.order_by("scheduled_ms", "execution_id").values()
    for row in (first, second):
        started_ms = row.pop("started_ms")
        for name in ("timeout_due_ms", "heartbeat_due_ms"):
            row[name] -= started_ms
        for name in ("execution_id", "token_hash", "scheduled_ms", "close_due_ms"):
            row.pop(name)
    assert first == second
    assert (first["timeout_due_ms"], first["heartbeat_due_ms"]) == (20_000, 10_000)


def test_a_task_that_is_closed_with_the_claim_is_taken_by_nobody(project: Project) -> None:
    """An outcome and a poller's claim in one transaction: the task is over."""
    activities.create_activity(project, "us-east-1", "work")
    execution = start(create(project, WORK))
    drain(execution)
    work = claim.take_activity_task(ACTIVITY, "w")
    assert work is not None
    claim.return_task(work)
    ended = rows.record(complete.pending_success(work.token, "1", project)._change)
    assert ended is not None
    poller = recorded_claim(ACTIVITY, "another")
    assert merged.commit([poller, ended]) == {}
    assert given_task(poller) is None
    assert drain(execution).status == "SUCCEEDED"
    assert_nothing_wrong()


def test_what_a_claim_adds_is_forgotten_with_a_rollback(project: Project) -> None:
    """The claim is sent again without the change that failed: its message stands once."""
    activities.create_activity(project, "us-east-1", "work")
    execution = start(create(project, WORK))
    drain(execution)
    fenced = start(create(project, PASS, "pass"))
    late = recorded_step(fenced)
    drain(fenced)
    poller = recorded_claim(ACTIVITY, "w")
    assert list(merged.commit([poller, late])) == [1]
    assert given_task(poller) is not None
    assert InboxMessage.objects.count() == 1
