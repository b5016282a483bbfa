"""Do the children of a distributed Map run, count and end as AWS's do?"""

from __future__ import annotations

import json
from typing import Any

import pytest

from console.models import Execution, MapRun, Project, TaskRow
from console.store import executions
from console.worker import Embedded
from tests.console.store.helpers import create, drain, ended, function, one, start, types


def distributed(inner: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a machine of one distributed Map."""
    config = {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    return one("M", Type="Map", ItemProcessor={"ProcessorConfig": config, **inner}, **more)


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
    settings.STEPYARD_FUNCTIONS = {"pick": "tests.console.worker.test_map_runs:pick"}


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
    executions.stop(execution)
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
