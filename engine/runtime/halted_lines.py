"""Describe halted lines of control for a user, and build the messages that continue them.

``halted_lines`` returns a ``HaltedLine`` for each halt of a run. Pages and ``engine.run`` show its
data. Its methods ``go_on``, ``answer``, ``skip`` and ``fail`` return a message for ``advance``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine import jsontext
from engine.errors import StatesError
from engine.language.model import Task
from engine.runtime import flow, messages
from engine.runtime.breakpoints import BreakTime
from engine.runtime.release import release_problem
from engine.runtime.states import task
from engine.runtime.states_ahead import states_ahead
from engine.runtime.turn import Turn

if TYPE_CHECKING:
    from collections.abc import Mapping

    from engine.language.model import Machine, State
    from engine.runtime.breakpoints import Halt
    from engine.runtime.release import ReleaseMessage
    from engine.runtime.run import Frame, Moment, Run


@dataclass(frozen=True, slots=True)
class HaltedLine:
    """A line of control that stands at a breakpoint.

    ``state``: its current state; ``place``: the Parallel and Map states around it, as
    ``Each[3]/Both[0]``. ``input``: the state's input, JSON text. ``variables``: name -> value of
    all visible variables; ``own_variables``: JSON text of those in its own scope, which can be
    edited. ``parameters``: the effective input of the state's work, None if the state has none or
    it cannot be computed (``parameters_problem``). ``states_ahead``: sorted names of the possible
    targets of *Run to*.
    """

    halt: Halt
    definition: State
    state: str
    place: str
    input: str
    variables: Mapping[str, Any]
    own_variables: str
    parameters: str | None = None
    parameters_problem: str = ""
    entered_event: int = 0
    states_ahead: tuple[str, ...] = ()

    @property
    def number(self) -> int:
        """Return the number of the halt, used in messages."""
        return self.halt.number

    @property
    def kind(self) -> str:
        """Return the type of the state."""
        return type(self.definition).__name__

    @property
    def is_answerable(self) -> bool:
        """Return whether a user can give the outcome of the call instead of making it."""
        return not self.problem_of(messages.AnswerTask(self.number))

    @property
    def is_enterable(self) -> bool:
        """Return whether *Step into* is possible: stop in each branch or iteration."""
        return not self.problem_of(messages.Release(self.number, into=True))

    @property
    def is_skippable(self) -> bool:
        """Return whether the state can be left with a given output, without its work."""
        return not self.problem_of(messages.Skip(self.number, "{}"))

    def problem_of(self, message: ReleaseMessage) -> str:
        """Return why a message cannot continue the line, "" if it can."""
        return release_problem(self.halt, self.definition, message, self.states_ahead)

    def go_on(
        self, *, step: bool = False, into: bool = False, run_to: str = "", **edits: Any
    ) -> messages.Release:
        """Return the message that continues the line, with an optional further stop.

        ``step``: stop before the next state. ``into``: stop before the first state of each branch
        or iteration. ``run_to``: stop before the state of this name. ``edits``: new values of
        ``input``, ``variables``, ``output``.
        """
        texts = {name: jsontext.dumps(value) for name, value in edits.items()}
        return messages.Release(self.number, step=step, into=into, run_to=run_to, **texts)

    def answer(self, value: Any) -> messages.AnswerTask:
        """Return the message that gives the task a result, without a call."""
        return messages.AnswerTask(self.number, output=jsontext.dumps(value))

    def answer_error(self, error: str, cause: str = "") -> messages.AnswerTask:
        """Return the message that fails the task with an error, without a call."""
        return messages.AnswerTask(self.number, error=error, cause=cause)

    def skip(self, value: Any) -> messages.Skip:
        """Return the message that leaves the state with a value as its output."""
        return messages.Skip(self.number, jsontext.dumps(value))

    def fail(self, error: str, cause: str = "") -> messages.FailState:
        """Return the message that fails the state with an error."""
        return messages.FailState(self.number, error, cause)


def halted_lines(machine: Machine, run: Run, moment: Moment) -> list[HaltedLine]:
    """Return the halted lines of control, in the order in which they stopped."""
    halts = run.plan.halts if run.plan is not None else ()
    return [describe_halt(machine, run, halt, moment) for halt in halts]


def describe_halt(machine: Machine, run: Run, halt: Halt, moment: Moment) -> HaltedLine:
    """Return the description of a halted line; the run is not changed."""
    turn = Turn(machine, run, moment, 0)
    frame = turn.frames[halt.frame]
    state = turn.state(frame)
    parameters, problem = None, ""
    if halt.when is not BreakTime.AFTER:
        parameters, problem = _parameters(turn, frame, state)
    return HaltedLine(
        halt,
        state,
        frame.state,
        _place(turn, frame),
        frame.input,
        turn.variables.visible(frame),
        frame.variables or "{}",
        parameters,
        problem,
        frame.entered_event,
        tuple(sorted(states_ahead(machine, frame, halt))),
    )


def _parameters(turn: Turn, frame: Frame, state: Any) -> tuple[str | None, str]:
    """Return the effective input of a state's work, or None and the reason."""
    try:
        if isinstance(state, Task):
            return task.resolved_input(turn, frame, state), ""
        data = getattr(state, "data", None)
        if data is None or not (data.parameters or data.arguments):
            return None, ""
        return flow.effective_input(turn, frame, data).text, ""
    except StatesError as error:
        return None, error.cause or error.name or ""


def _place(turn: Turn, frame: Frame) -> str:
    names: list[str] = []
    while frame.group:
        owner = turn.frames[turn.groups[frame.group].owner]
        names.append(f"{owner.state}[{frame.index}]")
        frame = owner
    return "/".join(reversed(names))
