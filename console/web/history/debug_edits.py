"""Read the changes that people made at breakpoints, masked for their reader.

They are stored beside the history as ``DebugEdit``; ``event_id`` is the last event of the line of
control at that time, which determines the visit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.masking.masked_execution import masked_execution
from console.models import DebugEdit
from console.store.executions import faults

if TYPE_CHECKING:
    from console.models import Execution

MOST = 50
"""Maximum number of changes on a page: the latest."""


@dataclass(frozen=True, slots=True)
class ShownEdit:
    """A person's change of a line of control, with hidden values masked."""

    row: DebugEdit
    before: str
    after: str


def shown_edits(execution: Execution, state: str = "") -> list[ShownEdit]:
    """Return the changes of an execution, newest first. ``state``: only of this state.

    No query is made if the execution was read with ``has_edits`` and has none.
    """
    if not getattr(execution, "has_edits", True):
        return []
    rows = DebugEdit.objects.filter(execution=execution.pk).exclude(what=faults.FAULT)
    if state:
        rows = rows.filter(state=state)
    newest = list(rows.order_by("-pk")[:MOST])
    if not newest:
        return []
    hidden = masked_execution(execution).mask
    return [ShownEdit(row, hidden.payload(row.before), hidden.payload(row.after)) for row in newest]
