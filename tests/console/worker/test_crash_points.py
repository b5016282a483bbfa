"""Nothing is lost when the process dies before or after any commit of an execution's life.

The death is a ``BaseException`` raised in place of a commit (before) or of what follows it (after);
then a new process - empty caches, no hints - takes over from the rows alone.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from console.config import quotas
from console.db import writer
from console.models import (
    Execution,
    HistoryEvent,
    Project,
    StateMachine,
    TaskRow,
    ThrottledMinute,
    Timer,
)
from console.store.executions import step
from console.store.state import caches
from console.store.tasks import claim
from console.store.tasks.workers import Share
from console.worker import task_delivery
from console.worker.embedded import runnable_executions
from console.worker.poison_guard import PoisonGuard
from tests.console.store.helpers import assert_nothing_wrong, create, function, one, start

if TYPE_CHECKING:
    from collections.abc import Callable

calls: Counter[str] = Counter()


class Death(BaseException):
    """The process is gone."""


def echo(event: Any, context: object) -> Any:
    """A function that counts its calls."""
    del context
    calls[json.dumps(event)] += 1
    return event


def second_time(event: Any, context: Any) -> Any:
    """A function that fails at its first attempt, however often that is called."""
    seen[event].add(context.idempotency_key)
    if len(seen[event]) == 1:
        raise LookupError("not yet")
    return event


seen: dict[Any, set[str]] = {}
RETRY = [{"ErrorEquals": ["LookupError"], "IntervalSeconds": 5}]
ECHO = one("T", **function("echo"))
PAUSE = one("W", Type="Wait", Seconds=5)
CHAIN = {f"S{n}": {"Type": "Pass", "Next": f"S{n + 1}"} for n in range(1100)}
SHAPES: dict[str, tuple[dict[str, Any], Any, Any]] = {
    "chain": ({"StartAt": "S0", "States": {**CHAIN, "S1100": {"Type": "Succeed"}}}, 1, 1),
    "wait": (PAUSE, {"a": 1}, {"a": 1}),
    "retry": (one("R", **function("second-time"), Retry=RETRY), 1, 1),
    "parallel": (one("P", Type="Parallel", Branches=[ECHO, PAUSE]), 7, [7, 7]),
    "map": (one("M", Type="Map", MaxConcurrency=2, ItemProcessor=ECHO), [1, 2, 3], [1, 2, 3]),
}


@pytest.fixture(autouse=True)
def functions(settings: Any) -> None:
    """Register the functions above."""
    here = "tests.console.worker.test_crash_points"
    settings.STATEYARD_FUNCTIONS = {"echo": f"{here}:echo", "second-time": f"{here}:second_time"}


def live(machine: StateMachine, data: Any) -> Execution:
    """Live like a process: take over what the rows say, and end the one execution. Time flies."""
    caches.kept_runs.__init__(10, 1_000_000)
    claim.release_all_calls()
    execution = Execution.objects.first() or start(machine, data, "x")
    while True:
        while step.step_execution(execution.pk):
            pass
        for task in TaskRow.objects.filter(status="scheduled").values_list("task", flat=True):
            task_delivery.deliver_task(execution.pk, task)
        Timer.objects.update(due_ms=1)
        execution.refresh_from_db()
        if execution.status != "RUNNING":
            return execution


def die_at(monkeypatch: pytest.MonkeyPatch, commit: int, moment: str) -> list[int]:
    """Let the process die before or after its nth commit; return the list that counts them.

    Logs of functions, which another thread commits, are not of the execution's life.
    """
    count = [0]
    living = threading.current_thread()

    def deadly(write: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def dying(fn: Any) -> Any:
            if threading.current_thread() is not living:
                return write(fn)
            count[0] += 1
            if count[0] != commit:
                return write(fn)
            if moment == "after":
                done = write(fn)
                if write in (put, merge):
                    done()
            raise Death

        return dying

    put, merge = writer._writer.put, writer._merger.put
    monkeypatch.setattr(writer._writer, "put", deadly(put))
    monkeypatch.setattr(writer._merger, "put", deadly(merge))
    monkeypatch.setattr(writer, "_write_here", deadly(writer._write_here))
    return count


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_every_commit(project: Project, shape: str, moment: str) -> None:
    """Whichever commit the process dies at, the execution ends as it would have."""
    die_everywhere(project, shape, moment)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["wait", "retry", "parallel", "map"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_every_commit_under_a_limit(
    project: Project, settings: Any, shape: str, moment: str
) -> None:
    """Also where almost every transition has to wait for its token."""
    settings.STATEYARD_QUOTAS = {"state_transition": {"bucket": 1, "refill": 0.5}}
    quotas.forget()
    try:
        die_everywhere(project, shape, moment)
        assert ThrottledMinute.objects.exists()
    finally:
        quotas.forget()


def die_everywhere(project: Project, shape: str, moment: str) -> None:
    """Die at one commit after the other, and live again."""
    definition, data, expected = SHAPES[shape]
    machine = create(project, definition)
    commit, reached = 1, True
    while reached:
        seen[data if isinstance(data, int) else 0] = set()
        calls.clear()
        with pytest.MonkeyPatch.context() as monkeypatch:
            count = die_at(monkeypatch, commit, moment)
            try:
                live(machine, data)
            except Death:
                assert_nothing_wrong()
            reached = count[0] >= commit
        before = list(HistoryEvent.objects.order_by("event_id").values_list())
        execution = live(machine, data)
        assert execution.status == "SUCCEEDED", f"{commit}: {execution.cause}"
        assert json.loads(str(execution.output)) == expected
        after = list(HistoryEvent.objects.order_by("event_id").values_list())
        assert after[: len(before)] == before
        assert_nothing_wrong()
        assert max(calls.values(), default=1) <= 2, "called again at most once, after one death"
        assert reached or max(calls.values(), default=1) == 1, "called once if nothing died"
        Execution.objects.all().delete()
        commit += 1
    assert commit > 4, "a life has several commits"


def test_what_kills_its_process_each_time_is_ended(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the third start after its first kill, without another try; others are not harmed."""
    advance, tried = step.advance_run, []
    poison = start(create(project, PAUSE, "poison"))
    bystander = start(create(project, one("P", Type="Pass"), "bystander"))

    def kill(loaded: step.Loaded) -> Any:
        if loaded.execution_id == poison.pk:
            tried.append(loaded.version)
            raise Death
        return advance(loaded)

    def begin() -> None:
        """Begin as a worker does: with what the rows say, in their order."""
        suspects = PoisonGuard()
        suspects.watch(runnable_executions(Share()))
        for number in runnable_executions(Share()):
            assert suspects.take(number)
            suspects.step(number)

    monkeypatch.setattr(step, "advance_run", kill)
    for _ in range(2):
        with pytest.raises(Death):
            begin()
    begin()
    poison.refresh_from_db()
    bystander.refresh_from_db()
    assert len(tried) == 2
    assert (poison.status, poison.error) == ("FAILED", "States.Runtime")
    assert bystander.status == "SUCCEEDED"
    assert_nothing_wrong()
