"""Check I14: the pages of a history, read from either end, are the whole history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.store.state import history

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.features.doctor.found import FoundExecution
    from console.features.doctor.walk import Walk

_PAGE = 100
_MOST = 1_000  # longer ones are told the same way, and reading each three times costs


def stitched(record: FoundExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """I14: the pages of GetExecutionHistory, put together, are what is stored."""
    del walk
    if len(record.events) > _MOST:
        return
    event_ids = [event.id for event in record.events]
    if list(_told(record.execution.pk, reverse=False)) != event_ids:
        yield "I14", "the pages of its history are not its history"
    if list(_told(record.execution.pk, reverse=True)) != event_ids[::-1]:
        yield "I14", "the pages of its history from the end are not its history backwards"


def _told(execution_id: int, *, reverse: bool) -> Iterator[int]:
    after = 0
    while rows := history.list_events(execution_id, after=after, limit=_PAGE, reverse=reverse):
        yield from (event.event_id for event in rows)
        after = rows[-1].event_id
        if len(rows) < _PAGE:
            return
