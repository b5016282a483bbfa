"""Run a state machine in memory, without a server or a database, for unit tests.

An example::

    result = engine.run(definition, {"n": 1}, tasks={"AddOne": lambda n: {"n": n["n"] + 1}})
    assert result.status == "SUCCEEDED"
    assert result.path == ("AddOne",)

Time is virtual: waits and retry pauses are skipped by moving the clock to the next timer.
"""

from __future__ import annotations

import heapq
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, assert_never

from engine import jsontext
from engine.errors import EngineBug, StatesError
from engine.execution_status import ExecutionStatus
from engine.history.event_types import STATE_ENTRIES
from engine.language import parse
from engine.language.model import IntegrationPattern, TaskKind
from engine.runtime import commands, messages
from engine.runtime.advance import advance
from engine.runtime.breakpoints import (
    Breakpoint,
    BreakpointError,
    DebugPlan,
    check_breakpoints,
)
from engine.runtime.fault_strikes import FAULT
from engine.runtime.faults import Fault, FaultPlan, FaultType, read_faults
from engine.runtime.halted_lines import HaltedLine, describe_halt
from engine.runtime.run import NEW_RUN, DictValues, Moment, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from engine.language.model import Machine
    from engine.runtime.events import Event
    from engine.runtime.release import ReleaseMessage

_START_MS = 1_700_000_000_000
_FUNCTION_AT = 6  # arn:aws:lambda:region:account:function:NAME[:qualifier]


class NoAnswer(Exception):
    """Raised by a function of ``tasks`` that never answers; only a timeout ends the task then."""


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of one of the ``tasks``, with the calling state and the result.

    ``input``, ``output``: JSON values. ``error``: the name of the error, None if there was none.
    """

    state: str
    name: str
    input: Any
    output: Any = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class StruckFault:
    """An injected fault that struck a state. ``attempt``: the number of the attempt, from 1."""

    state: str
    type: FaultType
    attempt: int


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a run in memory.

    ``output``: a JSON value, None without one. ``events``: the whole history. ``slept``: how many
    seconds were skipped. ``path``: the names of the states in the order they were entered.
    ``calls``: of the ``tasks``, in the order they were made. ``edits``: the changes that ``debug``
    made at breakpoints. ``struck``: the faults that struck, in their order.
    """

    status: str
    output: Any
    error: str | None
    cause: str | None
    events: tuple[Event, ...]
    slept: float
    path: tuple[str, ...] = ()
    calls: tuple[FunctionCall, ...] = ()
    edits: tuple[commands.NoteEdit, ...] = ()
    struck: tuple[StruckFault, ...] = ()


def run(
    definition: str | Mapping[str, Any],
    data: Any = None,
    tasks: Mapping[str, Callable[[Any], Any]] | None = None,
    *,
    seed: int = 0,
    start_ms: int = _START_MS,
    max_steps: int = 100_000,
    breakpoints: Iterable[Breakpoint | str] = (),
    debug: Callable[[HaltedLine], ReleaseMessage] | None = None,
    faults: Iterable[Fault | Mapping[str, Any]] = (),
) -> Result:
    """Run a definition to its end and return the result.

    ``definition``: ASL as text or as the parsed object. ``data``: the input as a JSON value.
    ``tasks``: the functions that do the work of Task states, by the name of the state, of the
    function or activity, or by the whole Resource. A function gets the effective input and returns
    the result as a JSON value. With ``lambda:invoke`` a function that is found by the name in
    ``FunctionName`` gets the ``Payload`` and returns that of the answer; with a task token it
    returns the output that the token's callback sends. If it raises a ``StatesError``, that is the
    task's error; any other exception becomes an error with the name of its class and its text. If
    it raises ``NoAnswer``, the task stays open until its TimeoutSeconds or HeartbeatSeconds have
    passed. ``seed``: of everything random. ``start_ms``: the time at the start, in epoch
    milliseconds. ``breakpoints``: where lines of control stop; the name of a state stops before it.
    ``debug`` gets each halted line of control, and returns how it continues:
    ``lambda line: line.go_on()``. ``faults``: errors and latency to inject, as
    ``{"state": "Pay", "error": "Card.Declined"}``; their rates are drawn by ``seed``.

    Raise ``DefinitionError`` for a bad definition, ``BreakpointError`` for a bad breakpoint,
    ``FaultError`` for a fault that cannot strike,
    ``KeyError`` naming the Resource of a task that is not in ``tasks``, and ``EngineBug`` if the
    execution has not ended after ``max_steps``, or waits for a task that never ends.
    """
    text = definition if isinstance(definition, str) else jsontext.dumps(definition)
    runner = _Runner(parse(text), tasks or {}, seed, start_ms, debug=debug)
    runner.stop_at(breakpoints)
    runner.inject(read_faults([*faults], runner.machine, seed=seed, in_children=False))
    runner.send(start_message({} if data is None else data, start_ms))
    runner.go_on(max_steps)
    if runner.finish is None:
        msg = f"not done after {max_steps} steps"
        raise EngineBug(msg)
    return runner.result(runner.finish)


