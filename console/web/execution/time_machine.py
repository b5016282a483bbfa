"""Time machine: show an execution as of one of its events."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import engine
from console.masking import masked_execution
from console.models import HistoryEvent
from console.store.executions import replay
from console.web.core import formatting
from console.web.history.traces import details_of
from engine import event_types

if TYPE_CHECKING:
    from console.models import Execution
    from engine import Trace


@dataclass(frozen=True, slots=True)
class PastMoment:
    """The selected event, of ``last`` events."""

    number: int
    last: int
    at_ms: int
    elapsed: int
    type: str
    state: str
    variables: tuple[tuple[str, formatting.PayloadView], ...]

    @property
    def previous(self) -> int:
        """Return the previous event, 0 without one."""
        return self.number - 1

    @property
    def next(self) -> int:
        """Return the next event, 0 without one."""
        return self.number + 1 if self.number < self.last else 0

    @property
    def tone(self) -> str:
        """Return the tone of the event's type."""
        return engine.EVENT_TYPES[self.type].tone


def past_moment(execution: Execution, trace: Trace, last: int) -> PastMoment | None:
    """Return the description of the last event of ``trace``."""
    event = trace.last_event
    if event is None:
        return None
    values = variables_visible_at(execution, trace, event.id)
    return PastMoment(
        number=event.id,
        last=last,
        at_ms=event.at_ms,
        elapsed=event.at_ms - execution.start_ms,
        type=event.type,
        state=event.state,
        variables=tuple(
            (name, formatting.payload_view(text)) for name, text in sorted(values.items())
        ),
    )


def variables_visible_at(execution: Execution, trace: Trace, event: int) -> dict[str, str]:
    """Return the workflow variables after event ``event``: name -> JSON text.

    A variable belongs to the line of control that assigned it: the execution, a branch, an
    iteration. An inner branch or iteration also sees the variables of the outer scopes.
    """
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


def variables_at(execution: Execution, trace: Trace, event: int) -> str:
    """Return the variables visible to a state entered at an event, as a JSON object."""
    values = variables_visible_at(execution, trace, event - 1)
    return "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in values.items()) + "}"
