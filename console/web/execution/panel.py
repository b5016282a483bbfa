"""Build the panel beside the graph: the selected state, one visit of it, and its open tab.

Links lead to the state's other visits in a loop or Map. Events of the visit are grouped into
attempts (Task, Map or Parallel), each with its outcome.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import engine
from console import arns
from console.feature import Hook, hooked
from console.statuses import ExecutionStatus
from console.web.core import formatting
from console.web.core.scope import choose
from console.web.execution import iterations
from console.web.execution.chosen_step import ChosenStep, default_step, step_of_last_event
from console.web.graph.definition_text import coloured_text
from console.web.history import timed_out, traces
from console.web.history.timed_out import limit_that_ran_out
from engine import event_types

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from django.http import QueryDict

    from console.models import Execution
    from console.web.execution.iterations import MapProgress, MapRuns
    from console.web.history.traces import VisitEvent
    from engine import Node, Trace, Visit, Visits


TABS = (
    ("io", "Input & output"),
    ("flow", "Data flow"),
    ("details", "Details"),
    ("definition", "Definition"),
    ("attempts", "Retries"),
    ("logs", "Logs"),
    ("events", "Events"),
)
_OLD_TABS = {"tries": "attempts"}
"""Names of tabs in addresses of the release before -> their names now."""
_FORM_PARAMETERS = (
    *("step", "visit", "iteration", "tab", "view", "at"),
    *("status", "find", "sort", "attempt", "region", "unfold", "rows", "from", "to"),
)
_TELLING = ("failed", "timed_out", "caught")
"""Statuses of the visits to show first."""
_BAD = (engine.VisitStatus.FAILED, engine.VisitStatus.TIMED_OUT, engine.VisitStatus.CAUGHT)
_STOPPED = (engine.VisitStatus.ABORTED, engine.VisitStatus.TIMED_OUT)
_WORDS = {engine.Stage.SUCCEEDED: "Succeeded", engine.Stage.TIMED_OUT: "Timed out"}


# -- the panel -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PanelPart:
    """The panel beside the graph.

    ``shown``: the visit on display, None for the execution itself or an unknown state ``chosen``.
    ``can_halt``: a breakpoint may be set at the state. ``flow``, ``calls`` and ``definition``: the
    contents of their tabs, if that is open. ``iteration``: the iteration of a Map that the graph
    shows.
    """

    shown: Panel | None
    chosen: str
    tab: str
    tabs: tuple[tuple[str, str], ...]
    can_halt: bool = False
    flow: Any = None
    calls: Sequence[ShownCall] = ()
    definition: str = ""
    problem: ProblemVisit | None = None
    iteration: iterations.ShownIteration | None = None


def form_parameters(query: QueryDict) -> list[tuple[str, str]]:
    """Return the URL parameters that the page's forms send again."""
    return [(key, str(query[key])) for key in _FORM_PARAMETERS if query.get(key)]


def panel_part(
    execution: Execution, trace: Trace, query: QueryDict, maps: MapRuns | None = None
) -> PanelPart:
    """Return the panel of the selected step; the URL may select an iteration of a Map."""
    step_of_query = asked_step(execution, trace, query)
    chosen = iterations.leading_state(trace, step_of_query.name, step_of_query.iteration)
    tab = choose(query, "tab", dict(TABS), "io", also=_OLD_TABS)
    tab = _OLD_TABS.get(tab, tab)
    panel = panel_of_state(
        *(execution, trace, chosen, step_of_query.visit, step_of_query.iteration, maps),
        all_events=tab == "events",
    )
    flow = None
    if tab == "flow" and panel is not None and panel.number:
        for flow_of in hooked(Hook.STEP_FLOW):
            flow = flow_of(execution, trace, panel)
    hidden = set() if hooked(Hook.STEP_FLOW) else {"flow"}
    if panel is None or panel.node.type != "Task" or not has_logs():
        hidden.add("logs")
    tabs = tuple(each for each in TABS if each[0] not in hidden)
    tab = "io" if tab in hidden else tab
    return PanelPart(
        shown=panel,
        chosen=chosen,
        tab=tab,
        tabs=tabs,
        can_halt=panel is not None and panel.apart is None and _can_halt(execution),
        flow=flow,
        calls=calls_of_step(execution, panel) if tab == "logs" else (),
        definition=coloured_text(panel.node.text) if panel and tab == "definition" else "",
        problem=next_problem(trace, panel),
        iteration=iterations.shown_iteration(trace, chosen, query.get("iteration", "")),
    )


