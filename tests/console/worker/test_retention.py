"""Retention removes expired executions whole, and nothing else."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from console.db import clock
from console.db.writer import write
from console.features.metrics import rollups
from console.features.metrics.models import MetricTotal
from console.models import (
    AuditEntry,
    Execution,
    HistoryEvent,
    MapItem,
    MapRun,
    Project,
    RunRow,
    ServerFact,
    TaskRow,
)
from console.store.executions import redrive, retention
from console.worker import Embedded
from tests.console.store.helpers import (
    PASS,
    WAIT,
    assert_nothing_wrong,
    create,
    drain,
    ended,
    function,
    one,
    start,
)
from tests.console.worker.test_map_runs import distributed
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.models import StateMachine

DAY_MS = 24 * 3600 * 1000


@pytest.fixture(autouse=True)
def summed(project: Project) -> None:
    """The metrics are summed up to an hour ago, as where a worker runs."""
    del project
    until = clock.now_ms() - 3600_000
    minute = str(until - until % 60_000)
    ServerFact.objects.create(name="metrics summed until", value=minute)


def age(execution: Execution, days: float) -> Execution:
    """Let an execution have begun and ended so many days earlier."""
    moment = clock.now_ms() - int(days * DAY_MS)
    Execution.objects.filter(pk=execution.pk).update(start_ms=moment, stop_ms=moment)
    return execution


def done(machine: StateMachine, days: float, data: Any = None) -> Execution:
    """Return an execution that ended so many days ago."""
    return age(drain(start(machine, data)), days)


def older_than(days: float, **more: Any) -> retention.RetentionScope:
    """Return the scope of what ended so many days ago."""
    return retention.RetentionScope(clock.now_ms() - int(days * DAY_MS), **more)


def names_left() -> set[int]:
    """Return the executions there are."""
    return set(Execution.objects.values_list("pk", flat=True))


def rows_left() -> dict[str, int]:
    """Count the rows of every table that belongs to executions."""
    with connection.cursor() as cursor:
        tables = [
            name
            for name in connection.introspection.table_names(cursor)
            if name in ("console_execution", "console_maprun", "console_mapitem")
            or any(
                column.name == "execution_id"
                for column in connection.introspection.get_table_description(cursor, name)
            )
        ]
        counts = {}
        for name in tables:
            cursor.execute(f"SELECT COUNT(*) FROM {name}")
            counts[name] = cursor.fetchone()[0]
    return counts


def said(*args: str) -> str:
    """Run ``manage.py prune`` and return what it printed."""
    out = io.StringIO()
    call_command("prune", *args, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def test_what_ended_before_goes_and_the_rest_stays(project: Project) -> None:
    """Age is by the end; what runs stays however old it is."""
    machine = create(project, PASS)
    old = done(machine, 91)
    young = done(machine, 89)
    running = start(create(project, WAIT, "waits"))
    Execution.objects.filter(pk=running.pk).update(start_ms=1)
    drain(running)
    pruned = retention.prune(older_than(90))
    assert (pruned.executions, pruned.children, pruned.events) == (1, 0, 4)
    assert names_left() == {young.pk, running.pk}
    assert not HistoryEvent.objects.filter(execution_id=old.pk).exists()
    assert_nothing_wrong()


def test_all_rows_of_an_execution_go(project: Project, worker: Embedded, settings: Any) -> None:
    """No table keeps a row of it: history, snapshot, tasks, Map Runs, children, inputs."""
    settings.STATEYARD_FUNCTIONS = {"pick": "tests.console.worker.test_map_runs:pick"}
    inner = one("T", **function("pick"))
    nested = distributed(distributed(inner, "Inner", Label="Inner"), Label="Outer")
    parent = ended(start(create(project, nested), [[1, 2], [4]]))
    assert parent.status == "SUCCEEDED"
    worker.stop()
    assert Execution.objects.count() == 1 + 2 + 3
    run = MapRun.objects.filter(parent=parent).get()
    MapItem.objects.bulk_create(
        MapItem(map_run=run, item_index=index, input="1") for index in range(20_000, 20_010)
    )
    age(parent, 100)
    pruned = retention.prune(older_than(90))
    assert (pruned.executions, pruned.children) == (1, 5)
    counts = rows_left()
    assert len(counts) >= 8
    assert not any(counts.values()), counts


def test_children_stay_with_a_parent_that_stays(project: Project, worker: Embedded) -> None:
    """However long ago they ended themselves."""
    parent = ended(start(create(project, distributed(PASS)), [1, 2]))
    worker.stop()
    for child in Execution.objects.filter(map_run__parent=parent):
        age(child, 1000)
    assert retention.prune(older_than(90)).children == 0
    assert Execution.objects.count() == 3


def test_a_parent_stays_while_a_child_runs(project: Project, worker: Embedded) -> None:
    """What is still being stopped belongs to somebody."""
    parent = ended(start(create(project, distributed(PASS)), [1, 2]))
    worker.stop()
    age(parent, 100)
    child = Execution.objects.filter(map_run__parent=parent).latest("pk")
    Execution.objects.filter(pk=child.pk).update(status="RUNNING", stop_ms=None)
    pruned = retention.prune(older_than(90))
    assert (pruned.executions, pruned.children, pruned.needed) == (0, 0, 1)
    assert Execution.objects.count() == 3
    Execution.objects.filter(pk=child.pk).update(status="SUCCEEDED", stop_ms=1)
    assert retention.prune(older_than(90)).executions == 1
    assert Execution.objects.count() == 0


def test_half_removed_is_finished_and_cannot_be_redriven(
    project: Project, worker: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process killed among the children leaves a parent that the next one removes."""
    fails = {"StartAt": "F", "States": {"F": {"Type": "Fail"}}}
    machine = create(project, distributed(fails, ToleratedFailurePercentage=0))
    parent = ended(start(machine, [1, 2, 3]))
    worker.stop()
    while Execution.objects.filter(status="RUNNING").exists():
        for one_left in Execution.objects.filter(status="RUNNING"):
            drain(one_left)
    assert redrive.redrive_refusal(Execution.objects.get(pk=parent.pk)) == ""
    assert not retention.is_begun(parent.pk)
    children = Execution.objects.filter(map_run__parent=parent).count()
    monkeypatch.setattr(retention, "EVENTS_AT_ONCE", 1)
    scope = retention.RetentionScope(clock.now_ms() + 1000)

    def killed(so_far: retention.Pruned) -> bool:
        raise KeyboardInterrupt(so_far)

    with pytest.raises(KeyboardInterrupt):
        retention.prune(scope, go_on=killed)
    assert Execution.objects.count() == children
    call_command("check_invariants", stdout=io.StringIO())
    assert redrive.redrive_refusal(Execution.objects.get(pk=parent.pk)) != ""
    assert retention.prune(scope).executions == 1
    assert Execution.objects.count() == 0


