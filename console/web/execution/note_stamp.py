"""Stamp by which a page notices changes of an execution's note, pause or breakpoint stops."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from console.models import Execution


def note_stamp(execution: Execution) -> str:
    """Return a stamp of note, assignee, pause and breakpoint stops, "" if there are none."""
    note = execution.note.stamp if hasattr(execution, "note") else ""
    pause = execution.pause.since_ms if hasattr(execution, "pause") else ""
    halted = execution.halted.stamp if hasattr(execution, "halted") else ""
    return f"{note}{pause}{halted}"
