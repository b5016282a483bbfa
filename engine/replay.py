"""Replay a recorded execution with a definition, and compare the outcome with the recording.

A scenario (``docs/reference/scenarios.md``) holds a definition, an input, each task's answer with
its delay, and the end. Time is virtual: an answer arrives as long after its task was scheduled as
in the recording, a wait ends when the virtual clock reaches its time, and no real time passes.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, assert_never

from engine import jsontext
from engine.differences import (
    MAX_REPORTED,
    ReplayDifference,
    compare_requests,
    find_differences,
)
from engine.errors import DefinitionError, EngineBug
from engine.execution_status import ExecutionStatus
from engine.graph import build_graph
from engine.history.fold import Trace
from engine.language import parse, parse_stored
from engine.runtime import commands, messages
from engine.runtime.advance import advance
from engine.runtime.run import NEW_RUN, DictValues, FramePhase, GroupKind, Moment, Run
from engine.runtime.tokens import task_token

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.data.expression import Json
    from engine.language.model import Machine, Resource
    from engine.runtime.events import Event

SCENARIO = "stateyard-scenario-1"
_FORMER_SCENARIO = "stepyard-scenario-1"  # written before 0.3.0
REQUEST = ("Resource", "Input")
"""The optional members of a scenario's task that describe its call."""
_WANTED = ("Type", "Definition", "Input", "Tasks", "Expected")
_STEPS = 100_000
_KEY = b"replay"


def replay(
    text: str,
    definition: str | None = None,
    unusable: Callable[[Resource, str, Json], str] | None = None,
    *,
    requests: bool = True,
) -> list[ReplayDifference]:
    """Replay a scenario; return the differences from the recording, in the order of events.

    ``text``: the scenario. ``definition``: replaces the scenario's own. ``unusable``: as in
    ``Moment``. ``requests``: compare also the inputs of tasks that the scenario has. Raise
    ``JsonTextError`` or ``ValueError`` for an invalid scenario.
    """
    document = _read_scenario(text)
    scenario = document["Scenario"]
    try:
        if definition:
            machine = parse(definition, scenario["Type"])
        else:
            machine = parse_stored(jsontext.dumps(scenario["Definition"]), scenario["Type"])
    except DefinitionError as error:
        problems = [str(problem) for problem in error.diagnostics[:MAX_REPORTED]]
        return [
            ReplayDifference("definition", problem, "one without errors") for problem in problems
        ]
    player = _Player(machine, document, unusable, requests)
    player.play()
    waiting = {frame.state for frame in player.run.frames.values() if frame.waits_for}
    differences = find_differences(player.trace, player.finish, waiting, scenario["Expected"])
    return [*player.problems, *differences]


def replayed_events(text: str) -> list[Event]:
    """Return the history of a replayed scenario with its own definition.

    Raise ``JsonTextError`` or ``ValueError`` for an invalid scenario, ``DefinitionError`` for a
    definition with errors.
    """
    whole = _read_scenario(text)
    scenario = whole["Scenario"]
    machine = parse_stored(jsontext.dumps(scenario["Definition"]), scenario["Type"])
    player = _Player(machine, whole)
    player.play()
    return player.history


def _read_scenario(text: str) -> dict[str, Any]:
    document = jsontext.loads(text)
    scenario = document.get("Scenario") if isinstance(document, dict) else None
    version = scenario.get("Format") if isinstance(scenario, dict) else None
    if not isinstance(scenario, dict) or version not in (SCENARIO, _FORMER_SCENARIO):
        raise ValueError(f"Scenario.Format: got {jsontext.dumps(version)}, wanted {SCENARIO!r}")
    missing = [name for name in _WANTED if name not in scenario]
    if missing:
        raise ValueError(f"Scenario: got no {missing[0]}, wanted one")
    result: dict[str, Any] = document
    return result


# -- playing ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Answer:
    """The recorded answer to a call, ``after_ms`` milliseconds after it was scheduled.

    ``response``: None for a call that was never answered. ``request``: the Resource and the Input
    of the call, if the scenario has them.
    """

    after_ms: int
    response: Mapping[str, Any] | None
    request: Mapping[str, Any]


