"""Describe the end of an execution without an error: AWS gives none for its own timeout."""

from __future__ import annotations

import engine
from console import arns
from console.statuses import ExecutionStatus
from console.store.executions.start import EXPRESS_S
from console.web.core.formatting import SECOND


def ending_without_error(status: str, arn: str, took_ms: int) -> str:
    """Describe the end of an execution without an error; "" if running or succeeded.

    ``arn``: of the execution; ``took_ms``: since its start, or its last redrive.
    """
    match ExecutionStatus(status):
        case ExecutionStatus.TIMED_OUT:
            return f"Timed out: {_limit(arn, took_ms)}"
        case ExecutionStatus.ABORTED:
            return "Stopped, no error given"
        case ExecutionStatus.FAILED:
            return "No error name"
        case _:
            return ""


def _limit(arn: str, took_ms: int) -> str:
    """Return the exceeded time limit; a timeout ends an execution exactly when due."""
    if arns.is_express(arn):
        return "5 minutes of Express" if took_ms >= EXPRESS_S * SECOND else "TimeoutSeconds"
    return "one year" if took_ms >= engine.MAX_EXECUTION_S * SECOND else "TimeoutSeconds"
