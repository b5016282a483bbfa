"""Format Lambda's START, END and REPORT lines around the output of a call."""

from __future__ import annotations

import math
from typing import Protocol

from console.functions.pool import TIMED_OUT


class CallFigures(Protocol):
    """The figures of a call, from a record or a database row."""

    request: str
    duration_ms: float
    init_ms: float | None
    memory_mb: int
    memory_limit_mb: int
    error: str


def start_line(call: CallFigures) -> str:
    """Return the START line, before the output."""
    return f"START RequestId: {call.request} Version: $LATEST"


def end_lines(call: CallFigures) -> tuple[str, str]:
    """Return the END and REPORT lines, after the output."""
    parts = [
        f"REPORT RequestId: {call.request}",
        f"Duration: {call.duration_ms:.2f} ms",
        f"Billed Duration: {max(1, math.ceil(call.duration_ms))} ms",
        f"Memory Size: {call.memory_limit_mb} MB",
    ]
    if call.memory_mb:
        parts.append(f"Max Memory Used: {call.memory_mb} MB")
    if call.init_ms is not None:
        parts.append(f"Init Duration: {call.init_ms:.2f} ms")
    if call.error == TIMED_OUT:
        parts.append("Status: timeout")
    elif call.error.startswith("Runtime."):
        parts += ["Status: error", f"Error Type: {call.error}"]
    return f"END RequestId: {call.request}", "\t".join(parts)


def log_text(call: CallFigures, output: str) -> str:
    """Return the whole log of a call."""
    gap = "" if not output or output.endswith("\n") else "\n"
    end, figures = end_lines(call)
    return f"{start_line(call)}\n{output}{gap}{end}\n{figures}\n"
