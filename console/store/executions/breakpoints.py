"""Set the breakpoints of a running execution, and release lines of control from them.

Both are messages in its inbox, like the outcome of a task: they are durable once they are written,
any worker processes them, and a message for a line that has continued changes nothing.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import engine
from console import arns
from console.db import audit, clock, project_settings
from console.db.writer import write
from console.errors import ConflictException, ValidationException
from console.models import Execution, InboxMessage
from console.statuses import ExecutionStatus
from console.store.executions import step
from console.store.machines import machines
from console.store.state import inbox

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from console.models import StateMachine, Version

ACTION = "DebugExecution"
"""The action of setting breakpoints, for rights and the audit."""
SETTING, ALLOWED = "breakpoints", "allowed"
"""Kind and name of the owners' setting; without it breakpoints are allowed."""
FORBIDDEN = "This project forbids breakpoints."
_TRIES = 20
_LONGEST_REASON = 256
_GONE = "The line has continued in the meantime."
_RELEASED = "Somebody has already chosen how the line continues; it does so at the resume."
_RELEASES = (engine.Release, engine.AnswerTask, engine.Skip, engine.FailState)


@dataclass(frozen=True, slots=True)
class Debugged:
    """A running execution with its breakpoints and its halted lines.

    ``states``: the names of the states that it can stop at.
    """

    breakpoints: tuple[engine.Breakpoint, ...]
    lines: Sequence[engine.HaltedLine]
    states: Sequence[str]
    machine: engine.Machine


def debug_refusal(execution: Execution) -> str:
    """Return why an execution cannot have breakpoints (Express), "" if it can."""
    if execution.status != ExecutionStatus.RUNNING:
        return "The execution has ended."
    if arns.is_express(execution.arn):
        return "An Express execution has no breakpoints."
    return ""


def is_forbidden(project: str) -> bool:
    """Return whether the owners of a project (its name) forbid breakpoints."""
    if not project_settings.names_in_use(SETTING):
        return False
    return project_settings.read_value(project, SETTING, ALLOWED) is False


def debugged(execution: Execution) -> Debugged | None:
    """Return the breakpoints and halted lines of an execution; None if it has ended."""
    # The inbox first: a message that a worker takes from it meanwhile is in the run then.
    message = _message_of_breakpoints(execution.pk)
    running = step.load_running(execution.pk)
    if running is None:
        return None
    machine, run = running
    if message is not None:
        places = engine.read_breakpoints(message.breakpoints, machine)
    else:
        places = run.plan.breakpoints if run.plan is not None else ()
    lines = engine.halted_lines(machine, run, engine.Moment(clock.now_ms()))
    states = [name for name, _ in engine.own_states(machine)]
    return Debugged(places, lines, states, machine)


def change_breakpoints(
    execution: Execution,
    change: Callable[[Sequence[engine.Breakpoint]], Iterable[engine.Breakpoint]],
    actor: audit.Actor,
) -> None:
    """Replace the breakpoints of an execution by those that ``change`` makes of the current ones.

    Raise ConflictException if the execution has ended or its project forbids breakpoints,
    ValidationException for a breakpoint that never stops.
    """

    def make() -> tuple[engine.Message, str]:
        shown = debugged(execution)
        if shown is None:
            raise ConflictException("The execution has ended.")
        try:
            places = engine.check_breakpoints(change(shown.breakpoints), shown.machine)
        except engine.BreakpointError as error:
            raise ValidationException(str(error)) from None
        if is_forbidden(execution.project.name) and not {*places} <= {*shown.breakpoints}:
            raise ConflictException(FORBIDDEN)
        names = ", ".join(f"{place.state} {place.when}" for place in places)
        text = engine.breakpoints_text(places)
        return engine.SetBreakpoints(text), f"breakpoints: {names or 'none'}"

    _post(execution, make, actor)


