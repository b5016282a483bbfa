"""The checker of invariants accepts sound rows and reports each kind of damage."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command
from django.db import transaction

from console.features.doctor import stored_executions
from console.features.doctor.clients import Log
from console.features.doctor.invariants import Checked, check
from console.features.doctor.watch import Watch
from console.models import Execution, HistoryEvent, InboxMessage, RunRow, TaskRow, Timer
from console.statuses import TaskClock
from console.store.machines import tags
from console.store.state import history
from console.store.tasks import activities, claim, complete, expiry
from console.worker import Embedded
from tests.console.store.helpers import ACTIVITY, PASS, REGION, WORK, create, crowd, drain, start
from tests.features.doctor import harm, mixed_run
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from console.models import Project


@pytest.fixture
def executions(project: Project, settings: Any) -> dict[str, Execution]:
    """Return what a mixed run has left; the worker is gone."""
    settings.STATEYARD_FUNCTIONS = {"work": "tests.features.doctor.mixed_run:work"}
    mixed_run.BROKEN.clear()
    worker = Embedded()
    worker.start()
    try:
        return mixed_run.run_all(project)
    finally:
        worker.stop()


@pytest.mark.postgres_too
@pytest.mark.slow
def test_a_mixed_run(executions: dict[str, Execution], monkeypatch: pytest.MonkeyPatch) -> None:
    """Sound rows show nothing; each harm done to them shows its own invariant, and no other."""
    checked = Checked()
    assert [str(violation) for violation in check(checked=checked)] == []
    assert checked.n == Execution.objects.count() > len(executions)
    assert {name: execution.status for name, execution in executions.items()} == {
        name: status for name, (_, _, status) in mixed_run.SHAPES.items()
    }
    wrong = {}
    for name, (expected, act) in harm.HARMS.items():
        violations = after(lambda act=act: act(executions))
        if {violation.partition("\t")[0] for violation in violations} != expected:
            wrong[name] = (expected, violations)
    assert wrong == {}
    assert {invariant for ids, _ in harm.HARMS.values() for invariant in ids} >= harm.IN_ROWS
    monkeypatch.setattr(history, "list_events", forgetful(history.list_events))
    assert {violation.id for violation in check()} == {"I14"}


def after(act: Any) -> list[str]:
    """Return what the checker finds after something was done to the rows, and undo it."""
    with transaction.atomic():
        act()
        violations = [str(violation) for violation in check()]
        transaction.set_rollback(True)
    return violations


def forgetful(page: Any) -> Any:
    """Return a way to read pages that leaves out their last event."""

    def worse(number: int, **how: Any) -> Any:
        return page(number, **how)[: -1 if how.get("reverse") else None]

    return worse


@pytest.fixture
def answered(project: Project) -> tuple[Execution, str, str]:
    """Return an execution that a client's answer ended, its task's token and idempotency key."""
    activities.create_activity(project, REGION, "work")
    execution = start(create(project, WORK, "answered"), 1)
    drain(execution)
    work = claim.take_activity_task(ACTIVITY)
    assert work is not None
    complete.succeed(work.token, '"done"')
    return drain(execution), work.token, work.idempotency_key


@pytest.mark.postgres_too
@pytest.mark.parametrize(
    ("clock", "column"),
    [(TaskClock.SCHEDULE_TO_START, "started_ms"), (TaskClock.SCHEDULE_TO_CLOSE, "close_due_ms")],
)
def test_the_clocks_of_an_activity_are_not_early(project: Project, clock: str, column: str) -> None:
    """A task that was not taken, or not ended, in its time is sound; one that was too early not."""
    activities.create_activity(project, REGION, "work")
    tags.put_tags(ACTIVITY, {f"stateyard:{clock}Timeout": "1"})
    execution = drain(start(create(project, WORK)))
    row = TaskRow.objects.get()
    wait_until(lambda: expiry.expire_tasks([(execution.pk, row.task)]))
    assert drain(execution).status == "FAILED"
    assert TaskRow.objects.get().clock == clock
    assert [str(violation) for violation in check()] == []
    later = (row.timeout_due_ms or 0) + 60_000
    harmed = after(lambda: TaskRow.objects.update(**{column: later}))
    assert [violation.partition("\t")[0] for violation in harmed] == ["I8"]


def logged(*lines: dict[str, Any]) -> list[str]:
    """Return what the checker finds wrong with a client's log."""
    log = Log()
    violations = [*log.check([json.dumps(line) for line in lines]), *log.end()]
    return [violation.id for violation in violations]


