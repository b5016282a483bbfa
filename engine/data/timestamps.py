"""Parse RFC 3339 timestamps, such as ``2026-01-31T12:00:00Z``, for Choice and Wait states."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from engine.data.expression import Json

# ASL: the T and the Z are upper-case. Python's own reader takes much more than RFC 3339: weeks, a
# comma, times without seconds, dates without hyphens.
_RFC3339 = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", re.ASCII
)


class Timestamp(NamedTuple):
    """A moment, ordered by time. ``nanoseconds``: nine digits, as a text."""

    second: datetime
    nanoseconds: str


def parse_timestamp(value: Json) -> Timestamp | None:
    """Parse an RFC 3339 text with upper-case T and Z, or an offset; None if invalid."""
    match = _RFC3339.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    offset = "+00:00" if match[3] == "Z" else match[3]
    try:
        second = datetime.fromisoformat(match[1] + offset)
    except ValueError:
        return None
    return Timestamp(second, (match[2] or "").ljust(9, "0"))