def _can_halt(execution: Execution) -> bool:
    """Whether an execution can still stop at a breakpoint: Express executions have none."""
    return execution.status == ExecutionStatus.RUNNING and not arns.is_express(execution.arn)


def asked_step(execution: Execution, trace: Trace, query: QueryDict) -> ChosenStep:
    """Return the step named in the URL, else the execution's default step."""
    visit = asked_visit(query)
    if traces.asked_event(query) and not visit:
        return step_of_last_event(trace, query.get("step"), query.get("iteration", ""))
    if "step" in query:
        return ChosenStep(query.get("step", ""), visit, query.get("iteration", ""))
    if traces.asked_event(query):
        last = trace.last_event
        return ChosenStep(last.state if last else "", visit, query.get("iteration", ""))
    chosen = default_step(execution, trace)
    if "visit" in query or "iteration" in query:
        return replace(chosen, visit=visit, iteration=query.get("iteration", ""))
    return chosen


def asked_visit(query: QueryDict) -> int:
    """Return the visit number in the URL, 0 without one."""
    visit = query.get("visit") or query.get("seen_visit", "")  # a tick does not move the panel
    return int(visit) if re.fullmatch(r"\d{1,9}", visit, re.ASCII) else 0


@dataclass(frozen=True, slots=True)
class ShownCall:
    """One call with its log. ``attempt``: its number among the attempts of the visit."""

    attempt: int
    function: str
    request: str
    started_ms: int
    duration: str
    error: str
    log: str


def has_logs() -> bool:
    """Whether a feature stores function logs."""
    return bool(hooked(Hook.FUNCTION_LOGS))


def calls_of_step(execution: Execution, panel: Panel | None) -> list[ShownCall]:
    """Return the finished calls of one visit, oldest first.

    A running call is omitted, because the masked values of its outcome are not known yet.
    """
    if panel is None:
        return []
    attempts = {
        attempt.task: attempt.number
        for attempt in panel.attempts
        if attempt.task and attempt.until_ms is not None
    }
    last = max((event.id for event in panel.with_failures), default=0)
    show = hooked(Hook.FUNCTION_LOGS) if attempts else ()
    return [call for calls_of in show for call in calls_of(execution, attempts, last)]