def test_what_is_redriven_meanwhile_stays(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it runs is asked again under the lock."""
    fails = create(project, {"StartAt": "F", "States": {"F": {"Type": "Fail"}}})
    _, second = (drain(start(fails)) for _ in range(2))
    monkeypatch.setattr(retention, "EVENTS_AT_ONCE", 1)

    def redriven(so_far: retention.Pruned) -> bool:
        if so_far.executions == 1 and second.status == "FAILED":
            redrive.redrive_execution(second)
            second.refresh_from_db()
        return True

    assert (
        retention.prune(retention.RetentionScope(clock.now_ms() + 1000), go_on=redriven).executions
        == 1
    )
    assert names_left() == {second.pk}
    again = drain(second)
    assert (again.status, again.redrive_count) == ("FAILED", 1)


def test_a_nested_execution_stays_while_its_task_will_ask_for_it(project: Project) -> None:
    """The parent's ``.sync`` task has not heard of its end yet."""
    child = done(create(project, PASS), 100)
    parent = start(create(project, WAIT, "waits"))
    task = TaskRow.objects.create(
        execution=parent,
        task=3,
        kind="service",
        resource="states:startExecution.sync",
        service="states",
        state="S",
        input="{}",
        status="waiting",
        token_hash="x",
        scheduled_ms=1,
        job=json.dumps({"Look": {"ExecutionArn": child.arn}}),
    )
    assert retention.prune(older_than(90)).needed == 1
    assert child.pk in names_left()
    TaskRow.objects.filter(execution_id=parent.pk, task=task.task).update(status="closed")
    assert retention.prune(older_than(90)).executions == 1


def test_machine_and_project_narrow_it_down(project: Project) -> None:
    """Names count letter by letter; another project's namesake is not touched."""
    other = Project.objects.create(name="other", account_id="210987654321")
    mine = [done(create(project, PASS, name), 100) for name in ("m", "M", "xm")]
    theirs = done(create(other, PASS, "m"), 100)
    assert retention.prune(older_than(90, project="default", machine="m")).executions == 1
    assert names_left() == {mine[1].pk, mine[2].pk, theirs.pk}
    assert retention.prune(older_than(90, project="other")).executions == 1
    assert names_left() == {mine[1].pk, mine[2].pk}


def test_transactions_are_bounded(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the number of executions and by the events they have together."""
    machine = create(project, PASS)
    for _ in range(7):
        done(machine, 100)
    sizes: list[int] = []

    def note(so_far: retention.Pruned) -> bool:
        sizes.append(so_far.executions)
        return len(sizes) < 2

    assert retention.prune(older_than(90), batch=2, go_on=note).executions == 4
    assert sizes == [2, 4]
    monkeypatch.setattr(retention, "EVENTS_AT_ONCE", 5)  # one has four, and the next number is 5
    sizes.clear()
    retention.prune(older_than(90), batch=500, go_on=note)
    assert sizes == [1, 2]


def test_the_audit_tells_who_removed_how_many(project: Project) -> None:
    """Two rows a project, none where nothing went."""
    done(create(project, PASS), 100)
    Project.objects.create(name="empty", account_id="210987654321")
    said("--older-than", "90d")
    rows = AuditEntry.objects.filter(action="PruneExecutions").order_by("pk")
    assert [(row.project_id, row.actor, row.target) for row in rows] == [
        (project.pk, "manage.py", "default")
    ] * 2
    assert rows[0].reason.startswith("begin: ended before ")
    assert rows[1].reason == "end: 1 executions, 0 children, 4 events"


def test_a_transaction_that_ran_twice_is_told_once(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first row of the audit goes with what is rolled back, and is written again."""

    class RolledBackError(Exception):
        """What another change of the same commit may raise."""

    def twice(fn: Callable[[], Any]) -> Any:
        with contextlib.suppress(RolledBackError), transaction.atomic():
            fn()
            raise RolledBackError
        return write(fn)

    done(create(project, PASS), 100)
    monkeypatch.setattr(retention, "write", twice)
    assert retention.prune(older_than(90)).executions == 1
    rows = AuditEntry.objects.filter(action="PruneExecutions").order_by("pk")
    assert [row.reason.split()[0] for row in rows] == ["begin:", "end:"]


def test_the_command_counts_first_if_asked(project: Project) -> None:
    """A dry run says what the real one does, and changes nothing."""
    done(create(project, PASS), 100)
    start(create(project, WAIT, "waits"))
    before = rows_left()
    dry = said("--older-than", "90d", "--dry-run")
    assert rows_left() == before
    assert not AuditEntry.objects.filter(action="PruneExecutions").exists()
    real = said("--older-than", "90d")
    assert dry.replace("would be removed", "removed").split(": ")[1] == real.split(": ")[1]
    assert "1 executions, 0 children, 4 events" in real


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--older-than", "soon"], "--older-than: got 'soon'"),
        (["--older-than", "90d", "--project", "nobody"], "--project: got 'nobody'"),
        (["--older-than", "90d", "--batch", "0"], "--batch: got 0"),
    ],
)
def test_the_command_says_what_it_does_not_understand(
    project: Project, arguments: list[str], message: str
) -> None:
    """Nothing is removed by a misunderstanding."""
    done(create(project, PASS), 100)
    with pytest.raises(CommandError, match=message):
        said(*arguments)
    assert Execution.objects.count() == 1


