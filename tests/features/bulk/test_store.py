"""X4: a bulk job acts on each of its executions once, also after a crash or a conflict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from console.db import clock
from console.db.audit import Actor
from console.features.bulk import store as bulk
from console.features.bulk.models import BulkItem, BulkJob
from console.models import AuditEntry, Execution, Membership, Pause, RunRow
from console.store.executions import redrive
from console.store.executions.start import start_execution
from console.store.executions.stop import stop_execution
from console.store.state import pause
from tests.console.store.helpers import PASS, WAIT, create, drain, start, types

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.models import Project
    from console.worker import Embedded

WHO = Actor("operator")
FAIL = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "Oops"}}}


@pytest.fixture(autouse=True)
def operator(project: Project, django_user_model: Any) -> Membership:
    """Let the one who asks be an operator."""
    user = django_user_model.objects.create_user(WHO.name)
    return Membership.objects.create(project=project, user=user, role="operator")


def begin(project: Project, action: str, chosen: Sequence[Execution]) -> BulkJob:
    """Begin a job for these executions."""
    planned = bulk.plan_job(project, action, [execution.pk for execution in chosen])
    return bulk.create_job(planned, project, WHO)


def finish(job: BulkJob) -> list[tuple[str, str]]:
    """Work a job off in this thread; return status and error of each item."""
    while bulk.work_on_job(job.pk):
        pass
    job.refresh_from_db()
    items = BulkItem.objects.filter(job=job).order_by("-position")  # as they were started
    return list(items.values_list("status", "error"))


@pytest.mark.postgres_too
def test_a_plan_says_who_is_left_out_and_whose_they_are(project: Project) -> None:
    """38 of 40 are eligible, two are too old; and eleven were started by others."""
    machine = create(project, FAIL)
    failed = []
    for number in range(40):
        actor = Actor("mallory" if number < 11 else "operator")
        failed.append(drain(start_execution(machine, actor=actor)))
    old = [execution.pk for execution in failed[-2:]]
    Execution.objects.filter(pk__in=old).update(stop_ms=clock.now_ms() - redrive.PERIOD_MS - 1000)
    planned = bulk.plan_job(project, "redrive", [execution.pk for execution in failed])
    assert len(planned.eligible) == 38
    assert planned.reasons == [("Execution redrivable period exceeded", 2)]
    assert dict(planned.owners) == {"operator": 27, "mallory": 11}
    assert not Execution.objects.exclude(redrive_count=0).exists()


@pytest.mark.postgres_too
def test_a_plan_knows_every_refusal_that_one_redrive_knows(project: Project) -> None:
    """Asked together or alone, the reasons are the same."""
    machine = create(project, FAIL)
    chosen = [drain(start(machine)) for _ in range(5)]
    chosen.append(drain(start(create(project, PASS, "passes"))))
    Execution.objects.filter(pk=chosen[1].pk).update(redrive_count=1000)
    RunRow.objects.filter(pk=chosen[2].pk).update(next_event=25_001)
    RunRow.objects.filter(pk=chosen[3].pk).update(snapshot='{"frames":[]}')
    rows = list(Execution.objects.all())
    together = redrive.redrive_refusals(rows)
    assert together == {row.pk: redrive.redrive_refusal(row) for row in rows}
    assert len(set(together.values())) == 5


def test_each_is_redriven_once_and_refusals_are_told(project: Project) -> None:
    """What could not be redriven has a name and words; the audit has a row for each that was."""
    machine = create(project, FAIL)
    chosen = [drain(start(machine)) for _ in range(3)]
    redrive.redrive_execution(chosen[1])
    job = begin(project, "redrive", chosen)
    assert finish(job) == [("done", ""), ("refused", "ExecutionNotRedrivable"), ("done", "")]
    assert job.status == "DONE"
    assert job.ended_ms is not None
    assert set(Execution.objects.values_list("redrive_count", flat=True)) == {1}
    item = BulkItem.objects.get(job=job, status="refused")
    assert item.words == "Execution is RUNNING and cannot be redriven"
    entries = AuditEntry.objects.filter(action="RedriveExecution", actor="operator")
    assert set(entries.values_list("request_id", flat=True)) == {f"bulk/{job.pk}"}
    assert entries.count() == 2
    assert AuditEntry.objects.filter(action="BulkRedrive", target=f"bulk/{job.pk}").count() == 1


def test_each_is_stopped(project: Project) -> None:
    """What ended by itself before its turn is told as refused."""
    machine = create(project, WAIT)
    chosen = [start(machine) for _ in range(3)]
    job = begin(project, "stop", chosen)
    stop_execution(chosen[0])
    assert [state for state, _ in finish(job)] == ["refused", "done", "done"]
    assert set(Execution.objects.values_list("status", flat=True)) == {"ABORTED"}


def test_each_is_started_again_with_its_input(project: Project) -> None:
    """The item leads to the new execution; one whose machine is gone is refused."""
    machine, gone = create(project, PASS), create(project, PASS, "gone")
    chosen = [drain(start(machine, {"n": 1})), drain(start(gone))]
    job = begin(project, "start", chosen)
    Execution.objects.filter(pk=chosen[1].pk).update(state_machine=None)
    assert [state for state, _ in finish(job)] == ["done", "refused"]
    new = Execution.objects.get(arn=BulkItem.objects.get(job=job, status="done").result)
    assert new.pk not in {execution.pk for execution in chosen}
    assert (new.input, new.started_by) == ('{"n": 1}', "operator")


def test_a_paused_job_waits(project: Project) -> None:
    """Nothing is done until it is resumed; then the rest is, once."""
    chosen = [drain(start(create(project, FAIL, f"m{number}"))) for number in range(3)]
    job = begin(project, "redrive", chosen)
    assert bulk.pause_or_resume(job, on=False, actor=WHO)
    assert not bulk.pause_or_resume(job, on=False, actor=WHO)
    assert {state for state, _ in finish(job)} == {"waiting"}
    assert bulk.pause_or_resume(job, on=True, actor=WHO)
    assert {state for state, _ in finish(job)} == {"done"}


@pytest.mark.parametrize("action", ["redrive", "start", "stop", "pause"])
def test_a_crash_at_any_commit_repeats_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    """A process that dies after a commit, or before it, is taken over; each item is done once."""
    machine = create(project, WAIT if action in ("stop", "pause") else FAIL)
    chosen = [start(machine) for _ in range(2)]
    if action in ("redrive", "start"):
        chosen = [drain(execution) for execution in chosen]
    job = begin(project, action, chosen)
    real = bulk.write  # type: ignore[attr-defined]
    crashes = iter([False, True] * 4)

    class Killed(BaseException):
        pass

    def dying(fn: Any) -> Any:
        crash = next(crashes, False)
        result = real(fn)
        if crash:
            raise Killed
        return result

    monkeypatch.setattr(bulk, "write", dying)
    for _ in range(12):
        try:
            if not bulk.work_on_job(job.pk):
                break
        except Killed:
            continue
    assert {state for state, _ in finish(job)} == {"done"}
    assert AuditEntry.objects.filter(action=f"{action.capitalize()}Execution").count() == 2
    if action == "start":
        assert Execution.objects.count() == 4
    if action == "redrive":
        assert set(Execution.objects.values_list("redrive_count", flat=True)) == {1}


def test_who_lost_the_right_has_no_job_going_on(project: Project, operator: Membership) -> None:
    """What was not done yet is refused, with words."""
    chosen = [start(create(project, WAIT)) for _ in range(1)]
    job = begin(project, "stop", chosen)
    operator.delete()
    assert finish(job) == [("refused", "AccessDeniedException")]
    assert job.status == "DONE"
    assert Execution.objects.get().status == "RUNNING"


def test_another_projects_executions_cannot_be_chosen(project: Project) -> None:
    """Numbers of foreign executions are not even counted."""
    from console.models import Project

    theirs = Project.objects.create(name="theirs", account_id="999999999999")
    foreign = start(create(theirs, WAIT, "secret"))
    own = start(create(project, WAIT))
    assert bulk.plan_job(project, "stop", [foreign.pk, own.pk]).chosen == (own,)


def test_the_worker_does_it(project: Project, worker: Embedded) -> None:
    """A job that is stored is worked off by the upkeep, without being asked."""
    from tests.console.store.helpers import ended

    assert worker
    chosen = [start(create(project, WAIT))]
    begin(project, "stop", chosen)
    assert ended(chosen[0]).status == "ABORTED"
    assert "ExecutionAborted" in types(chosen[0])


@pytest.mark.postgres_too
def test_each_is_paused_and_resumed(project: Project) -> None:
    """By the person of the job, with its reason; an ended or paused one is refused with words."""
    machine = create(project, WAIT)
    chosen = [drain(start(machine)) for _ in range(3)]
    chosen.append(drain(start(create(project, PASS, "passes"))))
    pause.pause_execution(chosen[1], Actor("ben"), stops_clock=False)
    planned = bulk.plan_job(project, "pause", [execution.pk for execution in chosen])
    assert dict(planned.reasons) == {"It is paused already": 1, "It has ended": 1}
    job = bulk.create_job(planned, project, WHO, stops_clock=True, note="look")
    refused = ("refused", "ConflictException")
    assert finish(job) == [("done", ""), refused, ("done", ""), refused]
    own = Pause.objects.exclude(paused_by="ben")
    assert set(own.values_list("paused_by", "stops_clock", "note")) == {("operator", True, "look")}
    assert own.count() == 2
    planned = bulk.plan_job(project, "resume", [execution.pk for execution in chosen])
    assert planned.reasons == [("It is not paused", 1)]
    assert len(planned.eligible) == 3
    finish(begin(project, "resume", chosen))
    assert not Pause.objects.exists()
    entries = AuditEntry.objects.filter(request_id=f"bulk/{job.pk}", action="PauseExecution")
    assert set(entries.values_list("actor", "reason")) == {("operator", "look")}