# -- the visit on display --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Panel:
    """One visit of a state, as shown in the panel.

    A state without a visit to show has ``number`` and ``count`` 0.

    ``number``: the visit, counted from 1 over all iterations. ``alike``: the numbers of the visits
    in the same iteration; ``count``: how many. ``iteration``: its label. ``spent``: the running
    time; ``between``: time between an end of the execution and its redrive, not part of ``spent``.
    ``read``: the events of the visit. ``with_failures``: the same, plus the failures inside a
    Parallel or Map that made it retry or fail. ``progress``: counts of its Map Run. ``apart``: set
    for a state that runs in child executions. ``children``: executions that it started, newest
    last. ``stopped``: why it was stopped, "" if it was not. Durations are texts.
    """

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
    input: formatting.PayloadView | None = None
    output: formatting.PayloadView | None = None
    error: str = ""
    cause: formatting.Cause | None = None
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
        """Return whether a replay can begin here: entered, and outside of Parallel and Map."""
        return self.input is not None and self.node.group == engine.TOP

    @property
    def last_event(self) -> int:
        """Return the id of the last event of this visit, 0 without events."""
        return self.read[-1].id if self.read else 0

    @property
    def place_key(self) -> str:
        """Return a key of the visit for the page: its number, or ``apart``."""
        return "apart" if self.apart else str(self.number)

    @property
    def map_run(self) -> str:
        """Return the ARN of the Map Run started by this visit, "" without one."""
        arns = (event.details.get("mapRunArn", "") for event in reversed(self.read))
        return next((arn for arn in arns if arn), "")

    @property
    def place(self) -> int:
        """Return the position of the visit in its iteration, from 1."""
        return self.alike.index(self.number) + 1

    @property
    def previous(self) -> int:
        """Return the number of the previous visit of the iteration, 0 if there is none."""
        return next((visit for visit in reversed(self.alike) if visit < self.number), 0)

    @property
    def next(self) -> int:
        """Return the number of the next visit of the iteration, 0 if there is none."""
        return next((visit for visit in self.alike if visit > self.number), 0)

    @property
    def newest(self) -> int:
        """Return the number of the last visit of the iteration."""
        return self.alike[-1]

    @property
    def next_failed(self) -> int:
        """Return the number of the next failed visit of the iteration, 0 if there is none."""
        return next(
            (failed_visit for failed_visit in self.failed_visits if failed_visit > self.number), 0
        )

    @property
    def previous_failed(self) -> int:
        """Return the number of the previous failed visit of the iteration, 0 if none."""
        return next((visit for visit in reversed(self.failed_visits) if visit < self.number), 0)


@dataclass(frozen=True, slots=True)
class ChildExecutionsNote:
    """The distributed Map around a state. ``owner``: its name. ``map_run``: its ARN, or ""."""

    owner: str
    map_run: str = ""


@dataclass(frozen=True, slots=True)
class EventLine:
    """One event of the visit. ``elapsed``: milliseconds since the start of the execution."""

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
    """Return the panel of a state, None for an unknown name.

    ``iteration``: only visits of this iteration, as ``0`` or ``0.2`` in the URL, "" for all.
    ``number``: a visit from 1, else a visit is chosen: the last one if it is running, else the
    first failed one, else the first one with a caught error, else the last one. ``all_events``:
    include the events of the iterations of a Map.
    """
    node_id = trace.graph.by_name.get(name)
    if node_id is None:
        return None
    node, visits = trace.graph.by_id[node_id], trace.visits_of(node_id)
    outside = iterations.enclosing_maps(trace.graph).get(node_id, "")
    if outside and trace.visits_of(outside):
        return _panel_of_child_state(trace, node, outside, maps)
    index = iterations.parse_iteration(iteration)
    places: Sequence[int] = range(1, len(visits) + 1)
    if index:
        numbered = enumerate(visits.iterations(), 1)
        places = [place for place, event in numbered if _is_in(event, index)]
    if not places:
        picker = iterations.iteration_picker(trace, node, index) if visits else None
        return Panel(node, formatting.STEP[""], 0, 0, picker=picker)
    if number not in places:
        number = telling_visit(trace, visits, places)
    visit = visits[number - 1]
    events = traces.events_of_visit(execution, visit, with_iterations=all_events)
    return _panel_of_visit(execution, trace, node, number, events, maps)


def telling_visit(trace: Trace, visits: Visits, places: Sequence[int]) -> int:
    """Return the visit to show first. Failures that a retry replaced come last."""
    last = places[-1]
    statuses = visits.statuses()
    if statuses[last - 1] == "running":
        return last
    bad = [place for place in places if statuses[place - 1] in _TELLING]
    still = [place for place in bad if trace.counts_still(visits.numbers[place - 1])] or bad
    return min(still, key=lambda place: (statuses[place - 1] == "caught", place), default=last)


