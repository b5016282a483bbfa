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
    ``losses``: how many processes have died while it ran in them; ``project``: name of the calling
    state machine, which selects the targets; ``sample``: the execution is of a sample machine,
    which may call the samples' own functions; ``role_arn``: the state machine's role, "" if it has
    none; ``assumes_role``: the Task has Credentials, so another role makes the call.
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
    assumes_role: bool = False

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
    """A result as JSON text. ``record``: the record of a function call, if there was one.

    ``event``: an asynchronous function invocation that was accepted and will be made later.
    """

    output: str
    record: CallRecord | None = field(default=None, compare=False)
    event: TaskAttempt | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Failed:
    """The Error and Cause; either may be absent.

    ``refused``: the call that should start a job or deliver the task token was rejected.
    ``record``: the record of a function call, if there was one.
    """

    error: str | None
    cause: str | None = None
    refused: bool = False
    record: CallRecord | None = field(default=None, compare=False)


def unusable_parameters(task: TaskAttempt, problem: str) -> Failed:
    """Return the failure of a task with invalid parameters, in the service's words."""
    cause = f"The Parameters '{task.input}' could not be used to start the Task: [{problem}]"
    return Failed("States.Runtime", cause)


def internal_failure(task: TaskAttempt) -> Failed:
    """Return the failure of a task whose call raised an internal error, which is logged.

    Retry and Catch see no name of Python's.
    """
    cause = f"The call of '{task.resource}' ended with an internal error; the server's log has it."
    return Failed("States.TaskFailed", cause, refused=bool(task.pattern))


@dataclass(frozen=True, slots=True)
class Submitted:
    """A job or callback was accepted; the outcome follows later.

    ``job``: the poll (JSON text), first made after ``look_s`` seconds; "" if somebody will send the
    outcome with the task's token. ``event``: see ``Succeeded``.
    """

    output: str
    job: str = ""
    look_s: float = 0.0
    record: CallRecord | None = field(default=None, compare=False)
    event: TaskAttempt | None = field(default=None, compare=False)


Outcome = Succeeded | Failed | Submitted
