"""Format statuses, times and sizes for the pages.

A status is always shown by a colour (CSS class), an icon and a word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from console.db import clock
from console.statuses import ExecutionStatus

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
KIB = 1024
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class StatusLabel:
    """A status. ``tone``: CSS class and icon name; ``word``: its text."""

    tone: str
    word: str


EXECUTION: dict[str, StatusLabel] = {
    ExecutionStatus.RUNNING: StatusLabel("running", "Running"),
    ExecutionStatus.SUCCEEDED: StatusLabel("succeeded", "Succeeded"),
    ExecutionStatus.FAILED: StatusLabel("failed", "Failed"),
    ExecutionStatus.TIMED_OUT: StatusLabel("failed", "Timed out"),
    ExecutionStatus.ABORTED: StatusLabel("aborted", "Aborted"),
    ExecutionStatus.PENDING_REDRIVE: StatusLabel("idle", "Pending redrive"),
    ExecutionStatus.UNFINISHED: StatusLabel("idle", "Unfinished"),
}
_UNLISTED = (ExecutionStatus.PENDING_REDRIVE, ExecutionStatus.UNFINISHED)
LISTED = {key: label for key, label in EXECUTION.items() if key not in _UNLISTED}
BREAK_TIMES = {
    "before": "Before its work",
    "after": "After its success",
    "error": "When it fails",
}
"""The time at which a line of control halts at a state, in words."""
STEP = {
    "": StatusLabel("idle", "Not entered"),
    "running": StatusLabel("running", "In progress"),
    "succeeded": StatusLabel("succeeded", "Succeeded"),
    "caught": StatusLabel("caught", "Caught error"),
    "failed": StatusLabel("failed", "Failed"),
    "timed_out": StatusLabel("failed", "Timed out"),
    "aborted": StatusLabel("aborted", "Aborted"),
}
"""Status of a visit -> its label, "" for a state that was not entered."""
LEGEND = tuple(label for status, label in STEP.items() if status != "timed_out")
"""The labels of the legend, one per colour: timed-out states share the entry of failed states."""
IN_CHILD_EXECUTIONS = StatusLabel("idle", "In child executions")
"""The label of an entered state inside a distributed Map."""


def duration_text(milliseconds: int) -> str:
    """Format a duration with at most two units: ``45 ms``, ``1.2 s``, ``3 min 05 s``."""
    span = max(milliseconds, 0)
    if span < SECOND:
        return f"{span} ms"
    if span < MINUTE:
        return f"{span / SECOND:.1f} s" if span < 10 * SECOND else f"{span // SECOND} s"
    for unit, name, small, small_name in (
        (DAY, "d", HOUR, "h"),
        (HOUR, "h", MINUTE, "min"),
        (MINUTE, "min", SECOND, "s"),
    ):
        if span >= unit:
            return f"{span // unit} {name} {span % unit // small:02d} {small_name}"
    raise AssertionError(span)


def ticking_text(milliseconds: int) -> str:
    """Format a duration that the page's script counts on, without fractions of a second."""
    seconds = max(milliseconds, 0) // SECOND
    return f"{seconds} s" if seconds < MINUTE // SECOND else duration_text(seconds * SECOND)


def limit_text(milliseconds: int) -> str:
    """Format a configured limit without zero parts: ``1 h``, ``5 s``."""
    return _ZERO_PART.sub("", duration_text(milliseconds))


_ZERO_PART = re.compile(r" 00 \w+$|\.0(?= s$)")


def rough_duration(milliseconds: int) -> str:
    """Format a duration with one unit, off by at most a tenth: ``3 d``, ``90 min``."""
    for unit, name in ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s")):
        count = round(milliseconds / unit)
        if count and abs(count * unit - milliseconds) <= milliseconds / 10:
            return f"{count} {name}"
    return f"{max(milliseconds, 0)} ms"


def iso_text(milliseconds: int) -> str:
    """Return RFC 3339 in UTC with milliseconds, for the ``datetime`` attribute."""
    moment = clock.moment_of(milliseconds).replace(tzinfo=None)
    return f"{moment.isoformat(timespec='milliseconds')}Z"


def clock_text(milliseconds: int, *, precise: bool = False) -> str:
    """Format a time in UTC; ``precise`` with milliseconds."""
    moment = clock.moment_of(milliseconds).replace(tzinfo=None)
    return moment.isoformat(" ", "milliseconds" if precise else "seconds")


def size_text(count: int) -> str:
    """Format a number of bytes."""
    return f"{count} B" if count < KIB else f"{count / KIB:.1f} KiB"


_WORD_STARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def action_words(action: str) -> str:
    """Return an API action in words: ``events:PutRule`` is "Put rule"."""
    words = _WORD_STARTS.sub(" ", action.rpartition(":")[2]).split(" ")
    return " ".join([words[0], *(word.lower() for word in words[1:])])


def visible_text(text: str) -> str:
    """Show control characters as their Unicode pictures, so that none hides in a name."""
    return text.translate(_PICTURES)


_PICTURES = {code: chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A)} | {
    0x7F: "\u2421"
}


def without_formula(text: str) -> str:
    """Prefix a quote to a text that spreadsheets would take for a formula."""
    return f"'{text}" if text.startswith(_FORMULA) else text
