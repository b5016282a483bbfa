"""Read the zoom of the timeline from the query string: an attempt or a time range."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django.http import QueryDict

_SECONDS = re.compile(r"\d{1,9}(\.\d{1,3})?", re.ASCII)
_ATTEMPT = re.compile(r"\d{1,4}", re.ASCII)


@dataclass(frozen=True, slots=True)
class TimelineZoom:
    """The selected part of the timeline.

    ``attempt``: at the whole execution, 0 for all of them.

    ``since``, ``until``: milliseconds after the beginning of what is on display; None for its ends.
    """

    attempt: int = 0
    since: int | None = None
    until: int | None = None

    @classmethod
    def of(cls, query: QueryDict) -> TimelineZoom:
        """Read the query string; invalid values are ignored."""
        chosen = query.get("attempt", "")
        since, until = (_milliseconds(query.get(name, "")) for name in ("from", "to"))
        if since is not None and until is not None and since >= until:
            since = until = None
        return cls(int(chosen) if _ATTEMPT.fullmatch(chosen) else 0, since, until)

    def cut(self, begin: int, end: int) -> tuple[int, int]:
        """Return the selected part of a time range; the whole range if it would be empty."""
        since = begin if self.since is None else begin + self.since
        until = end if self.until is None else min(end, begin + self.until)
        return (since, until) if since < until else (begin, end)

    @property
    def seconds(self) -> tuple[str, str]:
        """Return begin and end for the form's fields, "" for none."""
        texts = ("" if ms is None else f"{ms / 1000:g}" for ms in (self.since, self.until))
        first, last = texts
        return first, last


WHOLE_TIME = TimelineZoom()


def _milliseconds(seconds: str) -> int | None:
    return round(float(seconds) * 1000) if _SECONDS.fullmatch(seconds) else None
