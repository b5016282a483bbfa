"""The status of an execution, with AWS's words."""

from __future__ import annotations

from enum import StrEnum


class ExecutionStatus(StrEnum):
    """How far an execution has come. The values are those of AWS's ``ExecutionStatus``, and NEW."""

    NEW = "NEW"  # no Start has been taken yet; AWS has no such status, and no API shows it
    RUNNING = "RUNNING"  # it goes on, or waits for a task or a timer
    SUCCEEDED = "SUCCEEDED"  # it came to its end; it can never be redriven
    FAILED = "FAILED"  # an error that no Retrier or Catcher took
    TIMED_OUT = "TIMED_OUT"  # TimeoutSeconds of the state machine went by
    ABORTED = "ABORTED"  # StopExecution, or the deletion of its state machine
