"""What happened?  The event types of AWS's history, and where each keeps its details."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the history.

    ``id`` counts from 1; ``previous`` is the event it followed (0: none); ``at_ms``: epoch
    milliseconds. ``details``: the fields of the type's details member, payloads as JSON text; None:
    the type has none. ``state``: the state it belongs to, "" for events of the execution itself.
    """

    id: int
    previous: int
    at_ms: int
    type: str
    details: Mapping[str, Any] | None = field(default_factory=dict)
    state: str = ""


DETAILS: dict[str, str] = {
    "ActivityFailed": "activityFailedEventDetails",
    "ActivityScheduled": "activityScheduledEventDetails",
    "ActivityScheduleFailed": "activityScheduleFailedEventDetails",
    "ActivityStarted": "activityStartedEventDetails",
    "ActivitySucceeded": "activitySucceededEventDetails",
    "ActivityTimedOut": "activityTimedOutEventDetails",
    "ChoiceStateEntered": "stateEnteredEventDetails",
    "ChoiceStateExited": "stateExitedEventDetails",
    "ExecutionAborted": "executionAbortedEventDetails",
    "ExecutionFailed": "executionFailedEventDetails",
    "ExecutionStarted": "executionStartedEventDetails",
    "ExecutionSucceeded": "executionSucceededEventDetails",
    "ExecutionTimedOut": "executionTimedOutEventDetails",
    "FailStateEntered": "stateEnteredEventDetails",
    "LambdaFunctionFailed": "lambdaFunctionFailedEventDetails",
    "LambdaFunctionScheduled": "lambdaFunctionScheduledEventDetails",
    "LambdaFunctionScheduleFailed": "lambdaFunctionScheduleFailedEventDetails",
    "LambdaFunctionStarted": "",
    "LambdaFunctionStartFailed": "lambdaFunctionStartFailedEventDetails",
    "LambdaFunctionSucceeded": "lambdaFunctionSucceededEventDetails",
    "LambdaFunctionTimedOut": "lambdaFunctionTimedOutEventDetails",
    "MapIterationAborted": "mapIterationAbortedEventDetails",
    "MapIterationFailed": "mapIterationFailedEventDetails",
    "MapIterationStarted": "mapIterationStartedEventDetails",
    "MapIterationSucceeded": "mapIterationSucceededEventDetails",
    "MapStateAborted": "",
    "MapStateEntered": "stateEnteredEventDetails",
    "MapStateExited": "stateExitedEventDetails",
    "MapStateFailed": "",
    "MapStateStarted": "mapStateStartedEventDetails",
    "MapStateSucceeded": "",
    "ParallelStateAborted": "",
    "ParallelStateEntered": "stateEnteredEventDetails",
    "ParallelStateExited": "stateExitedEventDetails",
    "ParallelStateFailed": "",
    "ParallelStateStarted": "",
    "ParallelStateSucceeded": "",
    "PassStateEntered": "stateEnteredEventDetails",
    "PassStateExited": "stateExitedEventDetails",
    "SucceedStateEntered": "stateEnteredEventDetails",
    "SucceedStateExited": "stateExitedEventDetails",
    "TaskFailed": "taskFailedEventDetails",
    "TaskScheduled": "taskScheduledEventDetails",
    "TaskStarted": "taskStartedEventDetails",
    "TaskStartFailed": "taskStartFailedEventDetails",
    "TaskStateAborted": "",
    "TaskStateEntered": "stateEnteredEventDetails",
    "TaskStateExited": "stateExitedEventDetails",
    "TaskSubmitFailed": "taskSubmitFailedEventDetails",
    "TaskSubmitted": "taskSubmittedEventDetails",
    "TaskSucceeded": "taskSucceededEventDetails",
    "TaskTimedOut": "taskTimedOutEventDetails",
    "WaitStateAborted": "",
    "WaitStateEntered": "stateEnteredEventDetails",
    "WaitStateExited": "stateExitedEventDetails",
    "MapRunAborted": "",
    "MapRunFailed": "mapRunFailedEventDetails",
    "MapRunStarted": "mapRunStartedEventDetails",
    "MapRunSucceeded": "",
    "ExecutionRedriven": "executionRedrivenEventDetails",
    "MapRunRedriven": "mapRunRedrivenEventDetails",
    "EvaluationFailed": "evaluationFailedEventDetails",
}
