"""The status of an execution, such as ``SUCCEEDED``, in AWS's words."""

from __future__ import annotations

from enum import StrEnum


class ExecutionStatus(StrEnum):
    """AWS's ``ExecutionStatus`` values, and NEW."""

    NEW = "NEW"  # before Start; AWS has no such status, and no API shows it
    RUNNING = "RUNNING"  # including the wait for a task or a timer
    SUCCEEDED = "SUCCEEDED"  # it cannot be redriven
    FAILED = "FAILED"  # no Retrier or Catcher handled the error
    TIMED_OUT = "TIMED_OUT"  # after TimeoutSeconds of the state machine
    ABORTED = "ABORTED"  # StopExecution, or the deletion of its state machine