def test_logs_of_clients(answered: tuple[Execution, str, str]) -> None:
    """What clients were told is in the rows; what they were told and is not there is found."""
    execution, token, key = answered
    arn = execution.arn
    send = {"send": "success", "token": token, "output": '"done"'}
    call = {"call": key, "execution": arn}
    rows = HistoryEvent.objects.filter(execution=execution).order_by("event_id")
    told = [list(row) for row in rows.values_list("event_id", "previous", "type")]
    sound: list[dict[str, Any]] = [
        {"start": arn},
        send,
        {"expect": arn, "output": ' "done"'},
        call,
        {"poll": arn, "events": told[:3]},
        {"poll": arn, "events": told},
    ]
    assert logged(*sound) == []
    assert logged({"start": arn + "x"}) == ["I2"]
    assert logged({**send, "output": '"other"'}) == ["I10"]
    assert logged({"send": "failure", "token": token, "error": "E"}) == ["I10"]
    assert logged({**send, "token": "none"}) == ["I10"]
    assert logged(send, send) == ["I10"]
    assert logged({"expect": arn, "output": "1"}) == ["I12"]
    assert logged(call, call) == ["I13"]
    assert logged({**call, "call": "other"}) == ["I13"]
    assert logged({"poll": arn, "events": [*told[:2], told[3]]}) == ["I16"]


def test_an_answer_that_is_lost(project: Project) -> None:
    """A send that was answered is found missing while its task is open, or awaited in vain."""
    activities.create_activity(project, REGION, "work")
    execution = start(create(project, WORK, "lost"), 1)
    drain(execution)
    work = claim.take_activity_task(ACTIVITY)
    assert work is not None
    drain(execution)
    send = {"send": "success", "token": work.token, "output": "1"}
    assert logged(send) == ["I10"]
    complete.succeed(work.token, "1")
    assert logged(send) == []
    InboxMessage.objects.all().delete()
    assert logged(send) == ["I10"]


@pytest.mark.postgres_too
def test_what_runs_only_goes_forward(project: Project) -> None:
    """From sample to sample versions grow, histories keep their beginning, and all can go on."""
    execution = start(create(project, LOOK_TWICE), 1)
    drain(execution)
    watch = Watch()
    assert [*watch.sample(), *watch.sample()] == []
    RunRow.objects.filter(pk=execution.pk).update(version=0)
    assert [violation.id for violation in watch.sample()] == ["I11"]
    HistoryEvent.objects.filter(execution=execution, event_id=2).update(type="WaitStateEntered")
    assert [violation.id for violation in watch.sample()] == ["I16"]
    Timer.objects.all().delete()
    assert [violation.id for violation in watch.sample()] == ["I1"]


LOOK_TWICE = {
    "StartAt": "P",
    "States": {
        "P": {"Type": "Pass", "Next": "W"},
        "W": {"Type": "Wait", "Seconds": 60, "End": True},
    },
}


def said(*args: str) -> tuple[str, int]:
    """Run the command; return what it printed, and its exit code."""
    out = io.StringIO()
    try:
        call_command("check_invariants", *args, stdout=out)
    except SystemExit as exit_:
        return out.getvalue(), int(str(exit_.code))
    return out.getvalue(), 0


def test_the_command(project: Project, tmp_path: Path) -> None:
    """It tells each violation on a line, or figures in JSON, and exits with 1 if there is any."""
    execution = start(create(project, LOOK_TWICE), 1)
    drain(execution)
    newest = drain(start(create(project, PASS, "other"), 1))
    assert said() == ("2 executions, nothing wrong\n", 0)
    Timer.objects.all().delete()
    printed, code = said()
    assert code == 1
    assert printed == f"I1\t{execution.arn}\tRUNNING, and nothing will move it\n"
    assert said("--last", "1") == ("1 executions, nothing wrong\n", 0)
    assert said("--since", "2100-01-01T00:00") == ("0 executions, nothing wrong\n", 0)
    printed, code = said("--json", "--sample", "0.1")
    report = json.loads(printed)
    assert (code, report["n"], report["violations"], report["samples"]) == (1, 2, 2, 1)
    assert {violation["id"] for violation in report["found"]} == {"I1"}
    log = tmp_path / "client.jsonl"
    log.write_text(json.dumps({"expect": newest.arn, "output": "2"}) + "\n", encoding="utf-8")
    assert "I12" in said("--last", "1", "--client-log", str(log))[0]


@pytest.mark.postgres_too
def test_nobody_is_held_up(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a batch is looked at, others write; the batch does not see it."""
    monkeypatch.setattr(stored_executions, "_EXECUTIONS", 1)
    machine = create(project, PASS)
    drain(start(machine, 1))
    looked = stored_executions.batches(Execution.objects.all())
    first = next(looked)
    (second,) = crowd(1, lambda _: drain(start(machine, 2)))  # in a thread of its own
    assert second.status == "SUCCEEDED"
    assert [record.execution.pk for record in first] != [second.pk]
    assert not Execution.objects.filter(pk=second.pk).exists(), "as of one instant"
    assert [record.execution.pk for record in next(looked)] == [second.pk]
    looked.close()  # type: ignore[attr-defined]