def _panel_of_child_state(trace: Trace, node: Node, owner: str, maps: MapRuns | None) -> Panel:
    """Return the panel of a state that runs in the child executions of a distributed Map."""
    counted = maps.of_node(owner) if maps else None
    children = maps.states.get(node.name) if maps else None
    status = children.status if children else formatting.IN_CHILD_EXECUTIONS
    note = ChildExecutionsNote(trace.graph.by_id[owner].name, counted.arn if counted else "")
    return Panel(node, status, 0, 0, apart=note)


def _is_in(iteration: tuple[int, ...], index: tuple[int, ...]) -> bool:
    """Return whether a visit belongs to an iteration. A Map's own visit is outside of it."""
    return iteration[: len(index)] == index[: len(iteration)]


def _panel_of_visit(
    execution: Execution,
    trace: Trace,
    node: Node,
    number: int,
    events: list[VisitEvent],
    maps: MapRuns | None,
) -> Panel:
    visits = trace.visits[node.id]
    visit = visits[number - 1]
    with_failures = traces.with_failures(execution, events)
    error, cause = traces.failure_of_visit(execution, trace, visit, with_failures)
    left_ms, took = visit.left_ms, visit.took_ms
    own, failed = visit.iteration, visits.failed()
    alike = [place for place, visit in enumerate(visits.iterations(), 1) if visit == own]
    return Panel(
        node=node,
        status=formatting.STEP[visit.status],
        number=number,
        count=len(alike),
        alike=tuple(alike),
        read=tuple(events),
        with_failures=tuple(with_failures),
        iteration=iterations.iteration_label(visit.iteration),
        picker=iterations.iteration_picker(trace, node, visit.iteration),
        entered_ms=visit.entered_ms,
        left_ms=left_ms,
        spent="" if took is None else formatting.duration_text(took),
        between=_gap_text(visit),
        running_since=visit.running_since,
        input=_payload_view(events, event_types.STATE_ENTRIES, "input"),
        output=_payload_view(events, event_types.STATE_EXITS, "output"),
        error=error,
        cause=formatting.cause_of(cause),
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
        progress=maps.of_visit(node.id, visit.number) if maps else None,
        children=_children_of_visit(execution, events),
        stopped=_stopped_by(execution, visit),
    )


def _gap_text(visit: Visit) -> str:
    """Return the time between ends and redrives during a visit as a text, "" for none."""
    left_ms, took = visit.left_ms, visit.took_ms
    if left_ms is None or took is None or took == left_ms - visit.entered_ms:
        return ""
    return formatting.duration_text(left_ms - visit.entered_ms - took)


def _stopped_by(execution: Execution, visit: Visit) -> str:
    """Return a sentence on why a visit was stopped, "" for a visit that was not."""
    if visit.status == "timed_out":
        limit = limit_that_ran_out(execution)
        return f"In progress when the execution timed out. {limit}."
    if visit.status != "aborted":
        return ""
    if execution.status == ExecutionStatus.ABORTED and visit.left_ms == execution.stop_ms:
        return "In progress when the execution was stopped."
    return "Stopped because a parallel state failed."


def _children_of_visit(execution: Execution, events: Sequence[VisitEvent]) -> tuple[Execution, ...]:
    """Return the executions that a visit of a Task started; no query if there are none."""
    arns = [traces.arn_of_started_child(event.type, event.details) for event in events]
    return tuple(traces.children_by_arn(execution, arns).values())


def _with_task_notes(
    execution: Execution, attempts: list[StateAttempt]
) -> tuple[StateAttempt, ...]:
    """Add notes from the stored tasks to the attempts."""
    late = {attempt.task: attempt.outcome == "Timed out" for attempt in attempts if attempt.task}
    notes = timed_out.task_notes(execution, late) if late else {}
    return tuple(replace(attempt, note=notes.get(attempt.task, "")) for attempt in attempts)


