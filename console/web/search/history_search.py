"""Search the masked histories of executions, within a limit of events.

The first and the last ``MOST_EVENTS`` events of each execution are searched. The database excludes
events without the text; the others are masked, parsed and checked again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db.models import F, Q

from console.masking import masked_execution
from console.masking.token_display import hide_tokens
from console.models import Execution, HistoryEvent, RunRow
from console.statuses import ExecutionStatus
from console.store.executions.failed_states import failing_events
from console.web.history import traces
from console.web.history.traces import details_of
from console.web.search.query import Operator
from engine import EVENT_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from console.models import Project
    from console.web.search.query import SearchCondition

MOST_EVENTS = 1_000
"""How many events are looked at from either end of a history."""
_FAIL = "FailStateEntered"
_FAILURES = sorted(name for name, about in EVENT_TYPES.items() if about.is_failure)
_MOST_FAILS = 20
"""How many entries of Fail states inside a Parallel or Map are looked at in one execution."""


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
    text = json.dumps(condition.value, ensure_ascii=False)[1:-1]
    failures = Q(type__in=_FAILURES, details__icontains=text)
    named = {
        (event.execution, event.number)
        for event in _events(project, numbers, failures)
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
    looked_at = Q(execution_id__in=numbers, event_id__lte=MOST_EVENTS)
    long = RunRow.objects.filter(execution_id__in=numbers, next_event__gt=MOST_EVENTS + 1)
    for number, next_event in long.values_list("execution_id", "next_event"):
        first = max(MOST_EVENTS + 1, next_event - MOST_EVENTS)
        looked_at |= Q(execution_id=number, event_id__gte=first)
    return looked_at
