"""Read the filter of the log page from the query string."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import engine
from console.db import clock
from console.features.logs import lines, patterns
from console.features.logs.newest import LineCursor, LineQuery
from console.features.logs.read import Range
from console.web.core.formatting import DAY, HOUR
from console.web.search.moments import parse_moment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.models import Execution

LINES = 200
"""The number of lines on a page."""
RANGES = {
    "": ("All", "All time", 0),
    "1h": ("1 h", "Last hour", HOUR),
    "3h": ("3 h", "Last 3 hours", 3 * HOUR),
    "12h": ("12 h", "Last 12 hours", 12 * HOUR),
    "1d": ("1 d", "Last 24 hours", DAY),
    "7d": ("7 d", "Last 7 days", 7 * DAY),
    "own": ("Custom", "Custom time", 0),
}
"""Key -> short word, word, and how long it is."""
EVENTS = {
    "": ("All events", None),
    "failures": ("Failures, timeouts, aborts", lines.ERROR),
    "executions": (
        "Start and end of executions",
        engine.event_names(frozenset({engine.Family.EXECUTION})),
    ),
    "states": (
        "States entered and exited",
        engine.event_names(frozenset({engine.Family.STATE})),
    ),
}
"""Key -> words, and the event types."""
_JOINT = re.compile(r"(?<![^\s])(?:and|or|not|&&|\|\||!)(?![^\s])", re.IGNORECASE)
"""Words that other languages write between terms; CloudWatch looks for them."""
_CURSOR = re.compile(r"(\d{1,15})-(\d{1,18})-(\d{1,9})", re.ASCII)


@dataclass(frozen=True, slots=True)
class LogFilter:
    """The reader's filter as typed. ``problems``: field -> its error."""

    range: str
    since: str
    until: str
    events: str
    state: str
    pattern: str
    query: LineQuery
    problems: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, sent: Mapping[str, str], execution: Execution | None) -> LogFilter:
        """Read the query string; values that no control sends are ignored."""
        range_key = _known(sent.get("range", ""), RANGES)
        events = _known(sent.get("events", ""), EVENTS)
        state, pattern = sent.get("state", "")[:80], sent.get("pattern", "")[:1024]
        typed = {name: sent.get(name, "")[:40] for name in ("from", "to")}
        bounds: dict[str, int | None] = {"from": None, "to": None}
        problems = {}
        if range_key == "own":
            for name, text in typed.items():
                try:
                    bounds[name] = parse_moment(text) if text else None
                except (ValueError, OverflowError) as problem:
                    problems[name] = str(problem)
        elif RANGES[range_key][2]:
            bounds["from"] = clock.now_ms() - RANGES[range_key][2]
        matches = None
        try:
            matches = patterns.compile_pattern(pattern) if pattern.strip() else None
        except patterns.InvalidPattern as problem:
            problems["pattern"] = problem.message
        if (word := _JOINT.search(pattern)) and not pattern.lstrip().startswith("{"):
            problems["pattern"] = (
                f"“{word[0]}” is a term to find. All terms must match: leave out “and”; write ?a ?b"
                f' for “or”, -a for “not”, or "{word[0]}" for the word.'
            )
        query = LineQuery(
            LINES,
            Range(bounds["from"], bounds["to"]),
            execution=None if execution is None else execution.pk,
            before=_cursor(sent.get("before", "")),
            types=EVENTS[events][1],
            state=state,
            matches=matches,
        )
        since, until = typed["from"], typed["to"]
        return cls(range_key, since, until, events, state, pattern, query, problems)

    @property
    def active(self) -> bool:
        """Whether lines are filtered out."""
        return any((self.range, self.events, self.state, self.pattern))


def cursor_text(cursor: LineCursor | None) -> str:
    """Return a cursor for a URL, "" without one."""
    return "" if cursor is None else "-".join(map(str, cursor))


def _cursor(text: str) -> LineCursor | None:
    matched = _CURSOR.fullmatch(text)
    return (int(matched[1]), int(matched[2]), int(matched[3])) if matched else None


def _known(key: str, choices: Mapping[str, object]) -> str:
    return key if key in choices else ""
