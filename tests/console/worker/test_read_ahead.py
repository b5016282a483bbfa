"""Rows of executions that wait for their step are read together, and no wake-up is lost by that."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError

import engine
from console.db import writer
from console.models import InboxMessage, Timer
from console.store.executions import start as start_module
from console.store.executions.read_steps import StepRows, read_step_rows
from console.store.state import inbox
from console.worker import stepping
from console.worker.read_ahead import TOGETHER, ReadAhead
from console.worker.stepping import Stepping
from tests.console.store.helpers import (
    PASS,
    WAIT,
    assert_nothing_wrong,
    create,
    drain,
    one,
    start,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from console.models import Execution, Project

ROWS = StepRows((1, "{}"))


def test_rows_are_taken_once() -> None:
    """What was read is used by the next step alone."""
    ahead = ReadAhead()
    ahead.fill(ahead.reserve([1, 2]), {1: ROWS, 2: ROWS})
    assert ahead.take(1) is ROWS
    assert ahead.take(1) is None
    assert list(ahead.reserve([1, 2, 3])) == [1, 3]


def test_no_more_than_a_statement_takes() -> None:
    """The thread's own execution comes on top."""
    assert len(ReadAhead().reserve(range(1000))) == TOGETHER - 1


@pytest.mark.parametrize("again", [False, True])
def test_what_changes_while_it_is_read_is_read_again(*, again: bool) -> None:
    """Also if another thread reserved it meanwhile: only its own rows count."""
    ahead = ReadAhead()
    first = ahead.reserve([1])
    ahead.forget(1)
    second = ahead.reserve([1]) if again else {}
    ahead.fill(first, {1: ROWS})
    ahead.fill(second, {})
    assert ahead.take(1) is None


@pytest.mark.django_db(transaction=True)
def test_rows_of_many_are_those_of_each(project: Project) -> None:
    """Of what has messages, due timers or neither; what has ended or is unknown has no run."""
    waits = create(project, WAIT)
    executions = [start(waits, number) for number in range(4)]
    for execution in executions:
        drain(execution)
    for _ in range(3):
        writer.write(lambda: inbox.post_message(executions[0].pk, engine.TaskStarted(7)))
    Timer.objects.filter(execution=executions[1]).update(due_ms=1)
    ended = start(create(project, PASS, "ended"))
    drain(ended)
    numbers = [execution.pk for execution in executions] + [ended.pk, 0]
    rows = read_step_rows(numbers)
    assert rows.keys() == set(numbers)
    for number in numbers:
        alone = read_step_rows([number])[number]
        assert [list(each or ()) for each in alone] == [list(each or ()) for each in rows[number]]
    assert [len(rows[number].messages) for number in numbers] == [3, 0, 0, 0, 0, 0]
    assert [len(rows[number].timers) for number in numbers] == [0, 1, 0, 0, 0, 0]
    assert [rows[number].run is None for number in numbers] == [False] * 4 + [True] * 2


@pytest.mark.django_db(transaction=True)
def test_messages_and_timers_come_in_their_order_and_as_they_were_written(project: Project) -> None:
    """Messages by their number, timers by their time; whatever a text has in it."""
    execution = start(create(project, WAIT))
    drain(execution)
    texts = ['a "quoted" \\ text', "null", "[1, 2]", "\u00e9\u2028\U0001f600", ""]
    for text in texts:
        writer.write(lambda text=text: inbox.post_message(execution.pk, engine.Stop("E", text)))
    Timer.objects.filter(execution=execution).delete()
    for due_ms, name in ((3, "a"), (1, 'c"'), (2, "b\u00e9")):
        Timer.objects.create(execution=execution, name=name, due_ms=due_ms)
    rows = read_step_rows([execution.pk])[execution.pk]
    stored = InboxMessage.objects.order_by("pk").values_list("id", "kind", "body", "created_ms")
    assert [tuple(message) for message in rows.messages] == list(stored)
    read = inbox.load_messages([(kind, body) for _, kind, body, _ in rows.messages])
    assert [message.cause for message in read] == texts
    assert list(rows.timers) == ['c"', "b\u00e9", "a"]


