"""Verify the matches of the database on masked texts.

Masked values never match, for any reader: otherwise a search would reveal them bit by bit.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db import connection
from django.db.models import F, Q
from django.db.models.expressions import RawSQL

from console.masking import masked_execution
from console.masking.masked_execution import hide_tokens
from console.models import Execution, HistoryEvent, RunRow
from console.statuses import ExecutionStatus
from console.store.executions.last_states import failing_events
from console.web.history import traces
from console.web.history.traces import details_of
from console.web.search import failures
from console.web.search.query import ANYWHERE, COLUMNS, PAYLOADS, Operator
from engine import EVENT_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from console.masking.mask import Mask
    from console.models import Project
    from console.web.search.filters import ExecutionFilters, Key
    from console.web.search.query import SearchCondition


VERIFY_S = 2.0
"""The time limit of a page for reading payloads of executions."""
_AT_ONCE = 2_000
_MASKED_AT_ONCE = 200
_HISTORIES_AT_ONCE = 50
_MOST_HISTORIES_AT_ONCE = 2_000
_QUICK_S = 0.1
"""Histories are searched in growing portions while a portion takes less time than this."""


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
    for last, candidates in _portions(project, filters, keys):
        numbers = candidates
        if filters.failure:
            alike = failures.list_failures(project, numbers)
            numbers = [failure.number for failure in alike if failure.key == filters.failure]
        for condition in filters.find.events:
            numbers = matching_histories(project, numbers, condition)
        for key, holds in _load_texts(project, filters, numbers):
            if holds:
                passed.append(key)
            if len(passed) == most or time.monotonic() > until:
                return passed, key
        if filters.find.events and time.monotonic() > until and last != keys[-1]:
            return passed, last
    return passed, None


def _portions(
    project: Project, filters: ExecutionFilters, keys: Sequence[Key]
) -> Iterator[tuple[Key, list[int]]]:
    """Yield portions of the executions: the last key, and the executions to check.

    For conditions on histories, the database first excludes executions of many histories at once.
    """
    if not filters.find.events:
        size = _MASKED_AT_ONCE if reads_masked(project, filters) else _AT_ONCE
        for start in range(0, len(keys), size):
            portion = keys[start : start + size]
            yield portion[-1], [number for _, number in portion]
        return
    start, size = 0, _HISTORIES_AT_ONCE
    while start < len(keys):
        portion = keys[start : start + size]
        start += size
        begun = time.monotonic()
        numbers = [number for _, number in portion]
        candidates = set(find_candidates(numbers, filters.find.events))
        is_quick = time.monotonic() - begun < _QUICK_S
        size = 2 * size if is_quick else size // 2
        size = max(_HISTORIES_AT_ONCE, min(size, _MOST_HISTORIES_AT_ONCE))
        checked: list[int] = []
        for key in portion:
            if key[1] in candidates:
                checked.append(key[1])
            if len(checked) == _HISTORIES_AT_ONCE:
                yield key, checked
                checked = []
        yield portion[-1], checked


def _load_texts(
    project: Project, filters: ExecutionFilters, numbers: Sequence[int]
) -> Iterator[tuple[Key, bool]]:
    """Yield each execution with whether it matches, in list order."""
    among = as_subquery(numbers)
    rows = filters.order.ordered(Execution.objects.filter(pk__in=among))
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


MOST_EVENTS = 1_000
"""The number of events that are searched at either end of a history."""
_FAIL = "FailStateEntered"
_FAILURES = sorted(name for name, about in EVENT_TYPES.items() if about.is_failure)
_LONG_AT_ONCE = 50  # SQLite has a limit for the depth of a condition
_MOST_FAILS = 20
"""The number of entries of Fail states inside a Parallel or Map that are read per execution."""


class _EventText(NamedTuple):
    """A masked event."""

    execution: int
    number: int
    type: str
    details: dict[str, Any]


def matching_histories(
    project: Project, numbers: Sequence[int], condition: SearchCondition
) -> list[int]:
    """Return the executions whose history meets a condition on ``history`` or ``caught``."""
    if not numbers:
        return []
    if condition.field == "caught":
        matching = _with_caught_error(project, numbers, condition)
    else:
        text = condition.value.casefold()
        events = _events(project, numbers, _has_text(condition.value))
        matching = {event.execution for event in events if _says(event, text)}
    return [number for number in numbers if number in matching]


def find_candidates(numbers: Sequence[int], conditions: Sequence[SearchCondition]) -> Sequence[int]:
    """Return the executions that the database does not exclude, in the same order.

    Two statements for each condition, and one for each ``_LONG_AT_ONCE`` long histories.
    """
    for condition in conditions:
        if not numbers:
            break
        which = _has_text(condition.value)
        if condition.field == "caught":
            which = _has_failure(condition) | Q(type=_FAIL)
        long = _find_long(numbers)
        ends = [
            Q(execution_id__in=as_subquery(numbers), event_id__lte=MOST_EVENTS),
            *(
                _later_events(long[start : start + _LONG_AT_ONCE])
                for start in range(0, len(long), _LONG_AT_ONCE)
            ),
        ]
        matching: set[int] = set()
        for end in ends:
            rows = HistoryEvent.objects.filter(end, which)
            matching.update(rows.values_list("execution_id", flat=True).distinct())
        numbers = [number for number in numbers if number in matching]
    return numbers


def as_subquery(numbers: Sequence[int]) -> RawSQL:
    """Return a subquery with one parameter for all numbers, to use beside ``__in``.

    Django prepares each value of a list separately, which took half of a search's processor time.
    """
    if connection.vendor == "postgresql":
        return RawSQL("SELECT unnest(%s::bigint[])", [list(numbers)])
    return RawSQL("SELECT value FROM json_each(%s)", [json.dumps(numbers)])


def _has_text(text: str) -> Q:
    """Return the database's condition: an event's type, or its details as JSON."""
    inner = json.dumps(text, ensure_ascii=False)[1:-1]
    return Q(details__icontains=inner) | Q(type__icontains=text)


def _says(event: _EventText, text: str) -> bool:
    return text in event.type.casefold() or any(
        text in leaf.casefold() for leaf in _leaves(event.details)
    )


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for member in value.values():
            yield from _leaves(member)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif value is not None:
        yield value if isinstance(value, str) else json.dumps(value)


def _with_caught_error(
    project: Project, numbers: Sequence[int], condition: SearchCondition
) -> set[int]:
    """Return executions with such an error, handled by a Catcher or Retrier.

    That is every failure but the one that ended the execution.
    """
    named = {
        (event.execution, event.number)
        for event in _events(project, numbers, _has_failure(condition))
        if _is_error(event.details.get("error"), condition)
    }
    fails = _fail_entries(numbers)
    both = {execution for execution, _ in (*named, *fails)}
    ended = Execution.stored.filter(pk__in=both, status=ExecutionStatus.FAILED)
    last = failing_events(list(ended.values_list("pk", flat=True)))
    matching = {execution for execution, number in named if last.get(execution) != number}
    others: dict[int, list[int]] = {}
    for execution, number in fails:
        if execution not in matching and last.get(execution) != number:
            others.setdefault(execution, []).append(number)
    return matching | _with_caught_fail(project, others, condition)


def _has_failure(condition: SearchCondition) -> Q:
    """Return the database's condition: a failure whose details have the text."""
    text = json.dumps(condition.value, ensure_ascii=False)[1:-1]
    return Q(type__in=_FAILURES, details__icontains=text)


