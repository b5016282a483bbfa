"""The rows that a run needs are stored once, read again, and removed in the end."""

from __future__ import annotations

import json

import pytest

import engine
from console.db.writer import write
from console.errors import InvalidDefinition
from console.models import Execution, InboxMessage, Project, RunRow, RunValue, TaskRow, Timer
from console.store.executions import redrive, step, stop
from console.store.executions.start import start_execution
from console.store.executions.step_rows import StoredValues, save_values
from console.store.machines import machines
from console.store.state import inbox
from console.store.state.caches import Runs
from console.store.tasks import activities
from console.web.execution import waiting
from tests.console.store.helpers import (
    PASS,
    REGION,
    ROLE,
    WAIT,
    WORK,
    assert_nothing_wrong,
    create,
    drain,
    one,
    renamed,
    start,
)


def test_a_commit_stays_small_whatever_is_waiting(project: Project) -> None:
    """What a step has no room for stays in the inbox, in order, for the next one."""
    activities.create_activity(project, REGION, "work")
    execution = start(
        create(project, one("P", Type="Parallel", Branches=[renamed(WORK, n) for n in range(40)]))
    )
    drain(execution)
    output = json.dumps("x" * 250_000)
    numbers = TaskRow.objects.values_list("task", flat=True)

    def post_all() -> None:
        for number in numbers:
            inbox.post_message(execution.pk, engine.TaskSucceeded(number, output))

    write(post_all)
    assert step.step_execution(execution.pk)
    count = InboxMessage.objects.count()
    assert 20 < count < 40
    drain(execution)
    assert InboxMessage.objects.count() == 0
    execution.refresh_from_db()
    assert execution.error == "States.DataLimitExceeded"


def test_a_definition_of_an_earlier_release_runs_on(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rules that came after it neither stop its executions nor a change of its role."""
    branch = {**PASS, "QueryLanguage": "JSONata"}
    definition = {
        "StartAt": "P",
        "States": {
            "P": {
                "Type": "Parallel",
                "Branches": [branch, branch],
                "ResultSelector": {"it.$": "States.Array('\\\\n')", "both.$": "$"},
                "End": True,
            }
        },
    }
    with pytest.raises(InvalidDefinition):
        create(project, definition)
    with monkeypatch.context() as earlier:
        earlier.setattr(machines, "check_definition", lambda *_: None)
        machine = create(project, definition)
    text = machine.definition.text
    changed = machines.update_machine(machine, definition=text, role_arn=f"{ROLE}2")
    assert changed.role_arn == f"{ROLE}2"
    with pytest.raises(InvalidDefinition):
        machines.update_machine(machine, definition=text.replace("both", "all"))
    execution = drain(start(machine, {"a": 1}))
    assert (execution.status, execution.error) == ("SUCCEEDED", None)
    assert json.loads(str(execution.output))["both"] == [{"a": 1}, {"a": 1}]


def test_a_prefix_drops_its_values_only(project: Project) -> None:
    """Group 1 is not group 10, and the input of event 1 not that of event 10."""
    execution = start(create(project, WAIT))
    keys = ["1/i/0", "1/o/0", "10/i/0", "in/1/", "in/10/", "2/i/0"]
    values = StoredValues(execution.pk)
    values.fresh = dict.fromkeys(keys, "x")
    write(lambda: save_values(values))

    def drop(*prefixes: str) -> set[str]:
        values.fresh, values.dropped = {}, list(prefixes)
        write(lambda: save_values(values))
        return set(RunValue.objects.values_list("key", flat=True))

    assert drop("1/", "in/1/") == {"10/i/0", "in/10/", "2/i/0"}
    assert drop("") == set()


def test_values_are_read_in_the_order_asked_for(project: Project) -> None:
    """Also when there are more than one query takes."""
    execution = start(create(project, WAIT))
    values = StoredValues(execution.pk)
    values.fresh = {f"1/i/{n}": str(n) for n in range(1200)}
    write(lambda: save_values(values))
    names = [f"1/i/{n}" for n in reversed(range(1200))]
    assert StoredValues(execution.pk).many(names) == [str(n) for n in reversed(range(1200))]


def test_more_messages_than_a_step_takes_ask_for_another_step(project: Project) -> None:
    """Nothing waits for the sweeper because a hint was merged with another."""
    execution = start(create(project, WAIT))
    drain(execution)

    def post() -> None:
        for number in range(150):
            inbox.post_message(execution.pk, engine.TaskStarted(1000 + number))

    write(post)
    assert step.step_execution(execution.pk)
    assert not step.step_execution(execution.pk)
    assert not InboxMessage.objects.exists()


def test_a_timer_that_fired_is_gone(project: Project) -> None:
    """Only what is still waited for stays armed."""
    states = {
        "First": {"Type": "Wait", "Seconds": 60, "Next": "Second"},
        "Second": {"Type": "Wait", "Seconds": 3600, "End": True},
    }
    execution = start(create(project, {"StartAt": "First", "States": states}))
    drain(execution)
    first = Timer.objects.get().name
    Timer.objects.update(due_ms=1)
    drain(execution)
    timer = Timer.objects.get()
    assert timer.name != first
    assert timer.due_ms > execution.start_ms + 3_000_000


def test_kept_runs_are_bounded_by_number_and_size() -> None:
    """The oldest go first; a run of another version is not the run."""

    def run(size: int) -> engine.Run:
        return engine.Run(
            about={"input": "x" * size}, frames={}, groups={}, status=engine.ExecutionStatus.RUNNING
        )

    values = StoredValues(1)
    runs = Runs(2, 1_000)
    for number in (1, 2, 3):
        runs.put(number, 7, run(100))
    assert runs.get(1, 7, values) is None
    stored_run = runs.get(3, 7, values)
    assert stored_run is not None
    assert stored_run.values is values
    assert runs.get(3, 8, values) is None
    runs.put(4, 1, run(950))
    assert [runs.get(number, 7, values) for number in (2, 3)] == [None, None]
    runs.put(5, 1, run(5_000))
    assert runs.get(5, 1, values) is None
    runs.put(6, 1, run(100))
    assert runs.get(6, 1, values) is not None


def test_who_is_overtaken_while_stepping_is_fenced(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value that went with another's commit is no failure; one that is just missing is."""
    execution = start(create(project, PASS))
    advance = step.advance_run

    def missing(loaded: step.Loaded) -> list[engine.Step]:
        raise KeyError(loaded.arn)

    def overtaken(loaded: step.Loaded) -> list[engine.Step]:
        monkeypatch.setattr(step, "advance_run", advance)
        step.step_execution(execution.pk)
        raise KeyError(loaded.arn)

    monkeypatch.setattr(step, "advance_run", missing)
    with pytest.raises(KeyError):
        step.step_execution(execution.pk)
    monkeypatch.setattr(step, "advance_run", overtaken)
    with pytest.raises(step.Fenced):
        step.step_execution(execution.pk)
    assert drain(execution).status == "SUCCEEDED"


LOOP = {
    "StartAt": "Ask",
    "States": {
        "Ask": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.done", "IsPresent": True, "Next": "Done"}],
            "Default": "Again",
        },
        "Again": {"Type": "Pass", "Next": "Ask"},
        "Done": {"Type": "Succeed"},
    },
}


