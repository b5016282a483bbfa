"""Say in words what a filter of executions means: as chips, and where nothing was found."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from console.web.core import formatting

if TYPE_CHECKING:
    from console.web.search.filters import ExecutionFilters
    from console.web.search.query import SearchCondition

_LABELS = {
    "find": "Payload",
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
    "children": "Map Run children",
    "failure": "Group of failures",
}
_OFFERED_FIELDS = "input.path, output.path, error, cause, name, state"


@dataclass(frozen=True, slots=True)
class FilterChip:
    """One condition. ``address``: the query string without it, "view=" if nothing is left."""

    label: str
    value: str
    address: str


def filter_chips(filters: ExecutionFilters) -> list[FilterChip]:
    """Return the conditions of a filter, each with the address of the list without it."""
    pairs = filters.pairs
    return [
        FilterChip(
            _LABELS[name],
            _chip_value(name, value),
            urlencode([*pairs[:place], *pairs[place + 1 :]]) or "view=",
        )
        for place, (name, value) in enumerate(pairs)
    ]


def _chip_value(name: str, value: str) -> str:
    if name == "status" and value in formatting.EXECUTION:
        return formatting.EXECUTION[value].word
    return value


def search_words(filters: ExecutionFilters) -> list[str]:
    """Return how the search in payloads was understood, a sentence for each part."""
    words = [_condition_words(condition) for condition in filters.find.conditions]
    words += [
        f"“{word}” somewhere in name, input, output, error or cause" for word in filters.find.words
    ]
    last = filters.find.conditions[-1:] if filters.find.words else ()
    for condition in last:
        if isinstance(condition.value, str) and not condition.path:
            both = json.dumps(f"{condition.value} {' '.join(filters.find.words)}")
            words.append(f"A value with blanks needs quotes: {condition.field} = {both}")
    return [formatting.visible_text(each) for each in words]


def _condition_words(condition: SearchCondition) -> str:
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in condition.path)
    value = json.dumps(condition.value, ensure_ascii=False)
    if condition.field == "state":
        return f"running, and in the state {value} now"
    kind = "" if condition.or_text is None else f" (as a number, or the text “{condition.or_text}”)"
    if isinstance(condition.value, str):
        kind = " (the whole text, upper and lower case differ)"
    return f"{condition.field}{path} is {value}{kind}"
