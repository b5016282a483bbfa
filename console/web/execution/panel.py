"""Build the panel of the chosen step.

It is about one visit: a state in a loop or a Map has many, and the panel leads to the others. The
events of a visit are folded to the attempts at its work, each with its outcome.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import engine
from console.statuses import ExecutionStatus
from console.web.core import formatting, json_view
from console.web.core.causes import Cause, cause_of
from console.web.execution import iterations
from console.web.execution.steps import StepSummary, step_summaries
from console.web.history import task_timeouts, traces
from console.web.history.timed_out import limit_that_ran_out
from engine import event_types

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from console.models import Execution
    from console.web.execution.iterations import MapProgress, MapRuns
    from console.web.history.traces import VisitEvent
    from engine import Node, Trace, Visit, Visits


_TELLING = ("failed", "timed_out", "caught")
"""Statuses of the visits that a reader looks for."""
_BAD = (engine.VisitStatus.FAILED, engine.VisitStatus.TIMED_OUT, engine.VisitStatus.CAUGHT)
_STOPPED = (engine.VisitStatus.ABORTED, engine.VisitStatus.TIMED_OUT)
_WORDS = {engine.Stage.SUCCEEDED: "Succeeded", engine.Stage.TIMED_OUT: "Timed out"}


# -- the visit on display --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Panel:
    """Everything about one visit of one state.

    ``number``: which of all its visits; ``alike``: the ``count`` of them in the same iteration;
    ``between``: how long the execution had ended meanwhile; ``read``: its events;
    ``with_failures``: the same and those that made it start again or fail;
    ``progress``: the counts of its Map Run; ``apart``: that it runs in child executions;
    ``children``: the executions that it started, the newest last; ``stopped``: what stopped it.
    """

    summary: StepSummary
    node: Node
    status: formatting.StatusLabel
    number: int
    count: int
    iteration: str = ""
    entered_ms: int | None = None
    left_ms: int | None = None
    spent: str = ""
    between: str = ""
    running_since: int | None = None
    input: json_view.PayloadView | None = None
    output: json_view.PayloadView | None = None
    error: str = ""
    cause: Cause | None = None
    resource: str = ""
    attempts: tuple[StateAttempt, ...] = ()
    retries: int = 0
    events: tuple[EventLine, ...] = ()
    failed_visits: tuple[int, ...] = ()
    alike: tuple[int, ...] = ()
    read: tuple[VisitEvent, ...] = field(default=(), repr=False)
    with_failures: tuple[VisitEvent, ...] = field(default=(), repr=False)
    picker: iterations.IterationPicker | None = None
    progress: MapProgress | None = None
    apart: ChildExecutionsNote | None = None
    children: tuple[Execution, ...] = ()
    stopped: str = ""

    @property
    def can_begin(self) -> bool:
        """Tell whether a new execution could begin here: entered, and in no Parallel or Map."""
        return self.input is not None and self.node.group == engine.TOP

    @property
    def last_event(self) -> int:
        """Return the last event of this visit, 0 if there is none."""
        return self.read[-1].id if self.read else 0

    @property
    def place_key(self) -> str:
        """Return what tells this visit from others, and a state that runs apart from both."""
        return "apart" if self.apart else str(self.number)

    @property
    def map_run(self) -> str:
        """Return the ARN of the Map Run that this visit began, "" if there is none."""
        arns = (event.details.get("mapRunArn", "") for event in reversed(self.read))
        return next((arn for arn in arns if arn), "")

    @property
    def place(self) -> int:
        """Return which visit of this iteration it is, from 1."""
        return self.alike.index(self.number) + 1

    @property
    def previous(self) -> int:
        """Return the number of the visit before this one, 0 if there is none."""
        return next((visit for visit in reversed(self.alike) if visit < self.number), 0)

    @property
    def next(self) -> int:
        """Return the number of the visit after this one, 0 if there is none."""
        return next((visit for visit in self.alike if visit > self.number), 0)

    @property
    def newest(self) -> int:
        """Return the number of the last visit."""
        return self.alike[-1]

    @property
    def next_failed(self) -> int:
        """Return the number of the next failed visit, 0 if there is none."""
        return next(
            (failed_visit for failed_visit in self.failed_visits if failed_visit > self.number), 0
        )

    @property
    def previous_failed(self) -> int:
        """Return the number of the failed visit before this one, 0 if there is none."""
        return next((visit for visit in reversed(self.failed_visits) if visit < self.number), 0)


@dataclass(frozen=True, slots=True)
class ChildExecutionsNote:
    """Where a state inside a distributed Map runs. ``map_run``: the ARN, "" if it is not known."""

    owner: str
    map_run: str = ""


@dataclass(frozen=True, slots=True)
class EventLine:
    """One event of the visit."""

    id: int
    type: str
    tone: str
    elapsed: int


def panel_of_state(  # the arguments are what an address says
    execution: Execution,
    trace: Trace,
    name: str,
    number: int = 0,
    iteration: str = "",
    maps: MapRuns | None = None,
    *,
    all_events: bool = True,
) -> Panel | None:
    """Return the panel of a state, None if there is no such state.

    ``number``: which visit, from 1; 0 for the one that tells most, of ``iteration`` if given: the
    last while it runs, else the first that failed, else the first whose error was caught.
    ``all_events``: with those that tell of the iterations of a Map.
    """
    node_id = trace.graph.by_name.get(name)
    if node_id is None:
        return None
    summary = step_summaries(trace, [node_id], maps)[node_id]
    if summary.in_children:
        return Panel(
            summary,
            summary.node,
            summary.status,
            0,
            0,
            apart=_child_executions_note(trace, node_id, maps),
        )
    visits = trace.visits_of(node_id)
    index = iterations.parse_iteration(iteration)
    places: Sequence[int] = range(1, len(visits) + 1)
    if index:
        numbered = enumerate(visits.iterations(), 1)
        places = [place for place, event in numbered if _is_in(event, index)]
    if not places:
        picker = iterations.iteration_picker(trace, summary.node, index) if visits else None
        status = formatting.STEP[""] if index else summary.status
        return Panel(summary, summary.node, status, 0, 0, picker=picker)
    if number not in places:
        number = _telling_visit(trace, visits, places)
    visit = visits[number - 1]
    events = traces.events_of_visit(execution, visit, with_iterations=all_events)
    return _panel_of_visit(execution, trace, summary, number, events, maps)


def _telling_visit(trace: Trace, visits: Visits, places: Sequence[int]) -> int:
    """Return the visit to look at first; what failed before a retry counts less."""
    last = places[-1]
    statuses = visits.statuses()
    if statuses[last - 1] == "running":
        return last
    bad = [place for place in places if statuses[place - 1] in _TELLING]
    still = [place for place in bad if trace.counts_still(visits.numbers[place - 1])] or bad
    return min(still, key=lambda place: (statuses[place - 1] == "caught", place), default=last)


def _child_executions_note(trace: Trace, node: str, maps: MapRuns | None) -> ChildExecutionsNote:
    owner = iterations.enclosing_maps(trace.graph)[node]
    counted = maps.of_node(owner) if maps else None
    return ChildExecutionsNote(trace.graph.by_id[owner].name, counted.arn if counted else "")


def _is_in(iteration: tuple[int, ...], index: tuple[int, ...]) -> bool:
    """Tell whether a visit belongs to an iteration; a Map itself stands outside of its own."""
    return iteration[: len(index)] == index[: len(iteration)]


def _panel_of_visit(
    execution: Execution,
    trace: Trace,
    summary: StepSummary,
    number: int,
    events: list[VisitEvent],
    maps: MapRuns | None,
) -> Panel:
    visits = trace.visits[summary.node.id]
    visit = visits[number - 1]
    with_failures = traces.with_failures(execution, events)
    error, cause = traces.failure_of_visit(execution, trace, visit, with_failures)
    left, took = visit.left_ms, visit.took_ms
    own, failed = visit.iteration, visits.failed()
    alike = [place for place, visit in enumerate(visits.iterations(), 1) if visit == own]
    return Panel(
        summary=summary,
        node=summary.node,
        status=formatting.STEP[visit.status],
        number=number,
        count=len(alike),
        alike=tuple(alike),
        read=tuple(events),
        with_failures=tuple(with_failures),
        iteration=iterations.iteration_label(visit.iteration),
        picker=iterations.iteration_picker(trace, summary.node, visit.iteration),
        entered_ms=visit.entered_ms,
        left_ms=left,
        spent="" if took is None else formatting.duration_text(took),
        between=_gap_text(visit),
        running_since=visit.running_since,
        input=_payload_view(events, event_types.STATE_ENTRIES, "input"),
        output=_payload_view(events, event_types.STATE_EXITS, "output"),
        error=error,
        cause=cause_of(cause),
        resource=next(
            (event.details["resource"] for event in events if "resource" in event.details), ""
        ),
        attempts=_with_task_notes(execution, list_attempts(with_failures, visit)),
        retries=visit.retries,
        events=tuple(
            EventLine(
                event.id,
                event.type,
                engine.EVENT_TYPES[event.type].tone,
                event.at_ms - execution.start_ms,
            )
            for event in events
        ),
        failed_visits=tuple(place for place in alike if place in failed) if failed else (),
        progress=maps.of_visit(summary.node.id, visit.number) if maps else None,
        children=_children_of_visit(execution, events),
        stopped=_stopped_by(execution, visit),
    )


def _gap_text(visit: Visit) -> str:
    """Return how much of a visit lies between attempts at its execution, "" for nothing."""
    left, took = visit.left_ms, visit.took_ms
    if left is None or took is None or took == left - visit.entered_ms:
        return ""
    return formatting.duration_text(left - visit.entered_ms - took)


def _stopped_by(execution: Execution, visit: Visit) -> str:
    """Say what stopped a visit that did not end by itself, "" of others."""
    if visit.status == "timed_out":
        limit = limit_that_ran_out(execution)
        return f"It was in progress when the execution's time was over. {limit}."
    if visit.status != "aborted":
        return ""
    if execution.status == ExecutionStatus.ABORTED and visit.left_ms == execution.stop_ms:
        return "It was in progress when the execution was stopped."
    return "It was stopped because a state beside it failed."


def _children_of_visit(execution: Execution, events: Sequence[VisitEvent]) -> tuple[Execution, ...]:
    """Return the executions that a visit of a Task started, without a query if it started none."""
    arns = [traces.arn_of_started_child(event.type, event.details) for event in events]
    return tuple(traces.children_by_arn(execution, arns).values())


def _with_task_notes(
    execution: Execution, attempts: list[StateAttempt]
) -> tuple[StateAttempt, ...]:
    """Add to the attempts what only the rows of their tasks know."""
    late = {attempt.task: attempt.outcome == "Timed out" for attempt in attempts if attempt.task}
    notes = task_timeouts.task_notes(execution, late) if late else {}
    return tuple(replace(attempt, note=notes.get(attempt.task, "")) for attempt in attempts)


def _payload_view(
    events: list[VisitEvent], types: frozenset[str], field: str
) -> json_view.PayloadView | None:
    payload = traces.payload_of(events, types, field)
    return payload and json_view.payload_view(payload[1], f"events/{payload[0]}/{field}/")


# -- attempts --------------------------------------------------------------------------------------


class AttemptEvent(Protocol):
    """An event as far as it matters here."""

    @property
    def id(self) -> int:
        """Return its number."""

    @property
    def at_ms(self) -> int:
        """Return when it happened."""

    @property
    def type(self) -> str:
        """Return its type."""

    @property
    def details(self) -> dict[str, Any]:
        """Return its fields."""


@dataclass(frozen=True, slots=True)
class StateAttempt:
    """One attempt at the work of a state. ``wait``: the pause before a retry of it.

    ``until_ms``: None while it runs. ``outcome`` is a word, ``tone`` its colour. ``task``: its
    number, 0 for a group. ``note``: which clock ran out, or that it was sent again. ``redriven``:
    how long after it a redrive began the next one, which is no retry.
    """

    number: int
    at_ms: int
    outcome: str
    tone: str
    until_ms: int | None = None
    error: str = ""
    cause: str = ""
    spent: str = ""
    wait: str = ""
    task: int = 0
    note: str = ""
    redriven: str = ""

    @property
    def opened_cause(self) -> Cause | None:
        """Return the cause, taken apart."""
        return cause_of(self.cause or None)


def list_attempts(events: Iterable[AttemptEvent], visit: Visit | None = None) -> list[StateAttempt]:
    """Return the attempts at a state's work, each with its outcome and the pause after it.

    ``visit``: the stay they belong to; if its execution's end stopped it, that ends what is open.
    """
    attempts: list[StateAttempt] = []
    for event in events:
        about = engine.EVENT_TYPES[event.type]
        if about.family is engine.Family.MAP_ITERATION:
            continue  # of the items, not of the Map's own attempt
        if event.type in event_types.ATTEMPT_BEGINNINGS:
            if attempts and (ended := attempts[-1].until_ms) is not None:
                attempts[-1] = _with_pause(attempts[-1], event.at_ms, ended, visit)
            begun = StateAttempt(
                len(attempts) + 1, event.at_ms, "In progress", "running", task=_task_number(event)
            )
            attempts.append(_end_attempt(begun, event) if about.is_failure else begun)
        elif attempts and attempts[-1].until_ms is None and _is_outcome(about):
            attempts[-1] = _end_attempt(attempts[-1], event)
    if attempts and attempts[-1].until_ms is None and visit is not None:
        attempts[-1] = _stop_attempt(attempts[-1], visit)
    return attempts


def _with_pause(
    attempt: StateAttempt, next_ms: int, ended_ms: int, visit: Visit | None
) -> StateAttempt:
    """Note what lies between an attempt and the next: a retry's pause, or the way to a redrive."""
    pause_ms = next_ms - ended_ms
    pause = formatting.duration_text(pause_ms)
    if visit is not None and visit.worked_ms(ended_ms, next_ms) < pause_ms:
        return replace(attempt, redriven=pause)
    return replace(attempt, wait=pause)


