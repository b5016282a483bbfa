"""The event types of an execution's history, such as ``TaskStateEntered``, in one table.

The names are those of AWS's ``HistoryEventType``. Each row has the meaning of a type; no code
derives it from parts of the name. To add a type, add a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from engine.execution_status import ExecutionStatus


class Family(StrEnum):
    """The subject of an event. The value is the beginning of the names in the family."""

    EXECUTION = "Execution"  # the execution as a whole
    STATE = "State"  # the entry and the exit of a state of any type
    TASK = "Task"  # the work of a Task that calls a service
    LAMBDA_FUNCTION = "LambdaFunction"  # the work of a Task that calls a function by its ARN
    ACTIVITY = "Activity"  # the work of a Task that an activity worker does
    PARALLEL = "Parallel"  # the branches of a Parallel, together
    MAP = "Map"  # the iterations of a Map, together
    MAP_ITERATION = "MapIteration"  # one iteration of an inline Map
    MAP_RUN = "MapRun"  # the children of a distributed Map, together
    EVALUATION = "Evaluation"  # a JSONata expression


WORK_FAMILIES = frozenset({Family.TASK, Family.LAMBDA_FUNCTION, Family.ACTIVITY})
"""The families of calls by a Task state."""
GROUP_FAMILIES = frozenset({Family.PARALLEL, Family.MAP})
"""The families of the states that run other states."""


class Stage(StrEnum):
    """How far the subject of an event has come. Most names of types end with the value."""

    ENTERED = "Entered"  # a state
    EXITED = "Exited"  # a state
    SCHEDULED = "Scheduled"  # work: it is requested
    STARTED = "Started"  # work: it is under way
    SUBMITTED = "Submitted"  # work: the service has accepted it and continues
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"  # also what could not be scheduled, started or submitted
    TIMED_OUT = "TimedOut"
    ABORTED = "Aborted"  # ended by the end of something around it
    REDRIVEN = "Redriven"  # it continues after a failure


OUTCOME_STAGES = frozenset({Stage.SUCCEEDED, Stage.FAILED, Stage.TIMED_OUT})
"""The stages in which an attempt ends by its own outcome, not by the end of a surrounding state."""


class Effect(IntEnum):
    """How an event changes the visits of states, see ``engine.history.fold``."""

    NONE = 0  # none: it only belongs to a visit
    STATE_ENTERED = 1  # a visit begins
    STATE_EXITED = 2  # a visit ends
    FAIL_ENTERED = 3  # a visit of a Fail state begins and ends: it is never exited
    ATTEMPT_BEGAN = 4  # the work of a state begins, for the first time or again
    STATE_ABORTED = 5  # a visit ends because something around it ended
    ITERATION_STARTED = 6  # a line of control begins
    ITERATION_SUCCEEDED = 7  # a line of control ends
    CHILD_FAILED = 8  # a line of control fails, and with it the attempt of its Parallel or Map
    EXECUTION_SUCCEEDED = 9  # the last transition leads to the end
    EXECUTION_FAILED = 10  # the visits that are open end as failed
    EXECUTION_STOPPED = 11  # the visits that are open end as aborted: a stop, or its time was over
    EXECUTION_REDRIVEN = 12  # the visits that did not succeed are open again
    ITERATION_ABORTED = 13  # the aborts after it are of states in this line of control


class Tone(StrEnum):
    """The colour that a page gives to an event."""

    RUNNING = "running"  # something began
    SUCCEEDED = "succeeded"  # something ended well
    FAILED = "failed"  # something failed or timed out
    ABORTED = "aborted"  # something was stopped
    IDLE = "idle"  # neither: a redrive


_TONES = {
    Stage.ENTERED: Tone.RUNNING,
    Stage.SCHEDULED: Tone.RUNNING,
    Stage.STARTED: Tone.RUNNING,
    Stage.SUBMITTED: Tone.RUNNING,
    Stage.EXITED: Tone.SUCCEEDED,
    Stage.SUCCEEDED: Tone.SUCCEEDED,
    Stage.FAILED: Tone.FAILED,
    Stage.TIMED_OUT: Tone.FAILED,
    Stage.ABORTED: Tone.ABORTED,
    Stage.REDRIVEN: Tone.IDLE,
}


@dataclass(frozen=True, slots=True)
class EventType:
    """One type of event.

    ``details_key``: the member of AWS's HistoryEvent that holds the details, "" if there is none.
    ``is_failure``: a state's work failed; a Catch may follow. ``tone``: its colour on pages.
    """

    name: str
    family: Family
    stage: Stage
    effect: Effect
    details_key: str
    is_failure: bool
    tone: Tone


_OWN = "the name, beginning with a small letter, and EventDetails"
_NONE = ""
_ENTERED, _EXITED = "stateEnteredEventDetails", "stateExitedEventDetails"

_Row = tuple[str, Stage, Effect, str, bool]
_TABLE: dict[Family, list[_Row]] = {
    # name, stage, effect, key of the details, is it a failure of a state's work?
    Family.EXECUTION: [
        ("ExecutionAborted", Stage.ABORTED, Effect.EXECUTION_STOPPED, _OWN, False),
        ("ExecutionFailed", Stage.FAILED, Effect.EXECUTION_FAILED, _OWN, False),
        ("ExecutionStarted", Stage.STARTED, Effect.NONE, _OWN, False),
        ("ExecutionSucceeded", Stage.SUCCEEDED, Effect.EXECUTION_SUCCEEDED, _OWN, False),
        ("ExecutionTimedOut", Stage.TIMED_OUT, Effect.EXECUTION_STOPPED, _OWN, False),
        ("ExecutionRedriven", Stage.REDRIVEN, Effect.EXECUTION_REDRIVEN, _OWN, False),
    ],
    Family.STATE: [
        ("ChoiceStateEntered", Stage.ENTERED, Effect.STATE_ENTERED, _ENTERED, False),
        ("ChoiceStateExited", Stage.EXITED, Effect.STATE_EXITED, _EXITED, False),
        ("FailStateEntered", Stage.ENTERED, Effect.FAIL_ENTERED, _ENTERED, True),
        ("MapStateEntered", Stage.ENTERED, Effect.STATE_ENTERED, _ENTERED, False),
        ("MapStateExited", Stage.EXITED, Effect.STATE_EXITED, _EXITED, False),
        ("ParallelStateEntered", Stage.ENTERED, Effect.STATE_ENTERED, _ENTERED, False),
        ("ParallelStateExited", Stage.EXITED, Effect.STATE_EXITED, _EXITED, False),
        ("PassStateEntered", Stage.ENTERED, Effect.STATE_ENTERED, _ENTERED, False),
        ("PassStateExited", Stage.EXITED, Effect.STATE_EXITED, _EXITED, False),
        ("SucceedStateEntered", Stage.ENTERED, Effect.STATE_ENTERED, _ENTERED, False),
        ("SucceedStateExited", Stage.EXITED, Effect.STATE_EXITED, _EXITED, False),
        ("TaskStateAborted", Stage.ABORTED, Effect.STATE_ABORTED, _NONE, False),
        ("TaskStateEntered", Stage.ENTERED, Effect.STATE_ENTERED, _ENTERED, False),
        ("TaskStateExited", Stage.EXITED, Effect.STATE_EXITED, _EXITED, False),
        ("WaitStateAborted", Stage.ABORTED, Effect.STATE_ABORTED, _NONE, False),
        ("WaitStateEntered", Stage.ENTERED, Effect.STATE_ENTERED, _ENTERED, False),
        ("WaitStateExited", Stage.EXITED, Effect.STATE_EXITED, _EXITED, False),
    ],
    Family.TASK: [
        ("TaskFailed", Stage.FAILED, Effect.NONE, _OWN, True),
        ("TaskScheduled", Stage.SCHEDULED, Effect.ATTEMPT_BEGAN, _OWN, False),
        ("TaskStarted", Stage.STARTED, Effect.NONE, _OWN, False),
        ("TaskStartFailed", Stage.FAILED, Effect.NONE, _OWN, True),
        ("TaskSubmitFailed", Stage.FAILED, Effect.NONE, _OWN, True),
        ("TaskSubmitted", Stage.SUBMITTED, Effect.NONE, _OWN, False),
        ("TaskSucceeded", Stage.SUCCEEDED, Effect.NONE, _OWN, False),
        ("TaskTimedOut", Stage.TIMED_OUT, Effect.NONE, _OWN, True),
    ],
    Family.LAMBDA_FUNCTION: [
        ("LambdaFunctionFailed", Stage.FAILED, Effect.NONE, _OWN, True),
        ("LambdaFunctionScheduled", Stage.SCHEDULED, Effect.ATTEMPT_BEGAN, _OWN, False),
        ("LambdaFunctionScheduleFailed", Stage.FAILED, Effect.ATTEMPT_BEGAN, _OWN, True),
        ("LambdaFunctionStarted", Stage.STARTED, Effect.NONE, _NONE, False),
        ("LambdaFunctionStartFailed", Stage.FAILED, Effect.NONE, _OWN, True),
        ("LambdaFunctionSucceeded", Stage.SUCCEEDED, Effect.NONE, _OWN, False),
        ("LambdaFunctionTimedOut", Stage.TIMED_OUT, Effect.NONE, _OWN, True),
    ],
    Family.ACTIVITY: [
        ("ActivityFailed", Stage.FAILED, Effect.NONE, _OWN, True),
        ("ActivityScheduled", Stage.SCHEDULED, Effect.ATTEMPT_BEGAN, _OWN, False),
        ("ActivityScheduleFailed", Stage.FAILED, Effect.ATTEMPT_BEGAN, _OWN, True),
        ("ActivityStarted", Stage.STARTED, Effect.NONE, _OWN, False),
        ("ActivitySucceeded", Stage.SUCCEEDED, Effect.NONE, _OWN, False),
        ("ActivityTimedOut", Stage.TIMED_OUT, Effect.NONE, _OWN, True),
    ],
    Family.PARALLEL: [
        ("ParallelStateAborted", Stage.ABORTED, Effect.STATE_ABORTED, _NONE, False),
        ("ParallelStateFailed", Stage.FAILED, Effect.CHILD_FAILED, _NONE, True),
        ("ParallelStateStarted", Stage.STARTED, Effect.ATTEMPT_BEGAN, _NONE, False),
        ("ParallelStateSucceeded", Stage.SUCCEEDED, Effect.NONE, _NONE, False),
    ],
    Family.MAP: [
        ("MapStateAborted", Stage.ABORTED, Effect.STATE_ABORTED, _NONE, False),
        ("MapStateFailed", Stage.FAILED, Effect.CHILD_FAILED, _NONE, True),
        ("MapStateStarted", Stage.STARTED, Effect.ATTEMPT_BEGAN, _OWN, False),
        ("MapStateSucceeded", Stage.SUCCEEDED, Effect.NONE, _NONE, False),
    ],
    Family.MAP_ITERATION: [
        ("MapIterationAborted", Stage.ABORTED, Effect.ITERATION_ABORTED, _OWN, False),
        ("MapIterationFailed", Stage.FAILED, Effect.CHILD_FAILED, _OWN, False),
        ("MapIterationStarted", Stage.STARTED, Effect.ITERATION_STARTED, _OWN, False),
        ("MapIterationSucceeded", Stage.SUCCEEDED, Effect.ITERATION_SUCCEEDED, _OWN, False),
    ],
    Family.MAP_RUN: [
        ("MapRunAborted", Stage.ABORTED, Effect.NONE, _NONE, True),
        ("MapRunFailed", Stage.FAILED, Effect.NONE, _OWN, True),
        ("MapRunStarted", Stage.STARTED, Effect.NONE, _OWN, False),
        ("MapRunSucceeded", Stage.SUCCEEDED, Effect.NONE, _NONE, False),
        ("MapRunRedriven", Stage.REDRIVEN, Effect.NONE, _OWN, False),
    ],
    Family.EVALUATION: [
        ("EvaluationFailed", Stage.FAILED, Effect.NONE, _OWN, True),
    ],
}


def _event_type(family: Family, row: _Row) -> EventType:
    name, stage, effect, key, is_failure = row
    own = f"{name[0].lower()}{name[1:]}EventDetails"
    details_key = own if key is _OWN else key
    return EventType(name, family, stage, effect, details_key, is_failure, _TONES[stage])


EVENT_TYPES: dict[str, EventType] = {
    row[0]: _event_type(family, row) for family, rows in _TABLE.items() for row in rows
}
"""Name -> type."""

DETAILS: dict[str, str] = {name: event_type.details_key for name, event_type in EVENT_TYPES.items()}
"""Name -> the member of AWS's HistoryEvent that holds the details, "" if there is none."""