@pytest.mark.django_db(transaction=True)
def test_a_message_that_comes_while_rows_are_read_is_taken(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """1. Rows of both are read.  2. A Stop of the second comes in.  3. Both are stepped."""
    executions = [start(create(project, WAIT, name)) for name in ("first", "second")]
    for execution in executions:
        drain(execution)
    steps = Stepping(threading.Event(), lambda: None)

    def posting(numbers: Sequence[int]) -> dict[int, StepRows]:
        rows = read_step_rows(numbers)
        if len(numbers) > 1:
            late = executions[1].pk
            writer.write(lambda: inbox.post_message(late, engine.Stop("Late", "came in")))
            steps.wake(late)
        return rows

    monkeypatch.setattr(stepping, "read_step_rows", posting)
    run_queue(steps, executions)
    executions[1].refresh_from_db()
    assert (executions[1].status, executions[1].error) == ("ABORTED", "Late")
    assert_nothing_wrong()


@pytest.mark.django_db(transaction=True)
def test_many_that_are_woken_together_are_read_together(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forty executions whose timers are due take two statements."""
    executions = due_executions(project, 40)
    reads: list[int] = []
    monkeypatch.setattr(
        stepping, "read_step_rows", lambda numbers: noted(reads, numbers, read_step_rows)
    )
    run_queue(Stepping(threading.Event(), lambda: None), executions)
    assert reads == [TOGETHER, 40 - TOGETHER]
    for execution in executions:
        execution.refresh_from_db()
    assert {execution.status for execution in executions} == {"SUCCEEDED"}
    assert_nothing_wrong()


@pytest.mark.django_db(transaction=True)
def test_what_cannot_be_read_together_is_read_alone(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of the statement for many is nobody's fault, and no execution waits for it."""
    executions = due_executions(project, 5)

    def failing(numbers: Sequence[int]) -> dict[int, StepRows]:
        raise OperationalError(f"{len(numbers)} are too many")

    monkeypatch.setattr(stepping, "read_step_rows", failing)
    run_queue(Stepping(threading.Event(), lambda: None), executions)
    for execution in executions:
        execution.refresh_from_db()
    assert {execution.status for execution in executions} == {"SUCCEEDED"}


@pytest.mark.django_db(transaction=True)
def test_a_step_that_came_too_late_by_its_rows_is_computed_again(project: Project) -> None:
    """Another process commits a step after the rows were read: the version says so."""
    twice = {
        "StartAt": "First",
        "States": {
            "First": {"Type": "Wait", "Seconds": 60, "Next": "Second"},
            "Second": {"Type": "Wait", "Seconds": 3600, "End": True},
        },
    }
    execution = start(create(project, twice))
    drain(execution)
    Timer.objects.update(due_ms=1)
    stale = read_step_rows([execution.pk])[execution.pk]
    drain(execution)
    steps = Stepping(threading.Event(), lambda: None)
    with steps._lock:
        steps._read_ahead.fill(steps._read_ahead.reserve([execution.pk]), {execution.pk: stale})
    steps.work(execution.pk)
    assert steps.fenced == 1
    assert steps.backlog() == 1
    run_queue(steps, [])
    assert_nothing_wrong()


def due_executions(project: Project, count: int) -> list[Execution]:
    """Return executions whose timers are due."""
    machine = create(project, one("W", Type="Wait", Seconds=3600))
    executions = [start_module.start_execution(machine, input=str(n)) for n in range(count)]
    for execution in executions:
        drain(execution)
    Timer.objects.update(due_ms=1)
    return executions


def noted(reads: list[int], numbers: Sequence[int], read: Callable[..., Any]) -> Any:
    """Note how many executions are read by a statement."""
    reads.append(len(numbers))
    return read(numbers)


def run_queue(steps: Stepping, executions: Sequence[Execution]) -> None:
    """Step executions that are woken together, on one thread, until nothing is left."""
    for execution in executions:
        steps.wake(execution.pk)
    while steps.backlog():
        steps.stop(1)
        steps.loop()
