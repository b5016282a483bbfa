"""The commands of a step, such as ``RunTask`` and ``SetTimer``: actions for the caller.

The caller carries out a command after it has committed the step. A crash in between repeats the
command, so carrying it out twice must do no harm; the names of tasks and timers make that possible.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from engine.language.model import IntegrationPattern, TaskKind

if TYPE_CHECKING:
    from engine.execution_status import ExecutionStatus


class RunTask(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """Run a task: call a function or a service, offer it to activity workers, or start a Map Run.

    ``task``: its number, the id of its ...Scheduled event. ``resource``: the Resource as written,
    for a Map Run its ARN. ``attempt``: 0 for the first, then the number of the retry.
    ``entered_event``: the id of the event that entered the state. With ``attempt`` it identifies
    the call, so that a call repeated after a crash has the same idempotency key.
    ``timeout_seconds``, ``heartbeat_seconds``: None for none; for activities they count from
    TaskStarted. ``credentials``: JSON text of the evaluated field. ``input``: JSON text, by kind:

    * function, activity: the effective input;
    * service: the arguments;
    * Map Run: an object with the ``inputs`` of the children or a ``reader``, ``concurrency`` (0: no
      limit), ``tolerated_count`` and ``tolerated_percentage`` (or null), and ``path``: the Map
      state's place for ``processor_definition``.
    """

    task: int
    kind: TaskKind
    resource: str
    state: str
    input: str
    attempt: int = 0
    entered_event: int = 0
    service: str = ""
    action: str = ""
    pattern: IntegrationPattern = IntegrationPattern.REQUEST_RESPONSE
    timeout_seconds: int | None = None
    heartbeat_seconds: int | None = None
    credentials: str | None = None


class CancelTask(Struct, frozen=True, gc=False):
    """No frame waits for the task any more: close its token, and stop its job where possible."""

    task: int


class RedriveMapRun(Struct, frozen=True, gc=False):
    """Reopen the task of a Map Run, and run the children that did not succeed again."""

    task: int


class SetTimer(Struct, frozen=True, gc=False):
    """Send ``TimerFired(timer)`` at ``due_ms`` (epoch milliseconds), never earlier."""

    timer: str
    due_ms: int


class CancelTimer(Struct, frozen=True, gc=False):
    """Drop the timer. If it fired already, its message finds no waiting frame."""

    timer: str


class AnsweredTask(Struct, frozen=True, gc=False):
    """Record a task as already ended, without calling it.

    A user answered the task at a breakpoint, or an injected fault failed it. The step already
    contains the task's history events.
    """

    task: RunTask


class NoteEdit(Struct, frozen=True, gc=False):
    """Record a user's action on a line of control at a breakpoint, or a fault that struck it.

    The history has no event for it. ``event``: the last event of the line. ``what``: ``input``,
    ``variables`` or ``output`` for an edit, else ``answer``, ``skip``, ``fail`` or ``fault``.
    ``before``, ``after``: JSON texts, or the error. With ``fault``, an injected fault made the
    change, not a person; ``after`` is then the fault, ``before`` the outcome that it replaced, or
    "".
    """

    event: int
    state: str
    what: str
    by: str
    before: str
    after: str


class Proceed(Struct, frozen=True, gc=False):
    """Send ``Continue``: the step's budget is spent, and frames are still ready."""


class Finish(Struct, frozen=True, gc=False):
    """The execution ended. ``status``: a final status, never NEW or RUNNING."""

    status: ExecutionStatus
    output: str | None = None
    error: str | None = None
    cause: str | None = None
    stop_ms: int = 0


Command = (
    RunTask
    | CancelTask
    | RedriveMapRun
    | SetTimer
    | CancelTimer
    | AnsweredTask
    | NoteEdit
    | Proceed
    | Finish
)
