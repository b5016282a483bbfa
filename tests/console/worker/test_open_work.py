"""A sweep asks once which kinds of work there may be, and misses none of them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

import engine
from console.db import clock, epoch, writer
from console.db.audit import NOBODY
from console.features.account.models import AccountMail
from console.features.bulk.models import BulkJob
from console.features.projects.models import ProjectDeletion
from console.models import (
    AuditEntry,
    EventRule,
    Execution,
    InboxMessage,
    MapRun,
    OutboxEvent,
    Pause,
    RunRow,
    StateMachine,
    Tag,
    TaskRow,
    Timer,
)
from console.store.executions import start as start_module
from console.store.machines.machine_options import SUMMARY
from console.store.state import inbox, pause
from console.store.state.open_work import OpenWork, find_work_and_values
from console.worker.embedded import Embedded
from tests.console.store.helpers import WAIT, create, drain, function, one, start
from tests.console.web.search.test_filters import seed

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from console.models import Project

pytestmark = pytest.mark.django_db(transaction=True)
HORIZON_MS = 5_000
_PAUSED_BY_CALL = 2_000
NOTHING = OpenWork._make([*[False] * 10, "0"])


def find_open_work(horizon_ms: int) -> OpenWork:
    """Return the kinds of work."""
    return find_work_and_values(horizon_ms, ())[0]


@pytest.fixture
def idle(project: Project) -> Execution:
    """An execution that waits for an hour, and for a task that nobody looks at."""
    execution = start(create(project, WAIT))
    drain(execution)
    return execution


def test_nothing_to_do(idle: Execution) -> None:
    """What only waits is no work, and a sweep that finds none makes one statement."""
    del idle
    assert find_open_work(HORIZON_MS) == NOTHING
    worker = Embedded()
    with CaptureQueriesContext(connection) as statements:
        worker.sweep()
    assert len(statements) == 1


@pytest.mark.parametrize("count", [200, pytest.param(10_000, marks=pytest.mark.slow)])
def test_paused_executions_cost_no_statement(project: Project, count: int) -> None:
    """However many, with all that waits for a resume: no thread, and a sweep asks no more."""
    machine, worker = create(project, WAIT), Embedded()
    worker.sweep()
    threads = set(threading.enumerate())
    everyone = seed(project, machine, count, status="RUNNING", stop_ms=None)
    running, paused = everyone[:_PAUSED_BY_CALL], everyone[_PAUSED_BY_CALL:]
    seed_paused(paused)
    for execution in running:
        execution.runrow = RunRow(execution=execution, ready=True)
    RunRow.objects.bulk_create(execution.runrow for execution in running)
    Timer.objects.bulk_create(Timer(execution=each, name="t", due_ms=1) for each in running)
    InboxMessage.objects.bulk_create(
        InboxMessage(execution=each, kind="TaskStarted", body='{"task":7}', created_ms=1)
        for each in running
    )
    assert find_open_work(HORIZON_MS)[:3] == (True, True, True)
    pause_all(running)
    assert find_open_work(HORIZON_MS) == NOTHING
    with CaptureQueriesContext(connection) as statements:
        worker.sweep()
    assert len(statements) == 1
    assert set(threading.enumerate()) <= threads
    pause.resume_execution(running[0], NOBODY)
    assert find_open_work(HORIZON_MS)[:3] == (True, True, True)


def seed_paused(executions: Sequence[Execution]) -> None:
    """Store the rows that ``pause_execution`` leaves: 8,000 calls would take half a minute."""
    parked = [RunRow(execution=each, ready=True, parked=pause.PARKED) for each in executions]
    RunRow.objects.bulk_create(parked)
    away_ms = pause.AWAY_MS + 1
    Timer.objects.bulk_create(
        Timer(execution=each, name="t", due_ms=away_ms) for each in executions
    )
    Pause.objects.bulk_create(Pause(execution=each, since_ms=1) for each in executions)
    InboxMessage.objects.bulk_create(
        InboxMessage(execution=each, kind="TaskStarted", body='{"task":7}', created_ms=1)
        for each in executions
    )


def pause_all(executions: Sequence[Execution]) -> None:
    """Pause executions in one transaction: each by a call of its own."""

    def store() -> None:
        for execution in executions:
            pause.pause_execution(execution, NOBODY, stops_clock=False)

    writer.write(store)


def put_message(execution: Execution) -> None:
    """Let a message come in."""
    writer.write(lambda: inbox.post_message(execution.pk, engine.TaskStarted(7)))


def put_map_run(execution: Execution) -> None:
    """Let a Map Run of it go on."""
    MapRun.objects.create(
        parent=execution,
        definition_id=execution.definition_id,
        arn="map-run",
        state_machine_arn="machine/label",
        start_ms=1,
        task=9,
        total=1,
    )


def put_event(execution: Execution) -> None:
    """Put an event into the outbox."""
    OutboxEvent.objects.create(
        event_id="event", project_id=execution.project_id, region="r", about="", body="{}", at_ms=1
    )


def put_schedule(execution: Execution) -> None:
    """Let a rule with a schedule be due."""
    EventRule.objects.create(
        project_id=execution.project_id, arn="r", name="r", region="r", next_ms=1, created_ms=1
    )


def put_bulk_job(execution: Execution) -> None:
    """Let a bulk job run."""
    BulkJob.objects.create(project_id=execution.project_id, created_ms=1, total=1)


def put_task(status: str, **columns: int) -> Callable[[Execution], None]:
    """Return what puts a task of a status there."""

    def put(execution: Execution) -> None:
        project = execution.project
        call = start(create(project, one("T", **function("echo")), "calls"))
        drain(call)
        TaskRow.objects.update(
            **{"status": status, "timeout_due_ms": None, "heartbeat_due_ms": None, **columns}
        )

    return put


@pytest.mark.parametrize(
    ("kind", "put"),
    [
        ("messages", put_message),
        ("runs", lambda execution: RunRow.objects.filter(pk=execution.pk).update(ready=True)),
        ("timers", lambda _: Timer.objects.update(due_ms=1)),
        ("tasks", put_task("scheduled")),
        ("tasks", put_task("started")),
        ("deadlines", put_task("waiting", timeout_due_ms=1)),
        ("deadlines", put_task("waiting", heartbeat_due_ms=1)),
        ("deadlines", put_task("waiting", look_due_ms=1)),
        ("map_runs", put_map_run),
        ("children", lambda _: RunRow.objects.update(children_end=True)),
        ("bulk_jobs", put_bulk_job),
        ("deletions", lambda _: StateMachine.objects.update(status="DELETING")),
        ("events", put_event),
        ("events", put_schedule),
    ],
)
def test_each_kind_is_seen(idle: Execution, kind: str, put: Callable[[Execution], None]) -> None:
    """That kind, and no other."""
    put(idle)
    assert find_open_work(HORIZON_MS) == OpenWork._make(
        [name == kind for name in OpenWork._fields[:-1]] + ["0"]
    )


def test_what_is_due_within_the_horizon_counts(project: Project) -> None:
    """What is due later is found in time by another sweep."""
    execution = start_module.start_execution(create(project, one("W", Type="Wait", Seconds=60)))
    drain(execution)
    assert not find_open_work(HORIZON_MS).timers
    assert find_open_work(61_000).timers


def test_it_says_the_epoch() -> None:
    """A worker of the past ends by that."""
    begun = epoch.begin_epoch()
    assert find_open_work(HORIZON_MS).epoch == begun


@pytest.mark.parametrize(
    ("name", "put"),
    [
        (
            "summaries",
            lambda _: Tag.objects.create(arn="m", key=SUMMARY, value="x"),
        ),
        ("audit chain", lambda _: AuditEntry.objects.create(at_ms=clock.now_ms(), action="a")),
        ("account mails", lambda _: AccountMail.objects.create(at_ms=1, next_ms=1)),
        (
            "project deletions",
            lambda execution: ProjectDeletion.objects.create(
                project=execution.project, began_ms=1, total=1
            ),
        ),
    ],
)
def test_a_job_runs_if_its_condition_holds(
    idle: Execution, monkeypatch: pytest.MonkeyPatch, name: str, put: Callable[[Execution], object]
) -> None:
    """A job of a feature with a condition runs in the sweep that finds rows for it, only."""
    ran: list[Hashable] = []
    worker = Embedded()
    monkeypatch.setattr(worker._maintenance, "_once", lambda key, _: ran.append(key))
    AuditEntry.objects.all().delete()  # of the start
    worker.sweep()
    assert name not in ran
    put(idle)
    worker._maintenance._due_at = dict.fromkeys(worker._maintenance._due_at, 0.0)
    worker.sweep()
    assert name in ran
