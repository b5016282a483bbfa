"""Show what the function of a step has printed, call by call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.features.logs.function_log_store import logs_of_tasks
from console.functions.report import end_lines, start_line
from console.masking import masked_execution

if TYPE_CHECKING:
    from console.features.logs.models import FunctionLog
    from console.models import Execution
    from console.web.execution.panel import Panel


@dataclass(frozen=True, slots=True)
class ShownCall:
    """One call with its log. ``attempt``: its number among the attempts of the visit."""

    attempt: int
    function: str
    request: str
    started_ms: int
    duration: str
    error: str
    log: str


def calls_of_step(execution: Execution, panel: Panel | None) -> list[ShownCall]:
    """Return the calls of one visit that have ended, the oldest first.

    One that runs is left out: which values its outcome hides is not known yet.
    """
    if panel is None:
        return []
    attempts = {
        attempt.task: attempt.number
        for attempt in panel.attempts
        if attempt.task and attempt.until_ms is not None
    }
    last = max((event.id for event in panel.with_failures), default=0)
    logs = logs_of_tasks(execution.pk, attempts) if attempts else []
    return [_shown_call(execution, log, attempts[log.task], last) for log in logs]


def _shown_call(execution: Execution, log: FunctionLog, attempt: int, last: int) -> ShownCall:
    masks = masked_execution.masked_execution(execution)
    output = masks.function_output(log.task, log.output, last)
    end, report = end_lines(log)
    lines = [start_line(log), *output.rstrip("\n").split("\n"), end, report]
    return ShownCall(
        attempt=attempt,
        function=log.function,
        request=log.request,
        started_ms=log.started_ms,
        duration=f"{log.duration_ms:.2f} ms",
        error=log.error,
        log="\n".join(line for line in lines if line),
    )
