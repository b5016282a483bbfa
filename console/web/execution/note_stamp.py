"""Tell whether note, pause and breakpoints of an execution that a page shows are the latest."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from console.models import Execution


def note_stamp(execution: Execution) -> str:
    """Return what changes with note, assignee, pause and stopped lines, "" if it has none."""
    note = execution.note.stamp if hasattr(execution, "note") else ""
    pause = execution.pause.since_ms if hasattr(execution, "pause") else ""
    halted = execution.halted.stamp if hasattr(execution, "halted") else ""
    return f"{note}{pause}{halted}"
