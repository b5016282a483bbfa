"""An execution that stops at breakpoints, for the tests of the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import engine
from engine import Breakpoint, BreakTime
from tests.engine.runtime.harness import Sim, machine, task

if TYPE_CHECKING:
    from collections.abc import Callable


BEFORE, AFTER, ERROR = BreakTime.BEFORE, BreakTime.AFTER, BreakTime.ERROR


def passes(**more: Any) -> dict[str, Any]:
    """Return a Pass state."""
    return {"Type": "Pass", **more}


def sleep() -> dict[str, Any]:
    """Return a Wait state."""
    return {"Type": "Wait", "Seconds": 5}


def each(**more: Any) -> dict[str, Any]:
    """Return a Map whose iterations have one Pass, and then a Task."""
    processor = machine("P", P=passes(Next="T"), T=task())
    return machine("Each", Each={"Type": "Map", "ItemProcessor": processor, **more})


class StoppedSim(Sim):
    """An execution that begins with breakpoints; each step goes through the text of its run."""

    def __init__(self, definition: dict[str, Any], data: Any, *places: Breakpoint | str) -> None:
        self.wanted = [Breakpoint(place) if isinstance(place, str) else place for place in places]
        self.notes: list[engine.NoteEdit] = []
        self.answered: list[engine.AnsweredTask] = []
        super().__init__(definition, data, reload=True)

    def send(self, message: engine.Message, *, budget: int = engine.BUDGET) -> engine.Step:
        """Set the breakpoints with the start."""
        if isinstance(message, engine.Start):
            places = engine.check_breakpoints(self.wanted, self.machine)
            self.run = self.run.with_plan(engine.DebugPlan.of(places))
        return super().send(message, budget=budget)

    def _take(self, command: engine.Command) -> None:
        match command:
            case engine.NoteEdit():
                self.notes.append(command)
            case engine.AnsweredTask():
                self.answered.append(command)
            case _:
                super()._take(command)

    @property
    def lines(self) -> list[engine.HaltedLine]:
        """Return the lines that stand."""
        return engine.halted_lines(self.machine, self.run, engine.Moment(self.now_ms))

    @property
    def stands(self) -> list[tuple[str, str, str]]:
        """Return state, time and place of the lines that stand."""
        return [(line.state, str(line.halt.when), line.place) for line in self.lines]

    def release(
        self, act: Callable[[engine.HaltedLine], engine.ReleaseMessage], at: int = 0
    ) -> Any:
        """Let one of the lines go on."""
        line = self.lines[at]
        message = act(line)
        assert line.problem_of(message) == ""
        return self.send(message)


def go_on(line: engine.HaltedLine) -> engine.Release:
    """Continue."""
    return line.go_on()


def step_over(line: engine.HaltedLine) -> engine.Release:
    """Continue to the next state."""
    return line.go_on(step=True)
