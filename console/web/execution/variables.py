"""Compute the workflow variables that are visible at an event, with their values.

A variable belongs to the line of control that assigned it: the execution, a branch, an iteration.
Inner lines see those of the outer ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.masking import masked_execution
from console.models import HistoryEvent
from console.store.executions import replay
from console.web.history.traces import details_of
from engine import event_types

if TYPE_CHECKING:
    from console.models import Execution
    from engine import Trace


def variables_visible_at(execution: Execution, trace: Trace, event: int) -> dict[str, str]:
    """Return name -> value as JSON text, after event ``event``."""
    origin, masked = replay.origin_of(execution), masked_execution.masked_execution(execution)
    values = {} if origin is None or not event else masked.variables(origin.variables)
    if '"Assign"' not in execution.definition.text:
        return values
    rows = (
        HistoryEvent.objects.filter(
            execution_id=execution.pk,
            event_id__lte=event,
            type__in=event_types.STATE_EXITS,
            details__contains='"assignedVariables"',
        )
        .order_by("event_id")
        .values_list("event_id", "details")
    )
    for number, text in rows.iterator(chunk_size=2000):
        if trace.is_within(event, number):
            values |= details_of(masked.event(number, text)).get("assignedVariables") or {}
    return values
