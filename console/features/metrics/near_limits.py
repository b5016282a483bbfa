"""Find executions that came near an AWS limit, for the metric ``ExecutionsNearLimit``.

History length and duration count when they reach 80 %. Payloads and transitions within a second
count at the end of the execution, because its events are read only then.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from django.db.models import F, Q

import engine
from console.config import aws_rates
from console.models import Execution, HistoryEvent
from console.store.state import history_columns
from engine import event_types

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from django.db.models import QuerySet

NearLimit = tuple[int, int]
"""The number of an execution, and when it came near a limit, in epoch milliseconds."""

_YEAR_MS = engine.MAX_EXECUTION_S * 1000
_EXPRESS_MS = 300_000
_NEAR_EVENT = engine.MAX_EVENTS * 80 // 100
_LEAST_TRANSITIONS = aws_rates.transition_rate("").refill * 80 // 100  # of a small region
_AT_ONCE = 500  # executions whose events one query reads


def near_executions(project: int, span: tuple[int, int]) -> Iterator[NearLimit]:
    """Yield the executions that came near a limit in a period, once per limit."""
    executions = Execution.objects.filter(project=project).order_by()
    yield from _near_time(executions, span)
    yield from _near_history(executions, span)
    yield from _near_payload(executions, span)
    yield from _near_transitions(executions, span)


def _near_time(executions: QuerySet[Execution], span: tuple[int, int]) -> Iterator[NearLimit]:
    for limit_ms, express in ((_YEAR_MS, False), (_EXPRESS_MS, True)):
        near_ms = limit_ms * 80 // 100
        rows = executions.filter(
            Q(stop_ms=None) | Q(stop_ms__gte=F("start_ms") + near_ms),
            start_ms__range=(span[0] - near_ms, span[1] - near_ms),
            arn__contains=":express:" if express else ":execution:",
        )
        for number, start_ms in rows.values_list("pk", "start_ms").iterator():
            yield number, start_ms + near_ms


def _near_history(executions: QuerySet[Execution], span: tuple[int, int]) -> Iterator[NearLimit]:
    long = executions.filter(
        Q(stop_ms=None) | Q(stop_ms__gte=span[0]), runrow__next_event__gt=_NEAR_EVENT
    )
    for numbers in _batches(long):
        events = HistoryEvent.objects.filter(
            execution_id__in=numbers, event_id=_NEAR_EVENT, at_ms__range=span
        )
        yield from events.order_by().values_list("execution_id", "at_ms")


def _near_payload(executions: QuerySet[Execution], span: tuple[int, int]) -> Iterator[NearLimit]:
    ended = executions.filter(stop_ms__range=span)
    for numbers in _batches(ended):
        events = HistoryEvent.objects.filter(execution_id__in=numbers)
        events = events.annotate(size=history_columns.ByteLength("details")).filter(
            size__gte=engine.least_size()
        )
        large = events.order_by("execution_id", "event_id").values_list("execution_id", "event_id")
        near = [
            number
            for number, rows in itertools.groupby(list(large), key=lambda row: row[0])
            if any(history_columns.read_sizes(number, [event]) for _, event in rows)
        ]
        rows = Execution.objects.filter(pk__in=near, stop_ms__range=span).order_by()
        yield from ((number, stop_ms or 0) for number, stop_ms in rows.values_list("pk", "stop_ms"))


def _near_transitions(
    executions: QuerySet[Execution], span: tuple[int, int]
) -> Iterator[NearLimit]:
    """Yield Standard executions that entered states nearly as fast as AWS's bucket refills."""
    ended = executions.filter(stop_ms__range=span, arn__contains=":execution:")
    rows = ended.filter(runrow__next_event__gt=2 * _LEAST_TRANSITIONS).values_list(
        "pk", "stop_ms", "arn"
    )
    for number, stop_ms, arn in rows:
        events = HistoryEvent.objects.filter(
            execution_id=number, type__in=event_types.STATE_ENTRIES
        )
        times = list(events.order_by("event_id").values_list("at_ms", flat=True))
        rate = aws_rates.transition_rate(arn.split(":")[3]).refill
        if engine.most_within_a_second(times) >= rate * 80 // 100:
            yield number, stop_ms or 0


def _batches(executions: QuerySet[Execution]) -> Iterator[Sequence[int]]:
    numbers = iter(list(executions.values_list("pk", flat=True)))
    while batch := list(itertools.islice(numbers, _AT_ONCE)):
        yield batch
