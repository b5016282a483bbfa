"""The cost of an execution has that of the executions below it: each is charged by AWS."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from console.db import clock
from console.features.metrics import cost, family_cost
from console.models import Execution
from tests.console.store.helpers import PASS, create, drain, ended, start
from tests.console.web.conftest import signed_in
from tests.console.web.helpers import page, text

if TYPE_CHECKING:
    from console.models import Project

__all__ = ["signed_in"]

INNER = {
    "StartAt": "A",
    "States": {"A": {"Type": "Pass", "Next": "B"}, "B": {"Type": "Pass", "End": True}},
}


def spread(kind: str) -> dict[str, Any]:
    """Return a definition with a distributed Map whose children enter two states each."""
    config = {"Mode": "DISTRIBUTED", "ExecutionType": kind}
    each = {"Type": "Map", "ItemProcessor": {"ProcessorConfig": config, **INNER}, "End": True}
    return {"StartAt": "Each", "States": {"Each": each}}


def nested(machine_arn: str) -> dict[str, Any]:
    """Return a definition that starts an execution of a machine, and waits for it."""
    resource = "arn:aws:states:::states:startExecution.sync:2"
    call = {"Type": "Task", "Resource": resource, "End": True}
    return {
        "StartAt": "Run",
        "States": {"Run": {**call, "Parameters": {"StateMachineArn": machine_arn, "Input": {}}}},
    }


@pytest.mark.postgres_too
def test_standard_children_are_counted(project: Project, worker: Any, signed_in: Any) -> None:
    """Thirty children with three transitions each, beside the two of the parent."""
    del worker
    machine = create(project, spread("STANDARD"))
    execution = ended(start(machine, list(range(30))))
    own = cost.cost_of_execution(execution, 1)
    whole = family_cost.cost_with_family(execution, 1)
    assert own.dollars == 2 * Decimal("0.000025")
    assert whole.dollars == 92 * Decimal("0.000025")
    assert whole.count == own.count
    assert whole.below == "30 Map Run children: 90 state transitions"
    client = signed_in("editor")
    shown = text(client.get(page(execution)))
    assert "$0.002300 <span" in shown
    assert "with 30 Map Run children" in shown
    assert "Includes 30 Map Run children: 90 state transitions." in shown
    assert "90 state transitions" in text(client.get("/machines/machine/metrics/"))
    of_machine, month, _ = family_cost.costs_of_machine(machine, 0, clock.now_ms() + 1)
    assert of_machine.dollars == whole.dollars
    assert month.express_dollars is None


@pytest.mark.postgres_too
def test_express_children_cost_requests_and_memory(project: Project, worker: Any) -> None:
    """A request each, and 64 MB for the time each ran, in steps of 100 ms."""
    del worker
    execution = ended(start(create(project, spread("EXPRESS")), list(range(4))))
    children = Execution.objects.filter(map_run__parent=execution)
    for child in children:
        Execution.objects.filter(pk=child.pk).update(stop_ms=child.start_ms + 150)
    whole = family_cost.cost_with_family(execution, 1)
    held = 4 * Decimal("0.0625") * Decimal("0.2")
    below = 4 * Decimal("0.000001") + held * Decimal("0.00001667")
    assert whole.dollars == 2 * Decimal("0.000025") + below
    assert whole.below == "4 Map Run children: 4 Express requests with 0.050 GB-seconds"


@pytest.mark.postgres_too
def test_nested_executions_are_counted(project: Project, worker: Any) -> None:
    """Below each other, whatever their state machine; that machine's own estimate has them, too."""
    del worker
    inner = create(project, PASS, "inner")
    middle = create(project, nested(inner.arn), "middle")
    outer = create(project, nested(middle.arn), "outer")
    execution = ended(start(outer))
    assert execution.status == "SUCCEEDED", execution.cause
    whole = family_cost.cost_with_family(execution, 1)
    assert whole.dollars == 6 * Decimal("0.000025")
    assert whole.below == "2 nested executions: 4 state transitions"


def test_a_large_family_is_estimated(
    project: Project, worker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The children that are not looked at are taken to be like the others, and the page says so."""
    del worker
    execution = ended(start(create(project, spread("STANDARD")), list(range(30))))
    monkeypatch.setattr(family_cost, "MOST", 10)
    whole = family_cost.cost_with_family(execution, 1)
    assert whole.dollars == 92 * Decimal("0.000025")
    assert whole.below.endswith("90 state transitions, estimated from 10 of each level")


def test_an_execution_without_others_below_reads_nothing_more(
    project: Project, django_assert_num_queries: Any
) -> None:
    """As the definition starts none."""
    execution = drain(start(create(project, PASS)))
    assert execution.definition.text
    with django_assert_num_queries(2):
        assert cost.cost_of_execution(execution, 1) is not None
    with django_assert_num_queries(1):
        assert family_cost.cost_with_family(execution, 1).below == ""
