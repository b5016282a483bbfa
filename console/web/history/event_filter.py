"""Read the event table's filter from the query string, and apply it to the query."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.db.models import Q

from console.masking import masked_execution
from console.models import HistoryEvent
from console.web.core.scope import choose, reject_value

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import QueryDict

    from console.models import Execution

MOST_OPEN = 200
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?(Z|\+00:00)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class EventFilter:
    """The requested filter. ``at``: the event to show; ``opened``: expanded rows.

    ``paged``: the query string has a page number, so ``at`` does not choose the page.
    ``since`` and ``until`` are as typed, "" if they are no times; they are in UTC.
    """

    kind: str = ""
    state: str = ""
    text: str = ""
    since: str = ""
    until: str = ""
    newest_first: bool = False
    page: int = 1
    paged: bool = False
    at: int = 0
    opened: tuple[int, ...] = ()

    @classmethod
    def of(cls, query: QueryDict) -> EventFilter:
        """Read the query string; invalid values are ignored."""
        opened = re.findall(r"\d{1,6}", query.get("open", ""))
        since, until = query.get("since", ""), query.get("until", "")
        for name, text in (("since", since), ("until", until)):
            if text and parse_moment(text) is None:
                reject_value(query, name, "a time like 2026-01-31T10:05")
        return cls(
            kind=query.get("type", "")[:40],
            state=query.get("state", "")[:80],
            text=query.get("text", "")[:200].replace("\0", ""),
            since=since if parse_moment(since) is not None else "",
            until=until if parse_moment(until) is not None else "",
            newest_first=choose(query, "order", ["oldest", "newest"]) == "newest",
            page=max(1, _number(query.get("page", ""))),
            paged="page" in query,
            at=_number(query.get("event", "")) or _number(query.get("at", "")),
            opened=tuple(int(number) for number in opened[:MOST_OPEN]),
        )

    @property
    def active(self) -> bool:
        """Whether rows are filtered out."""
        return any((self.kind, self.state, self.text, self.since, self.until))

    @property
    def address(self) -> str:
        """Return the query string for the same filter and order."""
        pairs = {
            "type": self.kind,
            "state": self.state,
            "text": self.text,
            "since": self.since,
            "until": self.until,
            "order": "newest" if self.newest_first else "",
        }
        return urlencode({name: value for name, value in pairs.items() if value})

    def rows(self, execution: Execution) -> QuerySet[HistoryEvent]:
        """Return the matching events, unordered."""
        rows = HistoryEvent.objects.filter(execution_id=execution.pk)
        if self.kind:
            rows = rows.filter(type=self.kind)
        if self.state:
            rows = rows.filter(state=self.state)
        if self.since:
            rows = rows.filter(at_ms__gte=parse_moment(self.since))
        if self.until:
            rows = rows.filter(at_ms__lte=parse_moment(self.until))
        return self._events_with_text(rows, execution) if self.text else rows

    def _events_with_text(
        self, rows: QuerySet[HistoryEvent], execution: Execution
    ) -> QuerySet[HistoryEvent]:
        """Return events that contain the text in their readable parts."""
        matching = rows.filter(_text_condition(self.text))
        masked = masked_execution.masked_execution(execution)
        if not masked.mask.places:
            return matching
        by_name = Q(type__icontains=self.text) | Q(state__icontains=self.text)
        unsaid = [
            number
            for number, text in matching.exclude(by_name)
            .values_list("event_id", "details")
            .iterator()
            if not _holds_text(self.text, masked.event(number, text))
        ]
        return matching.exclude(event_id__in=unsaid)


def parse_moment(text: str) -> int | None:
    """Parse a time to epoch milliseconds, None if invalid. Without a zone it is UTC."""
    if not _MOMENT.fullmatch(text):
        return None
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        return None
    span = read.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return span.days * 86_400_000 + span.seconds * 1000 + span.microseconds // 1000


def _text_condition(text: str) -> Q:
    """Match a text in an event's details: payloads are JSON inside JSON, so try both forms."""
    within = json.dumps(text, ensure_ascii=False)[1:-1]
    condition = Q(type__icontains=text) | Q(state__icontains=text) | Q(details__icontains=text)
    return condition if within == text else condition | Q(details__icontains=within)


def _holds_text(text: str, details: str) -> bool:
    """Whether a row contains the text, as ``_text_condition`` asks the database."""
    within = json.dumps(text, ensure_ascii=False)[1:-1]
    return text.lower() in details.lower() or within.lower() in details.lower()


def _number(text: str) -> int:
    return int(text) if re.fullmatch(r"\d{1,9}", text, re.ASCII) else 0
