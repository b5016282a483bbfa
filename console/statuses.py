"""The closed sets of the console's tables and messages: every status, kind and action, once each.

Their values are what the tables and AWS's API have, so a member may stand wherever the text stands:
in a query, in JSON, in a comparison with a column. The module imports the engine only, so every
room of the console may import it.
"""

from __future__ import annotations

from enum import StrEnum

import engine


class ExecutionStatus(StrEnum):
    """The status of an execution, by AWS's names; ``engine.ExecutionStatus`` is that of a run."""

    RUNNING = "RUNNING"
    """It has begun (again) and has not ended."""
    SUCCEEDED = "SUCCEEDED"
    """It has ended with an output."""
    FAILED = "FAILED"
    """It has ended with an error."""
    TIMED_OUT = "TIMED_OUT"
    """It ran longer than ``TimeoutSeconds`` of its definition or than the longest time allowed."""
    ABORTED = "ABORTED"
    """Somebody, or the Map Run or execution above it, stopped it."""
    PENDING_REDRIVE = "PENDING_REDRIVE"
    """A child of a redriven Map Run that waits for its turn. No row has it: it is derived."""
    UNFINISHED = "UNFINISHED"
    """An imported history without an end. AWS has no such status."""


UNSUCCESSFUL = (ExecutionStatus.FAILED, ExecutionStatus.TIMED_OUT, ExecutionStatus.ABORTED)
"""The ends that a redrive may follow."""
ENDED = (ExecutionStatus.SUCCEEDED, *UNSUCCESSFUL)
"""Every end of an execution."""


class MapRunStatus(StrEnum):
    """The status of a Map Run, by AWS's names."""

    RUNNING = "RUNNING"
    """Children run or are still to be started."""
    SUCCEEDED = "SUCCEEDED"
    """All children have ended, and no more failed than the state tolerates."""
    FAILED = "FAILED"
    """More children failed than the state tolerates, or the items or results could not be used."""
    ABORTED = "ABORTED"
    """The execution above it has ended."""


class RedriveStatus(StrEnum):
    """Whether an execution may be redriven, by AWS's names."""

    REDRIVABLE = "REDRIVABLE"
    """A redrive is accepted."""
    NOT_REDRIVABLE = "NOT_REDRIVABLE"
    """A redrive is refused; a reason stands beside it."""
    REDRIVABLE_BY_MAP_RUN = "REDRIVABLE_BY_MAP_RUN"
    """A child of a Map Run, which is redriven with the Map Run's execution."""


MachineType = engine.MachineType
"""The type of a state machine, by AWS's names: the engine's own set."""


class MachineStatus(StrEnum):
    """The status of a state machine, by AWS's names."""

    ACTIVE = "ACTIVE"
    """It may be started."""
    DELETING = "DELETING"
    """It goes when its last execution has ended."""


class TaskStatus(StrEnum):
    """How far a task's row has come."""

    SCHEDULED = "scheduled"
    """Nobody has it."""
    STARTED = "started"
    """A worker or a call of this server has it."""
    WAITING = "waiting"
    """It goes on elsewhere: a job is looked at, or a task token is to come back."""
    CLOSED = "closed"
    """It has its outcome, or its execution has ended. A redrive may open it again."""


OPEN_TASKS = (TaskStatus.SCHEDULED, TaskStatus.STARTED, TaskStatus.WAITING)
"""Every status of a task that has no outcome yet."""


TaskKind = engine.TaskKind
"""Who works a task: the engine's own set."""


class BulkAction(StrEnum):
    """What a bulk job does to each of its executions."""

    STOP = "stop"
    """Stop it."""
    REDRIVE = "redrive"
    """Redrive it."""
    START = "start"
    """Start its state machine again with the same input."""


class BulkJobStatus(StrEnum):
    """How far a bulk job has come."""

    RUNNING = "RUNNING"
    """It takes its items one after the other."""
    PAUSED = "PAUSED"
    """It goes on when somebody says so."""
    DONE = "DONE"
    """No item is left."""


class BulkItemStatus(StrEnum):
    """What became of one execution of a bulk job."""

    WAITING = "waiting"
    """Its turn is still to come."""
    ACTING = "acting"
    """The action has begun. After a crash, what became of it is looked up before it is repeated."""
    DONE = "done"
    """The action was accepted."""
    REFUSED = "refused"
    """The action was refused; an error stands beside it."""


class DeliveryStatus(StrEnum):
    """How far an event has come on its way to a target."""

    WAITING = "waiting"
    """It is sent when its next attempt is due."""
    SENDING = "sending"
    """An attempt is under way, or was when its process died."""
    DELIVERED = "delivered"
    """The target took it."""
    DEAD = "dead"
    """It failed too often or for too long: a dead letter."""


class RuleState(StrEnum):
    """Whether a rule is at work, by EventBridge's names."""

    ENABLED = "ENABLED"
    """Its events are delivered and its schedule fires."""
    DISABLED = "DISABLED"
    """It is kept and does nothing."""
