"""Does a definition still do what it did?  A recorded execution, played again without the world.

A scenario (``docs/reference/scenarios.md``) holds a definition, an input, what each task answered
and when, and what came of it. Time is virtual: an answer comes as long after its task was scheduled
as it did then, a wait is over when the clock says so, and nothing takes any real time.
"""

from __future__ import annotations

import heapq
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from engine import jsontext
from engine.differences import TOLD, Difference, differences
from engine.errors import DefinitionError
from engine.graph import graph
from engine.history.fold import Trace
from engine.language import parse
from engine.runtime import commands, messages
from engine.runtime.advance import advance
from engine.runtime.run import NEW_RUN, DictValues, Moment, Run, replace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine.data.expression import Json
    from engine.language.model import Machine, Resource
    from engine.runtime.events import Event

SCENARIO = "stepyard-scenario-1"
_WANTED = ("Type", "Definition", "Input", "Tasks", "Expected")
_STEPS = 100_000


def replay(
    text: str,
    definition: str | None = None,
    unusable: Callable[[Resource, str, Json], str] | None = None,
) -> list[Difference]:
    """Play a scenario's text again and return how it differs from what was recorded.

    ``definition``: another one than the scenario's own, to see whether it does the same.
    ``unusable``: as in ``Moment``. Raise
    ``JsonTextError`` or ``ValueError`` for what is no scenario.
    """
    whole = _read(text)
    told = whole["Scenario"]
    try:
        machine = parse(definition or jsontext.dumps(told["Definition"]), told["Type"])
    except DefinitionError as error:
        problems = [str(one) for one in error.diagnostics[:TOLD]]
        return [Difference("definition", one, "one without errors") for one in problems]
    player = _Player(machine, whole, unusable)
    player.play()
    waiting = {one.state for one in player.run.frames.values() if one.waits_for}
    found = differences(player.trace, player.finish, waiting, told["Expected"])
    return [*player.problems, *found]


def _read(text: str) -> dict[str, Any]:
    whole = jsontext.loads(text)
    told = whole.get("Scenario") if isinstance(whole, dict) else None
    got = told.get("Format") if isinstance(told, dict) else None
    if not isinstance(told, dict) or got != SCENARIO:
        raise ValueError(f"Scenario.Format: got {jsontext.dumps(got)}, wanted {SCENARIO!r}")
    missing = [
        one for one in ("Type", "Definition", "Input", "Tasks", "Expected") if one not in told
    ]
    if missing:
        raise ValueError(f"Scenario: got no {missing[0]}, wanted one")
    result: dict[str, Any] = whole
    return result


# -- playing ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a call was answered; ``after_ms``: it was scheduled. None of both: it never was."""

    after_ms: int
    response: Mapping[str, Any] | None


