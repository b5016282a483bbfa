"""Mask the payloads in answers, for callers whose role may not reveal them.

The project's masked paths say what (*Project settings*); pages and API hide it by the same code,
``console.masking``. Who may reveal payloads, an operator, reads them as they are: that is on record
once in ten minutes for each person and execution that has masked values.

A project without masked paths pays one comparison a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from console import access, clock
from console.masking import masked_execution
from console.models import RunRow, TaskRow
from console.store.people import masks

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from console.awsapi.operations.call import Call
    from console.logs.streams import Stream
    from console.models import Execution, FunctionLog, HistoryEvent

    Hide = Callable[[HistoryEvent], HistoryEvent]

RIGHT = "RevealPayloads"
_MOST = 10_000
_noted: dict[tuple[str, str, int], int] = {}
"""Person, ARN of the execution that asks for them ("": they ask themselves), execution that is read
-> until when such reads are on record, of this process."""


def masks_something(call: Call) -> bool:
    """Tell whether the caller's project masks values at all, and somebody will read the answer.

    Nobody reads what a task that waits for an execution (``.sync``) asks of it: no person has seen
    anything by that, so no record may say so.
    """
    return bool(call.project.masked) and not call.trusted


def readable_execution(call: Call, execution: Execution) -> Execution:
    """Return an execution whose texts are as the caller may read them. It is never saved."""
    if not masks_something(call):
        return execution
    if _reveals(call):
        note_reads(call, [execution])
        return execution
    return masked_execution.mask_execution(execution)


def event_hider(call: Call, execution: Execution) -> Hide | None:
    """Return what hides in an execution's events; None: nothing is hidden from this caller."""
    if not masks_something(call):
        return None
    if _reveals(call):
        note_reads(call, [execution])
        return None
    return _hide(masked_execution.masked_execution(execution))


def line_hider(call: Call) -> Callable[[Sequence[Stream]], dict[int, Hide]] | None:
    """Return what hides in the events of log streams, by the number of their execution.

    None: nothing is hidden from this caller; ``note`` then takes what they read.
    """
    if not masks_something(call) or _reveals(call):
        return None

    def of_streams(some: Sequence[Stream]) -> dict[int, Hide]:
        found = masked_execution.masked_executions(call.project, [one.execution for one in some])
        return {number: _hide(cover) for number, cover in found.items()}

    return of_streams


def output_masker(call: Call) -> Callable[[FunctionLog], str]:
    """Return what gives the output of a function's call as the caller may read it.

    To those who may reveal payloads it is as it is; ``note_reads`` then takes what they read.
    """
    if not masks_something(call) or _reveals(call):
        return lambda row: row.output

    def masked(row: FunctionLog) -> str:
        task = TaskRow.objects.filter(execution_id=row.execution_id, task=row.task)
        if task.filter(closed_ms__isnull=True).exists():
            return ""  # which values its outcome hides is not known yet
        cover = masked_execution.masked_execution(row.execution)
        last = (RunRow.objects.get(pk=row.execution_id).next_event) - 1
        return cover.function_output(row.task, row.output, last)

    return masked


def note_reads(call: Call, found: Collection[Execution]) -> None:
    """Record that the caller reads executions as they are, those that have masked values."""
    if not masks_something(call):
        return
    now_ms, who = clock.now_ms(), (call.actor.name, call.actor.execution)
    fresh = [one for one in found if _noted.get((*who, one.pk), 0) <= now_ms]
    covers = masked_execution.masked_executions(call.project, fresh) if fresh else {}
    told = {one.pk: one.arn for one in fresh if covers[one.pk].hides}
    if not told:
        return
    masks.note_reads(call.project, told.values(), f"read by {call.action}", call.actor)
    if len(_noted) + len(told) > _MOST:
        _noted.clear()
    _noted.update({(*who, number): now_ms + masks.FOR_MS for number in told})


def _reveals(call: Call) -> bool:
    return access.is_allowed(call.principal, RIGHT)


def _hide(cover: masked_execution.MaskedExecution) -> Hide:
    def hide(row: HistoryEvent) -> HistoryEvent:
        row.details = cover.event(row.event_id, row.details)
        return row

    return hide