def breakpoints_of_start(
    machine: StateMachine, version: Version | None, text: str
) -> tuple[engine.Breakpoint, ...]:
    """Return the breakpoints that a new execution has from its start.

    ``version``: the version that it runs instead of the current definition; ``text``: JSON, as the
    engine reads it. Raise ValidationException for a breakpoint that the execution cannot have,
    ConflictException if the project forbids breakpoints.
    """
    if is_forbidden(machine.project.name):
        raise ConflictException(FORBIDDEN)
    if machine.type == engine.MachineType.EXPRESS:
        raise ValidationException("An Express execution has no breakpoints.")
    definition = machine.definition_id if version is None else version.definition_id
    try:
        return engine.read_breakpoints(text, machines.compiled_machines.get(definition))
    except engine.BreakpointError as error:
        raise ValidationException(str(error)) from None


def release_line(
    execution: Execution,
    number: int,
    act: Callable[[str], engine.ReleaseMessage],
    note: str,
    actor: audit.Actor,
) -> str:
    """Release a halted line by the message that ``act`` creates for the actor's name.

    Return the name of its state. Raise ConflictException if the line of control has continued
    already, ValidationException if it cannot continue in that way.
    """
    state = ""

    def make() -> tuple[engine.Message, str]:
        nonlocal state
        shown = debugged(execution)
        lines = shown.lines if shown is not None else ()
        line = next((line for line in lines if line.number == number), None)
        if line is None:
            raise ConflictException(_GONE)
        if _is_released(execution.pk, number):
            raise ConflictException(_RELEASED)
        message = act(actor.name)
        if message != engine.Release(number, actor.name) and is_forbidden(execution.project.name):
            raise ConflictException(f"{FORBIDDEN} The line can only continue, without a change.")
        problem = line.problem_of(message)
        if problem:
            raise ValidationException(problem)
        state = line.state
        return message, f"{note}: {state}"

    _post(execution, make, actor)
    return state


def _is_released(number: int, halt: int) -> bool:
    """Return whether a message in the inbox releases a line; a pause keeps it in the inbox."""
    kinds = [kind.__name__ for kind in _RELEASES]
    rows = InboxMessage.objects.filter(execution=number, kind__in=kinds)
    messages = (inbox.load_message(row.kind, row.body) for row in rows)
    return any(isinstance(message, _RELEASES) and message.halt == halt for message in messages)


def _message_of_breakpoints(number: int) -> engine.SetBreakpoints | None:
    """Return the message in the inbox that sets the breakpoints of an execution."""
    rows = InboxMessage.objects.filter(execution=number, kind=engine.SetBreakpoints.__name__)
    row = rows.order_by("-pk").first()
    if row is None:
        return None
    message = inbox.load_message(row.kind, row.body)
    assert isinstance(message, engine.SetBreakpoints)  # noqa: S101 - its kind says so
    return message


def _post(
    execution: Execution, make: Callable[[], tuple[engine.Message, str]], actor: audit.Actor
) -> None:
    """Post the message that ``make`` returns with its reason for the audit."""

    def store() -> None:
        # Its end, if that is being written just now, comes before or after but not between. Nor
        # does the change of somebody else, between what ``make`` reads and what is posted.
        locked = Execution.objects.select_for_update(no_key=True).get(pk=execution.pk)
        refusal = debug_refusal(locked)
        if refusal:
            raise ConflictException(refusal)
        message, reason = make()
        inbox.post_message(execution.pk, message)
        audit.record(execution.project, actor, ACTION, execution.arn, reason[:_LONGEST_REASON])

    write(store)
    _take_in(execution.pk)


def _take_in(number: int) -> None:
    """Process the messages of an execution, so that its page shows the effect.

    A worker would process them as well; a paused execution keeps them for its resume.
    """
    for _ in range(_TRIES):
        with contextlib.suppress(step.Fenced, engine.NewerFormat):
            step.step_execution(number)
        kinds = InboxMessage.objects.filter(execution=number)
        if not kinds.exists():
            return
