"""Mask log lines for API callers whose role must not see hidden values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.awsapi import masking
from console.masking import masked_execution
from console.models import RunRow, TaskRow

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from console.awsapi.masking import EventMask
    from console.awsapi.operations.call import Call
    from console.features.logs.models import FunctionLog
    from console.features.logs.streams import Stream


def stream_masks(call: Call) -> Callable[[Sequence[Stream]], dict[int, EventMask]] | None:
    """Return a function: log streams -> (execution id -> mask of its events).

    None: the caller may read all; ``masking.note_reads`` then notes the executions that they read.
    """
    if not masking.masks_something(call) or masking.reveals(call):
        return None

    def of_streams(streams: Sequence[Stream]) -> dict[int, EventMask]:
        masked = masked_execution.masked_executions(
            call.project, [stream.execution for stream in streams]
        )
        return {execution_id: masking.mask_events(mask) for execution_id, mask in masked.items()}

    return of_streams


def output_masker(call: Call) -> Callable[[FunctionLog], str]:
    """Return a function that masks a function call's output for the caller.

    Callers who may reveal payloads get it unmasked; ``masking.note_reads`` records that.
    """
    if not masking.masks_something(call) or masking.reveals(call):
        return lambda row: row.output

    def masked(row: FunctionLog) -> str:
        task = TaskRow.objects.filter(execution_id=row.execution_id, task=row.task)
        if task.filter(closed_ms__isnull=True).exists():
            return ""  # which values its outcome hides is not known yet
        cover = masked_execution.masked_execution(row.execution)
        last = (RunRow.objects.get(pk=row.execution_id).next_event) - 1
        return cover.function_output(row.task, row.output, last)

    return masked
