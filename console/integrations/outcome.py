"""Input and outcome types of an integration, such as ``TaskAttempt`` and ``Succeeded``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from console.integrations import targets

if TYPE_CHECKING:
    from console.functions.pool import CallRecord
    from console.integrations.home import Home


@dataclass(frozen=True, slots=True)
class TaskAttempt:
    """One attempt of a task.

    ``input``: JSON text; ``timeout_s``: how long it may take, None for no limit.

    ``idempotency_key``: the same for every dispatch of this attempt, also after a crash;
    ``losses``: how many processes have died while it ran in them; ``project``: name of the one that
    calls, which says where calls go; ``sample``: the execution is of a sample machine, which may
    call the samples' own functions; ``role_arn``: of the state machine, "" if it has none.
    """

    kind: str
    resource: str
    service: str
    action: str
    input: str
    idempotency_key: str
    execution_arn: str
    token: str
    timeout_s: int | None = None
    pattern: str = ""
    losses: int = 0
    home: Home | None = None
    project: str = ""
    sample: bool = False
    role_arn: str = ""

    @property
    def region(self) -> str:
        """The region of the execution, "" for a single tested state."""
        parts = self.execution_arn.split(":")
        return parts[3] if len(parts) > 3 else ""  # noqa: PLR2004 - arn:aws:states:REGION

    @property
    def machine(self) -> targets.MachineKey:
        """The execution's state machine; its name is "" for a single tested state."""
        return targets.MachineKey(self.project, targets.machine_of(self.execution_arn))


@dataclass(frozen=True, slots=True)
class Succeeded:
    """A result as JSON text. ``record``: of a function call, if there was one.

    ``event``: a function's invocation that the service has accepted, and that is still to be made.
    """

    output: str
    record: CallRecord | None = field(default=None, compare=False)
    event: TaskAttempt | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Failed:
    """The Error and Cause; either may be absent.

    ``refused``: the call that should begin a job, or hand out the token, was not taken.
    ``record``: of the call of a function, if there is one.
    """

    error: str | None
    cause: str | None = None
    refused: bool = False
    record: CallRecord | None = field(default=None, compare=False)


def unusable_parameters(task: TaskAttempt, problem: str) -> Failed:
    """Return the failure of a task with invalid parameters, in the service's words."""
    what = f"The Parameters '{task.input}' could not be used to start the Task: [{problem}]"
    return Failed("States.Runtime", what)


def internal_failure(task: TaskAttempt) -> Failed:
    """Return the failure of a task whose call raised an internal error, which is logged.

    Retry and Catch see no name of Python's.
    """
    cause = f"The call of '{task.resource}' ended with an internal error; the server's log has it."
    return Failed("States.TaskFailed", cause, refused=bool(task.pattern))


@dataclass(frozen=True, slots=True)
class Submitted:
    """A job or callback was accepted; the outcome follows later.

    ``job``: what to look at (JSON text), first after ``look_s`` seconds; "" if somebody will send
    the outcome with the task's token. ``event``: as of ``Succeeded``.
    """

    output: str
    job: str = ""
    look_s: float = 0.0
    record: CallRecord | None = field(default=None, compare=False)
    event: TaskAttempt | None = field(default=None, compare=False)


Outcome = Succeeded | Failed | Submitted
