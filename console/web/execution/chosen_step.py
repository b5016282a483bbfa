"""Choose the step that the panel shows by default.

A failed execution shows its failed step, a running one its current state, a succeeded one its own
input and output (the empty name).
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import filterfalse
from typing import TYPE_CHECKING

from console.statuses import ExecutionStatus
from engine import VisitStatus

if TYPE_CHECKING:
    from console.models import Execution
    from engine import Trace

_LEFT_OPEN = {
    ExecutionStatus.RUNNING: VisitStatus.RUNNING,
    ExecutionStatus.ABORTED: VisitStatus.ABORTED,
    ExecutionStatus.TIMED_OUT: VisitStatus.TIMED_OUT,
}
"""Status of an execution -> status of the visits that it is in now, or was in when it ended."""


_ENDED_WELL = (ExecutionStatus.RUNNING, ExecutionStatus.SUCCEEDED)


@dataclass(frozen=True, slots=True)
class ChosenStep:
    """The state that the panel beside the graph shows.

    ``name``: "" for the execution itself. ``visit``: the number among the visits of this state,
    from 1; 0 for the latest. ``iteration``: indexes of the iterations around it, outermost first,
    as in ``2.0``; "" for any.
    """

    name: str = ""
    visit: int = 0
    iteration: str = ""


def default_step(execution: Execution, trace: Trace) -> ChosenStep:
    """Return the step to show if the reader has selected none."""
    culprit = trace.culprit
    if culprit is not None:
        return ChosenStep(
            trace.graph.by_id[culprit.node].name,
            trace.visits[culprit.node].place(culprit),
            ".".join(map(str, culprit.iteration)),
        )
    status = _LEFT_OPEN.get(ExecutionStatus(execution.status))
    if status is None:  # else each visit would be looked at for nothing
        return ChosenStep()
    newest = max((_newest(trace, node, status) for node in trace.visits), default=(0, "", 0))
    if not newest[0]:
        return ChosenStep()
    event, node, place = newest
    iteration = trace.visit(node, event).iteration
    return ChosenStep(trace.graph.by_id[node].name, place, ".".join(map(str, iteration)))


def step_of_last_event(trace: Trace, name: str | None, iteration: str = "") -> ChosenStep:
    """Return the visit of a trace's last event, or the selected step.

    ``name``: the chosen state, None for none; of the same iteration if it was entered there.
    """
    last = trace.last_event
    if last is None or iteration:
        return ChosenStep(name if name is not None else last.state if last else "", 0, iteration)
    name = last.state if name is None else name
    node, visit = trace.owner_of(last.id)
    chosen = trace.graph.by_name.get(name, "")
    visits = trace.visits_of(chosen)
    if chosen != node or not visit:
        index = trace.lines[last.id].iteration
        together = (number for number in visits.numbers if trace.lines[number].iteration == index)
        visit = max(together, default=0) if index else 0
    return ChosenStep(name, visits.numbers.index(visit) + 1 if visit else 0)


def ended_in(execution: Execution, trace: Trace) -> ChosenStep:
    """Return the step in which an execution failed, timed out or was stopped, if it did."""
    if execution.status in _ENDED_WELL:
        return ChosenStep()
    return default_step(execution, trace)


def states_left_open(execution: Execution, trace: Trace) -> set[str]:
    """Return the states in progress when an execution was stopped or timed out.

    Parallels and Maps are left out: a state inside of them was in progress.
    """
    if execution.status not in (ExecutionStatus.ABORTED, ExecutionStatus.TIMED_OUT):
        return set()
    status = _LEFT_OPEN[ExecutionStatus(execution.status)]
    owners = {group.owner for group in trace.graph.groups}
    nodes = trace.graph.by_id
    left_open = (trace.owner_of(number)[0] for number, how in trace.ended.items() if how == status)
    return {node for node in left_open if node not in owners or nodes[node].distributed}


def _newest(trace: Trace, node: str, status: VisitStatus) -> tuple[int, str, int]:
    """Return the latest visit with a status: event, state, number.

    The event is 0 if there is none.
    """
    numbers = trace.visits[node].numbers
    over, backwards = trace.ended.__contains__, reversed(numbers)
    # a loop has thousands that have ended: they are passed over without a line of Python each
    left_open = status == VisitStatus.RUNNING
    among = (
        filterfalse(trace.end_times.__contains__, backwards)
        if left_open
        else filter(over, backwards)
    )
    number = next((number for number in among if trace.status(number) == status), 0)
    return number, node, bisect_right(numbers, number)
