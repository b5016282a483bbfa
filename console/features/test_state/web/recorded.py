"""Read an execution as a recording, of which scenarios are made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db.models import Sum
from django.db.models.functions import Length

import engine
from console.masking import masked_execution
from console.models import HistoryEvent, MapRun, TaskRow
from console.recordings.recording import RecordedExecution
from console.statuses import TaskClock
from console.store.executions import replay
from console.store.map_runs import map_runs
from console.web.history.traces import details_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.models import Execution

_LARGEST = 32_000_000
"""Characters of a history that becomes a test, which is made in memory."""


def is_too_large(execution: Execution) -> bool:
    """Whether an execution's history exceeds the size of a test."""
    rows = HistoryEvent.objects.filter(execution_id=execution.pk)
    return (rows.aggregate(all=Sum(Length("details")))["all"] or 0) > _LARGEST


def read_recording(execution: Execution) -> RecordedExecution:
    """Return the recording of an execution, as its reader sees it."""
    masked = masked_execution.masked_execution(execution)
    rows = HistoryEvent.objects.filter(execution_id=execution.pk).order_by("event_id")
    events = [
        engine.Event(
            row.event_id,
            row.previous,
            row.at_ms,
            row.type,
            details_of(masked.event(row.event_id, row.details)) or None,
            row.state,
        )
        for row in rows.iterator(chunk_size=500)
    ]
    tasks = TaskRow.objects.filter(execution_id=execution.pk, clock=TaskClock.HEARTBEAT)
    origin = replay.origin_of(execution)
    imported = execution.imported_ms is not None

    def map_result(begun: Sequence[int]) -> str | None:
        runs = MapRun.objects.filter(parent_id=execution.pk, task__in=begun)
        run = runs.order_by("-task").first()
        whole = None if run is None else map_runs.outputs_of(run)
        return None if whole is None else masked.mask.payload(whole)

    return RecordedExecution(
        definition=execution.definition.text,
        events=events,
        arn=execution.arn.split(":", 2)[2] if imported else execution.arn,
        name=execution.name,
        machine=execution.state_machine_arn.rpartition(":")[2],
        machine_arn=execution.state_machine_arn,
        input=execution.input,
        status=execution.status,
        output=execution.output,
        error=execution.error,
        cause=execution.cause,
        role=execution.role_arn,
        version_arn=execution.version_arn,
        alias_arn=execution.alias_arn,
        start_at=origin.state if origin else "",
        variables=masked.variables(origin.variables) if origin else {},
        heartbeats=frozenset(tasks.values_list("task", flat=True)),
        map_result=map_result,
    )
