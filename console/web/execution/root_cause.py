"""Find the root cause of a failure: the caught error that led to the final Fail state.

To the engine a caught error is no failure: the execution continues at the Catcher's target, and
fails at a Fail state with that state's error. The reader wants to know the caught error.

An error is only named if it certainly led to the end: each Choice on the way must be reachable by
the Catcher only. After a Choice on the usual way, the end may have other reasons.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import engine
from console.statuses import ExecutionStatus
from console.web.core import formatting
from console.web.core.formatting import Cause, cause_of
from console.web.history import traces
from console.web.history.traces import open_trace
from engine import EdgeKind, VisitStatus

if TYPE_CHECKING:
    from console.models import Execution
    from engine import Graph, Trace, Visit


@dataclass(frozen=True, slots=True)
class FailingState:
    """A failed visit of a state. ``visit``: from 1; ``iteration``: as in URLs.

    ``attempts``: how often the work of the state was started.
    """

    state: str
    visit: int
    iteration: str
    attempts: int


@dataclass(frozen=True, slots=True)
class RootCause:
    """The caught error, and ``at``, the catching state.

    ``inside``: the state that failed, if ``at`` is a Parallel or Map around it. ``entered_ms``:
    when ``at`` was entered; ``child``: the ARN of the execution that it started, "" if none;
    ``can_begin``: a new execution could begin there, as it is in no Parallel or Map.
    """

    at: FailingState
    inside: FailingState | None
    error: str
    cause: Cause | None
    entered_ms: int
    child: str = ""
    can_begin: bool = False

    @property
    def origin(self) -> FailingState:
        """Return the state in which the error arose."""
        return self.inside or self.at

    @property
    def notes(self) -> str:
        """Return a note on the origin: ``caught, 4 attempts``, "" without one."""
        parts = [] if self.inside else ["caught"]
        if self.origin.iteration != self.at.iteration:
            parts.append(f"iteration #{self.origin.iteration}")
        if self.origin.attempts > 1:
            parts.append(f"{self.origin.attempts} attempts")
        return ", ".join(parts)

    @property
    def notes_of_catcher(self) -> str:
        """Return the attempts of a catching Parallel or Map, "" for one."""
        return f"{self.at.attempts} attempts" if self.inside and self.at.attempts > 1 else ""

    @property
    def text(self) -> str:
        """Return one line: ``ConnectionError at Charge card (caught, 4 attempts)``."""
        error = self.error or "an error without a name"
        notes = f" ({self.notes})" if self.notes else ""
        catcher = f", caught by {self.at.state}" if self.inside else ""
        catcher += f" ({self.notes_of_catcher})" if self.notes_of_catcher else ""
        return formatting.visible_text(f"{error} at {self.origin.state}{notes}{catcher}")


def root_cause_of(execution: Execution) -> RootCause | None:
    """Return the root cause of an execution that ended in a Fail state, None without one."""
    if execution.status != ExecutionStatus.FAILED:
        return None
    try:
        with open_trace(execution) as trace:
            return root_cause(execution, trace)
    except engine.DefinitionError:  # stored by a version that checked less
        return None


def root_cause(execution: Execution, trace: Trace) -> RootCause | None:
    """Return the root cause of a trace's final failure, None if no error was caught."""
    visit = caught_before_failure(trace)
    if visit is None:
        return None
    events = traces.with_failures(execution, traces.events_of_visit(execution, visit))
    error, cause = traces.failure_of_visit(execution, trace, visit, events)
    inside = trace.lines[visit.number].failure_inside(visit.node, visit.number)
    return RootCause(
        at=_failing_state(trace, visit),
        inside=_failing_state(trace, trace.visit(*inside)) if inside else None,
        error=error,
        cause=cause_of(cause),
        entered_ms=visit.entered_ms,
        child=traces.arn_started_last(events),
        can_begin=trace.graph.by_id[visit.node].group == engine.TOP,
    )


def _failing_state(trace: Trace, visit: Visit) -> FailingState:
    return FailingState(
        state=trace.graph.by_id[visit.node].name,
        visit=trace.visits[visit.node].place(visit),
        iteration=".".join(map(str, visit.iteration)),
        attempts=visit.attempts,
    )


def caught_before_failure(trace: Trace) -> Visit | None:
    """Return the visit whose caught error led to the final Fail state, None without one."""
    culprit = trace.culprit
    if culprit is None or trace.graph.by_id[culprit.node].type != "Fail":
        return None
    caught = [
        number
        for number, status in trace.ended.items()
        if status == VisitStatus.CAUGHT
        and number < culprit.number
        and trace.is_within(culprit.number, number)
    ]
    if not caught:
        return None
    newest = max(caught)
    node, _ = trace.owner_of(newest)
    visit = trace.visit(node, newest)
    return visit if _leads_to(trace, visit, culprit) else None


def _leads_to(trace: Trace, caught: Visit, culprit: Visit) -> bool:
    """Whether each Choice between two states can only be reached by the Catcher."""
    graph = trace.graph
    usual = _reached_without_error(graph, caught.node)
    for visits in trace.visits.values():
        node = graph.by_id[visits[0].node] if visits else None
        if node is None or node.type != "Choice" or not _around(graph, node.id) & usual:
            continue
        if any(
            caught.number < number < culprit.number and trace.is_within(culprit.number, number)
            for number in visits.numbers
        ):
            return False
    return True


def _around(graph: Graph, node: str) -> set[str]:
    """Return a state and the Parallels and Maps around it."""
    owners = {group.id: group.owner for group in graph.groups}
    around = set()
    while node:
        around.add(node)
        node = owners[graph.by_id[node].group]
    return around


def _reached_without_error(graph: Graph, source: str) -> set[str]:
    """Return the states reachable without an error, in the state's own group."""
    targets: dict[str, list[str]] = {}
    for edge in graph.edges:
        if edge.kind is not EdgeKind.CATCH:
            targets.setdefault(edge.source, []).append(edge.target)
    reached: set[str] = set()
    waiting = list(targets.get(source, ()))
    while waiting:
        node = waiting.pop()
        if node not in reached:
            reached.add(node)
            waiting += targets.get(node, ())
    return reached