@dataclass
class _Player:
    """A shell without I/O that knows all that will come in from outside, and when."""

    machine: Machine
    scenario: Mapping[str, Any]
    unusable: Callable[[Resource, str, Json], str] | None = None
    run: Run = NEW_RUN
    finish: commands.Finish | None = None
    problems: list[Difference] = field(default_factory=list)
    now_ms: int = 0
    steps: int = 0
    due: list[tuple[int, int, messages.Message]] = field(default_factory=list)
    answers: dict[tuple[str, tuple[int, ...]], deque[_Answer]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Know the answers, and what people did meanwhile."""
        told = self.scenario["Scenario"]
        self.trace = Trace(graph(self.machine))
        self.run = replace(self.run, values=DictValues())
        start = _start(told.get("Start", {}), told["Input"])
        self.now_ms = start.start_ms
        self._send_at(self.now_ms, start)
        for act in told.get("Acts", ()):
            message = messages.Redrive() if act["Act"] == "Redrive" else _stop(act)
            self._send_at(self.now_ms + act["Milliseconds"], message)
        for one in told["Tasks"]:
            response = self._response(one["State"], one.get("Number"))
            key = one["State"], tuple(one.get("Iteration", ()))
            answer = _Answer(one.get("Milliseconds", 0), response)
            self.answers.setdefault(key, deque()).append(answer)

    def play(self) -> None:
        """Take what comes in, in its order, until nothing more does."""
        while self.due and self.steps < _STEPS:
            self.steps += 1
            now_ms, _, message = heapq.heappop(self.due)
            self.now_ms = max(self.now_ms, now_ms)
            moment = Moment(self.now_ms, self.steps, b"replay", unusable=self.unusable)
            step = advance(self.machine, self.run, message, moment)
            self._take(step.run, step.events, step.kept)
            for command in step.commands:
                self._carry_out(command)

    def _take(self, run: Run, events: tuple[Event, ...], kept: Mapping[str, str]) -> None:
        if run.status == "RUNNING":
            self.finish = None  # it had ended and was redriven
        self.run = run
        self.trace.feed(events)
        if isinstance(run.values, DictValues):
            run.values.update(kept)

    def _carry_out(self, command: commands.Command) -> None:
        match command:
            case commands.RunTask(task=task) | commands.RedriveMapRun(task=task):
                self._answer(task)
            case commands.SetTimer(timer=timer, due_ms=due_ms):
                self._send_at(due_ms, messages.TimerFired(timer))
            case commands.CancelTimer(timer=timer):
                gone = messages.TimerFired(timer)
                self.due = [one for one in self.due if one[2] != gone]
                heapq.heapify(self.due)
            case commands.Proceed():
                self._send_at(self.now_ms, messages.Continue())
            case commands.Finish():
                self.finish = command
            case commands.CancelTask():
                pass  # an answer that nobody waits for any more changes nothing

    def _send_at(self, due_ms: int, message: messages.Message) -> None:
        self.steps += 1  # keeps what is due at once in its order
        heapq.heappush(self.due, (due_ms, self.steps, message))

    def _answer(self, task: int) -> None:
        """Let the recorded answer come in; without one the task stays open."""
        state, place = self._place(task)
        left = self.answers.get((state, place))
        if not left:
            where = f"task of {state}" + "".join(f"[{one}]" for one in place)
            self.problems.append(Difference(where, "one more call", "only those recorded"))
            return
        answer = left.popleft()
        if answer.response is not None:
            self._send_at(self.now_ms + answer.after_ms, _message(task, answer.response))

    def _place(self, task: int) -> tuple[str, tuple[int, ...]]:
        """Return the state of a task, and its index in each surrounding Map."""
        for frame in self.run.frames.values():
            if frame.phase == "task" and frame.waits_for == task:
                return frame.state, _iteration(self.run, frame.id)
        visits = (one for many in self.trace.visits.values() for one in many)
        visit = next(one for one in visits if task in one.events)  # stopped in the same step
        return self.trace.graph.by_id[visit.node].name, visit.iteration

    def _response(self, state: str, number: int | None) -> Mapping[str, Any] | None:
        if number is None:
            return None
        responses = self.scenario.get("MockedResponses", {}).get(state, {})
        if str(number) not in responses:
            raise ValueError(f"MockedResponses.{state}: got no {number}, wanted one")
        found: Mapping[str, Any] = responses[str(number)]
        return found


def _start(given: Mapping[str, Any], data: Any) -> messages.Start:
    """Return the first message; ``given``: what is known of its fields, as ``ExecutionArn``."""
    arn = "arn:aws:states:us-east-1:123456789012"
    made_up = {
        "execution_arn": f"{arn}:execution:scenario:run",
        "execution_name": "run",
        "state_machine_arn": f"{arn}:stateMachine:scenario",
        "state_machine_name": "scenario",
        "role_arn": "arn:aws:iam::123456789012:role/scenario",
        "start_ms": 0,
    }
    names = {name.title().replace("_", ""): name for name in messages.Start.__slots__}
    known = {names[name]: value for name, value in given.items() if name in names}
    return messages.Start(**{**made_up, **known, "input": jsontext.dumps(data)})


def _stop(act: Mapping[str, Any]) -> messages.Stop:
    return messages.Stop(act.get("Error"), act.get("Cause"))


def _message(task: int, response: Mapping[str, Any]) -> messages.Message:
    if "Return" in response:
        return messages.TaskSucceeded(task, jsontext.dumps(response["Return"]))
    thrown = response.get("Throw", {})
    return messages.TaskFailed(task, thrown.get("Error"), thrown.get("Cause"))


def _iteration(run: Run, number: int) -> tuple[int, ...]:
    """Return a frame's index in each surrounding Map, outermost first."""
    indexes: list[int] = []
    frame = run.frames[number]
    while frame.group:
        group = run.groups[frame.group]
        if group.kind == "map":
            indexes.append(frame.index)
        frame = run.frames[group.owner]
    return tuple(reversed(indexes))
