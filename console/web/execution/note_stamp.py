"""Tell whether the note of an execution that a page shows is still the latest."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from console.models import Execution


def note_stamp(execution: Execution) -> str:
    """Return what changes with an execution's note and assignee, "" if it has neither."""
    return execution.note.stamp if hasattr(execution, "note") else ""
