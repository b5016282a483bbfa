"""Return the output that functions printed in the Tasks of a selected state, for its page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.features.logs.function_log_store import logs_of_tasks
from console.functions.report import end_lines, start_line
from console.masking import masked_execution
from console.web.execution.panel import ShownCall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.features.logs.models import FunctionLog
    from console.models import Execution


def shown_calls(execution: Execution, attempts: Mapping[int, int], last: int) -> list[ShownCall]:
    """Return the function calls of tasks with their output, oldest first.

    ``attempts``: task -> number of its attempt. ``last``: the id of the last event of the step.
    """
    logs = logs_of_tasks(execution.pk, attempts)
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
