"""Parse times and durations as people type them: ``yesterday``, ``2026-11``, ``10 m``."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time, timedelta
from typing import NamedTuple

from console.db import clock
from console.web.core import formatting

_WEEK = 7 * formatting.DAY
_UNITS = {
    "": formatting.SECOND,
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), formatting.SECOND),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), formatting.MINUTE),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), formatting.HOUR),
    **dict.fromkeys(("d", "day", "days"), formatting.DAY),
    **dict.fromkeys(("w", "week", "weeks"), _WEEK),
}
UNIT = f"(?:{'|'.join(sorted(filter(None, _UNITS), key=len, reverse=True))})"
"""Expression of a unit of time; longer words first."""
DAY_WORDS = r"(?:today|yesterday|(?:this|last)\s+(?:week|month))"
"""Expression of the words that mean a day, a week or a month."""
_AGO = re.compile(r"(.*\S)\s+ago", re.IGNORECASE)
_SPAN = re.compile(rf"(an?(?=\s)|\d{{1,9}}(?:\.\d{{1,6}})?)\s*({UNIT}|)")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_NAMED = ("today", "yesterday", "this week", "last week", "this month", "last month")


class Period(NamedTuple):
    """A day, week or month: its begin, and the begin of the next one."""

    start_ms: int
    end_ms: int


def parse_moment(text: str) -> int:
    """Parse a time to epoch milliseconds.

    A time without a zone is UTC. An age such as ``8 days ago`` counts from now. A day, a week or a
    month (``today``, ``last week``) means its beginning, in UTC.
    """
    ago = _AGO.fullmatch(text)
    try:
        if ago is not None:
            return max(clock.now_ms() - parse_span(ago[1]), 0)
        period = parse_period(text)
        return _epoch_ms(datetime.fromisoformat(text)) if period is None else period.start_ms
    except (ValueError, OverflowError):
        msg = (
            f"{quoted_text(text)} is not a time. Enter a time (UTC) such as 2026-11-21 13:20, an"
            " age such as 2 h ago, or today, yesterday, this week, last week, this month or last"
            " month."
        )
        raise ValueError(msg) from None


def parse_period(text: str) -> Period | None:
    """Parse a day, week or month (UTC); None for a time or anything else."""
    words = " ".join(text.lower().split())
    if not _DATE.fullmatch(words):
        return _named_period(words) if words in _NAMED else None
    try:
        named = date.fromisoformat(words)
    except ValueError:
        return None
    return _period(named, named + timedelta(days=1)) if named < date.max else None


def _named_period(words: str) -> Period:
    """Return the period of one of ``_NAMED``, which depends on today."""
    today = datetime.fromtimestamp(clock.now_ms() / formatting.SECOND, UTC).date()
    day, monday, first = timedelta(days=1), today - timedelta(today.weekday()), today.replace(day=1)
    periods = (
        (today, today + day),
        (today - day, today),
        (monday, monday + 7 * day),
        (monday - 7 * day, monday),
        (first, (first + 31 * day).replace(day=1)),
        ((first - day).replace(day=1), first),
    )
    return _period(*periods[_NAMED.index(words)])


def _period(start: date, end: date) -> Period:
    return Period(*(_epoch_ms(datetime.combine(each, time())) for each in (start, end)))


def _epoch_ms(moment: datetime) -> int:
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(aware.timestamp() * formatting.SECOND)


def parse_span(text: str) -> int:
    """Parse a duration to milliseconds; a bare number means seconds."""
    match = _SPAN.fullmatch(text.lower())
    if match is None:
        msg = f"{quoted_text(text)} is not a duration such as 250 ms, 1.5 s, 3 min, 2 h or 1 d."
        raise ValueError(msg)
    count = 1.0 if match[1].startswith("a") else float(match[1])
    return round(count * _UNITS[match[2]])


def quoted_text(text: str) -> str:
    """Return a typed text for an error message."""
    return f"“{formatting.visible_text(text[:40])}”"
