"""Faults of an execution strike in the children of its distributed Maps."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from console.db import audit
from console.db.writer import write
from console.errors import ValidationException
from console.models import Execution, MapRun, TaskRow
from console.store.executions import faults, redrive
from console.store.machines.versions import Target
from console.store.map_runs import map_runs
from tests.console.store.helpers import (
    assert_nothing_wrong,
    create,
    drain,
    ended,
    function,
    one,
    types,
)
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.models import Project
    from console.worker import Embedded

ANA = audit.Actor("ana")
RETRY = [{"ErrorEquals": ["Busy"], "IntervalSeconds": 1, "BackoffRate": 1, "MaxAttempts": 1}]
RATED = {"state": "Work", "error": "Broken", "rate": 0.5}
BUSY = {"state": "Work", "error": "Busy", "attempts": [1]}
ITEMS = list(range(12))


def same(event: Any, context: object) -> Any:
    """A function whose result is its input."""
    del context
    return event


@pytest.fixture(autouse=True)
def functions(settings: Any) -> None:
    """Register the function above; delays last a moment."""
    settings.STATEYARD_FUNCTIONS = {"same": "tests.console.worker.test_map_run_faults:same"}
    settings.STATEYARD_WAIT_SCALE = 0


def spread(kind: str = "STANDARD", **more: Any) -> dict[str, Any]:
    """Return a machine of one distributed Map that calls a function for each item."""
    config = {"Mode": "DISTRIBUTED", "ExecutionType": kind}
    processor = {"ProcessorConfig": config, **one("Work", **function("same"), Retry=RETRY)}
    return one("Each", Type="Map", ItemProcessor=processor, **more)


def inject(project: Project, definition: dict[str, Any], *entries: Any, name: str) -> Execution:
    """Start an execution with faults of the seed 3 over twelve items."""
    document = {"faults": [*entries], "seed": 3}
    target = Target(create(project, definition, name))
    return faults.start_faulty(target, document, ANA, input=json.dumps(ITEMS))


def children(execution: Execution) -> Sequence[Execution]:
    """Return the children by their items."""
    return list(Execution.objects.filter(map_run__parent=execution).order_by("item_index"))


def statuses(execution: Execution) -> list[str]:
    """Return the statuses of the children."""
    return [child.status for child in children(execution)]


@pytest.mark.parametrize("kind", ["STANDARD", "EXPRESS"])
def test_faults_strike_in_children(project: Project, worker: Embedded, kind: str) -> None:
    """Each child retries its own first attempt, says so, and has faults of its own."""
    del worker
    execution = ended(inject(project, spread(kind), BUSY, name="m"))
    assert json.loads(str(execution.output)) == ITEMS
    for child in children(execution):
        assert types(child).count("LambdaFunctionScheduled") == 2
        assert [strike.text for strike in faults.strikes_of(child)] == [
            "Work fails with Busy before its call"
        ]
        seed, planned = faults.planned_faults(child)
        assert planned == ["Work fails with Busy before its call at attempt 1"]
        assert seed != 3
    assert faults.strikes_of(execution) == []
    assert_nothing_wrong()


def test_some_children_fail(project: Project, worker: Embedded) -> None:
    """As many as asked for; the others carry no faults."""
    del worker
    fault = {"state": "Each", "type": "fail-children", "children": 4, "error": "Broken"}
    definition = spread(ToleratedFailureCount=4)
    execution = ended(inject(project, definition, fault, name="m"))
    assert execution.status == "SUCCEEDED"
    failed = [child for child in children(execution) if child.status == "FAILED"]
    assert [child.error for child in failed] == ["Broken"] * 4
    assert [child.pk for child in children(execution) if child.faults] == [
        child.pk for child in failed
    ]
    assert [strike.text for strike in faults.strikes_of(failed[0])] == [
        "Work fails with its iteration, one of 4"
    ]
    assert not TaskRow.objects.filter(execution__in=failed).exists()
    assert_nothing_wrong()


def test_the_same_seed_strikes_the_same_children(project: Project, worker: Embedded) -> None:
    """Whatever their order, and how many run at once."""
    del worker
    definition = spread(ToleratedFailurePercentage=100)
    first = ended(inject(project, definition, RATED, name="a"))
    second = ended(inject(project, {**definition}, RATED, name="b"))
    alone = spread(ToleratedFailurePercentage=100, MaxConcurrency=1)
    third = ended(inject(project, alone, RATED, name="c"))
    assert {*statuses(first)} == {"SUCCEEDED", "FAILED"}
    assert statuses(first) == statuses(second) == statuses(third)
    drawn = [child.faults for child in children(first)]
    assert drawn == [child.faults for child in children(third)]


def test_a_start_that_is_rolled_back_draws_the_same(project: Project) -> None:
    """A process dies before its commit; the next one starts the children, with the same faults."""

    class Killed(Exception):
        """The end of a process."""

    execution = drain(inject(project, spread(), RATED, name="m"))
    task = TaskRow.objects.get(execution=execution)
    number = map_runs.begin_map_run(execution.pk, task.task)
    assert number is not None
    drawn: list[list[str | None]] = []

    def die() -> None:
        map_runs.advance_map_run(number)
        drawn.append([child.faults for child in children(execution)])
        raise Killed

    with pytest.raises(Killed):
        write(die)
    assert children(execution) == []
    map_runs.advance_map_run(number)
    assert [child.faults for child in children(execution)] == drawn[0]
    assert len(drawn[0]) == len(ITEMS)


def test_a_redrive_has_no_faults(project: Project, worker: Embedded) -> None:
    """Neither for the children that failed nor for those that it starts first."""
    del worker
    execution = ended(inject(project, spread(MaxConcurrency=2), RATED, name="m"))
    assert execution.status == "FAILED"
    begun = children(execution)
    assert len(begun) < len(ITEMS)
    wait_until(lambda: not redrive.redrive_refusal(execution))
    struck = [child.pk for child in begun if faults.strikes_of(child)]
    redrive.redrive_execution(execution)
    assert json.loads(str(ended(execution).output)) == ITEMS
    assert [child.pk for child in children(execution) if faults.strikes_of(child)] == struck
    assert all(child.faults is None for child in children(execution)[len(begun) :])
    assert MapRun.objects.get(parent=execution).redrive_count == 1
    assert_nothing_wrong()


def test_without_faults_a_map_run_hands_on_none(project: Project, worker: Embedded) -> None:
    """Its row and the rows of its children have none, nor do those of another state's faults."""
    del worker
    definition = spread()
    definition["States"]["Each"] = {**definition["States"]["Each"], "Next": "After"}
    del definition["States"]["Each"]["End"]
    definition["States"]["After"] = {**function("same"), "End": True}
    fault = {"state": "After", "error": "Broken"}
    execution = ended(inject(project, definition, fault, name="m"))
    assert execution.error == "Broken"
    assert MapRun.objects.get(parent=execution).faults is None
    assert [child.faults for child in children(execution)] == [None] * len(ITEMS)


