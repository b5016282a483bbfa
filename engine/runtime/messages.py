"""What can come in?  A message is the only thing that makes an execution move.

Tasks are named by the id of their ``...Scheduled`` event, timers by the text the engine gave them
in ``SetTimer``. A message for something that no longer waits is an empty step, so duplicates and
late answers need no special care from the sender.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Start:
    """Begin. Everything the execution must know of itself comes in here, once.

    ``input``: JSON text as the caller sent it. ``start_ms``: epoch milliseconds.
    ``timeout_seconds``: how long the execution may run, instead of the machine's TimeoutSeconds.
    ``start_at``: a state of the machine's own level to begin in instead of its StartAt, with
    ``variables`` (a JSON object) assigned; ``origin``: ARN of the execution it repeats a part of.
    """

    execution_arn: str
    execution_name: str
    state_machine_arn: str
    state_machine_name: str
    role_arn: str
    input: str
    start_ms: int
    version_arn: str | None = None
    alias_arn: str | None = None
    timeout_seconds: int | None = None
    start_at: str | None = None
    variables: str | None = None
    origin: str | None = None
    redrive_count_known: bool = True  # StartSyncExecution's context has no RedriveCount


@dataclass(frozen=True, slots=True)
class Continue:
    """Go on after a step that ended because its budget was used up."""


@dataclass(frozen=True, slots=True)
class TimerFired:
    """A timer set by ``SetTimer`` is due."""

    timer: str


@dataclass(frozen=True, slots=True)
class TaskStarted:
    """A worker took an activity task."""

    task: int
    worker_name: str | None = None


@dataclass(frozen=True, slots=True)
class TaskSubmitted:
    """The first answer of a ``.sync`` or ``.waitForTaskToken`` call; the task goes on.

    JSON text.
    """

    task: int
    output: str


@dataclass(frozen=True, slots=True)
class TaskSucceeded:
    """The task's result, as JSON text."""

    task: int
    output: str


@dataclass(frozen=True, slots=True)
class TaskFailed:
    """The task's error; either text may be absent.

    ``refused``: the call that should begin a job, or hand out the token, was not taken.
    """

    task: int
    error: str | None = None
    cause: str | None = None
    refused: bool = False


@dataclass(frozen=True, slots=True)
class TaskTimedOut:
    """TimeoutSeconds, or (``heartbeat``) HeartbeatSeconds, went by."""

    task: int
    heartbeat: bool = False


@dataclass(frozen=True, slots=True)
class Stop:
    """StopExecution."""

    error: str | None = None
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class Redrive:
    """RedriveExecution of a failed, timed-out or aborted execution."""


Message = (
    Start
    | Continue
    | TimerFired
    | TaskStarted
    | TaskSubmitted
    | TaskSucceeded
    | TaskFailed
    | TaskTimedOut
    | Stop
    | Redrive
)
