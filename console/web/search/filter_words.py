"""Describe a filter of executions in words: as chips, and as hints if nothing matches."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from console.web.core import formatting
from console.web.search.query import Operator

if TYPE_CHECKING:
    from console.web.search.filters import ExecutionFilters
    from console.web.search.query import SearchCondition

_LABELS = {
    "find": "Search",
    "status": "Status",
    "q": "Name contains",
    "machine": "State machine",
    "version": "Version or alias",
    "from": "Started from",
    "to": "Started to",
    "min": "At least",
    "max": "At most",
    "error": "Error contains",
    "by": "Started by",
    "redriven": "Redriven",
    "paused": "Paused",
    "children": "Map Run children",
    "failure": "Group of failures",
}
_WORDS = {
    "q": "name contains",
    "machine": "state machine is",
    "version": "version or alias is",
    "from": "started from",
    "to": "started up to",
    "min": "took at least",
    "max": "took at most",
    "error": "error contains",
    "by": "started by",
    "failure": "is one of the group of failures",
}
"""Fields of the form in a sentence."""
_COMPARED = {
    Operator.EQUALS: "is",
    Operator.DIFFERS: "is not",
    Operator.ABOVE: "is above",
    Operator.AT_LEAST: "is at least",
    Operator.BELOW: "is below",
    Operator.AT_MOST: "is at most",
    Operator.CONTAINS: "contains",
}
_IN_STATE = {
    Operator.EQUALS: "in",
    Operator.DIFFERS: "not in",
    Operator.CONTAINS: "in a state matching",
}
_AGO = re.compile(r"(?:an?\s+)?(.*\S)\s+ago", re.IGNORECASE)
OPERATOR = re.compile(r"[=<>~]")
"""Expression of the operators that no name of an object of the project has."""
_IN_TIME = {
    Operator.ABOVE: "after",
    Operator.AT_LEAST: "at or after",
    Operator.BELOW: "before",
    Operator.AT_MOST: "at or before",
}


@dataclass(frozen=True, slots=True)
class FilterChip:
    """One condition. ``address``: the query string without it, or "view=" if empty."""

    label: str
    value: str
    address: str


def filter_chips(filters: ExecutionFilters) -> list[FilterChip]:
    """Return the conditions of a filter, each with the URL of the list without it."""
    pairs = filters.pairs
    return [
        FilterChip(
            _LABELS[name],
            _chip_value(filters, name, value),
            urlencode([*pairs[:place], *pairs[place + 1 :], *filters.order_pairs]) or "view=",
        )
        for place, (name, value) in enumerate(pairs)
    ]


def _chip_value(filters: ExecutionFilters, name: str, value: str) -> str:
    if name == "status" and value in formatting.EXECUTION:
        return formatting.EXECUTION[value].word
    if name == "find" and filters.find:
        return " and ".join(_search_words(filters))
    return value


def understood_words(filters: ExecutionFilters) -> str:
    """Return one sentence on the search as understood, "" without a search."""
    parts = [_status_words(filters), *_field_words(filters), *_search_words(filters)]
    return formatting.visible_text(" and ".join(part for part in parts if part))


def _search_words(filters: ExecutionFilters) -> list[str]:
    """Return each search condition in words, and the searched fields of each word."""
    words = [
        f"“{word}” somewhere in name, input, output, error or cause" for word in filters.find.words
    ]
    return [*map(_condition_words, filters.find.conditions), *words]


class SearchHint(NamedTuple):
    """A suggestion: texts of the search field and of the name filter."""

    text: str
    find: str
    name: str | None = None


def search_hints(filters: ExecutionFilters) -> list[SearchHint]:
    """Return suggestions for a search without matches."""
    hints = []
    find, name = filters.find, filters.search or None
    if name and OPERATOR.search(name):
        asked = " ".join(filter(None, (filters.typed["find"], name)))
        hints.append(SearchHint("This field searches names only. Search instead:", asked))
    last = find.conditions[-1] if find.words and find.conditions else None
    if last is not None and isinstance(last.value, str) and not last.path:
        both = json.dumps(f"{last.value} {' '.join(find.words)}", ensure_ascii=False)
        asked = f"{last.field} {last.operator} {both}"
        hints.append(SearchHint("Put a value with blanks in quotes:", asked, name))
    if find.words and not find.events:
        text = json.dumps(" ".join(find.words), ensure_ascii=False)
        asked = f"history ~ {text}"
        hints.append(SearchHint("Search histories with:", asked, name))
    for condition in find.conditions:
        if condition.field == "error":
            value = json.dumps(condition.value, ensure_ascii=False)
            words = "Search caught or retried errors with:"
            hints.append(SearchHint(words, f"caught {condition.operator} {value}", name))
    return hints


def _status_words(filters: ExecutionFilters) -> str:
    return f"status is {' or '.join(filters.statuses)}" if filters.statuses else ""


def _field_words(filters: ExecutionFilters) -> list[str]:
    """Return the form's fields in words, without status and search."""
    return [
        f"{_WORDS.get(name, _LABELS[name].lower())} “{value}”"
        for name, value in filters.pairs
        if name not in ("status", "find")
    ]


def _condition_words(condition: SearchCondition) -> str:
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in condition.path)
    field = f"{condition.field}{path}"
    compared = _COMPARED[condition.operator]
    if condition.field in ("started", "ended"):
        ago = _AGO.fullmatch(condition.typed)
        if ago is not None:
            later = condition.operator in (Operator.ABOVE, Operator.AT_LEAST)
            return f"{field} {'in the last' if later else 'longer ago than'} {ago[1]}"
        compared = _IN_TIME[condition.operator]
        return f"{field} {compared} {formatting.clock_text(condition.value)} UTC"
    if condition.field in ("duration", "age"):
        return f"{field} {compared} {formatting.duration_text(condition.value)}"
    if condition.field == "status":
        return f"status {compared} {condition.value}"
    value = json.dumps(condition.value, ensure_ascii=False)
    if condition.operator is Operator.CONTAINS:
        value = f"“{condition.typed}”"
    if condition.field == "state":
        return f"running, now {_IN_STATE[condition.operator]} {value}"
    if condition.field == "caught":
        return f"caught or retried error {compared} {value}"
    if condition.field == "history":
        return f"history {compared} {value}"
    return f"{field} {compared} {value}{_kind_words(condition)}"


def _kind_words(condition: SearchCondition) -> str:
    """Return a note on exactly compared values."""
    exact = condition.operator in (Operator.EQUALS, Operator.DIFFERS)
    if exact and condition.or_text is None and isinstance(condition.value, str):
        return " (exact match)"
    return ""
