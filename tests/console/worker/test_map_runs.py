"""The children of a distributed Map run, count and end as AWS's do."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

import pytest

import engine
from console import arns
from console.awsapi.operations import executions
from console.features.notifications.store import rules
from console.models import (
    Execution,
    MapRun,
    OutboxEvent,
    Project,
    RunRow,
    StateMachine,
    TaskRow,
)
from console.store.events import outbox
from console.store.executions import redrive
from console.store.executions.stop import stop_execution
from console.store.machines import machines
from console.store.map_runs import map_children, map_runs
from console.store.state import crash_watch
from console.store.tasks import claim
from console.worker import Embedded
from tests.console.store.helpers import (
    assert_nothing_wrong,
    create,
    drain,
    ended,
    function,
    one,
    start,
    types,
)
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator


def distributed(inner: dict[str, Any], name: str = "M", **more: Any) -> dict[str, Any]:
    """Return a machine of one distributed Map."""
    config = {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    return one(name, Type="Map", ItemProcessor={"ProcessorConfig": config, **inner}, **more)


PASS = one("P", Type="Pass")


def pick(event: Any, context: object) -> Any:
    """A function that fails for 3."""
    del context
    if event == 3:
        raise ValueError("three")
    return event * 10


@pytest.fixture(autouse=True)
def functions(settings: Any) -> None:
    """Register the function above."""
    settings.STATEYARD_FUNCTIONS = {"pick": "tests.console.worker.test_map_runs:pick"}


def test_children_are_executions(project: Project, worker: Embedded) -> None:
    """Each item is an execution with its own ARN and history; outputs come in item order."""
    del worker
    definition = distributed(PASS, Label="Each", MaxConcurrency=2)
    execution = ended(start(create(project, definition), [1, {"a": 2}, "x"]))
    assert json.loads(str(execution.output)) == [1, {"a": 2}, "x"]
    run = MapRun.objects.get()
    assert (run.status, run.succeeded, run.total) == ("SUCCEEDED", 3, 3)
    assert ":mapRun:machine/Each:" in run.arn
    child = Execution.objects.filter(map_run=run).order_by("item_index")[1]
    assert ":execution:machine/Each:" in child.arn
    assert types(child)[0] == "ExecutionStarted"
    assert types(execution) == [
        "ExecutionStarted",
        "MapStateEntered",
        "MapStateStarted",
        "MapRunStarted",
        "MapRunSucceeded",
        "MapStateSucceeded",
        "MapStateExited",
        "ExecutionSucceeded",
    ]


def test_express_children(
    project: Project, worker: Embedded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They end as others do, and have no events on the event bus."""
    del worker
    told: list[str] = []
    monkeypatch.setattr(outbox, "put_event", lambda *_, about, **__: told.append(about))
    definition = distributed(PASS)
    config = definition["States"]["M"]["ItemProcessor"]["ProcessorConfig"]
    config["ExecutionType"] = "EXPRESS"
    rules.put_rule(project, "us-east-1", "all", pattern=json.dumps({"source": ["aws.states"]}))
    execution = ended(start(create(project, definition), [1, 2]))
    assert json.loads(str(execution.output)) == [1, 2]
    for child in Execution.objects.filter(map_run__parent=execution):
        assert arns.is_express(child.arn)
        assert types(child)[-1] == "ExecutionSucceeded"
    assert told == [execution.arn] * 2
    assert_nothing_wrong()


def test_express_children_are_redriven_by_their_map_run(project: Project, worker: Embedded) -> None:
    """The API tells no date of it: AWS starts them anew."""
    del worker
    definition = distributed(one("F", **function("pick")), ToleratedFailureCount=0)
    config = definition["States"]["M"]["ItemProcessor"]["ProcessorConfig"]
    config["ExecutionType"] = "EXPRESS"
    execution = ended(start(create(project, definition), [1, 3]))
    assert execution.status == "FAILED"
    child = Execution.objects.get(map_run__parent=execution, status="FAILED")
    assert redrive.redrive_status(child) == ("REDRIVABLE_BY_MAP_RUN", "")
    redrive.redrive_execution(execution)
    assert ended(execution).status == "FAILED"
    child.refresh_from_db()
    assert child.redrive_count == 1
    assert "redriveDate" not in executions._item(child)
    assert "redriveDate" in executions._item(Execution.objects.get(pk=execution.pk))


def test_selector_and_batches(project: Project, worker: Embedded) -> None:
    """ItemSelector applies to each item, then items are grouped."""
    del worker
    definition = distributed(
        PASS,
        ItemSelector={"v.$": "$$.Map.Item.Value", "i.$": "$$.Map.Item.Index"},
        ItemBatcher={"MaxItemsPerBatch": 2, "BatchInput": {"k": 1}},
    )
    execution = ended(start(create(project, definition), ["a", "b", "c"]))
    assert json.loads(str(execution.output)) == [
        {"BatchInput": {"k": 1}, "Items": [{"v": "a", "i": 0}, {"v": "b", "i": 1}]},
        {"BatchInput": {"k": 1}, "Items": [{"v": "c", "i": 2}]},
    ]


