"""Read moments and spans of time as people write them in filters and searches."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from console import clock
from console.web.core import formatting

_UNITS = {
    "": formatting.SECOND,
    "ms": 1,
    "s": formatting.SECOND,
    "min": formatting.MINUTE,
    "m": formatting.MINUTE,
    "h": formatting.HOUR,
    "d": formatting.DAY,
}
_AGO = re.compile(r"(.*\S)\s+ago", re.IGNORECASE)


def parse_moment(text: str) -> int:
    """Return a moment in epoch milliseconds; without a zone it is UTC."""
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        msg = f"Got {quoted_text(text)}, wanted a time (UTC) such as 2026-11-21 13:20."
        raise ValueError(msg) from None
    aware = read if read.tzinfo else read.replace(tzinfo=UTC)
    return round(aware.timestamp() * formatting.SECOND)


def parse_moment_or_age(text: str) -> int:
    """Return a moment in epoch milliseconds, of a time or of an age such as ``2 h ago``."""
    ago = _AGO.fullmatch(text)
    try:
        return max(clock.now_ms() - parse_span(ago[1]), 0) if ago else parse_moment(text)
    except (ValueError, OverflowError):
        msg = (
            f"Got {quoted_text(text)}, wanted a time (UTC) such as 2026-11-21 13:20,"
            " or an age such as 2 h ago."
        )
        raise ValueError(msg) from None


def parse_span(text: str) -> int:
    """Return a span of time in milliseconds; a bare number means seconds."""
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?)\s*(ms|s|min|m|h|d|)", text.lower())
    if match is None:
        msg = f"Got {quoted_text(text)}, wanted a span such as 250 ms, 1.5 s, 3 min, 2 h or 1 d."
        raise ValueError(msg)
    return round(float(match[1]) * _UNITS[match[2]])


def quoted_text(text: str) -> str:
    """Return what was typed, as a message shows it."""
    return f"“{formatting.visible_text(text[:40])}”"
