"""Verify the matches of the database on masked texts.

Masked values never match, for any reader: otherwise a search would reveal them bit by bit.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from console.masking import masked_execution
from console.models import Execution
from console.web.search import failure_groups, history_search
from console.web.search.query import ANYWHERE, COLUMNS, PAYLOADS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from console.masking.mask import Mask
    from console.models import Project
    from console.web.search.filters import ExecutionFilters
    from console.web.search.key_order import Key

VERIFY_S = 2.0
"""For how long a page looks into executions at most."""
_AT_ONCE = 2_000
_MASKED_AT_ONCE = 200
_HISTORIES_AT_ONCE = 50


def needs_verifying(project: Project, filters: ExecutionFilters) -> bool:
    """Whether the database alone cannot decide."""
    find = filters.find
    return bool(find.inner or find.events or filters.failure or reads_masked(project, filters))


def reads_masked(project: Project, filters: ExecutionFilters) -> bool:
    """Whether a match could be in a masked value."""
    return bool(project.masked and (filters.find or filters.error))


def verify_matches(
    project: Project, filters: ExecutionFilters, keys: Sequence[Key], most: int
) -> tuple[list[Key], Key | None]:
    """Return the matching keys, and how far was checked; None: all."""
    passed: list[Key] = []
    until = time.monotonic() + VERIFY_S
    chunk = _MASKED_AT_ONCE if reads_masked(project, filters) else _AT_ONCE
    chunk = _HISTORIES_AT_ONCE if filters.find.events else chunk
    for at in range(0, len(keys), chunk):
        numbers = [number for _, number in keys[at : at + chunk]]
        if filters.failure:
            alike = failure_groups.list_failures(project, numbers)
            numbers = [failure.number for failure in alike if failure.key == filters.failure]
        for condition in filters.find.events:
            numbers = history_search.matching_histories(project, numbers, condition)
        for key, holds in _load_texts(project, filters, numbers):
            if holds:
                passed.append(key)
            if len(passed) == most or time.monotonic() > until:
                return passed, key
        if filters.find.events and time.monotonic() > until and at + chunk < len(keys):
            return passed, keys[at + chunk - 1]
    return passed, None


def _load_texts(
    project: Project, filters: ExecutionFilters, numbers: Sequence[int]
) -> Iterator[tuple[Key, bool]]:
    """Yield each execution with whether it matches, in list order."""
    rows = filters.order.ordered(Execution.objects.filter(pk__in=numbers))
    if not reads_masked(project, filters):
        holds = filters.find.checker()
        read = rows.values_list("start_ms", "pk", *filters.find.columns)
        for start, number, *texts in read.iterator(chunk_size=100):
            yield (start, number), holds(texts)
        return
    masks = masked_execution.masks_of(project, numbers)
    names = (*ANYWHERE, *(COLUMNS["state"],) * filters.find.asks("state"))
    rows_read = rows.values_list("start_ms", "pk", *names)
    for start, number, *texts in rows_read.iterator(chunk_size=100):
        stored = dict(zip(names, texts, strict=True))
        yield (start, number), _holds(filters, _masked_texts(stored, masks[number]), stored)


def _masked_texts(row: Mapping[str, str | None], mask: Mask) -> dict[str, str | None]:
    """Return the masked texts of an execution; its name is in its URL anyway."""
    return {
        name: text
        if text is None or name not in (*PAYLOADS, "error", "cause")
        else mask.words(text)
        if name == "error"
        else mask.payload(text)
        for name, text in row.items()
    }


def _holds(
    filters: ExecutionFilters, row: Mapping[str, str | None], stored: Mapping[str, str | None]
) -> bool:
    if filters.error.lower() not in (row["error"] or "").lower():
        return False
    return filters.find.holds(row, stored)