@pytest.mark.parametrize(
    "more",
    [
        {"ItemSelector": {"k.$": "$$.Map.Item.Key", "v.$": "$$.Map.Item.Value"}},
        {
            "QueryLanguage": "JSONata",
            "Items": "{% $states.input %}",
            "ItemSelector": {
                "k": "{% $states.context.Map.Item.Key %}",
                "v": "{% $states.context.Map.Item.Value %}",
            },
        },
    ],
)
def test_the_members_of_an_object_are_items(
    project: Project, worker: Embedded, more: dict[str, Any]
) -> None:
    """An object of the state's input: a child gets key and value, the context has them apart."""
    del worker
    data = {"a": {"x": 1}, "b": 2}
    plain = {key: value for key, value in more.items() if key != "ItemSelector"}
    execution = ended(start(create(project, distributed(PASS, **plain)), data))
    assert json.loads(str(execution.output)) == [
        {"Key": "a", "Value": {"x": 1}},
        {"Key": "b", "Value": 2},
    ]
    again = ended(start(create(project, distributed(PASS, **more), "selected"), data))
    assert json.loads(str(again.output)) == [{"k": "a", "v": {"x": 1}}, {"k": "b", "v": 2}]


def test_one_failure_fails_the_run(project: Project, worker: Embedded) -> None:
    """Without tolerance the first failure ends it; what still runs is stopped."""
    del worker
    execution = ended(start(create(project, distributed(one("T", **function("pick")))), [1, 3]))
    assert execution.error == "States.ExceedToleratedFailureThreshold"
    assert types(execution)[-3:] == ["MapRunFailed", "MapStateFailed", "ExecutionFailed"]


def test_tolerated_failures(project: Project, worker: Embedded) -> None:
    """Up to the count, failed children do not matter."""
    del worker
    definition = distributed(one("T", **function("pick")), ToleratedFailureCount=1)
    execution = ended(start(create(project, definition), [1, 3, 5]))
    assert json.loads(str(execution.output)) == [10, 50]
    assert (MapRun.objects.get().failed, execution.status) == (1, "SUCCEEDED")


@pytest.mark.parametrize(("count", "status"), [(1, "FAILED"), (2, "SUCCEEDED")])
def test_a_failed_batch_counts_all_of_its_items(
    project: Project, worker: Embedded, count: int, status: str
) -> None:
    """The tolerated count is one of items, not of children."""
    del worker
    rule = {"Variable": "$.Items[0]", "NumericEquals": 3, "Next": "F"}
    inner = {
        "StartAt": "C",
        "States": {
            "C": {"Type": "Choice", "Choices": [rule], "Default": "P"},
            "F": {"Type": "Fail"},
            **one("P", Type="Pass")["States"],
        },
    }
    batches = {"MaxItemsPerBatch": 2}
    definition = distributed(inner, ItemBatcher=batches, ToleratedFailureCount=count)
    execution = ended(start(create(project, definition), [1, 2, 3, 4]))
    assert (MapRun.objects.get().failed, execution.status) == (1, status)


def test_no_items(project: Project, worker: Embedded) -> None:
    """An empty list is a run of no children."""
    del worker
    assert ended(start(create(project, distributed(PASS)), [])).output == "[]"


def test_stopping_the_parent_stops_the_children(project: Project, worker: Embedded) -> None:
    """Nothing of a stopped run goes on."""
    del worker
    inner = one("W", Type="Wait", Seconds=3600)
    execution = start(create(project, distributed(inner)), [1, 2])
    while Execution.objects.filter(map_run__isnull=False).count() < 2:
        pass
    stop_execution(execution)
    for child in Execution.objects.filter(map_run__isnull=False):
        assert ended(child).status == "ABORTED"


def test_a_run_goes_on_after_its_process_died(project: Project) -> None:
    """Rows alone are enough to begin or continue a Map Run."""
    execution = start(create(project, distributed(PASS, MaxConcurrency=1)), list(range(7)))
    drain(execution)
    assert TaskRow.objects.get().status == "scheduled"
    worker = Embedded()
    worker.start()
    worker.stop()
    second = Embedded()
    second.start()
    try:
        assert json.loads(str(ended(execution).output)) == list(range(7))
    finally:
        second.stop()


def begun(project: Project, inner: dict[str, Any], items: int, **more: Any) -> MapRun:
    """Return a Map Run whose children have not started."""
    execution = start(create(project, distributed(inner, **more)), list(range(items)))
    drain(execution)
    number = map_runs.begin_map_run(execution.pk, TaskRow.objects.get().task)
    return MapRun.objects.get(pk=number)


