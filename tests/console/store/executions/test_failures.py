"""An execution that cannot go on ends with a reason and harms no other execution."""

from __future__ import annotations

import json

import pytest

import engine
from console.db.rows import storable
from console.db.writer import write
from console.models import Execution, HistoryEvent, InboxMessage, Project, RunRow, RunValue
from console.store.executions import engine_failures, redrive, step
from console.store.executions.stop import stop_execution
from console.store.state import inbox
from tests.console.store.helpers import (
    PASS,
    WAIT,
    assert_nothing_wrong,
    create,
    drain,
    one,
    start,
    types,
)


def test_three_failed_steps_end_it(project: Project) -> None:
    """FAILED with States.Runtime and the reason."""
    execution = start(create(project, WAIT))
    error = ValueError("boom")
    assert [engine_failures.record_failure(execution.pk, error) for _ in range(3)] == [
        True,
        True,
        False,
    ]
    execution.refresh_from_db()
    assert (execution.status, execution.error) == ("FAILED", "States.Runtime")
    assert "ValueError: boom" in str(execution.cause)
    assert_nothing_wrong()


def test_a_good_step_forgives(project: Project) -> None:
    """Only failures in a row count."""
    execution = start(create(project, WAIT))
    for _ in range(2):
        engine_failures.record_failure(execution.pk, ValueError("boom"))
    drain(execution)
    assert RunRow.objects.get().failures == 0


def test_an_attempt_is_counted_once(project: Project) -> None:
    """Before it is made or when it raised; a good step forgives both."""
    execution = start(create(project, WAIT))
    assert engine_failures.may_try(execution.pk)
    assert engine_failures.record_failure(execution.pk, ValueError("boom"), counted=True)
    assert engine_failures.record_failure(execution.pk, ValueError("boom"))
    assert RunRow.objects.get().failures == 2
    drain(execution)
    assert RunRow.objects.get().failures == 0


