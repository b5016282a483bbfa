"""A started execution is durable, unique by its name, and ended once."""

from __future__ import annotations

import threading

import pytest

from console.db.writer import write
from console.errors import ErrorCode
from console.models import (
    Execution,
    HistoryEvent,
    InboxMessage,
    Project,
    RunRow,
    RunValue,
    StateMachine,
    Timer,
)
from console.store.executions import redrive, step
from console.store.executions.find import list_executions
from console.store.executions.start import pending_start, start_execution
from console.store.executions.stop import stop_execution
from console.store.state import history
from tests.console.store.helpers import PASS, WAIT, create, drain, one, start, types
from tests.refusals import raises_code


def test_start_commits_all_it_needs_at_once(project: Project) -> None:
    """When start returns there are the row, event 1, the snapshot and the first work item."""
    execution = start(create(project, PASS), {"a": 1})
    assert types(execution) == ["ExecutionStarted"]
    row = RunRow.objects.get(execution_id=execution.pk)
    assert (row.ready, row.next_event, row.version) == (True, 2, 0)
    assert drain(execution).output == '{"a": 1}'


def test_same_name_and_input_is_the_same_execution_while_it_runs(project: Project) -> None:
    """Other input, or an ended execution of that name, is refused."""
    machine = create(project, WAIT)
    first = start(machine, {"a": 1}, "x")
    assert start(machine, {"a": 1}, "x").pk == first.pk
    with raises_code(ErrorCode.ExecutionAlreadyExists):
        start(machine, {"a": 2}, "x")
    stop_execution(first)
    with raises_code(ErrorCode.ExecutionAlreadyExists):
        start(machine, {"a": 1}, "x")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Invalid execution input."),
        ("not json", "Unrecognized token 'not'"),
        ("{'a':1}", "Unexpected character (''' (code 39)): was expecting double-quote"),
        ('"' + "x" * 262_143 + '"', "more than 262144 bytes"),
        ("[" * 501 + "]" * 501, "nested deeper than 500"),
        ("NaN", "NaN"),
        ('"\\ud800"', "surrogate"),
        ('"\ud800"', "surrogate"),
    ],
)
def test_bad_input_is_refused(project: Project, text: str, words: str) -> None:
    """Input must be JSON as AWS takes it, and say what is wrong if not."""
    with raises_code(ErrorCode.InvalidExecutionInput) as caught:
        start_execution(create(project, PASS), input=text)
    assert words in caught.value.message


@pytest.mark.parametrize("text", ["null", "1", '"x"', "[]", '"' + "é" * 131_071 + '"'])
def test_any_json_value_is_good_input(project: Project, text: str) -> None:
    """Not only objects; the size counts in bytes."""
    execution = start_execution(create(project, PASS), input=text)
    assert drain(execution).output == text


def test_text_passes_unchanged(project: Project) -> None:
    """Number text, key order and duplicate keys come out as they came in."""
    text = '{"b": 1.0, "a": 9007199254740993, "z": -0.0, "a": 2}'
    execution = start_execution(create(project, PASS), input=text)
    assert drain(execution).output == text


def test_stop_returns_the_stop_date_that_is_stored(project: Project) -> None:
    """Error and cause are kept, nothing is awaited, and stopping again changes nothing."""
    execution = start(create(project, WAIT))
    drain(execution)
    stop_ms = stop_execution(execution, error="E", cause="C")
    execution.refresh_from_db()
    assert (execution.status, execution.error, execution.cause) == ("ABORTED", "E", "C")
    assert execution.stop_ms == stop_ms == stop_execution(execution, error="other")
    assert not Timer.objects.exists()
    assert not InboxMessage.objects.exists()
    assert types(execution)[-1] == "ExecutionAborted"