def test_a_stop_of_a_tight_loop_is_taken_by_the_next_step(project: Project) -> None:
    """The loop spent each step's budget before the Stop, and failed by its full history."""
    execution = start(create(project, LOOP))
    assert step.step_execution(execution.pk)
    stop.stop_execution(execution)
    step.step_execution(execution.pk)
    execution.refresh_from_db()
    assert execution.status == "ABORTED"


def test_the_timeout_of_a_tight_loop_is_taken_by_the_next_step(project: Project) -> None:
    """As a Stop."""
    execution = start(create(project, {**LOOP, "TimeoutSeconds": 60}))
    assert step.step_execution(execution.pk)
    Timer.objects.filter(execution=execution).update(due_ms=1)
    step.step_execution(execution.pk)
    execution.refresh_from_db()
    assert execution.status == "TIMED_OUT"


@pytest.mark.parametrize("ahead", [False, True])
def test_a_run_that_succeeded_leaves_no_snapshot(project: Project, *, ahead: bool) -> None:
    """Nothing goes on from there; one that failed keeps it, for a redrive."""
    fails = {"StartAt": "F", "States": {"F": {"Type": "Fail"}}}
    for name, definition in (("good", PASS), ("bad", fails)):
        execution = start_execution(create(project, definition, name), ahead=ahead)
        drain(execution)
    snapshots = dict(RunRow.objects.values_list("execution__state_machine__name", "snapshot"))
    assert snapshots["good"] == ""
    assert json.loads(snapshots["bad"])["status"] == "FAILED"
    assert_nothing_wrong()


def test_what_an_execution_waits_for_is_as_new_as_its_events(project: Project) -> None:
    """1. A page reads the execution.  2. A step arms a timer.  3. The page reads events and timers.

    Nothing tells the page of the timer any more: it asks for what comes after those events.
    """
    execution = start(create(project, WAIT))
    early = Execution.objects.select_related("runrow").get(pk=execution.pk)
    drain(execution)
    assert [line.state for line in waiting.waiting_part(early).lines] == ["W"]


def test_what_reads_a_run_that_succeeds_meanwhile_finds_none(project: Project) -> None:
    """1. A page reads the timers.  2. The execution succeeds.  3. The page reads the run."""
    execution = drain(start(create(project, WAIT)))
    assert [line.state for line in waiting.waiting_part(execution).lines] == ["W"]
    RunRow.objects.filter(pk=execution.pk).update(snapshot="")
    execution.refresh_from_db()
    assert waiting.waiting_part(execution).lines == ()
    assert redrive.repeated_states(execution) == []