def _payload_view(
    events: list[VisitEvent], types: frozenset[str], field: str
) -> formatting.PayloadView | None:
    payload = traces.payload_of(events, types, field)
    return payload and formatting.payload_view(payload[1], f"events/{payload[0]}/{field}/")


# -- attempts --------------------------------------------------------------------------------------


class AttemptEvent(Protocol):
    """The fields of an event that ``list_attempts`` reads."""

    @property
    def id(self) -> int:
        """Return its id in the history."""

    @property
    def at_ms(self) -> int:
        """Return its time, in epoch milliseconds."""

    @property
    def type(self) -> str:
        """Return its type, such as ``TaskFailed``."""

    @property
    def details(self) -> dict[str, Any]:
        """Return its details, such as ``error`` and ``cause``."""


@dataclass(frozen=True, slots=True)
class StateAttempt:
    """One attempt of a Task, Map or Parallel. Durations are texts, "" if they do not apply.

    ``until_ms``: its end, None while it runs. ``outcome``: a word; ``tone``: its colour. ``task``:
    number of the task, 0 for a Map or Parallel. ``note``: an expired time limit, or that the call
    was repeated. ``wait``: pause between this attempt and its retry. ``redriven``: time between the
    end of this attempt and the redrive that began the next one.
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
    def opened_cause(self) -> formatting.Cause | None:
        """Return the cause, parsed."""
        return formatting.cause_of(self.cause or None)


def list_attempts(events: Iterable[AttemptEvent], visit: Visit | None = None) -> list[StateAttempt]:
    """Return the attempts of a visit, each with its outcome and the pause after it.

    ``visit``: the visit of the events. If it was stopped, an open attempt ends with it.
    """
    attempts: list[StateAttempt] = []
    for event in events:
        about = engine.EVENT_TYPES[event.type]
        if about.family is engine.Family.MAP_ITERATION:
            continue  # about items, not about an attempt of the Map
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
    """Store the pause after an attempt, as ``wait`` of a retry or as ``redriven``."""
    pause_ms = next_ms - ended_ms
    pause = formatting.duration_text(pause_ms)
    if visit is not None and visit.worked_ms(ended_ms, next_ms) < pause_ms:
        return replace(attempt, redriven=pause)
    return replace(attempt, wait=pause)


def _stop_attempt(begun: StateAttempt, visit: Visit) -> StateAttempt:
    """End an open attempt with its visit, if the visit was stopped or timed out."""
    if visit.left_ms is None or visit.status not in _STOPPED:
        return begun
    status = formatting.STEP[visit.status]
    spent = formatting.duration_text(visit.left_ms - begun.at_ms)
    return replace(
        begun, outcome=status.word, tone=status.tone, until_ms=visit.left_ms, spent=spent
    )


def _task_number(event: AttemptEvent) -> int:
    """Return the number of the task that an event schedules, 0 for a Map or Parallel."""
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
    """The next visit with a problem: it failed, timed out, or its error was caught.

    ``step``: name of the state. ``count``: visits with a problem in the execution. ``number``: the
    position of the visit on display among them, from 1; 0 if it has no problem. ``all_caught``: all
    errors were caught, and none failed the execution.
    """

    step: str
    visit: int
    iteration: str
    number: int
    count: int
    all_caught: bool


def problem_visits(trace: Trace) -> list[int]:
    """Return the visits with a problem as ids of their entry events, in ascending order.

    Omitted are a Parallel or inline Map that failed because of a state inside it, and visits that a
    retry of an outer group replaced.
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
    """Return the next problem after a visit, the first one after the last; None for no other."""
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
    """Return whether a visit's error was caught, by its state or a Parallel or Map around it."""
    if trace.ended[number] == engine.VisitStatus.CAUGHT:
        return True
    attempt = trace.lines[number].attempt
    while attempt is not None:
        if trace.ended.get(attempt.home.latest.get(attempt.node, 0)) == engine.VisitStatus.CAUGHT:
            return True
        attempt = attempt.home.attempt
    return False
