"""Count the calls that a redrive or replay repeats.

A Task counts once for each of its visits with a call: retries are not counted, because the next
attempt may succeed at once. Visits replaced by a retry of a Parallel or Map are not counted.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.integrations.function import function_name
from engine import VisitStatus

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

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


def calls_of_redrive(trace: Trace, again: Collection[str]) -> RepeatedCalls:
    """Return the calls of unsuccessful visits of the states that run again."""
    called = (
        name
        for name, numbers in calling_visits(trace)
        if name in again
        for visit in numbers
        if trace.status(visit) in _UNSUCCESSFUL and trace.counts_still(visit)
    )
    return count_calls(trace.graph, called)


def calling_visits(trace: Trace) -> Iterator[tuple[str, list[int]]]:
    """Yield the names of Tasks, each with its visits that made a call."""
    for node, visits in trace.visits.items():
        if trace.graph.by_id[node].type == "Task":
            numbers = [number for number in visits.numbers if trace.attempts.get(number)]
            yield trace.graph.by_id[node].name, numbers


def count_calls(graph: Graph, states: Iterable[str]) -> RepeatedCalls:
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