def test_ctrl_c_ends_the_command_between_two_transactions(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is committed counts, the rest stays, and the shell is told."""
    machine = create(project, PASS)
    for _ in range(3):
        done(machine, 100)
    locked = retention._lock_ended

    def interrupted(numbers: Any) -> list[int]:
        os.kill(os.getpid(), signal.SIGINT)
        return locked(numbers)

    monkeypatch.setattr(retention, "_lock_ended", interrupted)
    with pytest.raises(CommandError, match="stopped by Ctrl-C") as stopped:
        said("--older-than", "90d", "--batch", "1")
    assert stopped.value.returncode == 130
    assert Execution.objects.count() == 2
    assert AuditEntry.objects.get(reason__startswith="end").reason.startswith("end: 1 executions")


def test_what_is_removed_stays_in_the_metrics(project: Project) -> None:
    """Minutes are summed up before their rows go."""
    ServerFact.objects.filter(name__startswith="metrics").delete()
    done(create(project, PASS), 0.01)
    said("--older-than", "10m")
    assert Execution.objects.count() == 0
    assert MetricTotal.objects.filter(metric="ExecutionsSucceeded").get().total == 1


def test_the_worker_prunes_if_told_so(project: Project, settings: Any) -> None:
    """Hourly, by STATEYARD_RETENTION_DAYS; without it everything is kept."""
    machine = create(project, PASS)
    old, young = done(machine, 8), done(machine, 6)
    rollups.sum_up()
    worker = Embedded()
    worker.start()
    worker.sweep()
    time.sleep(0.3)
    worker.stop()
    assert names_left() == {old.pk, young.pk}
    settings.STATEYARD_RETENTION_DAYS = 7.0
    worker = Embedded()
    worker.start()
    wait_until(lambda: old.pk not in names_left())
    worker.stop()
    assert names_left() == {young.pk}
    assert AuditEntry.objects.filter(action="PruneExecutions", actor="retention").count() == 2
    assert not RunRow.objects.filter(pk=old.pk).exists()