def versions() -> list[int]:
    """Return how many steps were committed of each child after its start."""
    children = RunRow.objects.filter(execution__map_run__isnull=False)
    return list(children.order_by("execution__item_index").values_list("version", flat=True))


@pytest.fixture
def enough_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let children go on ahead also on a machine that is slow."""
    monkeypatch.setattr(map_children, "_AHEAD_S", 60)


@pytest.mark.usefixtures("enough_time")
def test_children_that_need_nothing_end_where_they_start(project: Project) -> None:
    """One transaction starts them, ends them and counts them, as a start by a caller does."""
    run = begun(project, PASS, 230)
    commits = 0
    while map_runs.advance_map_run(run.pk):
        commits += 1
    assert commits == 3  # a hundred each; the fourth reports
    run.refresh_from_db()
    assert (run.status, run.started, run.succeeded) == ("SUCCEEDED", 230, 230)
    assert versions() == [0] * 230
    assert_nothing_wrong()


@pytest.mark.usefixtures("enough_time")
def test_children_take_turns_in_their_concurrency(project: Project) -> None:
    """Two that ended where they started make room for the next two."""
    run = begun(project, PASS, 5, MaxConcurrency=2)
    started = []
    while map_runs.advance_map_run(run.pk):
        run.refresh_from_db()
        started.append(run.started)
    assert started == [2, 4, 5]


@pytest.mark.usefixtures("enough_time")
def test_too_many_failures_start_no_further_children(project: Project) -> None:
    """Those that fail where they start are counted before the next ones begin."""
    run = begun(project, {"StartAt": "F", "States": {"F": {"Type": "Fail"}}}, 250)
    while map_runs.advance_map_run(run.pk):
        pass
    run.refresh_from_db()
    assert (run.status, run.started, run.failed) == ("FAILED", 100, 100)
    assert_nothing_wrong()


def test_children_without_time_are_left_to_the_worker(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others wait for the Map Run's row: what takes long is stepped by itself."""
    monkeypatch.setattr(map_children, "_AHEAD_S", 0)
    run = begun(project, PASS, 3)
    assert not map_runs.advance_map_run(run.pk)
    assert (versions(), list(run.children.values_list("status", flat=True))) == (
        [0] * 3,
        ["RUNNING"] * 3,
    )
    worker = Embedded()
    worker.start()
    try:
        assert ended(run.parent).output == "[0,1,2]"
    finally:
        worker.stop()
    assert versions() == [1] * 3


def test_children_that_may_kill_the_process_are_stepped_by_themselves(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is computed for a Map is noted as its task; a process that died then counts as a loss.

    After it no child goes on ahead: the one that kills its process is known by its own number then.
    """
    noted: list[tuple[int, int]] = []

    @contextlib.contextmanager
    def watch(execution_id: int, task: int = 0) -> Iterator[None]:
        noted.append((execution_id, task))
        yield

    monkeypatch.setattr(crash_watch, "_watch", watch)
    run = begun(project, PASS, 2, MaxConcurrency=1)
    noted.clear()
    assert map_runs.advance_map_run(run.pk)
    assert noted == [(run.parent_id, run.task)]
    claim.count_loss(*noted[0])
    assert not map_runs.advance_map_run(run.pk)
    children = run.children.order_by("item_index").values_list("status", flat=True)
    assert list(children) == ["SUCCEEDED", "RUNNING"]


@pytest.mark.usefixtures("enough_time")
def test_rules_hear_of_children_that_end_where_they_start(project: Project) -> None:
    """A start that has to ask for something in its transaction is not merged, and happens."""
    rules.put_rule(project, "us-east-1", "all", pattern='{"source": ["aws.states"]}')
    outbox.forget_rules()
    run = begun(project, PASS, 2)
    OutboxEvent.objects.all().delete()
    assert map_runs.advance_map_run(run.pk)
    bodies = [json.loads(body) for body in OutboxEvent.objects.values_list("body", flat=True)]
    statuses = sorted(body["detail"]["status"] for body in bodies)
    assert statuses == ["RUNNING", "RUNNING", "SUCCEEDED", "SUCCEEDED"]


def large(event: Any, context: object) -> str:
    """A function whose answers are too large together: two bytes a character."""
    del event, context
    return "é" * 70_000


@pytest.mark.parametrize(("size", "status"), [(1, "SUCCEEDED"), (2, "FAILED")])
def test_outputs_have_a_limit_together(
    project: Project, worker: Embedded, settings: Any, size: int, status: str
) -> None:
    """Counted in bytes of UTF-8."""
    del worker
    settings.STATEYARD_FUNCTIONS = {"large": "tests.console.worker.test_map_runs:large"}
    execution = ended(
        start(create(project, distributed(one("T", **function("large")))), [1] * size)
    )
    assert execution.status == status
    assert execution.error == (None if size == 1 else "States.DataLimitExceeded")
    assert MapRun.objects.get().status == status


def test_the_limit_of_outputs_is_exact(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Brackets and commas count; what is beyond is not even read."""
    execution = start(create(project, distributed(PASS)), [1, 2, 3])
    monkeypatch.setattr(engine, "MAX_BYTES", 7)
    drain(execution)
    run = MapRun.objects.get(pk=map_runs.begin_map_run(execution.pk, TaskRow.objects.get().task))
    map_runs.advance_map_run(run.pk)
    children = Execution.objects.filter(map_run=run)
    children.update(status="SUCCEEDED", output="1")
    assert map_runs.outputs_of(run) == "[1,1,1]"
    children.filter(item_index=2).update(output="10")
    assert map_runs.outputs_of(run) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["begin", "progress"])