def _is_error(error: object, condition: SearchCondition) -> bool:
    if not isinstance(error, str):
        return False
    if condition.operator is Operator.CONTAINS:
        return bool(condition.value.casefold() in error.casefold())
    return bool(error == condition.value)


def _fail_entries(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Return the entries of Fail states, whose errors are in the definition only."""
    rows = HistoryEvent.objects.filter(_looked_at(numbers), type=_FAIL)
    return list(rows.values_list("execution_id", "event_id"))


def _with_caught_fail(
    project: Project, entries: dict[int, list[int]], condition: SearchCondition
) -> set[int]:
    """Return the executions with a caught Fail of the error in a Parallel or Map."""
    matching = set()
    rows = Execution.stored.select_related("definition").filter(pk__in=entries)
    for execution in rows:
        execution.project = project
        masked_execution.mask_execution(execution)
        events = traces.read_events(execution, entries[execution.pk][:_MOST_FAILS])
        with_errors = traces.with_failures(execution, events)
        if any(_is_error(event.details.get("error"), condition) for event in with_errors):
            matching.add(execution.pk)
    return matching


def _events(project: Project, numbers: Sequence[int], which: Q) -> Iterator[_EventText]:
    masks = masked_execution.masks_of(project, numbers)
    rows = HistoryEvent.objects.filter(_looked_at(numbers), which).annotate(arn=F("execution__arn"))
    columns = rows.values_list("execution_id", "event_id", "type", "details", "arn")
    for number, event, kind, details, arn in columns.iterator(chunk_size=200):
        shown = masks[number].details(hide_tokens(details, arn, event))
        yield _EventText(number, event, kind, details_of(shown))


def _looked_at(numbers: Sequence[int]) -> Q:
    """Return the query condition for the searched events."""
    first_events = Q(execution_id__in=as_subquery(numbers), event_id__lte=MOST_EVENTS)
    return first_events | _later_events(_find_long(numbers))


def _find_long(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Return (execution, next event) of the histories that are longer than one end."""
    long = RunRow.objects.filter(
        execution_id__in=as_subquery(numbers), next_event__gt=MOST_EVENTS + 1
    )
    return list(long.values_list("execution_id", "next_event"))


def _later_events(long: Sequence[tuple[int, int]]) -> Q:
    """Return the condition for the searched events at the other end of long histories."""
    later = Q()
    for number, next_event in long:
        first = max(MOST_EVENTS + 1, next_event - MOST_EVENTS)
        later |= Q(execution_id=number, event_id__gte=first)
    return later
