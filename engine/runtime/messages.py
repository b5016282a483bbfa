"""The messages of the engine, such as ``TaskSucceeded``: the only inputs that change an execution.

A task is identified by the id of its ``...Scheduled`` event, a timer by its name from ``SetTimer``.
A message that no frame waits for gives an empty step, so a sender may repeat a message and may be
late. For example:

1. The timer of a task's timeout fires, and ``TaskTimedOut(5)`` enters the inbox.
2. At the same time a worker answers, and ``TaskSucceeded(5)`` enters the inbox behind it.
3. The first one ends the task. The second one finds no frame that waits for task 5.
"""

from __future__ import annotations

from msgspec import Struct


class Start(Struct, frozen=True, gc=False):
    """Start the execution, with all its facts: the message is sent once.

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


class Continue(Struct, frozen=True, gc=False):
    """Continue after a step whose budget was spent."""


class TimerFired(Struct, frozen=True, gc=False):
    """A timer set by ``SetTimer`` is due."""

    timer: str


class TaskStarted(Struct, frozen=True, gc=False):
    """A worker has taken an activity task."""

    task: int
    worker_name: str | None = None


class TaskSubmitted(Struct, frozen=True, gc=False):
    """The first answer of a ``.sync`` or ``.waitForTaskToken`` call; its job continues.

    ``output``: the answer as JSON text.
    """

    task: int
    output: str


class TaskSucceeded(Struct, frozen=True, gc=False):
    """A task succeeded, with its result as JSON text."""

    task: int
    output: str


class TaskFailed(Struct, frozen=True, gc=False):
    """A task failed, with an optional error and an optional cause.

    ``refused``: the call that should begin a job, or hand out the token, was refused. AWS then
    writes TaskSubmitFailed in place of TaskFailed.
    """

    task: int
    error: str | None = None
    cause: str | None = None
    refused: bool = False


class TaskTimedOut(Struct, frozen=True, gc=False):
    """TimeoutSeconds of the task has passed or, with ``heartbeat``, its HeartbeatSeconds.

    ``also``: task and ``heartbeat`` of further tasks that timed out at the same time. Their own
    messages may follow, and then find no frame.
    """

    task: int
    heartbeat: bool = False
    also: tuple[tuple[int, bool], ...] = ()


class Stop(Struct, frozen=True, gc=False):
    """StopExecution was called, with the caller's error and cause."""

    error: str | None = None
    cause: str | None = None


class Redrive(Struct, frozen=True, gc=False):
    """RedriveExecution was called for a failed, timed-out or aborted execution."""


class SetBreakpoints(Struct, frozen=True, gc=False):
    """Replace the breakpoints of the execution.

    ``breakpoints``: JSON text, as ``breakpoints.read_breakpoints`` reads it.
    """

    breakpoints: str


class Release(Struct, frozen=True, gc=False):
    """Continue from a breakpoint, optionally with edited data.

    ``halt``: the number of the ``Halt``. ``by``: the person who decides. Edits, as JSON texts, None
    for none: the state's ``input``, before its work; the ``variables`` of the line's own scope, all
    of them; the ``output``, after its work. At most one of these determines the next stop:
    ``step``, before the next state of the line; ``into``, before the first state of each branch or
    iteration of the Parallel or Map; ``run_to``, before the state of this name, once it is entered.
    """

    halt: int
    by: str = ""
    input: str | None = None
    variables: str | None = None
    output: str | None = None
    step: bool = False
    into: bool = False
    run_to: str = ""


class AnswerTask(Struct, frozen=True, gc=False):
    """Use this outcome for a Task that is halted before its work; nothing is called.

    ``output``: the result as JSON text; None: it fails with the error and cause.
    """

    halt: int
    by: str = ""
    output: str | None = None
    error: str | None = None
    cause: str | None = None


class Skip(Struct, frozen=True, gc=False):
    """Leave a state, before its work or after an error, with this output."""

    halt: int
    output: str
    by: str = ""


class FailState(Struct, frozen=True, gc=False):
    """Fail the state at a breakpoint; its Retriers and Catchers apply as for any error."""

    halt: int
    error: str | None = None
    cause: str | None = None
    by: str = ""


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
    | SetBreakpoints
    | Release
    | AnswerTask
    | Skip
    | FailState
)
