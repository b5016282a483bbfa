"""Enums of the console: every status, kind and action that is stored in tables or sent in messages.

Values are those in the tables and in AWS's API, so a member can be used wherever its text can: in a
query, in JSON, in a comparison with a column. The module imports the engine only, so every package
of the console may import it.
"""

from __future__ import annotations

from enum import StrEnum

import engine


class ExecutionStatus(StrEnum):
    """The status of an execution row, by AWS's names (``engine.ExecutionStatus``: of a run)."""

    RUNNING = "RUNNING"
    """Started or redriven, and not ended."""
    SUCCEEDED = "SUCCEEDED"
    """It has ended with an output."""
    FAILED = "FAILED"
    """It has ended with an error."""
    TIMED_OUT = "TIMED_OUT"
    """It exceeded ``TimeoutSeconds`` of its definition, or the maximum duration."""
    ABORTED = "ABORTED"
    """Stopped by a user, or by its Map Run or parent execution."""
    PENDING_REDRIVE = "PENDING_REDRIVE"
    """A child that waits for the redrive of its Map Run. Computed for lists, never stored."""
    UNFINISHED = "UNFINISHED"
    """An imported history without an end. AWS has no such status."""


UNSUCCESSFUL = (ExecutionStatus.FAILED, ExecutionStatus.TIMED_OUT, ExecutionStatus.ABORTED)
"""The statuses from which a redrive is possible."""
ENDED = (ExecutionStatus.SUCCEEDED, *UNSUCCESSFUL)
"""All final statuses of an execution."""


class MapRunStatus(StrEnum):
    """The status of a Map Run, by AWS's names."""

    RUNNING = "RUNNING"
    """Children run, or have not started yet."""
    SUCCEEDED = "SUCCEEDED"
    """All children have ended, and no more failed than the state tolerates."""
    FAILED = "FAILED"
    """More children failed than the state tolerates, or items or results were unusable."""
    ABORTED = "ABORTED"
    """Its execution has ended."""


class RedriveStatus(StrEnum):
    """Whether an execution may be redriven, by AWS's names."""

    REDRIVABLE = "REDRIVABLE"
    """A redrive is accepted."""
    NOT_REDRIVABLE = "NOT_REDRIVABLE"
    """A redrive is refused, with a reason."""
    REDRIVABLE_BY_MAP_RUN = "REDRIVABLE_BY_MAP_RUN"
    """A child of a Map Run, which is redriven with the Map Run's execution."""


MachineType = engine.MachineType
"""The type of a state machine, by AWS's names: the engine's own set."""


class MachineStatus(StrEnum):
    """The status of a state machine, by AWS's names."""

    ACTIVE = "ACTIVE"
    """It can be started."""
    DELETING = "DELETING"
    """It is removed when its last execution has ended."""


class TaskStatus(StrEnum):
    """The progress of a task."""

    SCHEDULED = "scheduled"
    """Not claimed yet."""
    STARTED = "started"
    """Claimed by a worker, or called by this server."""
    WAITING = "waiting"
    """Its job runs elsewhere and is polled, or its task token was handed out."""
    CLOSED = "closed"
    """It has an outcome, or its execution has ended. A redrive may reopen it."""


OPEN_TASKS = (TaskStatus.SCHEDULED, TaskStatus.STARTED, TaskStatus.WAITING)
"""The statuses of tasks without an outcome."""


TaskKind = engine.TaskKind
"""The kind of worker of a task: the engine's own set."""


class BulkAction(StrEnum):
    """The action of a bulk job on each of its executions."""

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
    """Replay it from the failed state, with the current definition of its state machine."""


class BulkJobStatus(StrEnum):
    """The progress of a bulk job."""

    RUNNING = "RUNNING"
    """It processes its items in turn."""
    PAUSED = "PAUSED"
    """It waits until a person resumes it."""
    DONE = "DONE"
    """No item is left."""


class BulkItemStatus(StrEnum):
    """The progress of one execution in a bulk job."""

    WAITING = "waiting"
    """Not processed yet."""
    ACTING = "acting"
    """The action has begun. After a crash, its outcome is looked up before it is repeated."""
    DONE = "done"
    """The action was accepted."""
    REFUSED = "refused"
    """The action was refused, with an error."""


class DeliveryStatus(StrEnum):
    """The progress of an event's delivery to a target."""

    WAITING = "waiting"
    """The next attempt is due at a later time."""
    SENDING = "sending"
    """An attempt is in progress, or was when its process died."""
    DELIVERED = "delivered"
    """The target accepted it."""
    DEAD = "dead"
    """A dead letter: it failed too often or for too long."""


