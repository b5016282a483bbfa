"""A shell without I/O for tests: sends messages by hand and keeps what the engine asked for."""

from __future__ import annotations

import json
from typing import Any

import engine
from engine.runtime.memory import start_message

START_MS = 1_700_000_000_000


class Sim:
    """One execution under full control of the test."""

    def __init__(self, definition: dict[str, Any], data: Any = None, *, reload: bool = False):
        self.machine = engine.parse(json.dumps(definition))
        self.values = engine.DictValues()
        self.run = engine.Run(about={}, frames={}, groups={}, values=self.values)
        self.reload = reload
        self.now_ms = START_MS
        self.events: list[engine.Event] = []
        self.tasks: dict[int, engine.RunTask] = {}
        self.cancelled: list[int] = []
        self.map_runs: list[int] = []
        self.timers: dict[str, int] = {}
        self.finish: engine.Finish | None = None
        self.written = 0
        self.steps = 0
        self.send(start_message({} if data is None else data))

    def send(self, message: engine.Message, *, budget: int = engine.BUDGET) -> engine.Step:
        """Send one message and take in the step."""
        self.steps += 1
        moment = engine.Moment(self.now_ms, self.steps, b"key")
        step = engine.advance(self.machine, self.run, message, moment, budget=budget)
        again = engine.advance(self.machine, self.run, message, moment, budget=budget)
        assert again == step, "advance is not pure"
        for prefix in step.dropped:
            for key in [key for key in self.values if key.startswith(prefix)]:
                del self.values[key]
        self.values.update(step.values)
        self.run = step.run
        text = self.run.dumps()
        self.written += len(text) + sum(map(len, step.values.values()))
        if self.reload and self.run.status != "SUCCEEDED":  # nobody reads it any more
            self.run = engine.Run.loads(text, self.values)
        self.events.extend(step.events)
        for command in step.commands:
            self._take(command)
        return step

    def _take(self, command: engine.Command) -> None:
        match command:
            case engine.RunTask():
                self.tasks[command.task] = command
            case engine.CancelTask(task=task):
                self.tasks.pop(task, None)
                self.cancelled.append(task)
            case engine.SetTimer(timer=timer, due_ms=due):
                self.timers[timer] = due
            case engine.CancelTimer(timer=timer):
                self.timers.pop(timer, None)
            case engine.Proceed():
                self.send(engine.Continue())
            case engine.RedriveMapRun():
                self.map_runs.append(command.task)
            case engine.Finish():
                self.finish = command

    def task(self, state: str) -> int:
        """Return the number of the open task of a state."""
        return next(number for number, task in self.tasks.items() if task.state == state)

    def succeed(self, state: str, output: Any = None) -> engine.Step:
        """Let the task of a state succeed."""
        number = self.task(state)
        del self.tasks[number]
        return self.send(engine.TaskSucceeded(number, json.dumps(output)))

    def fail(
        self, state: str, error: str | None = "Boom", cause: str | None = "it broke"
    ) -> engine.Step:
        """Let the task of a state fail."""
        number = self.task(state)
        del self.tasks[number]
        return self.send(engine.TaskFailed(number, error, cause))

    def redrive(self) -> engine.Step:
        """Redrive an execution that ended badly."""
        self.finish = None
        self.timers.clear()
        self.tasks.clear()
        return self.send(engine.Redrive())

    def fire(self) -> None:
        """Move the clock to the next timer and let it fire."""
        timer = min(self.timers, key=self.timers.__getitem__)
        self.now_ms = max(self.now_ms, self.timers.pop(timer))
        self.send(engine.TimerFired(timer))

    @property
    def story(self) -> list[str]:
        """The history as ``id<previous Type [state]``."""
        return [f"{e.id}<{e.previous} {e.type} {e.state}".strip() for e in self.events]

    @property
    def types(self) -> list[str]:
        """The types of the events, in order."""
        return [event.type for event in self.events]

    @property
    def output(self) -> Any:
        """The execution's output as a value."""
        assert self.finish is not None, self.story
        assert self.finish.output is not None, self.finish
        return json.loads(self.finish.output)


def machine(first: str, **states: dict[str, Any]) -> dict[str, Any]:
    """Return a definition of these states; a state without Next ends."""
    for state in states.values():
        if "Next" not in state and state["Type"] not in ("Choice", "Succeed", "Fail"):
            state.setdefault("End", True)
    return {"StartAt": first, "States": states}


def task(**more: Any) -> dict[str, Any]:
    """Return a Task state that calls a function."""
    arn = "arn:aws:lambda:us-east-1:123456789012:function:work"
    return {"Type": "Task", "Resource": arn, **more}


def activity(**more: Any) -> dict[str, Any]:
    """Return a Task state that waits for an activity worker."""
    return {
        "Type": "Task",
        "Resource": "arn:aws:states:us-east-1:123456789012:activity:work",
    } | more
