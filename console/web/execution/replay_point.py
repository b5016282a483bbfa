"""Choose the state from which a replay repeats a failure, so that a corrected definition is tried.

This is the state whose error was caught, else the one in which the execution ended. If it is inside
a Parallel or Map, the outermost of these is chosen, because no execution begins inside of one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import engine
from console.store.executions import replay
from console.web.execution import chosen_step, root_cause
from console.web.history.traces import open_trace

if TYPE_CHECKING:
    from console.models import Execution
    from engine import Graph


@dataclass(frozen=True, slots=True)
class ReplayPoint:
    """A visit of a state. ``visit``: its number among the visits of the state, 0 for the latest."""

    state: str
    visit: int = 0


def replay_point(execution: Execution) -> ReplayPoint | None:
    """Return where a replay with the current definition begins, None if there is no such state.

    There is none if the definition is still that of the execution, if it has lost the state, or if
    only a Fail state would run again.
    """
    machine = execution.state_machine
    if machine is None or execution.map_run_id is not None or not replay.has_changed(execution):
        return None
    try:
        with open_trace(execution) as trace:
            root = root_cause.root_cause(execution, trace)
            ended_in = chosen_step.ended_in(execution, trace)
            if root is not None and root.can_begin:
                point = ReplayPoint(root.at.state, root.at.visit)
            else:
                name = root.at.state if root is not None else ended_in.name
                point = ReplayPoint(_outermost(trace.graph, name))
            type_ = _type_of(trace.graph, point.state)
    except engine.DefinitionError:  # stored by a version that checked less
        return None
    if type_ in ("", "Fail") or not replay.begins_in(machine.definition.text, point.state):
        return None
    return point


def _outermost(graph: Graph, name: str) -> str:
    """Return the Parallel or Map at the top around a state, or the state; "" if unknown."""
    owners = {group.id: group.owner for group in graph.groups}
    node = graph.by_name.get(name, "")
    while node and (owner := owners[graph.by_id[node].group]):
        node = owner
    return graph.by_id[node].name if node else ""


def _type_of(graph: Graph, name: str) -> str:
    node = graph.by_name.get(name)
    return graph.by_id[node].type if node else ""