def run_some(
    machine: Machine, data: Any, tasks: Mapping[str, Callable[[Any], Any]], *, max_steps: int
) -> Result:
    """Run a machine like ``run``, but stop after ``max_steps`` steps with the status RUNNING.

    It has that status, too, if it waits for a task that never ends.
    """
    runner = _Runner(machine, tasks, 0, _START_MS)
    runner.send(start_message(data))
    with suppress(EngineBug):
        runner.go_on(max_steps)
    return runner.result(runner.finish or commands.Finish(ExecutionStatus.RUNNING))


def start_message(data: Any, start_ms: int = _START_MS) -> messages.Start:
    """Return the message that starts an execution in memory with ``data`` as its input."""
    arn = "arn:aws:states:us-east-1:123456789012"
    return messages.Start(
        execution_arn=f"{arn}:execution:memory:run",
        execution_name="run",
        state_machine_arn=f"{arn}:stateMachine:memory",
        state_machine_name="memory",
        role_arn="arn:aws:iam::123456789012:role/memory",
        input=jsontext.dumps(data),
        start_ms=start_ms,
    )


@dataclass
class _Runner:
    """A caller of ``advance`` without I/O: it acts on commands at once and moves its own clock."""

    machine: Machine
    tasks: Mapping[str, Callable[[Any], Any]]
    seed: int
    start_ms: int
    now_ms: int = 0
    run: Run = NEW_RUN
    finish: commands.Finish | None = None
    events: list[Event] = field(default_factory=list)
    inbox: deque[messages.Message] = field(default_factory=deque)
    timers: list[tuple[int, str]] = field(default_factory=list)
    deadlines: list[tuple[int, int, bool]] = field(default_factory=list)
    steps: int = 0
    calls: list[FunctionCall] = field(default_factory=list)
    edits: list[commands.NoteEdit] = field(default_factory=list)
    struck: list[StruckFault] = field(default_factory=list)
    debug: Callable[[HaltedLine], ReleaseMessage] | None = None

    def __post_init__(self) -> None:
        self.now_ms = self.start_ms
        self.run = self.run.reading(DictValues())

    def stop_at(self, breakpoints: Iterable[Breakpoint | str]) -> None:
        """Set the breakpoints, before the start."""
        places = [Breakpoint(place) if isinstance(place, str) else place for place in breakpoints]
        if places:
            if self.debug is None:
                raise BreakpointError("debug: got None, wanted a function for lines that stop")
            plan = DebugPlan.of(check_breakpoints(places, self.machine))
            self.run = self.run.with_plan(plan)

    def inject(self, plan: FaultPlan) -> None:
        """Inject faults, before the start."""
        if plan.faults:
            self.run = self.run.with_faults(plan)

    def send(self, message: messages.Message) -> None:
        """Process a message and its commands."""
        self.steps += 1
        moment = Moment(self.now_ms, self.seed * 1_000_003 + self.steps, b"memory")
        step = advance(self.machine, self.run, message, moment)
        self.run = step.run
        self.events.extend(step.events)
        values = self.run.values
        if isinstance(values, DictValues):
            values.update(step.values)
        for command in step.commands:
            self._apply(command)

    def go_on(self, steps: int) -> None:
        """Process messages until the execution ends, up to a number of steps."""
        for _ in range(steps):
            if self.finish is not None:
                return
            self.next()

    def next(self) -> None:
        """Process the next message, ask ``debug`` about a halted line, or advance to a timer."""
        halts = self.run.plan.halts if self.run.plan is not None else ()
        if halts and self.debug is not None:
            line = describe_halt(self.machine, self.run, halts[0], Moment(self.now_ms))
            message = self.debug(line)
            problem = line.problem_of(message)
            if problem:
                raise BreakpointError(f"{line.state}: {problem}")
            self.send(message)
        elif self.inbox:
            self.send(self.inbox.popleft())
        elif self.deadlines and (not self.timers or self.deadlines[0][0] <= self.timers[0][0]):
            due, task, heartbeat = heapq.heappop(self.deadlines)
            self.now_ms = max(self.now_ms, due)
            self.send(messages.TaskTimedOut(task, heartbeat))
        elif self.timers:
            due, timer = heapq.heappop(self.timers)
            self.now_ms = max(self.now_ms, due)
            self.send(messages.TimerFired(timer))
        else:
            raise EngineBug("the execution waits for nothing and has not ended")

    def result(self, finish: commands.Finish) -> Result:
        """Return the outcome."""
        output = None if finish.output is None else jsontext.loads(finish.output)
        slept = (self.now_ms - self.start_ms) / 1000
        events = tuple(self.events)
        path = tuple(event.state for event in events if event.type in STATE_ENTRIES)
        ending = (finish.status, output, finish.error, finish.cause)
        notes = tuple(self.edits), tuple(self.struck)
        return Result(*ending, events, slept, path, tuple(self.calls), *notes)

    def _apply(self, command: commands.Command) -> None:
        match command:
            case commands.RunTask():
                self._run_task(command)
            case commands.SetTimer(timer=timer, due_ms=due):
                heapq.heappush(self.timers, (due, timer))
            case commands.CancelTimer(timer=timer):
                self.timers = [entry for entry in self.timers if entry[1] != timer]
                heapq.heapify(self.timers)
            case commands.Proceed():
                self.inbox.append(messages.Continue())
            case commands.Finish():
                self.finish = command
            case commands.NoteEdit():
                self._note(command)
            case commands.CancelTask(task=task):
                self.deadlines = [entry for entry in self.deadlines if entry[1] != task]
                heapq.heapify(self.deadlines)
            case commands.AnsweredTask():
                pass  # nothing was called
            case commands.RedriveMapRun():
                raise EngineBug("a runner that sends no Redrive is asked to redrive a Map Run")
            case _:
                assert_never(command)

    def _run_task(self, task: commands.RunTask) -> None:
        message = self._call(task)
        if message is not None:
            self.inbox.append(message)

    def _note(self, edit: commands.NoteEdit) -> None:
        if edit.what != FAULT:
            self.edits.append(edit)
            return
        fault = jsontext.loads(edit.after)
        self.struck.append(StruckFault(edit.state, FaultType(fault["type"]), fault["attempt"]))

    def _call(self, task: commands.RunTask) -> messages.Message | None:
        """Call the function of a task, and return its outcome; None if there is no answer."""
        data = jsontext.loads(task.input)
        invoked = _invoked_function(task, data)
        name = next((name for name in _names(task, invoked) if name in self.tasks), None)
        if name is None:
            msg = f"task {invoked or task.resource} of state {task.state}: not among "
            raise KeyError(f"{msg}{sorted(self.tasks)}")
        by_function = bool(invoked) and name == invoked
        argument = data.get("Payload", {}) if by_function else data
        try:
            value = self.tasks[name](argument)
        except NoAnswer:
            self.calls.append(FunctionCall(task.state, name, argument))
            self._set_deadlines(task)
            return None
        except StatesError as error:
            return self._failed(task, name, argument, error.name, error.cause)
        except Exception as error:  # noqa: BLE001 - a function's own error is the task's error
            return self._failed(task, name, argument, type(error).__name__, str(error))
        self.calls.append(FunctionCall(task.state, name, argument, value))
        if by_function and task.pattern != IntegrationPattern.WAIT_FOR_TASK_TOKEN:
            value = {"ExecutedVersion": "$LATEST", "Payload": value, "StatusCode": 200}
        return messages.TaskSucceeded(task.task, jsontext.dumps(value))

    def _set_deadlines(self, task: commands.RunTask) -> None:
        """Let the task time out if it has TimeoutSeconds or HeartbeatSeconds."""
        limits = (task.timeout_seconds, False), (task.heartbeat_seconds, True)
        for seconds, heartbeat in limits:
            if seconds is not None:
                due = self.now_ms + seconds * 1000
                heapq.heappush(self.deadlines, (due, task.task, heartbeat))

    def _failed(
        self, task: commands.RunTask, name: str, argument: Any, error: str | None, cause: str | None
    ) -> messages.Message:
        self.calls.append(FunctionCall(task.state, name, argument, error=error))
        return messages.TaskFailed(task.task, error, cause)


def _names(task: commands.RunTask, invoked: str) -> list[str]:
    """Return the names under which to look up the function of a task, in order."""
    names = [task.state, invoked, task.resource.rsplit(":", 1)[-1], task.resource]
    if task.kind == TaskKind.LAMBDA:
        names.insert(1, _function_name(task.resource))
    return [name for name in names if name]


def _invoked_function(task: commands.RunTask, data: Any) -> str:
    """Return the name of the function that ``lambda:invoke`` calls, else ""."""
    if (task.service, task.action) != ("lambda", "invoke") or not isinstance(data, dict):
        return ""
    name_or_arn = data.get("FunctionName")
    return _function_name(name_or_arn) if isinstance(name_or_arn, str) else ""


def _function_name(name_or_arn: str) -> str:
    """Return a function's name, also of an ARN, without version or alias."""
    parts = name_or_arn.split(":")
    return parts[_FUNCTION_AT] if name_or_arn.startswith("arn:") else parts[0]
