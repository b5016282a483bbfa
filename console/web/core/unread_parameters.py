"""Find query parameters that a page did not read, to name misspelt filters on the page.

A misspelt filter (``?statsu=FAILED``) would otherwise show a list that looks filtered. Reads are
recorded while the view runs, so no table of names has to follow the views.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from django.http import QueryDict

if TYPE_CHECKING:
    from collections.abc import MutableMapping, Sequence

    from django.http import HttpRequest

_MOST_NAMED = 5
_LONGEST = 40


class RecordingQuery(QueryDict):
    """A query string that records which parameters are read."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        self.asked: set[str] = set()
        super().__init__(*arguments, **keywords)
        self.asked.clear()  # to fill it reads it

    def __getitem__(self, key: str) -> Any:
        """Return the last value."""
        self.asked.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        """Whether a parameter was sent."""
        self.asked.add(str(key))
        return super().__contains__(key)

    def getlist(self, key: str, default: Any = None) -> Any:
        """Return all values."""
        self.asked.add(key)
        return super().getlist(key, default)

    def __deepcopy__(self, memo: MutableMapping[int, Any]) -> RecordingQuery:
        """Return a copy whose reads are recorded here, too."""
        copied: RecordingQuery = super().__deepcopy__(memo)
        copied.asked = self.asked
        return copied


def record_query(request: HttpRequest) -> None:
    """Record which query parameters of a request are read."""
    query = RecordingQuery(request.META.get("QUERY_STRING", ""), encoding=request.encoding)
    request.GET = query  # type: ignore[assignment]  # Django's stubs know the immutable class


def unread_parameters(request: HttpRequest) -> list[tuple[str, str]]:
    """Return the unread parameters, each with the name probably meant."""
    query = request.GET
    if not isinstance(query, RecordingQuery):
        return []
    unread: Sequence[str] = [key for key in query.keys() if key not in query.asked]  # noqa: SIM118 - "in query" is a reading
    return [(key[:_LONGEST], _meant(key, query.asked)) for key in unread[:_MOST_NAMED]]


def _meant(key: str, names: set[str]) -> str:
    return next(iter(get_close_matches(key.lower(), sorted(names), 1, 0.6)), "")
