"""List the child executions of a Map Run page by page, by status or by item."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from django.db.models import Q

from console.masking import masked_execution
from console.models import Execution
from console.statuses import ExecutionStatus
from console.store.executions import redrive
from console.web.core import formatting
from console.web.execution import child_counts
from console.web.search.filters import STATUSES
from console.web.search.scan import BARE

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from django.db.models import QuerySet
    from django.http import QueryDict

    from console.masking.mask import Mask
    from console.models import MapRun
    from console.web.core.scope import Scope

PAGE = 50
MOST_KINDS = 10
"""How many kinds of failures the page lists; the others are one more."""
_NOT_LISTED = [name for name in BARE if name != "error"]


class ChildOrder(StrEnum):
    """The order of the list."""

    FAILED = "failed"  # failed, timed out, aborted, running, succeeded; by item within each
    ITEM = "item"  # by item


_PARTS: dict[str, ExecutionStatus | None] = {
    "f": ExecutionStatus.FAILED,
    "t": ExecutionStatus.TIMED_OUT,
    "a": ExecutionStatus.ABORTED,
    "r": ExecutionStatus.RUNNING,
    "": None,  # succeeded children
}
"""Letter of the mark -> status, in the order of ``ChildOrder.FAILED``."""


@dataclass(frozen=True, slots=True)
class ChildFilter:
    """The filter of the list. ``status``: as in the URL, "" for all.

    ``kind``: the failure kind of the children. ``others``: children of no listed kind; ``nothing``:
    the requested kind does not exist.
    """

    status: str = ""
    kind: child_counts.FailureKind | None = None
    others: bool = False
    nothing: bool = False

    @property
    def statuses(self) -> Collection[str] | None:
        """Return the statuses of the listed children, None for all."""
        if self.status and self.status != child_counts.FAILURES:
            return (self.status,)
        narrowed = self.status or self.kind or self.others or self.nothing
        return child_counts.FAILED_STATUSES if narrowed else None


def oldest_running_ms(run: MapRun) -> int | None:
    """Return the start of the longest running child, None if none is running.

    That is the one with the lowest index: they begin in this order, but for those redriven.
    """
    running = Execution.objects.filter(map_run=run, status=ExecutionStatus.RUNNING)
    return running.order_by("item_index").values_list("start_ms", flat=True).first()


@dataclass(frozen=True, slots=True)
class ChildPage:
    """A page of children. ``after``: the position of the next page.

    ``rows``: (child, its status, its error as it may be read). ``masks``: of those with an error,
    and of the executions that were asked for beside. ``first``: number of the first row of ``of``.
    """

    rows: tuple[tuple[Execution, formatting.StatusLabel, str], ...]
    filter: ChildFilter
    order: ChildOrder
    begun: bool
    after: str
    first: int
    of: int
    masks: Mapping[int, Mask]

    @property
    def last(self) -> int:
        """Return the number of the last row."""
        return self.first + len(self.rows) - 1


def list_children(
    scope: Scope, run: MapRun, query: QueryDict, beside: Sequence[Execution] = ()
) -> ChildPage:
    """Return the children for a query: ``status``, ``kind``, ``order``, ``after``.

    ``beside``: other executions to return the masks of, in the same queries.
    """
    children, narrowed = _filtered(scope, run, query)
    listing = ChildListing(run, children, query, narrowed.statuses)
    rows, before = listing.rows(PAGE + 1), listing.before()
    shown = rows[:PAGE]
    waiting = _waiting_among(run, shown)
    masked = {row.pk for row in shown if row.error} | {row.pk for row in beside}
    masks = masked_execution.masks_of(scope.project, masked) if masked else {}
    return ChildPage(
        tuple(
            (
                execution,
                _child_status(execution, waits=execution.pk in waiting),
                masks[execution.pk].words(execution.error) if execution.error else "",
            )
            for execution in shown
        ),
        narrowed,
        listing.order,
        before > 0,
        listing.mark_of(shown[-1]) if len(rows) > PAGE else "",
        before + 1,
        run.started if narrowed.statuses is None else children.count(),
        masks,
    )


def _filtered(
    scope: Scope, run: MapRun, query: QueryDict
) -> tuple[QuerySet[Execution], ChildFilter]:
    """Return the children for a query string, and the filter."""
    children = Execution.objects.filter(map_run=run)
    key = query.get("kind", "")
    if key:
        kinds = child_counts.failure_kinds(scope.project, run)
        if key == child_counts.OTHER_KINDS:
            listed = _items_of(kinds[:MOST_KINDS])
            others = children.filter(status__in=child_counts.FAILED_STATUSES)
            return others.exclude(item_index__in=listed), ChildFilter(others=True)
        kind = next((each for each in kinds if each.key == key), None)
        children = children.filter(item_index__in=_items_of([kind] if kind else []))
        return children, ChildFilter(kind=kind, nothing=kind is None)
    status = query.get("status", "")
    if status == child_counts.FAILURES:
        return children.filter(status__in=child_counts.FAILED_STATUSES), ChildFilter(status)
    if status in STATUSES:
        return children.filter(status=status), ChildFilter(status)
    return children, ChildFilter()


def _items_of(kinds: Collection[child_counts.FailureKind]) -> list[int | None]:
    return [child.item_index for kind in kinds for child in kind.children]


class ChildListing:
    """Children of a Map Run in an order, from a position.

    A mark is the index of an item, after the letter of the part that is listed. Each part is read
    by the index of children, so that a page of the first failures sorts no Map Run of 10,000.
    ``statuses``: those that the children may have, None for all.
    """

    def __init__(
        self,
        run: MapRun,
        children: QuerySet[Execution],
        query: QueryDict,
        statuses: Collection[str] | None,
    ) -> None:
        asked = query.get("order", "")
        self.order = ChildOrder(asked) if asked in list(ChildOrder) else ChildOrder.FAILED
        self._run, self._statuses = run, statuses
        self._children = children
        mark = re.fullmatch(r"([ftar]?)(\d{1,9})", query.get("after", ""), re.ASCII)
        self._after = int(mark[2]) if mark else None
        self._part = mark[1] if mark else next(iter(_PARTS))

    def rows(self, most: int) -> list[Execution]:
        """Return the first children after the position."""
        if self.order is ChildOrder.ITEM:
            return self._read(Q(), self._after, most)
        rows: list[Execution] = []
        for letter in list(_PARTS)[list(_PARTS).index(self._part) :]:
            if len(rows) < most and self._may_have(letter):
                after = self._after if letter == self._part else None
                rows += self._read(_of_part(letter), after, most - len(rows))
        return rows

    def before(self) -> int:
        """Return the number of children before the first one; no query on the first page."""
        if self._after is None:
            return 0
        passed = Q(item_index__lte=self._after)
        if self.order is ChildOrder.FAILED:
            passed &= _of_part(self._part)
            for letter in list(_PARTS)[: list(_PARTS).index(self._part)]:
                passed |= _of_part(letter)
        return self._children.filter(passed).count()

    def mark_of(self, child: Execution) -> str:
        """Return the position after a child, the last one of a page."""
        letters = {status: letter for letter, status in _PARTS.items()}
        part = letters.get(ExecutionStatus(child.status), "")
        return f"{part if self.order is ChildOrder.FAILED else ''}{child.item_index}"

    def _may_have(self, letter: str) -> bool:
        """Whether a part may have children; unknown while some wait for a redrive."""
        if self._statuses is not None:
            return (_PARTS[letter] or ExecutionStatus.SUCCEEDED) in self._statuses
        run = self._run
        ends = {"f": run.failed, "t": run.timed_out, "a": run.aborted, "": run.succeeded}
        running = run.started - sum(ends.values())
        return bool(run.pending_redrive or ends.get(letter, running))

    def _read(self, part: Q, after: int | None, most: int) -> list[Execution]:
        children = self._children.filter(part)
        if after is not None:
            children = children.filter(item_index__gt=after)
        return list(children.order_by("item_index").defer(*_NOT_LISTED)[:most])


def _of_part(letter: str) -> Q:
    status = _PARTS[letter]
    named = [each for each in _PARTS.values() if each is not None]
    return ~Q(status__in=named) if status is None else Q(status=status)


def _waiting_among(run: MapRun, children: Sequence[Execution]) -> set[int]:
    """Return the children that wait for their run's redrive; no query if none does."""
    if not run.pending_redrive:
        return set()
    rows = Execution.objects.filter(redrive.waiting_children(run))
    return set(rows.filter(pk__in=[child.pk for child in children]).values_list("pk", flat=True))


def _child_status(child: Execution, *, waits: bool) -> formatting.StatusLabel:
    return formatting.EXECUTION[ExecutionStatus.PENDING_REDRIVE if waits else child.status]