def test_children_of_children(project: Project, worker: Embedded) -> None:
    """The faults reach the grandchildren; the children carry them, too."""
    del worker
    config = {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    each = spread(ItemsPath="$.rows")["States"]["Each"]
    processor = {"ProcessorConfig": config, "StartAt": "Each", "States": {"Each": each}}
    definition = one("Out", Type="Map", ItemProcessor=processor)
    target = Target(create(project, definition))
    document = {"faults": [BUSY], "seed": 3}
    data = json.dumps([{"rows": [1, 2]}, {"rows": [3]}])
    execution = ended(faults.start_faulty(target, document, ANA, input=data))
    assert json.loads(str(execution.output)) == [[1, 2], [3]]
    grandchildren = Execution.objects.filter(map_run__parent__map_run__parent=execution)
    assert grandchildren.count() == 3
    assert all(len(faults.strikes_of(each)) == 1 for each in grandchildren)
    assert all(child.faults for child in children(execution))
    assert_nothing_wrong()


def test_a_fault_in_a_child_that_cannot_strike_is_refused(project: Project) -> None:
    """By the place in the document; nothing is started."""
    fault = {"state": "Work", "type": "lose-heartbeat"}
    with pytest.raises(ValidationException, match="got Work, wanted a Task with HeartbeatSeconds"):
        inject(project, spread(), fault, name="m")
    assert not Execution.objects.exists()