def _stop_attempt(begun: StateAttempt, visit: Visit) -> StateAttempt:
    """End an attempt with its visit, if that was stopped or the execution's time was over."""
    if visit.left_ms is None or visit.status not in _STOPPED:
        return begun
    status = formatting.STEP[visit.status]
    spent = formatting.duration_text(visit.left_ms - begun.at_ms)
    return replace(
        begun, outcome=status.word, tone=status.tone, until_ms=visit.left_ms, spent=spent
    )


def _task_number(event: AttemptEvent) -> int:
    """Return the number of the task it schedules, 0 for the start of a group."""
    return event.id if event.type in event_types.WORK_SCHEDULED else 0


def _is_outcome(about: engine.EventType) -> bool:
    return about.stage in event_types.OUTCOME_STAGES or about.name == "FailStateEntered"


def _end_attempt(begun: StateAttempt, event: AttemptEvent) -> StateAttempt:
    stage = engine.EVENT_TYPES[event.type].stage
    return replace(
        begun,
        outcome=_WORDS.get(stage, "Failed"),
        tone="succeeded" if stage is engine.Stage.SUCCEEDED else "failed",
        until_ms=event.at_ms,
        error=event.details.get("error") or "",
        cause=event.details.get("cause") or "",
        spent=formatting.duration_text(event.at_ms - begun.at_ms),
    )


