"""Calls that wait for an answer free their threads for other calls and lose nothing."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError, connection
from structlog.testing import capture_logs

from console import integrations, own_client
from console.awsapi import masking
from console.db import signals
from console.db.audit import Actor
from console.errors import ErrorCode
from console.models import AuditEntry, Execution, StateMachine, TaskRow
from console.own_api import LongPoll
from console.statuses import Topic
from console.store.executions import redrive
from console.store.executions.start import start_execution
from console.store.executions.stop import stop_execution
from console.store.machines import machines
from console.store.people import masks
from console.store.tasks import activities
from console.worker import Embedded, embedded, own_calls, task_delivery
from tests.console.store.helpers import (
    ACTIVITY,
    PASS,
    REGION,
    WAIT,
    WORK,
    create,
    drain,
    ended,
    function,
    one,
)
from tests.console.web.masking.test_masking import mask
from tests.console.worker.nesting import (
    SDK,
    calling,
    machine_of,
    members,
    open_tasks,
    started,
    starting,
    worked,
)
from tests.refusals import raises_code
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from console.models import Project

THREADS = 4
SYNC = "startSyncExecution"
DOUBLE = {**function("double"), "InputPath": "$.n", "End": True}


def double(event: int, context: object) -> int:
    """A function of the tests."""
    del context
    return event * 2


@pytest.fixture(autouse=True)
def functions(settings: Any) -> None:
    """Register the function above."""
    settings.STATEYARD_FUNCTIONS = {"double": "tests.console.worker.test_waits:double"}


@pytest.fixture
def few(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[Embedded]:
    """Run a worker that makes no more than a few calls at a time."""
    del project
    monkeypatch.setattr(embedded, "TASK_THREADS", THREADS)
    pool = Embedded()
    pool.start()
    yield pool
    pool.stop()


def express(project: Project, definition: dict[str, Any], name: str = "express") -> StateMachine:
    """Return an Express machine."""
    machine = create(project, definition, name)
    StateMachine.objects.filter(pk=machine.pk).update(type="EXPRESS")
    machine.type = "EXPRESS"
    return machine


def many(state: dict[str, Any]) -> dict[str, Any]:
    """Return a machine that does a state for each of its items at once."""
    inner = {"StartAt": "Each", "States": {"Each": {**state, "End": True}}}
    return one("Map", Type="Map", ItemsPath="$.items", ItemProcessor=inner)


def call_of(action: str, **parameters: Any) -> dict[str, Any]:
    """Return a Task that calls Step Functions."""
    return {"Type": "Task", "Resource": SDK + action, "Parameters": parameters}


def deliver(execution: Execution) -> own_calls.Waiting | None:
    """Deliver the only open task of an execution."""
    ((task, _),) = open_tasks(execution)
    return task_delivery.deliver_task(execution.pk, task)


# -- threads ---------------------------------------------------------------------------------------


def test_more_waits_than_threads_make_progress(project: Project, few: Embedded) -> None:
    """Each waits for an Express execution whose own Tasks need these threads, two levels deep."""
    inner = express(project, {"StartAt": "D", "States": {"D": DOUBLE}}, "inner")
    middle = {"StateMachineArn": inner.arn, "Input.$": "$"}
    outer = express(project, calling(SYNC, **middle), "outer")
    each = call_of(SYNC, **{"StateMachineArn": outer.arn, "Input.$": "$"})
    machine = create(project, many({**each, "OutputPath": "$.Output"}))
    text = json.dumps({"items": [{"n": number} for number in range(4 * THREADS)]})
    parent = ended(start_execution(machine, input=text), seconds=60)
    assert parent.status == "SUCCEEDED", parent.cause
    answers = [
        json.loads(json.loads(result)["Output"]) for result in json.loads(parent.output or "")
    ]
    assert answers == [2 * number for number in range(4 * THREADS)]
    wait_until(lambda: not len(few._waits))
    assert not few._offered


def test_pollers_of_an_activity_leave_their_threads(project: Project, few: Embedded) -> None:
    """GetActivityTask waits for work for a minute; functions are called meanwhile."""
    activities.create_activity(project, REGION, "work")
    each = call_of("getActivityTask", ActivityArn=ACTIVITY)
    machine = create(project, many({**each, "OutputPath": "$.Input"}))
    text = json.dumps({"items": list(range(2 * THREADS))})
    poller = start_execution(machine, input=text)
    wait_until(lambda: signals.subscribers((Topic.ACTIVITY, ACTIVITY)) == 2 * THREADS)
    called = create(project, {"StartAt": "D", "States": {"D": DOUBLE}}, "called")
    assert ended(start_execution(called, input='{"n":1}')).output == "2"
    work = create(project, WORK, "work")
    for number in range(2 * THREADS):
        start_execution(work, input=str(number))
    execution = ended(poller, seconds=30)
    assert execution.status == "SUCCEEDED", execution.cause
    assert sorted(json.loads(execution.output or ""), key=int) == [
        str(n) for n in range(2 * THREADS)
    ]
    assert signals.subscribers((Topic.ACTIVITY, ACTIVITY)) == 0


def test_a_wait_whose_task_has_ended_is_over(project: Project, few: Embedded) -> None:
    """Its parent was stopped: nothing of it is kept, and its listener is gone."""
    activities.create_activity(project, REGION, "work")
    parent = start_execution(
        create(project, calling("getActivityTask", ActivityArn=ACTIVITY)), input="{}"
    )
    wait_until(lambda: len(few._waits) == 1)
    stop_execution(parent)
    wait_until(lambda: not len(few._waits))
    assert signals.subscribers((Topic.ACTIVITY, ACTIVITY)) == 0
    assert not few._offered


# -- outages ---------------------------------------------------------------------------------------


@contextmanager
def outage(monkeypatch: pytest.MonkeyPatch, times: int = 1) -> Iterator[None]:
    """Let the database go away as the outcome of a call is recorded."""
    record, failures = own_calls.record_outcome, [times]

    def broken(*about: Any) -> bool:
        if failures[0]:
            failures[0] -= 1
            raise OperationalError("gone")
        return record(*about)

    with monkeypatch.context() as patch:
        patch.setattr(own_calls, "record_outcome", broken)
        yield
    assert failures == [0]


def test_an_outage_does_not_start_a_second_express_execution(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one has ended when the answer cannot be recorded."""
    machine = express(project, WAIT)
    parent = started(create(project, calling(SYNC, StateMachineArn=machine.arn), "parent"))
    waiting = deliver(parent)
    assert waiting is not None
    (child,) = Execution.objects.filter(state_machine=machine)
    stop_execution(child)
    with outage(monkeypatch):
        with pytest.raises(OperationalError):
            waiting.look()
        assert waiting.look()
    assert drain(parent).status == "SUCCEEDED"
    assert Execution.objects.filter(state_machine=machine).count() == 1


