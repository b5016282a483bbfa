"""Tell whether the note and the pause of an execution that a page shows are still the latest."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from console.models import Execution


def note_stamp(execution: Execution) -> str:
    """Return what changes with an execution's note, assignee and pause, "" if it has none."""
    note = execution.note.stamp if hasattr(execution, "note") else ""
    return f"{note}{execution.pause.since_ms}" if hasattr(execution, "pause") else note
