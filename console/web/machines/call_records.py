"""Say how often the Tasks of a state machine were called of late, how long that took, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import engine
from console.web.machines import insights, past_executions

if TYPE_CHECKING:
    from console.models import Execution, StateMachine
    from console.web.machines.insights import Insight

MOST = 20
"""How many of the last executions count."""


@dataclass(frozen=True, slots=True)
class RecentCalls:
    """Calls of a Task in recent executions. ``last``: the newest with an entry, or None.

    The step of that execution shows what was sent and answered.
    """

    insight: Insight
    last: Execution | None


def call_records(machine: StateMachine) -> tuple[int, dict[str, RecentCalls]]:
    """Return how many executions were looked at, and node -> what it did; raise DefinitionError.

    A state inside a distributed Map runs in executions of its own, of which the last ones count.
    """
    graph = engine.build_graph(engine.parse_stored(machine.definition.text, machine.type))
    executions = past_executions.last_executions(machine, MOST)
    apart = insights.states_elsewhere(graph)
    inner = past_executions.child_executions(executions) if apart else []
    records = {}
    for node, insight in insights.list_insights(graph, executions, inner).items():
        name = insight.node.name
        entered = (run for run in (inner if name in apart else executions) if name in run.cells)
        run = next(entered, None)
        records[node] = RecentCalls(insight, run.execution if run else None)
    return len(executions), records
