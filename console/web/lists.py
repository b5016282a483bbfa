"""Which machines and executions does a list show?

Pages are cut by key, not by number, so nothing repeats or is skipped while new executions start.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Count, OuterRef, Q, Subquery

from console import clock
from console.models import Execution, StateMachine
from console.web.words import DAY, EXECUTION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet
    from django.http import QueryDict

    from console.web.page import Yard

PAGE = 50
FAILURES = ("FAILED", "TIMED_OUT")
_BARE = ("input", "output", "cause", "error", "trace_header", "definition")


@dataclass(frozen=True, slots=True)
class MachineRow:
    """One machine with what a list says of it; ``last`` is its newest execution's status."""

    machine: StateMachine
    running: int
    failed: int
    last: str | None
    last_ms: int | None


@dataclass(frozen=True, slots=True)
class Machines:
    """A page of machines; ``after`` is the key of the next one, "" at the end."""

    rows: tuple[MachineRow, ...]
    total: int
    after: str


def machines(here: Yard, *, search: str = "", after: str = "", most: int = PAGE) -> Machines:
    """Return machines by name. ``search``: a part of the name."""
    every = StateMachine.objects.filter(project=here.project, region=here.region, status="ACTIVE")
    found = every.filter(name__icontains=search) if search else every
    newest = Execution.objects.filter(state_machine=OuterRef("pk")).order_by("-start_ms", "-id")
    rows = list(
        found.filter(name__gt=after)
        .defer("definition", "logging", "tracing", "encryption")
        .annotate(
            last=Subquery(newest.values("status")[:1]),
            last_ms=Subquery(newest.values("start_ms")[:1]),
        )
        .order_by("name")[: most + 1]
    )
    running = _counts(rows, Q(status="RUNNING"))
    failed = _counts(rows, Q(status__in=FAILURES, start_ms__gte=clock.now_ms() - DAY))
    shown = tuple(
        MachineRow(one, running.get(one.pk, 0), failed.get(one.pk, 0), one.last, one.last_ms)
        for one in rows[:most]
    )
    return Machines(shown, found.count(), shown[-1].machine.name if len(rows) > most else "")


def _counts(rows: Sequence[StateMachine], which: Q) -> dict[int, int]:
    pairs = (
        Execution.objects.filter(which, state_machine__in=[one.pk for one in rows])
        .order_by()
        .values_list("state_machine")
        .annotate(Count("id"))
    )
    return {machine: count for machine, count in pairs if machine is not None}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the reader asked of a list; ``before``: key of the page, "" for the newest."""

    status: str = ""
    search: str = ""
    before: str = ""

    @classmethod
    def of(cls, query: QueryDict) -> Wanted:
        """Read the query string; what makes no sense counts as not said."""
        status = query.get("status", "")
        before = query.get("before", "")
        return cls(
            status=status if status in EXECUTION else "",
            search=query.get("q", "")[:80],
            before=before if re.fullmatch(r"\d{1,15}-\d{1,15}", before) else "",
        )

    @property
    def active(self) -> bool:
        """Tell whether executions are left out."""
        return bool(self.status or self.search)


@dataclass(frozen=True, slots=True)
class Executions:
    """A page of executions, newest first. ``newest``: the highest id in the whole list."""

    rows: tuple[Execution, ...]
    wanted: Wanted
    before: str
    newest: int


def executions(here: Yard, machine: StateMachine | None, wanted: Wanted) -> Executions:
    """Return executions of one machine, or of all."""
    every = _of(here, machine)
    found = every
    if wanted.status:
        found = found.filter(status=wanted.status)
    if wanted.search:
        found = found.filter(name__icontains=wanted.search)
    if wanted.before:
        start, _, number = wanted.before.partition("-")
        found = found.filter(Q(start_ms__lt=start) | Q(start_ms=start, pk__lt=number))
    rows = list(found.defer(*_BARE).order_by("-start_ms", "-pk")[: PAGE + 1])
    newest = every.order_by("-pk").values_list("pk", flat=True).first() or 0
    last = rows[PAGE - 1] if len(rows) > PAGE else None
    before = f"{last.start_ms}-{last.pk}" if last else ""
    return Executions(tuple(rows[:PAGE]), wanted, before, newest)


def newer(here: Yard, machine: StateMachine | None, than: int) -> int:
    """Count the executions that started since the list was drawn."""
    return _of(here, machine).filter(pk__gt=than).count()


def ended(here: Yard, numbers: Sequence[int]) -> list[Execution]:
    """Return those of some executions that are no longer running."""
    rows = Execution.objects.filter(project=here.project, pk__in=list(numbers)[:PAGE])
    return list(rows.exclude(status="RUNNING").defer(*_BARE))


def lately(here: Yard, statuses: Sequence[str], most: int) -> list[Execution]:
    """Return the newest executions with one of these statuses."""
    rows = _of(here, None).filter(status__in=statuses).defer("input", "output", "definition")
    return list(rows.order_by("-start_ms", "-pk")[:most])


def tally(here: Yard) -> dict[str, int]:
    """Return how many run now, and how many ended how in the last 24 hours."""
    since = clock.now_ms() - DAY
    rows = (
        _of(here, None)
        .filter(Q(status="RUNNING") | Q(start_ms__gte=since))
        .order_by()
        .values_list("status")
        .annotate(Count("id"))
    )
    return dict(rows)


def _of(here: Yard, machine: StateMachine | None) -> QuerySet[Execution]:
    # children of Map Runs belong to their run, as in the service's own lists
    rows = Execution.objects.filter(project=here.project, map_run=None)
    if machine is not None:
        return rows.filter(state_machine=machine)
    return rows.filter(arn__startswith=here.arn("execution", ""))