@dataclass
class _Player:
    """A caller of ``advance`` without I/O that sends the recorded messages at their times."""

    machine: Machine
    scenario: Mapping[str, Any]
    unusable: Callable[[Resource, str, Json], str] | None = None
    requests: bool = True
    run: Run = NEW_RUN
    finish: commands.Finish | None = None
    problems: list[ReplayDifference] = field(default_factory=list)
    history: list[Event] = field(default_factory=list)
    now_ms: int = 0
    steps: int = 0
    events: Mapping[int, Event] = field(default_factory=dict)
    due: list[tuple[int, int, messages.Message]] = field(default_factory=list)
    answers: dict[tuple[str, tuple[int, ...]], deque[_Answer]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Queue the start and the users' actions; sort the answers by state and iteration."""
        scenario = self.scenario["Scenario"]
        self.trace = Trace(build_graph(self.machine))
        self.run = self.run.reading(DictValues())
        start = _start_message(scenario.get("Start", {}), scenario["Input"])
        self.now_ms = start.start_ms
        self._send_at(self.now_ms, start)
        for act in scenario.get("Acts", ()):
            message = messages.Redrive() if act["Act"] == "Redrive" else _stop_message(act)
            self._send_at(self.now_ms + act["Milliseconds"], message)
        for task in scenario["Tasks"]:
            response = self._response(task["State"], task.get("Number"))
            key = task["State"], tuple(task.get("Iteration", ()))
            request = {name: task[name] for name in REQUEST if name in task and self.requests}
            answer = _Answer(task.get("Milliseconds", 0), response, request)
            self.answers.setdefault(key, deque()).append(answer)

    def play(self) -> None:
        """Send the messages in the order of their times, until none is left."""
        while self.due and self.steps < _STEPS:
            self.steps += 1
            now_ms, _, message = heapq.heappop(self.due)
            self.now_ms = max(self.now_ms, now_ms)
            moment = Moment(self.now_ms, self.steps, _KEY, unusable=self.unusable)
            step = advance(self.machine, self.run, message, moment)
            self._take(step.run, step.events, step.values)
            self.events = {event.id: event for event in step.events}
            for command in step.commands:
                self._apply(command)

    def _take(self, run: Run, events: tuple[Event, ...], values: Mapping[str, str]) -> None:
        if run.status is ExecutionStatus.RUNNING:
            self.finish = None  # it had ended and was redriven
        self.run = run
        self.trace.feed(events)
        self.history += events
        if isinstance(run.values, DictValues):
            run.values.update(values)

    def _apply(self, command: commands.Command) -> None:
        match command:
            case commands.RunTask(task=task) | commands.RedriveMapRun(task=task):
                self._answer(task)
            case commands.SetTimer(timer=timer, due_ms=due_ms):
                self._send_at(due_ms, messages.TimerFired(timer))
            case commands.CancelTimer(timer=timer):
                fired = messages.TimerFired(timer)
                self.due = [entry for entry in self.due if entry[2] != fired]
                heapq.heapify(self.due)
            case commands.Proceed():
                self._send_at(self.now_ms, messages.Continue())
            case commands.Finish():
                self.finish = command
            case commands.AnsweredTask() | commands.NoteEdit():
                raise EngineBug("a replay has no breakpoints")
            case commands.CancelTask():
                pass  # its answer will find no frame that waits for it
            case _:
                assert_never(command)

    def _send_at(self, due_ms: int, message: messages.Message) -> None:
        self.steps += 1  # keeps what is due at once in its order
        heapq.heappush(self.due, (due_ms, self.steps, message))

    def _answer(self, task: int) -> None:
        """Queue the recorded answer of a task; without one the task stays open."""
        state, place = self._place(task)
        answers = self.answers.get((state, place))
        name = state + "".join(f"[{index}]" for index in place)
        if not answers:
            where = f"task of {name}"
            self.problems.append(ReplayDifference(where, "one more call", "only those recorded"))
            return
        answer = answers.popleft()
        if answer.request and task in self.events:
            request = call_request(self.events[task].details or {})
            token = task_token(_KEY, self.run.about["execution_arn"], task)  # another one each time
            self.problems += compare_requests(name, request, answer.request, token)
        if answer.response is not None:
            self._send_at(self.now_ms + answer.after_ms, _outcome_message(task, answer.response))

    def _place(self, task: int) -> tuple[str, tuple[int, ...]]:
        """Return the state of a task, and its index in each surrounding Map."""
        for frame in self.run.frames.values():
            if frame.phase is FramePhase.TASK and frame.waits_for == task:
                return frame.state, _iteration_of(self.run, frame.id)
        visits = (visit for many in self.trace.visits.values() for visit in many)
        # No frame waits for it: a sibling failed in the very step that scheduled it.
        visit = next(visit for visit in visits if task in visit.events)
        return self.trace.graph.by_id[visit.node].name, visit.iteration

    def _response(self, state: str, number: int | None) -> Mapping[str, Any] | None:
        if number is None:
            return None
        responses = self.scenario.get("MockedResponses", {}).get(state, {})
        if str(number) not in responses:
            raise ValueError(f"MockedResponses.{state}: got no {number}, wanted one")
        response: Mapping[str, Any] = responses[str(number)]
        return response


def call_request(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the Resource and the Input of a call from the details of its ...Scheduled event.

    Raise ``JsonTextError`` for an input that was cut; a Map Run has neither.
    """
    request: dict[str, Any] = {}
    if "resource" in details:
        parts = (details.get("resourceType"), details["resource"])
        request["Resource"] = ":".join(part for part in parts if part)
    text = details.get("parameters", details.get("input"))
    if text is not None:
        request["Input"] = jsontext.loads(text)
    return request


def _start_message(recorded: Mapping[str, Any], data: Any) -> messages.Start:
    """Return the start message; ``recorded``: its recorded fields."""
    arn = "arn:aws:states:us-east-1:123456789012"
    made_up = {
        "execution_arn": f"{arn}:execution:scenario:run",
        "execution_name": "run",
        "state_machine_arn": f"{arn}:stateMachine:scenario",
        "state_machine_name": "scenario",
        "role_arn": "arn:aws:iam::123456789012:role/scenario",
        "start_ms": 0,
    }
    names = {name.title().replace("_", ""): name for name in messages.Start.__struct_fields__}
    fields = {names[name]: value for name, value in recorded.items() if name in names}
    return messages.Start(**{**made_up, **fields, "input": jsontext.dumps(data)})


def _stop_message(act: Mapping[str, Any]) -> messages.Stop:
    return messages.Stop(act.get("Error"), act.get("Cause"))


def _outcome_message(task: int, response: Mapping[str, Any]) -> messages.Message:
    if "Return" in response:
        return messages.TaskSucceeded(task, jsontext.dumps(response["Return"]))
    thrown = response.get("Throw", {})
    return messages.TaskFailed(task, thrown.get("Error"), thrown.get("Cause"))


def _iteration_of(run: Run, number: int) -> tuple[int, ...]:
    """Return a frame's index in each surrounding Map, outermost first."""
    indexes: list[int] = []
    frame = run.frames[number]
    while frame.group:
        group = run.groups[frame.group]
        if group.kind is GroupKind.MAP:
            indexes.append(frame.index)
        frame = run.frames[group.owner]
    return tuple(reversed(indexes))
