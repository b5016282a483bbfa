"""Find the executions that Tasks of an execution started, by the ARNs in its events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from console.models import Execution
from console.store.tasks.schedule import NESTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from console.web.history.visit_events import VisitEvent

MOST = 20
"""How many children one step or one page of events names."""
_TELLING = ("TaskSubmitted", "TaskSucceeded")
_COLUMNS = ("arn", "name", "state_machine_arn", "status", "start_ms", "stop_ms", "imported_ms")


def arn_of_started_child(kind: str, details: Mapping[str, Any]) -> str:
    """Return the ARN of the execution that an event says was started, "" if it says none.

    ``details``: as the reader may see them, which ``masked_execution`` made: what the project hides
    is looked for in no output.
    """
    if kind not in _TELLING or details.get("resourceType") not in NESTED:
        return ""
    if not str(details.get("resource", "")).startswith("startExecution"):
        return ""
    try:
        output = json.loads(details.get("output", ""))
    except (ValueError, RecursionError):  # cut, or hidden from the reader
        return ""
    if not isinstance(output, dict):
        return ""
    return str(output.get("ExecutionArn") or output.get("executionArn") or "")


def arn_started_last(events: Sequence[VisitEvent]) -> str:
    """Return the ARN of the execution that a visit started last, "" if it started none."""
    arns = (arn_of_started_child(event.type, event.details) for event in reversed(events))
    return next((arn for arn in arns if arn), "")


def children_by_arn(execution: Execution, arns: Iterable[str]) -> dict[str, Execution]:
    """Return the executions of these ARNs that the reader of ``execution`` sees, in their order."""
    wanted = list(dict.fromkeys(arn for arn in arns if arn))[-MOST:]
    if not wanted or execution.imported_ms is not None:
        return {}
    rows = Execution.objects.filter(project=execution.project_id, arn__in=wanted)
    by_arn = {row.arn: row for row in rows.only(*_COLUMNS)}
    return {arn: by_arn[arn] for arn in wanted if arn in by_arn}
