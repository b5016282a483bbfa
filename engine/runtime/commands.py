"""What shall the shell do?

Commands go out with a step and are carried out after it is committed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from engine.language.model import IntegrationPattern

if TYPE_CHECKING:
    from engine.execution_status import ExecutionStatus
    from engine.language.model import TaskKind


@dataclass(frozen=True, slots=True)
class RunTask:
    """Call a function, offer an activity task, call a service, or run the children of a Map.

    For a Map Run ``resource`` is its ARN and ``input`` an object: ``inputs`` of the children,
    ``concurrency`` (0: no limit), ``tolerated_count`` and ``tolerated_percentage`` (or null), and
    ``path``: the Map state's place for ``processor_definition``.

    ``task``: id of the Scheduled event. ``attempt``: 0 first, then one more a retry. ``input``:
    JSON text: the effective input (Lambda ARN, activity) or the arguments (service).
    ``timeout_seconds``/``heartbeat_seconds``: None for none; for activities they count from
    TaskStarted. ``token_wanted``: the arguments contain ``TOKEN_PLACEHOLDER`` where the shell must
    put the task token.
    """

    task: int
    kind: TaskKind
    resource: str  # the Resource ARN as written
    state: str
    input: str
    attempt: int = 0
    entered_event: int = 0
    service: str = ""
    action: str = ""
    pattern: IntegrationPattern = IntegrationPattern.REQUEST_RESPONSE
    timeout_seconds: int | None = None
    heartbeat_seconds: int | None = None
    credentials: str | None = None  # JSON text of the evaluated Credentials


@dataclass(frozen=True, slots=True)
class CancelTask:
    """Nobody waits for the task any more; close its token, stop its job where that is possible."""

    task: int


@dataclass(frozen=True, slots=True)
class RedriveMapRun:
    """Open the task of a Map again, and run the children once more that did not succeed."""

    task: int


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Send ``TimerFired(timer)`` at ``due_ms`` (epoch milliseconds), never earlier."""

    timer: str
    due_ms: int


@dataclass(frozen=True, slots=True)
class CancelTimer:
    """The timer is no longer wanted."""

    timer: str


@dataclass(frozen=True, slots=True)
class Proceed:
    """The budget of the step was used up; send ``Continue``."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The execution ended. ``status``: how, never NEW or RUNNING."""

    status: ExecutionStatus
    output: str | None = None
    error: str | None = None
    cause: str | None = None
    stop_ms: int = 0


Command = RunTask | CancelTask | RedriveMapRun | SetTimer | CancelTimer | Proceed | Finish