def test_an_outage_does_not_repeat_what_was_written(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """StopExecution and the like have written when their answer is known."""
    child = started(create(project, WAIT, "child"))
    asked = calling("stopExecution", ExecutionArn=child.arn)
    parent = started(create(project, asked, "parent"))
    begun: list[str] = []
    begin = own_calls.own_api.answer  # type: ignore[attr-defined]

    def count(*asked: Any) -> Any:
        begun.append(asked[1])
        return begin(*asked)

    monkeypatch.setattr(own_calls.own_api, "answer", count)  # type: ignore[attr-defined]
    with outage(monkeypatch, times=2):
        assert deliver(parent) is None
    assert drain(parent).status == "SUCCEEDED"
    assert begun == ["StopExecution"]


def test_an_activity_task_is_not_lost_in_an_outage(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is taken with the outcome of who polls for it, or by nobody."""
    activities.create_activity(project, REGION, "work")
    parent = started(create(project, calling("getActivityTask", ActivityArn=ACTIVITY), "parent"))
    waiting = deliver(parent)
    assert waiting is not None
    execution = started(create(project, WORK, "given"))
    with outage(monkeypatch):
        with pytest.raises(OperationalError):
            waiting.look()
        assert open_tasks(execution)[0][1] == "scheduled"
        assert waiting.look()
    assert open_tasks(execution)[0][1] == "started"
    assert "TaskToken" in json.loads(drain(parent).output or "{}")


def test_a_wait_on_a_thread_outlives_an_outage() -> None:
    """So waits what a test case of mocks leaves to the real service."""
    answers: list[Any] = [OperationalError("gone"), None, {"a": 1}]

    def look() -> dict[str, Any] | None:
        signals.deliver(("test",))
        now = answers.pop(0)
        if isinstance(now, Exception):
            raise now
        answer: dict[str, Any] | None = now
        return answer

    assert LongPoll(look, ("test",), 20, {}).result() == {"a": 1}


def test_no_activity_task_is_taken_for_a_task_that_has_ended(project: Project) -> None:
    """Nobody would answer it."""
    activities.create_activity(project, REGION, "work")
    parent = started(create(project, calling("getActivityTask", ActivityArn=ACTIVITY), "parent"))
    waiting = deliver(parent)
    assert waiting is not None
    stop_execution(parent)
    execution = started(create(project, WORK, "given"))
    assert waiting.look()
    assert waiting.outcome is None
    assert open_tasks(execution)[0][1] == "scheduled"


def test_a_known_answer_is_read_outside_of_the_transaction(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All who write wait for the one thread that commits: it must not parse large answers."""
    child = started(create(project, WAIT, "child"))
    asked = calling("describeExecution", ExecutionArn=child.arn)
    parent = started(create(project, asked, "parent"))
    make, inside = own_client.create_parser, []  # type: ignore[attr-defined]

    def watched(*about: Any) -> Any:
        inside.append(connection.in_atomic_block)
        return make(*about)

    monkeypatch.setattr(own_client, "create_parser", watched)
    deliver(parent)
    assert drain(parent).status == "SUCCEEDED"
    assert inside == [False]


# -- two at once -----------------------------------------------------------------------------------


def _somebody_waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


def _in_thread(job: Callable[[], Any]) -> threading.Thread:
    def run() -> None:
        try:
            job()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_two_parents_that_start_the_same_name_at_once_share_the_child(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1. A has written the child.  2. B, which has not seen it, writes it.  3. A commits."""
    child = create(project, WAIT, "child")
    machine = create(project, starting(child, Name="same"), "parent")
    first, second = started(machine), started(machine)
    record, written = own_calls.record_outcome, threading.Event()

    def slowly(work: Any, outcome: Any) -> bool:
        recorded = record(work, outcome)
        if work.execution_id == first.pk:
            written.set()
            if connection.vendor == "postgresql":
                wait_until(_somebody_waits_for_a_lock)
        return recorded

    monkeypatch.setattr(own_calls, "record_outcome", slowly)
    one_thread = _in_thread(lambda: deliver(first))
    assert written.wait(20)
    deliver(second)
    one_thread.join()
    ends = [(parent.status, parent.cause) for parent in (drain(first), drain(second))]
    assert ends == [("SUCCEEDED", None)] * 2
    assert Execution.objects.filter(state_machine=child).count() == 1


def test_a_redrive_and_a_deletion_leave_no_execution_without_its_machine(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deletion comes when the redrive has seen that the machine is active."""
    machine = create(project, WAIT)
    execution = started(machine)
    stop_execution(execution)
    refusal = redrive.redrive_refusal
    threads: list[threading.Thread] = []

    def slowly(row: Execution) -> str:
        reason = refusal(row)
        if not threads:
            threads.append(_in_thread(lambda: machines.delete_machine(project, machine.arn)))
            if connection.vendor == "postgresql":
                wait_until(_somebody_waits_for_a_lock)
        return reason

    monkeypatch.setattr(redrive, "redrive_refusal", slowly)
    redrive.redrive_execution(Execution.objects.get(pk=execution.pk))
    threads[0].join()
    assert StateMachine.objects.get(pk=machine.pk).status == "DELETING"
    stop_execution(execution)
    machines.finish_deletions()
    assert not StateMachine.objects.filter(pk=machine.pk).exists()
    with raises_code(ErrorCode.ExecutionNotRedrivable, match="DELETING"):
        redrive.redrive_execution(Execution.objects.get(pk=execution.pk))


# -- looks at children -----------------------------------------------------------------------------


def test_a_look_at_a_child_is_nobodys_read(project: Project) -> None:
    """The parent gets the values as they are, and the audit says of nobody that they saw them."""
    members(project, olga="operator")
    masking._noted.clear()
    mask(project, "$.card")
    child = machine_of(project, "olga", {**PASS, "Comment": "child"}, "child")
    parent = machine_of(project, "olga", starting(child, ".sync:2", Input={"card": 1}), "parent")
    execution = started(parent, "olga")
    worked(execution)
    row = Execution.objects.get(state_machine=child)
    worked(execution)
    drain(row)
    assert json.loads(worked(execution).output or "")["Output"] == {"card": 1}
    reads = AuditEntry.objects.filter(action="RevealPayloads")
    assert not reads.exists()


def test_what_a_task_reads_for_a_person_does_not_cover_what_they_read(project: Project) -> None:
    """Both are on record."""
    child = started(create(project, WAIT, "child"))
    for actor in (Actor("olga", execution="arn:of:a:parent"), Actor("olga"), Actor("olga")):
        masks.note_reads(project, [child.arn], "read by DescribeExecution", actor)
    rows = AuditEntry.objects.filter(action="RevealPayloads").order_by("pk")
    assert list(rows.values_list("execution", flat=True)) == ["arn:of:a:parent", ""]


def test_a_hint_that_comes_during_a_look_is_not_lost(
    worker: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child may have ended after the look had asked for it."""
    looks: list[tuple[int, ...]] = []
    under_way, go_on = threading.Event(), threading.Event()

    def look(*which: int) -> None:
        looks.append(which)
        under_way.set()
        assert go_on.wait(20)

    monkeypatch.setattr(task_delivery, "look_at_job", look)
    worker._due("look", 7, 1)
    assert under_way.wait(20)
    worker._due("look", 7, 1)
    worker._due("look", 7, 1)
    go_on.set()
    wait_until(lambda: len(looks) == 2 and not worker._looking)


def test_looks_in_an_outage_are_no_lines_each(
    project: Project, worker: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outage is said once, for all who meet it; then the look is made up for."""
    child = create(project, WAIT, "child")
    real, failures = integrations.poll_job, [3]

    def look(*about: Any) -> Any:
        if failures[0]:
            failures[0] -= 1
            raise OperationalError("gone")
        return real(*about)

    monkeypatch.setattr(integrations, "poll_job", look)
    with capture_logs() as lines:
        parent = start_execution(create(project, starting(child, ".sync"), "parent"), input="{}")
        wait_until(lambda: not failures[0])
        stop_execution(Execution.objects.get(state_machine=child))
        assert ended(parent).status == "FAILED"
    assert not [line for line in lines if line.get("exc_info")]
    assert not TaskRow.objects.exclude(status="closed").exists()
    del worker
