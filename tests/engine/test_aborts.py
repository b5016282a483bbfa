"""The trace gives each abort to the line of control that it is about."""

from __future__ import annotations

from typing import Any

import pytest

import engine
from tests.engine.test_graph import CALL, broken, drawn, machine, played

WORK = {**CALL, "End": True}
EACH = {"Type": "Map", "ItemProcessor": machine({"Work": WORK}), "End": True}
FIRST = {"Type": "Map", "ItemProcessor": machine({"First": WORK}), "End": True}
BRANCHES = [machine({"Broken": FIRST}), machine({"Inner": EACH})]


@pytest.mark.parametrize(
    ("state", "items"),
    [
        (EACH, [1, 2, 3]),
        ({"Type": "Map", "ItemProcessor": machine({"Inner": EACH}), "End": True}, [[1, 2], [3, 4]]),
        ({"Type": "Parallel", "Branches": BRANCHES, "End": True}, [1, 2, 3]),
    ],
    ids=["a Map", "a Map in a Map", "a Map beside a Map that fails"],
)
def test_each_iteration_has_the_event_that_aborted_it(state: dict[str, Any], items: Any) -> None:
    """The event points back at the failure in another iteration, and names the state of both."""
    definition = machine({"Outer": state})
    events = played(definition, items, Work=broken, First=broken)
    trace = engine.Trace(drawn(definition))
    trace.feed(events)
    aborted = [event for event in events if event.type == "TaskStateAborted"]
    owners = [trace.owner_of(event.id) for event in aborted]
    entered = [event.id for event in events if event.type == "TaskStateEntered"]
    assert sorted(visit for _, visit in owners) == entered  # one each, also the failed one
    assert trace.statuses()[trace.graph.by_name["Outer"]] == "failed"
    assert trace.culprit is not None
    own = [event for event in trace.culprit.events if events[event - 1].type == "TaskStateAborted"]
    assert own == [min(event.id for event in aborted)]