def event_names(families: frozenset[Family] = frozenset(Family), *stages: Stage) -> frozenset[str]:
    """Return the names of the types of some families, optionally of some stages only."""
    return frozenset(
        event_type.name
        for event_type in EVENT_TYPES.values()
        if event_type.family in families and (not stages or event_type.stage in stages)
    )


STATE_ENTRIES = event_names(frozenset({Family.STATE}), Stage.ENTERED)
STATE_EXITS = event_names(frozenset({Family.STATE}), Stage.EXITED)
EXECUTION_ENDS: dict[str, ExecutionStatus] = {
    "ExecutionSucceeded": ExecutionStatus.SUCCEEDED,
    "ExecutionFailed": ExecutionStatus.FAILED,
    "ExecutionAborted": ExecutionStatus.ABORTED,
    "ExecutionTimedOut": ExecutionStatus.TIMED_OUT,
}
"""The event that ends an execution -> the status of the execution."""
WORK_SCHEDULED = event_names(WORK_FAMILIES, Stage.SCHEDULED)
WORK_PROGRESS = event_names(WORK_FAMILIES, Stage.STARTED, Stage.SUBMITTED)
"""The events between the scheduling of work and its outcome."""
WORK_OUTCOMES = frozenset(
    name
    for name in event_names(WORK_FAMILIES, *OUTCOME_STAGES)
    if EVENT_TYPES[name].effect is not Effect.ATTEMPT_BEGAN
)
"""The outcomes of scheduled work. (...ScheduleFailed occurs in place of the scheduling.)"""
GROUP_STARTED = event_names(GROUP_FAMILIES, Stage.STARTED)
ATTEMPT_BEGINNINGS = frozenset(
    event_type.name
    for event_type in EVENT_TYPES.values()
    if event_type.effect is Effect.ATTEMPT_BEGAN
)
"""The first event of each attempt at the work of a state."""
