"""Find the state to replay from.

The state is the one whose error was caught, else the one in which the execution ended. Inside a
Parallel or Map the outermost of these is used, because no execution can begin inside one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import engine
from console.store.executions import replay
from console.web.execution import chosen_step, root_cause
from console.web.execution.panel import telling_visit
from console.web.execution.repeated_calls import RepeatedCalls, calling_visits, count_calls
from console.web.history.traces import open_trace

if TYPE_CHECKING:
    from console.models import Execution
    from engine import Graph, Trace


@dataclass(frozen=True, slots=True)
class ReplayPoint:
    """A visit of a state. ``visit``: its number among the visits of the state, 0 for the latest."""

    state: str
    visit: int = 0


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """Where a replay with the current definition begins, and what it would call again.

    ``refusal``: the reason if there is no such state; ``point`` is None then.
    """

    point: ReplayPoint | None = None
    calls: RepeatedCalls = field(default_factory=RepeatedCalls)
    refusal: str = ""


def replay_point(execution: Execution) -> ReplayPoint | None:
    """Return where a replay with the current definition begins, None if it cannot.

    There is none if the definition has not changed since, if it no longer has the state, or if only
    a Fail state would run again.
    """
    return plan_replay(execution).point


def plan_replay(execution: Execution) -> ReplayPlan:
    """Return the plan of a replay with the current definition, without any change."""
    machine = execution.state_machine
    if machine is None:
        return ReplayPlan(refusal="Its state machine was deleted")
    if execution.map_run_id is not None:
        return ReplayPlan(refusal="A child of a Map Run cannot be replayed")
    if not replay.has_changed(execution):
        return ReplayPlan(refusal="It ran with the current definition of its state machine")
    try:
        graph = engine.build_graph(engine.parse_stored(machine.definition.text))
        with open_trace(execution) as trace:
            point = _failed_state(execution, trace)
            if refusal := _refusal(trace.graph, machine.definition.text, point.state):
                return ReplayPlan(refusal=refusal)
            calls = calls_of_replay(trace, graph, point.state, point.visit)
    except engine.DefinitionError:  # stored by a version that checked less
        return ReplayPlan(refusal="Its definition can no longer be run")
    return ReplayPlan(point, calls)


def _failed_state(execution: Execution, trace: Trace) -> ReplayPoint:
    """Return the failed visit at the top level of the definition; the state is "" if unknown."""
    root = root_cause.root_cause(execution, trace)
    if root is not None and root.can_begin:
        return ReplayPoint(root.at.state, root.at.visit)
    name = root.at.state if root is not None else chosen_step.ended_in(execution, trace).name
    return ReplayPoint(_outermost(trace.graph, name))


def _refusal(graph: Graph, text: str, state: str) -> str:
    """Return why a replay cannot begin in a state of a new definition; "" if it can."""
    type_ = _type_of(graph, state)
    if not type_:
        return "It ended before its first state, or in a state that is not known"
    if type_ == "Fail":
        return f"Only the Fail state {state} would run again"
    if not replay.begins_in(text, state):
        return f"The new definition has no state {state} outside of Parallel and Map"
    return ""


def _outermost(graph: Graph, name: str) -> str:
    """Return the top-level Parallel or Map around a state, or the state; "" if unknown."""
    owners = {group.id: group.owner for group in graph.groups}
    node = graph.by_name.get(name, "")
    while node and (owner := owners[graph.by_id[node].group]):
        node = owner
    return graph.by_id[node].name if node else ""


def _type_of(graph: Graph, name: str) -> str:
    node = graph.by_name.get(name)
    return graph.by_id[node].type if node else ""


def calls_of_replay(trace: Trace, graph: Graph, state: str, number: int = 0) -> RepeatedCalls:
    """Return the calls of an execution since it entered a state.

    ``graph``: the graph of the definition that the replay runs; Tasks that it no longer has are
    omitted. ``number``: the visit that the replay repeats, 0 for the one that its page shows first.
    """
    visits = trace.visits_of(trace.graph.by_name.get(state, ""))
    places = range(1, len(visits) + 1)
    if not places:
        return RepeatedCalls()
    if number not in places:
        number = telling_visit(trace, visits, places)
    first = visits.numbers[number - 1]
    called = (
        name
        for name, numbers in calling_visits(trace)
        for visit in numbers
        if visit >= first and trace.counts_still(visit)
    )
    return count_calls(graph, called)
