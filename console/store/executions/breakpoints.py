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
    """Tell whether the owners of a project (its name) forbid breakpoints."""
    if not project_settings.names_in_use(SETTING):
        return False
    return project_settings.read_value(project, SETTING, ALLOWED) is False


def debugged(execution: Execution) -> Debugged | None:
    """Return the breakpoints and halted lines of an execution; None if it has ended."""
    running = step.load_running(execution.pk)
    if running is None:
        return None
    machine, run = running
    lines = engine.halted_lines(machine, run, engine.Moment(clock.now_ms()))
    states = [name for name, _ in engine.own_states(machine)]
    return Debugged(_latest(execution.pk, machine, run), lines, states, machine)


def set_breakpoints(
    execution: Execution, breakpoints: Iterable[engine.Breakpoint], actor: audit.Actor
) -> None:
    """Replace the breakpoints of an execution.

    Raise ConflictException if it has ended, or its project forbids further ones,
    ValidationException for a breakpoint that never stops.
    """
    running = step.load_running(execution.pk)
    if running is None:
        raise ConflictException("The execution has ended.")
    try:
        places = engine.check_breakpoints(breakpoints, running[0])
    except engine.BreakpointError as error:
        raise ValidationException(str(error)) from None
    if is_forbidden(execution.project.name) and not _are_set(execution.pk, places, *running):
        raise ConflictException(FORBIDDEN)
    text = engine.breakpoints_text(places)
    names = ", ".join(f"{place.state} {place.when}" for place in places)
    _post(execution, engine.SetBreakpoints(text), actor, f"breakpoints: {names or 'none'}")


def breakpoints_of_start(
    machine: StateMachine, version: Version | None, text: str
) -> tuple[engine.Breakpoint, ...]:
    """Return the breakpoints that a new execution has from its start.

    ``version``: what it runs instead of what the machine is now; ``text``: JSON, as the engine
    reads it. Raise ValidationException for what the execution cannot have, ConflictException if
    the project forbids breakpoints.
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
    what: str,
    actor: audit.Actor,
) -> str:
    """Release a halted line by the message that ``act`` creates for the actor's name.

    Return the name of its state. Raise ConflictException if the line has gone on,
    ValidationException if it cannot go on so.
    """
    shown = debugged(execution)
    lines = shown.lines if shown is not None else ()
    line = next((line for line in lines if line.number == number), None)
    if line is None:
        raise ConflictException(_GONE)
    message = act(actor.name)
    if message != engine.Release(number, actor.name) and is_forbidden(execution.project.name):
        raise ConflictException(f"{FORBIDDEN} The line can only continue, without a change.")
    problem = line.problem_of(message)
    if problem:
        raise ValidationException(problem)
    _post(execution, message, actor, f"{what}: {line.state}")
    return line.state


def _are_set(
    number: int, places: Iterable[engine.Breakpoint], machine: engine.Machine, run: engine.Run
) -> bool:
    return {*places} <= {*_latest(number, machine, run)}


def _latest(number: int, machine: engine.Machine, run: engine.Run) -> tuple[engine.Breakpoint, ...]:
    """Return the breakpoints, also if the message that sets them is still in the inbox."""
    rows = InboxMessage.objects.filter(execution=number, kind=engine.SetBreakpoints.__name__)
    row = rows.order_by("-pk").first()
    if row is None:
        return run.plan.breakpoints if run.plan is not None else ()
    message = inbox.load_message(row.kind, row.body)
    assert isinstance(message, engine.SetBreakpoints)  # noqa: S101 - its kind says so
    return engine.read_breakpoints(message.breakpoints, machine)


def _post(execution: Execution, message: engine.Message, actor: audit.Actor, reason: str) -> None:
    def store() -> None:
        # Its end, if that is being written just now, comes before or after but not between.
        locked = Execution.objects.select_for_update(no_key=True).get(pk=execution.pk)
        refusal = debug_refusal(locked)
        if refusal:
            raise ConflictException(refusal)
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
