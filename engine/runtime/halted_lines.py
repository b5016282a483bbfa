"""Lines of control at breakpoints, as a person sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine import jsontext
from engine.errors import StatesError
from engine.language.model import Task
from engine.runtime import flow, messages
from engine.runtime.breakpoints import BreakTime, states_ahead
from engine.runtime.release import release_problem
from engine.runtime.states import task
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

    ``state``: the state it is in; ``place``: the Parallel and Map states around it, as
    ``Each[3]/Both[0]``. ``input``: of the state, JSON text. ``variables``: all that it sees, as
    values; ``own_variables``: JSON text of those of its own scope, which can be edited.
    ``parameters``: what the work of the state begins with, None if there is no such thing; then
    ``parameters_problem`` may say why. ``states_ahead``: the names of the states that the line may
    come to, sorted, for ``run_to``.
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
        """Return the number of the halt, which the messages name."""
        return self.halt.number

    @property
    def kind(self) -> str:
        """Return the type of the state."""
        return type(self.definition).__name__

    @property
    def is_answerable(self) -> bool:
        """Tell whether the outcome of its call can be said in place of calling."""
        return not self.problem_of(messages.AnswerTask(self.number))

    @property
    def is_enterable(self) -> bool:
        """Tell whether the line can stop again inside the state, at each of its inner lines."""
        return not self.problem_of(messages.Release(self.number, into=True))

    @property
    def is_skippable(self) -> bool:
        """Tell whether the state can be left with an output in place of its work."""
        return not self.problem_of(messages.Skip(self.number, "{}"))

    def problem_of(self, message: ReleaseMessage) -> str:
        """Return why the line cannot go on so, "" if it can."""
        return release_problem(self.halt, self.definition, message, self.states_ahead)

    def go_on(
        self, *, step: bool = False, into: bool = False, run_to: str = "", **edits: Any
    ) -> messages.Release:
        """Continue, and perhaps stop again.

        ``step``: before the line's next state. ``into``: before the first state of each branch or
        iteration. ``run_to``: before a state, by its name. ``edits``: new values of ``input``,
        ``variables``, ``output``.
        """
        texts = {name: jsontext.dumps(value) for name, value in edits.items()}
        return messages.Release(self.number, step=step, into=into, run_to=run_to, **texts)

    def answer(self, value: Any) -> messages.AnswerTask:
        """Take a value for the result of the task, which is not called."""
        return messages.AnswerTask(self.number, output=jsontext.dumps(value))

    def answer_error(self, error: str, cause: str = "") -> messages.AnswerTask:
        """Take an error for the outcome of the task, which is not called."""
        return messages.AnswerTask(self.number, error=error, cause=cause)

    def skip(self, value: Any) -> messages.Skip:
        """Leave the state with a value as its output."""
        return messages.Skip(self.number, jsontext.dumps(value))

    def fail(self, error: str, cause: str = "") -> messages.FailState:
        """Let the state fail."""
        return messages.FailState(self.number, error, cause)


def halted_lines(machine: Machine, run: Run, moment: Moment) -> list[HaltedLine]:
    """Return the lines of control that stand at breakpoints, in the order in which they stopped."""
    halts = run.plan.halts if run.plan is not None else ()
    return [describe_halt(machine, run, halt, moment) for halt in halts]


def describe_halt(machine: Machine, run: Run, halt: Halt, moment: Moment) -> HaltedLine:
    """Return what there is to see of a line of control; the run stays as it is."""
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
        tuple(sorted({name for name, _ in states_ahead(machine, frame.path)})),
    )


def _parameters(turn: Turn, frame: Frame, state: Any) -> tuple[str | None, str]:
    """Return the effective input of a state's work, and why there is none."""
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
