"""Mask the payloads in API answers for callers whose role must not see them.

The project's masked paths (*Project settings*) say which values are hidden; pages and API share the
code of ``console.masking``. Operators may see all values: the audit trail notes such reads of
masked values once in ten minutes for each person and execution.

In a project without masked paths this costs one comparison a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from console import access
from console.db import clock
from console.masking import masked_execution
from console.store.people import masks

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from console.awsapi.operations.call import Call
    from console.models import Execution, HistoryEvent

    EventMask = Callable[[HistoryEvent], HistoryEvent]

RIGHT = "RevealPayloads"
_MOST = 10_000
_noted: dict[tuple[str, str, int], int] = {}
"""Reads that need no further record -> until when, epoch ms.

Key: person, ARN of the calling execution ("" if none), id of the execution read.
"""


def masks_something(call: Call) -> bool:
    """Whether the caller's project masks values, and a person may read the answer.

    A task that waits for an execution (``.sync``) calls the API, too (``call.trusted``). No person
    sees its answers, so nothing is hidden and no read is noted.
    """
    return bool(call.project.masked) and not call.trusted


def readable_execution(call: Call, execution: Execution) -> Execution:
    """Return an execution masked for the caller; it must not be saved."""
    if not masks_something(call):
        return execution
    if reveals(call):
        note_reads(call, [execution])
        return execution
    return masked_execution.mask_execution(execution)


def event_mask(call: Call, execution: Execution) -> EventMask | None:
    """Return a function that masks an event of an execution; None if the caller may see all."""
    if not masks_something(call):
        return None
    if reveals(call):
        note_reads(call, [execution])
        return None
    return mask_events(masked_execution.masked_execution(execution))


def note_reads(call: Call, executions: Collection[Execution]) -> None:
    """Record in the audit trail that the caller reads masked values unmasked."""
    if not masks_something(call):
        return
    now_ms, reader = clock.now_ms(), (call.actor.name, call.actor.execution)
    new = [each for each in executions if _noted.get((*reader, each.pk), 0) <= now_ms]
    masked = masked_execution.masked_executions(call.project, new) if new else {}
    to_note = {execution.pk: execution.arn for execution in new if masked[execution.pk].hides}
    if not to_note:
        return
    masks.note_reads(call.project, to_note.values(), f"read by {call.action}", call.actor)
    if len(_noted) + len(to_note) > _MOST:
        _noted.clear()
    _noted.update({(*reader, number): now_ms + masks.FOR_MS for number in to_note})


def reveals(call: Call) -> bool:
    """Return whether the caller's role may reveal payloads."""
    return access.is_allowed(call.principal, RIGHT)


def mask_events(mask: masked_execution.MaskedExecution) -> EventMask:
    """Return a function that masks the events of an execution in place."""

    def masked_event(row: HistoryEvent) -> HistoryEvent:
        row.details = mask.event(row.event_id, row.details)
        return row

    return masked_event
