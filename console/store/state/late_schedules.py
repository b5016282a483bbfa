"""Find schedules that are due but have not started an execution."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from django.db.models import Min, Q

from console.models import Delivery, EventRule
from console.statuses import DeliveryStatus

if TYPE_CHECKING:
    from collections.abc import Collection

    from django.db.models import QuerySet

LATE_MS = 30_000
"""Delay from which a schedule counts as late."""
_STARTS = Q(target__address__contains=":stateMachine:") | Q(
    target__address__endswith=":scheduler:::aws-sdk:sfn:startExecution"
)


def late_schedules(now_ms: int, rules: Collection[int]) -> dict[int, int]:
    """Return late schedule -> its earliest missed moment in epoch milliseconds.

    ``rules``: primary keys of the schedules to check. A schedule is late if its event was not
    created, or not sent even once, ``LATE_MS`` after its moment.
    """
    late: defaultdict[int, list[int]] = defaultdict(list)
    for rule, _, moment_ms in _unfired_schedules(now_ms, Q(pk__in=rules)):
        late[rule].append(moment_ms)
    deliveries = _unsent_deliveries(now_ms).filter(target__rule__in=rules).order_by()
    for rule, moment_ms in deliveries.values_list("target__rule").annotate(Min("next_ms")):
        late[rule].append(moment_ms)
    return {rule: min(moments) for rule, moments in late.items()}


def start_delays(now_ms: int) -> dict[int, int]:
    """Return project -> the longest delay of its late scheduled starts, in milliseconds.

    Projects without a late start are missing. Starts that wait for a limit are not late. Deliveries
    to other targets do not count, because a target may be unreachable.
    """
    moments: defaultdict[int, list[int]] = defaultdict(list)
    for _, project, moment_ms in _unfired_schedules(now_ms, Q()):
        moments[project].append(moment_ms)
    starts = _unsent_deliveries(now_ms).filter(_STARTS).order_by()
    for project, moment_ms in starts.values_list("project_id").annotate(Min("next_ms")):
        moments[project].append(moment_ms)
    return {project: now_ms - min(of_project) for project, of_project in moments.items()}


def stuck_delay(now_ms: int) -> int:
    """Return the longest of ``start_delays``, without projects that still start executions.

    A project with very many schedules for one moment delays itself. The server is healthy then and
    should keep serving other projects.
    """
    stuck = [0]
    for project, delay_ms in start_delays(now_ms).items():
        ended = Delivery.objects.filter(_STARTS, project=project, status=DeliveryStatus.DELIVERED)
        newest_ms = ended.order_by("-pk").values_list("ended_ms", flat=True).first() or 0
        if newest_ms < now_ms - LATE_MS:
            stuck.append(delay_ms)
    return max(stuck)


def _unfired_schedules(now_ms: int, which: Q) -> list[tuple[int, int, int]]:
    """Return (rule, project, missed moment) of schedules whose event was not created."""
    before_ms = now_ms - LATE_MS
    due = EventRule.objects.filter(which, Q(next_ms__lte=before_ms) | Q(due_ms__lte=before_ms))
    columns = due.values_list("pk", "project_id", "next_ms", "due_ms")
    return [
        (rule, project, min(ms for ms in (next_ms, due_ms) if ms is not None))
        for rule, project, next_ms, due_ms in columns
    ]


def _unsent_deliveries(now_ms: int) -> QuerySet[Delivery]:
    """Return the late deliveries of schedules without any attempt.

    A pause of all schedules holds them back on purpose.
    """
    return Delivery.objects.filter(
        status__in=(DeliveryStatus.WAITING, DeliveryStatus.SENDING),
        attempts=0,
        last_error="",  # an error: it was tried, and only its dead-letter queue is left
        next_ms__lte=now_ms - LATE_MS,
        project__schedulepause=None,
    ).exclude(target__rule__schedule="")
