"""Find the state to replay from, and count the calls that a replay or redrive repeats.

The state is the one whose error was caught, else the one in which the execution ended. Inside a
Parallel or Map the outermost of these is used, because no execution can begin inside one. A Task
counts once for each of its visits with a call: retries are not counted, because the next attempt
may succeed at once. Visits replaced by a retry of a Parallel or Map are not counted.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import engine
from console.integrations.function import function_name
from console.store.executions import replay
from console.web.execution import chosen_step, root_cause
from console.web.execution.panel import telling_visit
from console.web.history.traces import open_trace
from engine import VisitStatus

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from console.models import Execution
    from engine import Graph, Node, Trace


_UNSUCCESSFUL = frozenset({VisitStatus.FAILED, VisitStatus.TIMED_OUT, VisitStatus.ABORTED})
_SERVICES = ":states:::"
_INVOKE = ("lambda:invoke", "aws-sdk:lambda:invoke")
TIMES = "\N{MULTIPLICATION SIGN}"
_SHOWN = 12
"""The number of different calls in a sentence."""


@dataclass(frozen=True, slots=True)
class RepeatedCalls:
    """Number of calls by function or service action, most frequent first."""

    counts: tuple[tuple[str, int], ...] = ()

    @property
    def text(self) -> str:
        """Return the calls in one line with counts; "" without any."""
        parts = [f"{name} {TIMES}{count:,}" for name, count in self.counts[:_SHOWN]]
        more = len(self.counts) - _SHOWN
        return ", ".join(parts) + (f" and {more} more" if more > 0 else "")

    @staticmethod
    def summed(calls: Iterable[RepeatedCalls]) -> RepeatedCalls:
        """Return the sum of the calls of several executions."""
        total: Counter[str] = Counter()
        for each in calls:
            total.update(dict(each.counts))
        return _sorted(total)


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
        for name, numbers in _calling_visits(trace)
        for visit in numbers
        if visit >= first and trace.counts_still(visit)
    )
    return _count(graph, called)


def calls_of_redrive(trace: Trace, again: Collection[str]) -> RepeatedCalls:
    """Return the calls of unsuccessful visits of the states that run again."""
    called = (
        name
        for name, numbers in _calling_visits(trace)
        if name in again
        for visit in numbers
        if trace.status(visit) in _UNSUCCESSFUL and trace.counts_still(visit)
    )
    return _count(trace.graph, called)


def _calling_visits(trace: Trace) -> Iterator[tuple[str, list[int]]]:
    """Yield the names of Tasks, each with its visits that made a call."""
    for node, visits in trace.visits.items():
        if trace.graph.by_id[node].type == "Task":
            numbers = [number for number in visits.numbers if trace.attempts.get(number)]
            yield trace.graph.by_id[node].name, numbers


def _count(graph: Graph, states: Iterable[str]) -> RepeatedCalls:
    """Count the calls of visits, given by state name."""
    total: Counter[str] = Counter()
    for state, count in Counter(states).items():
        node = graph.by_id.get(graph.by_name.get(state, ""))
        if node is not None and node.type == "Task":
            total[call_name(node)] += count
    return _sorted(total)


def _sorted(total: Counter[str]) -> RepeatedCalls:
    return RepeatedCalls(tuple(sorted(total.items(), key=lambda item: (-item[1], item[0]))))


def call_name(node: Node) -> str:
    """Return what a Task calls: ``lambda:pay``, ``sqs:sendMessage`` or ``activity:ship``."""
    state = json.loads(node.text)
    resource = str(state.get("Resource", ""))
    if _SERVICES not in resource:
        kind = node.detail.partition(":")[0]
        return f"{kind}:{function_name(resource)}"
    name = resource.partition(_SERVICES)[2].partition(".")[0]
    sent = state.get("Arguments", state.get("Parameters"))
    called = sent.get("FunctionName") if isinstance(sent, dict) else None
    if name in _INVOKE and isinstance(called, str) and not called.startswith("{%"):
        return f"lambda:{function_name(called) if called.startswith('arn:') else called}"
    return name


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