# -- the next problem ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProblemVisit:
    """A visit that failed or whose error was caught, one of ``count``.

    ``number``: which of them is on display now, from 1; 0 for none. ``all_caught``: none of the
    ``count`` made the execution fail.
    """

    step: str
    visit: int
    iteration: str
    number: int
    count: int
    all_caught: bool


def problem_visits(trace: Trace) -> list[int]:
    """Return the visits with a problem, by the events that entered them, in order.

    A Parallel or Map whose failure is that of a state inside of it is left out, as is what a retry
    replaced.
    """
    graph = trace.graph
    outer = {group.owner for group in graph.groups}
    numbers = []
    for number, status in trace.ended.items():
        node = graph.by_id.get(trace.owner_of(number)[0])
        if status not in _BAD or node is None or not trace.counts_still(number):
            continue
        if status != engine.VisitStatus.CAUGHT and node.id in outer and not node.distributed:
            continue
        numbers.append(number)
    return sorted(numbers)


def next_problem(trace: Trace, shown: Panel | None) -> ProblemVisit | None:
    """Return the problem after the visit on display, round again after the last; None: no other."""
    numbers = problem_visits(trace)
    at = 0
    if shown is not None and shown.number:
        at = trace.visits[shown.node.id].numbers[shown.number - 1]
    others = [number for number in numbers if number != at]
    if not others:
        return None
    number = next((number for number in others if number > at), others[0])
    node, _ = trace.owner_of(number)
    visit = trace.visit(node, number)
    return ProblemVisit(
        trace.graph.by_id[node].name,
        trace.visits[node].place(visit),
        ".".join(map(str, visit.iteration)),
        numbers.index(at) + 1 if at in numbers else 0,
        len(numbers),
        all(_is_caught(trace, each) for each in numbers),
    )


def _is_caught(trace: Trace, number: int) -> bool:
    """Tell whether the error of a visit was caught: there, or by a Parallel or Map around it."""
    if trace.ended[number] == engine.VisitStatus.CAUGHT:
        return True
    attempt = trace.lines[number].attempt
    while attempt is not None:
        if trace.ended.get(attempt.home.latest.get(attempt.node, 0)) == engine.VisitStatus.CAUGHT:
            return True
        attempt = attempt.home.attempt
    return False