class RuleState(StrEnum):
    """Whether a rule is enabled, by EventBridge's names."""

    ENABLED = "ENABLED"
    """Its events are delivered and its schedule fires."""
    DISABLED = "DISABLED"
    """It is stored, but matches no event and never fires."""


class AfterCompletion(StrEnum):
    """The action after a schedule's last time, by EventBridge Scheduler's names."""

    NONE = "NONE"
    """The schedule stays."""
    DELETE = "DELETE"
    """The schedule is deleted after its last delivery."""


class TaskClock(StrEnum):
    """The timeout of a task to which a deadline belongs."""

    SCHEDULE_TO_START = "scheduleToStart"
    """From its scheduling until a worker takes it."""
    START_TO_CLOSE = "startToClose"
    """From the time a worker took it until it ends: TimeoutSeconds."""
    SCHEDULE_TO_CLOSE = "scheduleToClose"
    """From its scheduling until it ends."""
    HEARTBEAT = "heartbeat"
    """From one heartbeat to the next: HeartbeatSeconds."""
    YEAR = "year"
    """The maximum of a year for every task."""


class DueKind(StrEnum):
    """The kind of an entry in the timer queue."""

    TIMER = "timer"
    """A timer of the engine: a Wait, a Retry, the execution's TimeoutSeconds."""
    TIMEOUT = "timeout"
    """A task's timeout."""
    HEARTBEAT = "heartbeat"
    """A task's heartbeat."""
    LOOK = "look"
    """The next check of a job that runs elsewhere."""


class Topic(StrEnum):
    """The topic of a signal between threads and processes, with the value that is published.

    A signal is a wake-up that may be lost (``console.db.signals``).
    """

    RUNNABLE = "runnable"
    """An execution can continue. Value: its id."""
    CREATED = "created"
    """A new execution can continue; no process has it in memory. Value: its id."""
    SOON = "soon"
    """An execution has a message that can wait for a later step. Value: its id."""
    EXECUTION = "execution"
    """A step of the execution in the topic was committed. No value."""
    ENDED = "ended"
    """An execution has ended. Value: its id."""
    ANSWERED = "answered"
    """The synchronous execution in the topic has ended. No value."""
    TASK = "task"
    """A server must call a task. Value: execution id, task."""
    OFFERED = "offered"
    """An activity task can be claimed. Value: execution id, task, ARN of the activity."""
    ACTIVITY = "activity"
    """The activity in the topic has a task. No value."""
    CANCEL = "cancel"
    """A task was closed while its job runs elsewhere. Value: execution id, task."""
    MAP = "map"
    """A Map Run must be started. Value: execution id, task."""
    MAP_RUN = "map-run"
    """A Map Run may continue. Value: its id."""
    DUE = "due"
    """A timer or deadline is near. Value: epoch milliseconds, DueKind, execution id, task."""
    EVENT = "event"
    """There is an event in the outbox, or a delivery is due. No value."""
    RIGHTS = "rights"
    """Roles, keys or a project have changed: cached ones are invalid. No value."""


class AlarmState(StrEnum):
    """The state of an alarm, by CloudWatch's names."""

    OK = "OK"
    """The condition of the alarm is not met."""
    ALARM = "ALARM"
    """The condition of the alarm is met."""
    INSUFFICIENT_DATA = "INSUFFICIENT_DATA"
    """There are too few values to decide."""


class AlarmKind(StrEnum):
    """The condition of an alarm. Except for METRIC, these are Stateyard's own."""

    METRIC = "metric"
    """The values of one metric, as in CloudWatch."""
    FAILURE_RATE = "failure-rate"
    """The share of failed and timed-out executions among those that ended recently."""
    NO_SUCCESS = "no-success"
    """The time since the last successful execution."""
    DURATION = "duration"
    """The 95th percentile of the duration, compared with the two weeks before."""
    STUCK = "stuck"
    """The time that a running execution has been in its current state."""


class AlarmComparison(StrEnum):
    """How an alarm compares a metric with its threshold, by CloudWatch's names."""

    AT_LEAST = "GreaterThanOrEqualToThreshold"
    ABOVE = "GreaterThanThreshold"
    BELOW = "LessThanThreshold"
    AT_MOST = "LessThanOrEqualToThreshold"


class MissingData(StrEnum):
    """How an alarm treats periods without values, by CloudWatch's names."""

    BREACHING = "breaching"
    """Periods without data count as beyond the threshold."""
    NOT_BREACHING = "notBreaching"
    """Periods without data count as within the threshold."""
    IGNORE = "ignore"
    """Periods without data are ignored; without any data the state stays."""
    MISSING = "missing"
    """Periods without data are ignored; without any data the state is INSUFFICIENT_DATA."""