def test_who_is_overtaken_does_not_end_it(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another step was committed while the end was written, there is just more to try."""
    execution = start(create(project, WAIT))
    drain(execution)
    for _ in range(2):
        engine_failures.record_failure(execution.pk, ValueError("boom"))

    def overtaken(*arguments: object) -> None:
        raise step.Fenced

    monkeypatch.setattr(engine_failures, "_by_the_engine", overtaken)
    assert engine_failures.record_failure(execution.pk, ValueError("boom"))


@pytest.mark.parametrize("broken", ["snapshot", "message"])
def test_what_cannot_even_be_read_is_ended_by_hand(project: Project, broken: str) -> None:
    """A snapshot or a message that does not load ends its execution like any other fault."""
    state = {"Type": "Map", "ItemProcessor": WAIT}
    execution = start(create(project, one("M", **state)), [1, 2])
    drain(execution)
    if broken == "snapshot":
        RunRow.objects.update(snapshot="broken")
        write(lambda: inbox.post_message(execution.pk, engine.Stop()))
    else:
        InboxMessage.objects.create(
            execution=execution, kind="TaskSucceeded", body="{}", created_ms=0
        )
    step.kept_runs.forget(execution.pk)  # type: ignore[attr-defined]
    for _ in range(3):
        with pytest.raises((ValueError, TypeError)) as caught:
            step.step_execution(execution.pk)
        engine_failures.record_failure(execution.pk, caught.value)
    execution.refresh_from_db()
    assert (execution.status, execution.error) == ("FAILED", "States.Runtime")
    assert types(execution)[-1] == "ExecutionFailed"
    assert not RunValue.objects.exists()
    assert_nothing_wrong()


@pytest.mark.parametrize("broken", [False, True])
def test_what_was_to_be_redriven_says_so_before_it_is_ended(
    project: Project, *, broken: bool
) -> None:
    """Nothing but ExecutionRedriven follows an end, also where the redrive itself cannot be."""
    execution = start(create(project, WAIT))
    stop_execution(execution)
    redrive.redrive_execution(execution)
    if broken:
        RunRow.objects.update(snapshot="broken")
    for _ in range(3):
        engine_failures.record_failure(execution.pk, ValueError("boom"))
    execution.refresh_from_db()
    assert (execution.status, execution.error) == ("FAILED", "States.Runtime")
    ends = ["ExecutionAborted", "ExecutionRedriven", "ExecutionFailed"]
    assert types(execution)[-3:] == ends
    assert_nothing_wrong()


def test_stopping_what_cannot_be_read_still_ends_it(project: Project) -> None:
    """StopExecution returns a stop date, whatever is the matter."""
    execution = start(create(project, WAIT))
    RunRow.objects.update(snapshot="broken")
    stop_ms = stop_execution(execution)
    execution.refresh_from_db()
    assert (execution.stop_ms, execution.status) == (stop_ms, "FAILED")


def test_characters_no_database_stores_are_replaced(project: Project) -> None:
    """U+0000 and lone surrogates in error and cause poison nothing."""
    execution = start(create(project, WAIT))
    stop_execution(execution, error="a\x00", cause="b\x00\ud800é")
    execution.refresh_from_db()
    assert (execution.error, execution.cause) == ("a\ufffd", "b\ufffd\ufffdé")
    assert storable("plain") == "plain"


def test_a_state_may_have_any_name(project: Project) -> None:
    """Even one with U+0000 runs."""
    execution = start(create(project, one("a\x00b", Type="Pass")))
    assert drain(execution).status == "SUCCEEDED"
    assert HistoryEvent.objects.filter(state="a\ufffdb").count() == 2


def test_messages_to_ended_executions_are_dropped(project: Project) -> None:
    """A message that came in as the execution ended moves nothing and goes."""
    ended = start(create(project, PASS), name="ended")
    drain(ended)
    waits = start(create(project, WAIT, "waits"))
    for execution in (ended, waits):
        write(lambda number=execution.pk: inbox.post_message(number, engine.Stop()))
    inbox.drop_stale()
    assert list(InboxMessage.objects.values_list("execution_id", flat=True)) == [waits.pk]


def write_newer(execution: Execution) -> str:
    """Let a later version of this program have stepped an execution; return its snapshot."""
    row = RunRow.objects.get(pk=execution.pk)
    later = json.loads(row.snapshot) | {"format": 1_000_000, "lanes": []}
    RunRow.objects.filter(pk=execution.pk).update(snapshot=json.dumps(later))
    step.kept_runs.forget(execution.pk)  # type: ignore[attr-defined]
    return json.dumps(later)


def test_what_a_later_version_wrote_is_left_alone(project: Project) -> None:
    """However often this version comes by: it neither counts nor ends it (G16)."""
    execution = start(create(project, WAIT))
    drain(execution)
    snapshot = write_newer(execution)
    write(lambda: inbox.post_message(execution.pk, engine.Stop()))
    for _ in range(5):
        with pytest.raises(engine.NewerFormat) as caught:
            step.step_execution(execution.pk)
        assert engine_failures.record_failure(execution.pk, caught.value) is False
        assert engine_failures.may_try(execution.pk)
        assert engine_failures.record_failure(execution.pk, caught.value, counted=True) is False
    row = RunRow.objects.get()
    assert (row.snapshot, row.failures, row.version) == (snapshot, 0, 1)
    execution.refresh_from_db()
    assert execution.status == "RUNNING"
    assert InboxMessage.objects.count() == 1
    assert_nothing_wrong()


@pytest.mark.parametrize(
    ("kind", "body"),
    [("Paused", "{}"), ("Stop", '{"error": null, "cause": null, "by": "ben"}')],
    ids=["an unknown kind", "an unknown field"],
)
def test_a_message_of_a_later_version_is_left_alone(project: Project, kind: str, body: str) -> None:
    """The version that wrote it takes the execution further (G16)."""
    execution = start(create(project, WAIT))
    drain(execution)
    InboxMessage.objects.create(execution_id=execution.pk, kind=kind, body=body, created_ms=1)
    with pytest.raises(engine.NewerFormat, match=f"{kind}: a later version"):
        step.step_execution(execution.pk)
    assert InboxMessage.objects.count() == 1


def test_what_failed_before_is_not_ended_in_a_later_versions_place(project: Project) -> None:
    """Even where this version had failed at it twice."""
    execution = start(create(project, WAIT))
    drain(execution)
    write_newer(execution)
    write(lambda: inbox.post_message(execution.pk, engine.Stop()))
    RunRow.objects.update(failures=engine_failures.MAX_FAILURES - 1)
    with pytest.raises(engine.NewerFormat) as caught:
        engine_failures.may_try(execution.pk)
    engine_failures.record_failure(execution.pk, caught.value, counted=True)
    execution.refresh_from_db()
    assert (execution.status, RunRow.objects.get().failures) == ("RUNNING", 2)
