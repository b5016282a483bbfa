"""List the child executions of a Map Run: those that ended badly first, a page at a time."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from console.masking import masked_execution
from console.models import Execution
from console.statuses import ExecutionStatus
from console.web.core import formatting
from console.web.execution import child_counts
from console.web.search.filters import BAD_ENDS, STATUSES
from console.web.search.scan import BARE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from django.db.models import QuerySet
    from django.http import QueryDict

    from console.masking.mask import Mask
    from console.models import MapRun
    from console.web.core.scope import Scope

PAGE = 50
_NOT_LISTED = [name for name in BARE if name != "error"]


class ChildOrder(StrEnum):
    """In which order children are listed."""

    FAILED = "failed"  # those that ended badly first, then by item
    ITEM = "item"  # by item


@dataclass(frozen=True, slots=True)
class ChildPage:
    """A page of children. ``status``, ``kind``: those asked for; ``after``: the next page.

    ``rows``: (child, its status, its error as it may be read). ``masks``: of those with an error,
    and of the executions that were asked for beside. ``first``: number of the first row of ``of``.
    """

    rows: tuple[tuple[Execution, formatting.StatusLabel, str], ...]
    status: str
    kind: child_counts.FailureKind | None
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
    """Return those the query string asks for: ``status``, ``kind``, ``order``, ``after`` which one.

    ``beside``: other executions to return the masks of, in the same queries.
    """
    asked_status, asked_kind = query.get("status", ""), query.get("kind", "")
    status = asked_status if asked_status in STATUSES else ""
    children = Execution.objects.filter(map_run=run)
    if status:
        children = children.filter(status=status)
    kind = None
    if asked_kind:
        kind = child_counts.failure_kind(scope.project, run, asked_kind)
        failed = kind.children if kind is not None else ()
        children = children.filter(item_index__in=[child.item_index for child in failed])
    listing = ChildListing(run, children, query, whole=not status and not asked_kind)
    rows, before = listing.rows(PAGE + 1), listing.before()
    shown = rows[:PAGE]
    masked = {row.pk for row in shown if row.error} | {row.pk for row in beside}
    masks = masked_execution.masks_of(scope.project, masked) if masked else {}
    return ChildPage(
        tuple(
            (
                execution,
                _child_status(run, execution),
                masks[execution.pk].words(execution.error) if execution.error else "",
            )
            for execution in shown
        ),
        status,
        kind,
        listing.order,
        before > 0,
        listing.mark_of(shown[-1]) if len(rows) > PAGE else "",
        before + 1,
        run.started if listing.whole else children.count(),
        masks,
    )


class ChildListing:
    """Children of a Map Run in an order, from the one after a mark.

    A mark is the index of an item, after "f" while those that ended badly are listed. Each part is
    read by the index of children, so that a page of the first failures sorts no Map Run of 10,000.
    """

    def __init__(
        self, run: MapRun, children: QuerySet[Execution], query: QueryDict, *, whole: bool
    ) -> None:
        asked = query.get("order", "")
        self.order = ChildOrder(asked) if asked in list(ChildOrder) else ChildOrder.FAILED
        self.whole = whole
        self._children = children
        self._bad = run.failed + run.timed_out + run.aborted + run.pending_redrive
        self._others = run.started - self._bad
        self._parts = whole and self.order is ChildOrder.FAILED and self._bad > 0
        mark = re.fullmatch(r"(f?)(\d{1,9})", query.get("after", ""), re.ASCII)
        self._after = int(mark[2]) if mark else None
        self._among_bad = self._parts and (mark is None or bool(mark[1]))

    def rows(self, most: int) -> list[Execution]:
        """Return the first ones after the mark."""
        if not self._among_bad:
            return self._read(self._later, most)
        rows = self._read(self._ended_badly, most)
        if len(rows) < most and self._others > 0:
            rest = self._later.order_by("item_index").defer(*_NOT_LISTED)
            rows += rest[: most - len(rows)]
        return rows

    def before(self) -> int:
        """Return how many stand before the first one, without a query on the first page."""
        if self._after is None:
            return 0
        if self._among_bad:
            return self._ended_badly.filter(item_index__lte=self._after).count()
        passed = self._later.filter(item_index__lte=self._after).count()
        return passed + (self._ended_badly.count() if self._parts else 0)

    def mark_of(self, child: Execution) -> str:
        """Return the mark of a child that is the last one of a page."""
        bad = self._parts and child.status in BAD_ENDS
        return f"{'f' if bad else ''}{child.item_index}"

    @property
    def _ended_badly(self) -> QuerySet[Execution]:
        return self._children.filter(status__in=BAD_ENDS)

    @property
    def _later(self) -> QuerySet[Execution]:
        """Return those that are listed after those that ended badly, or all of them."""
        return self._children.exclude(status__in=BAD_ENDS) if self._parts else self._children

    def _read(self, children: QuerySet[Execution], most: int) -> list[Execution]:
        if self._after is not None:
            children = children.filter(item_index__gt=self._after)
        return list(children.order_by("item_index").defer(*_NOT_LISTED)[:most])


def _child_status(run: MapRun, child: Execution) -> formatting.StatusLabel:
    waits = run.pending_redrive and (child.stop_ms or 0) <= (run.redrive_ms or 0)
    key = ExecutionStatus.PENDING_REDRIVE if waits and child.status in BAD_ENDS else child.status
    return formatting.EXECUTION[key]