def test_a_late_step_writes_nothing(project: Project) -> None:
    """Whoever loaded an older version of a run is fenced off, and no event is doubled."""
    execution = start(create(project, PASS))
    loaded = step.load_step(execution.pk)
    assert loaded is not None
    drain(execution)
    before = types(execution)
    steps = step.advance_run(loaded)
    with pytest.raises(step.Fenced):
        write(lambda: step.commit_step(loaded, steps))
    assert types(execution) == before


def test_many_threads_step_one_execution_once(project: Project) -> None:
    """Sixteen steppers: the history is whole, ids run 1..n, one terminal event."""
    states = {f"S{n}": {"Type": "Pass", "Next": f"S{n + 1}"} for n in range(1500)}
    states["S1500"] = {"Type": "Succeed"}
    execution = start(create(project, {"StartAt": "S0", "States": states}))

    def step_often() -> None:
        from django.db import connection

        for _ in range(200):
            try:
                step.step_execution(execution.pk)
            except step.Fenced:
                continue
            if Execution.objects.get(pk=execution.pk).status != "RUNNING":
                break
        connection.close()

    threads = [threading.Thread(target=step_often) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ids = list(
        HistoryEvent.objects.filter(execution_id=execution.pk)
        .order_by("event_id")
        .values_list("event_id", flat=True)
    )
    assert ids == list(range(1, 2 * 1501 + 3))
    assert types(execution).count("ExecutionSucceeded") == 1


def test_values_of_a_map_are_written_once_and_removed(project: Project) -> None:
    """Items wait as rows while iterations run; nothing is left when all is well."""
    inner = one("W", Type="Wait", Seconds=3600)
    state = {"Type": "Map", "MaxConcurrency": 2, "ItemProcessor": inner}
    execution = start(create(project, one("M", **state)), [1, 2, 3])
    drain(execution)
    assert RunValue.objects.filter(execution_id=execution.pk).count() == 3
    stop_execution(execution)
    assert RunValue.objects.filter(execution_id=execution.pk).count() == 3  # for a redrive
    redrive.redrive_execution(execution)
    drain(execution)
    for _ in range(2):
        Timer.objects.filter(execution_id=execution.pk).update(due_ms=0)
        drain(execution)
    assert drain(execution).status == "SUCCEEDED"
    assert not RunValue.objects.exists()


def test_history_pages_and_reverses(project: Project) -> None:
    """Pages stitched together are the whole history; reverse is its mirror image."""
    states = {f"S{n}": {"Type": "Pass", "Next": f"S{n + 1}"} for n in range(10)}
    states["S10"] = {"Type": "Succeed"}
    execution = start(create(project, {"StartAt": "S0", "States": states}))
    drain(execution)
    whole = [row.event_id for row in history.list_events(execution.pk, limit=1000)]
    stitched: list[int] = []
    while page := history.list_events(execution.pk, after=stitched[-1] if stitched else 0, limit=7):
        stitched += [row.event_id for row in page]
    mirrored = [row.event_id for row in history.list_events(execution.pk, limit=1000, reverse=True)]
    assert stitched == whole == mirrored[::-1]


def test_list_pages_newest_first_without_gaps(project: Project) -> None:
    """Keyset pages neither repeat nor skip rows while new ones arrive."""
    machine = create(project, PASS)
    names = [start(machine).name for _ in range(7)]
    first = list_executions(machine, limit=3)
    start(machine)
    last = first[-1]
    rest = list_executions(machine, after=(last.start_ms, last.pk), limit=100)
    assert [row.name for row in (*first, *rest)] == names[::-1]


def test_a_start_is_stored_when_it_is_written(project: Project) -> None:
    """Made ready it is nowhere; and what became of the machine meanwhile counts."""
    machine = create(project, WAIT)
    starting = pending_start(machine, name="x")
    assert not Execution.objects.exists()
    assert starting.result() == Execution.objects.get()
    late = pending_start(machine, name="y")
    StateMachine.objects.update(status="DELETING")
    with raises_code(ErrorCode.StateMachineDeleting):
        late.result()
