"""Faults of an execution in the database: durable from the start on, and noted when they strike."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import engine
from console.db import audit
from console.errors import ServiceError, ValidationException
from console.features.doctor.invariants import check
from console.models import AuditEntry, Execution, RunRow, TaskRow, Timer
from console.statuses import MachineType
from console.store.executions import faults
from console.store.executions.outcome_steps import step_ahead
from console.store.executions.redrive import redrive_execution
from console.store.executions.start import start_execution
from console.store.executions.stop import stop_execution
from console.store.machines.versions import Target
from console.store.state import caches
from console.store.tasks import activities, claim, complete
from tests.console.store.helpers import (
    ACTIVITY,
    REGION,
    assert_nothing_wrong,
    create,
    drain,
    function,
    one,
    types,
)

if TYPE_CHECKING:
    from console.models import Project, StateMachine

ANA = audit.Actor("ana")
RETRY = {"ErrorEquals": ["Busy"], "IntervalSeconds": 1, "MaxAttempts": 1}
CALLED = {
    "StartAt": "Call",
    "States": {
        "Call": {**function("work"), "Retry": [RETRY], "Next": "Done"},
        "Done": {"Type": "Pass", "End": True},
    },
}
BUSY = {"state": "Call", "error": "Busy", "cause": "too many"}


def inject(machine: StateMachine, *entries: Any, seed: int = 3, **more: Any) -> Execution:
    """Start an execution with faults, and step it as a new process would."""
    document = {"faults": [*entries], "seed": seed}
    execution = faults.start_faulty(Target(machine), document, ANA, **more)
    caches.kept_runs.__init__(1_000, 32_000_000)  # forget, as a new process does
    return drain(execution)


def test_a_fault_fails_a_task_that_nobody_calls(project: Project) -> None:
    """Its row is closed, its error ends the execution, and the strike is noted."""
    execution = inject(create(project, CALLED), {**BUSY, "error": "Broken"})
    assert (execution.status, execution.error, execution.cause) == ("FAILED", "Broken", "too many")
    (row,) = TaskRow.objects.filter(execution=execution)
    assert row.status == "closed"
    (strike,) = faults.strikes_of(execution)
    assert (strike.state, strike.attempt, strike.event_id) == ("Call", 1, 4)
    assert strike.text == "Call fails with Broken before its call"
    assert_nothing_wrong()


def test_faults_outlive_the_run(project: Project) -> None:
    """The snapshot of an ended execution has none; the execution still says what they were."""
    execution = inject(create(project, CALLED), {**BUSY, "error": "Broken", "attempts": [1]})
    assert "faults" not in json.loads(RunRow.objects.get(pk=execution.pk).snapshot)
    assert faults.planned_faults(execution) == (
        3,
        ["Call fails with Broken before its call at attempt 1"],
    )


def test_a_redrive_has_no_faults(project: Project) -> None:
    """The task is called then."""
    execution = inject(create(project, CALLED), {**BUSY, "error": "Broken"})
    redrive_execution(execution)
    drain(execution)
    assert TaskRow.objects.filter(execution=execution, status="scheduled").count() == 1


def test_an_injected_timeout_breaks_no_invariant(project: Project) -> None:
    """It comes before the TimeoutSeconds of the task."""
    definition = json.loads(json.dumps(CALLED))
    definition["States"]["Call"]["TimeoutSeconds"] = 600
    execution = inject(create(project, definition), {"state": "Call", "type": "timeout"})
    assert (execution.status, execution.error) == ("FAILED", "States.Timeout")
    assert [str(violation) for violation in check()] == []


def test_a_delayed_call_waits_in_a_timer(project: Project) -> None:
    """It has its events and a timer, but no task yet; a stop leaves nothing behind."""
    latency = {"state": "Call", "type": "latency", "seconds": 60}
    execution = inject(create(project, CALLED), latency)
    assert types(execution)[-1] == "LambdaFunctionStarted"
    assert Timer.objects.get(execution=execution).name.startswith("delay-")
    assert not TaskRow.objects.filter(execution=execution).exists()
    assert_nothing_wrong()
    stop_execution(execution)
    assert not Timer.objects.filter(execution=execution).exists()
    assert_nothing_wrong()


@pytest.mark.parametrize("ahead", [None, step_ahead], ids=["posted", "ahead"])
def test_a_late_answer_waits_in_a_timer(project: Project, ahead: Any) -> None:
    """Its sender is told so at once, a second one is refused; no event is written until then."""
    activities.create_activity(project, REGION, "work")
    ask = {"Type": "Task", "Resource": ACTIVITY, "TimeoutSeconds": 600, "HeartbeatSeconds": 300}
    late = {"state": "Ask", "type": "delay-callback", "seconds": 60}
    twice = {"state": "Ask", "type": "duplicate-callback"}
    execution = inject(create(project, one("Ask", **ask)), late, twice)
    work = claim.take_activity_task(ACTIVITY, "w1")
    assert work is not None
    drain(execution)
    before = types(execution)
    complete.pending_success(work.token, '{"paid":1}', None, ahead).result()
    with pytest.raises(ServiceError, match="Task Timed Out"):
        complete.succeed(work.token, '{"paid":2}')
    caches.kept_runs.__init__(1_000, 32_000_000)
    drain(execution)
    assert types(execution) == before
    timer = Timer.objects.get(execution=execution)
    assert timer.name.startswith("delay-")
    assert timer.due_ms >= execution.start_ms + 60_000
    assert_nothing_wrong()
    Timer.objects.update(due_ms=1)
    execution = drain(execution)
    assert (execution.status, execution.output) == ("SUCCEEDED", '{"paid":1}')
    assert types(execution) == [
        *before,
        "ActivitySucceeded",
        "TaskStateExited",
        "ExecutionSucceeded",
    ]
    struck = [strike.text for strike in faults.strikes_of(execution)]
    assert struck == ["Ask gets its answer 60 s late", "Ask gets its answer twice"]
    assert_nothing_wrong()


def test_the_audit_names_the_faults(project: Project) -> None:
    """In the reason of the start, cut."""
    inject(create(project, CALLED), {**BUSY, "attempts": [2]}, {**BUSY, "error": "B" * 250})
    entry = AuditEntry.objects.get(action="StartExecution")
    assert entry.reason.startswith(
        "faults (seed 3): Call fails with Busy before its call at attempt 2; Call fails with BBB"
    )
    assert len(entry.reason) == 256


def test_a_document_without_a_seed_gets_one(project: Project) -> None:
    """It is stored, so that the history can be had again."""
    execution = faults.start_faulty(Target(create(project, CALLED)), [BUSY], ANA)
    seed, _ = faults.planned_faults(Execution.objects.get(pk=execution.pk))
    assert 0 <= seed < 1_000_000


def test_a_name_is_taken_by_other_faults(project: Project) -> None:
    """The same start again returns the same execution; one with other faults is refused."""
    machine = create(project, CALLED)
    latency = {"state": "Call", "type": "latency", "seconds": 60}
    first = inject(machine, latency, name="a")
    assert inject(machine, latency, name="a").pk == first.pk
    with pytest.raises(ServiceError, match="Already Exists"):
        inject(machine, latency, name="a", seed=4)
    with pytest.raises(ServiceError, match="Already Exists"):
        start_execution(machine, name="a")


def test_without_faults_nothing_is_stored(project: Project) -> None:
    """Neither a column nor a member of the snapshot."""
    execution = drain(start_execution(create(project, CALLED)))
    assert execution.faults is None
    assert "faults" not in RunRow.objects.get(pk=execution.pk).snapshot


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ([{"state": "Nope"}], "faults[0].state: got the state 'Nope'"),
        ([], "faults: got none, wanted at least one"),
        (None, "faults: got None, wanted an array"),
        ({"faults": [BUSY], "seed": 2**60}, "seed: got"),
    ],
)
def test_what_cannot_strike_is_refused(project: Project, document: Any, problem: str) -> None:
    """Nothing is started."""
    with pytest.raises(ValidationException) as caught:
        faults.start_faulty(Target(create(project, CALLED)), document, ANA)
    assert problem in str(caught.value)
    assert not Execution.objects.exists()


def test_express_takes_no_faults(project: Project) -> None:
    """It has no snapshot that could keep them."""
    machine = create(project, CALLED)
    machine.type = MachineType.EXPRESS
    with pytest.raises(ValidationException, match="An Express execution takes no faults"):
        faults.read_plan(Target(machine), [BUSY], "ana")


def test_a_stored_plan_can_be_run_in_memory(project: Project) -> None:
    """The same faults and seed give the events that the server has written."""
    rated = {**BUSY, "rate": 0.5, "error": "Broken"}
    for seed in range(4):
        execution = inject(create(project, CALLED, f"m{seed}"), rated, seed=seed)
        result = engine.run(CALLED, tasks={"work": dict}, faults=[rated], seed=seed)
        assert types(execution) == [event.type for event in result.events][: len(types(execution))]
        assert (execution.status == "FAILED") == (result.status == "FAILED")
