"""Each kind of change writes, in one transaction with others, the rows that it writes by itself.

The mechanism has its tests in ``test_merged``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from console.db import merged, rows, writer
from console.db.writer import Change
from console.errors import ServiceError
from console.models import EventRule, Execution, InboxMessage, MapRun, OutboxEvent, TaskRow
from console.store.events import outbox
from console.store.executions import step
from console.store.tasks import activities, claim, complete
from tests.console.db.recorded import (
    given_task,
    recorded_claim,
    recorded_start,
    recorded_step,
)
from tests.console.store.helpers import (
    ACTIVITY,
    PASS,
    WAIT,
    WORK,
    assert_nothing_wrong,
    create,
    drain,
    one,
    start,
)

if TYPE_CHECKING:
    from console.models import Project

pytestmark = [pytest.mark.postgres_only, pytest.mark.usefixtures("own_connection")]
FAIL = {"StartAt": "F", "States": {"F": {"Type": "Fail"}}}


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


def test_an_execution_that_ends_at_once_is_written_once(project: Project) -> None:
    """As PostgreSQL writes a new version of a row and of its entries in indexes for an update."""
    change = recorded_start(create(project, PASS), "quick")
    assert not [each.text for each in change.rows if each.text.startswith(("UPDATE", "DELETE"))]
    assert merged.commit([change]) == {}
    row = Execution.objects.get(name="quick")
    assert (row.status, row.output, row.stop_ms is not None) == ("SUCCEEDED", "{}", True)
    assert_nothing_wrong()


def test_an_outcome_by_its_token_is_written_with_others(project: Project) -> None:
    """The second one of a task is refused, as if there were no merging."""
    activities.create_activity(project, "us-east-1", "work")
    executions = [start(create(project, WORK, f"works-{number}")) for number in range(2)]
    for execution in executions:
        drain(execution)
    taken = [claim.take_activity_task(ACTIVITY) for _ in executions]
    outcomes = [complete.pending_success(task.token, "1", project) for task in taken if task]
    late = complete.pending_failure(taken[0].token, "Late", None, project) if taken[0] else None
    changes = [rows.record(outcome.write_rows) for outcome in outcomes]
    assert late is not None
    late_change = rows.record(late.write_rows)
    assert merged.commit([change for change in changes if change]) == {}
    assert late_change is not None
    assert list(merged.commit([late_change])) == [0]
    with pytest.raises(ServiceError, match="Task Timed Out"):
        late.result()
    assert [drain(execution).status for execution in executions] == ["SUCCEEDED"] * 2
    assert_nothing_wrong()


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
        project, "us-east-1", "work", tags={"stateyard:startToCloseTimeout": "30"}
    )
    definition = one("A", Type="Task", Resource=ACTIVITY, HeartbeatSeconds=10, TimeoutSeconds=20)
    executions = [start(create(project, definition, f"m{number}")) for number in range(2)]
    for execution in executions:
        drain(execution)
    assert merged.commit([recorded_claim(ACTIVITY, "w")]) == {}
    taking = claim.pending_activity_task(ACTIVITY, "w")
    assert taking is not None
    assert Change(taking.write_rows).result() is not None
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
    ended = rows.record(complete.pending_success(work.token, "1", project).write_rows)
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