def test_a_run_that_cannot_go_on_fails(
    project: Project, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Three times in a row, then its task fails with States.Runtime; its children are stopped."""

    def broken(*arguments: Any) -> Any:
        raise LookupError("no way")

    inner = one("W", Type="Wait", Seconds=3600)
    execution = start(create(project, distributed(inner)), [1])
    if name == "begin":
        monkeypatch.setattr(machines, "keep_definition", broken)
    else:
        monkeypatch.setattr(map_runs, "_too_many_failed", broken)
        drain(execution)
        run = map_runs.begin_map_run(execution.pk, TaskRow.objects.get().task)
        monkeypatch.undo()
        assert not map_runs.advance_map_run(run or 0)
        monkeypatch.setattr(map_runs, "_too_many_failed", broken)
    worker = Embedded()
    worker.start()
    try:
        execution = ended(execution)
        assert (execution.status, execution.error) == ("FAILED", "States.Runtime")
        assert "LookupError: no way" in str(execution.cause)
        for child in Execution.objects.filter(map_run__isnull=False):
            assert ended(child).status == "ABORTED"
    finally:
        worker.stop()
    assert_nothing_wrong()


def test_a_run_that_went_on_is_forgiven(project: Project) -> None:
    """Only failures in a row count."""
    inner = one("W", Type="Wait", Seconds=3600)
    execution = start(create(project, distributed(inner)), [1])
    drain(execution)
    task = TaskRow.objects.get().task
    map_runs.note_error(execution.pk, task, ValueError("boom"))
    run = map_runs.begin_map_run(execution.pk, task)
    map_runs.note_error(execution.pk, task, ValueError("boom"))
    assert not map_runs.advance_map_run(run or 0)
    assert TaskRow.objects.get().dispatches == 1
    assert MapRun.objects.get().status == "RUNNING"


def test_a_map_run_starts_no_further_child_while_its_machine_is_deleted(
    project: Project, worker: Embedded
) -> None:
    """To start an iteration is a transition: the execution ends there, and its children with it."""
    waits = one("W", Type="Wait", Seconds=1)
    machine = create(project, distributed(waits, MaxConcurrency=1))
    execution = start(machine, [1, 2, 3])
    wait_until(lambda: Execution.objects.filter(map_run__isnull=False).exists())
    machines.delete_machine(project, machine.arn)
    assert ended(execution).status == "ABORTED"
    wait_until(
        lambda: (
            not (
                StateMachine.objects.exists() or Execution.objects.filter(status="RUNNING").exists()
            )
        )
    )
    assert MapRun.objects.get().status == "ABORTED"
    assert Execution.objects.filter(map_run__isnull=False).count() == 1
    worker.stop()
    assert_nothing_wrong()


@pytest.mark.slow
@pytest.mark.parametrize("nested", [False, True])
def test_children_end_at_their_next_transition_when_their_machine_is_deleted(
    project: Project, worker: Embedded, *, nested: bool
) -> None:
    """Also where all have started, and where a Map Run is in a child of another one."""
    waits = {"Type": "Wait", "Seconds": 2, "Next": "P"}
    inner = {"StartAt": "W", "States": {"W": waits, **PASS["States"]}}
    definition, data = inner, [1, 2]
    if nested:
        definition = distributed(inner, "Inner", ToleratedFailurePercentage=100, ItemsPath="$.all")
    machine = create(project, distributed(definition, ToleratedFailurePercentage=100))
    start(machine, [{"all": data}] if nested else data)
    leaves = Execution.objects.filter(historyevent__type="WaitStateEntered")
    wait_until(lambda: leaves.count() >= len(data))
    machines.delete_machine(project, machine.arn)
    wait_until(lambda: not Execution.objects.filter(status="RUNNING").exists())
    for child in leaves:
        assert child.status == "ABORTED"
        assert types(child)[-2:] == ["WaitStateExited", "ExecutionAborted"]
    worker.stop()
    assert_nothing_wrong()
