"""The closed sets of the console's tables and messages: every status, kind and action, once each.

Their values are what the tables and AWS's API have, so a member may stand wherever the text stands:
in a query, in JSON, in a comparison with a column. The module imports the engine only, so every
package of the console may import it.
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
    PAUSE = "pause"
    """Pause it."""
    RESUME = "resume"
    """Resume it."""
    REPLAY = "replay"
    """Repeat it from the state that failed, with the new definition of its state machine."""


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


class AfterCompletion(StrEnum):
    """What becomes of a schedule after its last moment, by EventBridge Scheduler's names."""

    NONE = "NONE"
    """It is kept."""
    DELETE = "DELETE"
    """It is deleted once its last delivery was taken."""


class TaskClock(StrEnum):
    """Which of a task's clocks a deadline belongs to."""

    SCHEDULE_TO_START = "scheduleToStart"
    """From its scheduling until a worker takes it."""
    START_TO_CLOSE = "startToClose"
    """From the moment a worker took it until it ends: TimeoutSeconds."""
    SCHEDULE_TO_CLOSE = "scheduleToClose"
    """From its scheduling until it ends."""
    HEARTBEAT = "heartbeat"
    """From one heartbeat to the next: HeartbeatSeconds."""
    YEAR = "year"
    """The year after which every task ends."""


class DueKind(StrEnum):
    """What is due at a moment that the timer queue holds."""

    TIMER = "timer"
    """A timer of the engine: a Wait, a Retry, the execution's TimeoutSeconds."""
    TIMEOUT = "timeout"
    """A task's timeout."""
    HEARTBEAT = "heartbeat"
    """A task's heartbeat."""
    LOOK = "look"
    """The next look at a job that runs elsewhere."""


class Topic(StrEnum):
    """The subject of a signal, and the value published with the signal."""

    RUNNABLE = "runnable"
    """An execution can go on: its id."""
    CREATED = "created"
    """A new execution can go on, and no process has it in memory: its id."""
    SOON = "soon"
    """A message came from which nothing follows; a step a moment later is soon enough: its id."""
    EXECUTION = "execution"
    """With an execution's id in the topic: a step of it was committed. Nothing."""
    ENDED = "ended"
    """An execution has ended: its id."""
    ANSWERED = "answered"
    """With an execution's id in the topic: a synchronous execution has ended. Nothing."""
    TASK = "task"
    """A task is to be called by a server: execution id, task."""
    OFFERED = "offered"
    """An activity task is to be had: execution id, task, the activity's ARN."""
    ACTIVITY = "activity"
    """With an activity's ARN in the topic: it has a task. Nothing."""
    CANCEL = "cancel"
    """A task was closed while its job runs elsewhere: execution id, task."""
    MAP = "map"
    """A Map Run is to be begun: execution id, task."""
    MAP_RUN = "map-run"
    """A Map Run may go on: its id."""
    DUE = "due"
    """Something is due soon: epoch milliseconds, DueKind, execution id, task."""
    EVENT = "event"
    """An event is in the outbox, or a delivery is due. Nothing."""
    RIGHTS = "rights"
    """Roles, keys or a project changed: what is remembered of them is void. Nothing."""


class AlarmState(StrEnum):
    """What an alarm says, by CloudWatch's names."""

    OK = "OK"
    """What it looks at is as wanted."""
    ALARM = "ALARM"
    """What it looks at is not as wanted."""
    INSUFFICIENT_DATA = "INSUFFICIENT_DATA"
    """Too little has happened to tell."""


class AlarmKind(StrEnum):
    """What an alarm looks at. But for the metric's, CloudWatch has no word for them."""

    METRIC = "metric"
    """The values of one metric, as CloudWatch's alarms do."""
    FAILURE_RATE = "failure-rate"
    """How many of the executions that ended lately failed or timed out."""
    NO_SUCCESS = "no-success"
    """How long ago the last execution succeeded."""
    DURATION = "duration"
    """The 95th percentile of the duration, against that of the two weeks before."""
    STUCK = "stuck"
    """How long ago a running execution entered the state it is in."""


class AlarmComparison(StrEnum):
    """How an alarm compares the values of a metric with its threshold, by CloudWatch's names."""

    AT_LEAST = "GreaterThanOrEqualToThreshold"
    ABOVE = "GreaterThanThreshold"
    BELOW = "LessThanThreshold"
    AT_MOST = "LessThanOrEqualToThreshold"


class MissingData(StrEnum):
    """What an alarm takes a period without values for, by CloudWatch's names."""

    BREACHING = "breaching"
    """For one that is not as wanted."""
    NOT_BREACHING = "notBreaching"
    """For one that is as wanted."""
    IGNORE = "ignore"
    """For none; without any value the state stays."""
    MISSING = "missing"
    """For none; without any value there is insufficient data."""
