"""Count the children and items of a Map Run by state, as DescribeMapRun does.

All but ``results_written`` and ``not_redrivable`` add up to ``total``.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from console.statuses import MapRunStatus
from console.store.executions import redrive
from console.store.map_runs import map_items

if TYPE_CHECKING:
    from console.models import MapRun


@dataclass(frozen=True, slots=True)
class Counts:
    """The number of children or items in each state."""

    pending: int
    running: int
    pending_redrive: int
    succeeded: int
    failed: int
    timed_out: int
    aborted: int
    total: int
    results_written: int
    not_redrivable: int

    @property
    def ended(self) -> int:
        """Return the number of ended children."""
        return self.succeeded + self.failed + self.timed_out + self.aborted


_STATES = [field.name for field in fields(Counts)][:7]


def count_executions(run: MapRun) -> Counts:
    """Count the children by state, from one row, so the sums are consistent."""
    ended = run.succeeded + run.failed + run.timed_out + run.aborted
    return Counts(
        pending=run.total - run.started,
        running=count_running(run),
        pending_redrive=run.pending_redrive,
        succeeded=run.succeeded,
        failed=run.failed,
        timed_out=run.timed_out,
        aborted=run.aborted,
        total=run.total,
        results_written=ended
        if run.status == MapRunStatus.SUCCEEDED and map_items.writer(run)
        else 0,
        not_redrivable=redrive.not_redrivable(run),
    )


def count_running(run: MapRun) -> int:
    """Return the number of running children, without a query."""
    ended = run.succeeded + run.failed + run.timed_out + run.aborted
    return run.started - ended - run.pending_redrive


def count_items(run: MapRun, children: Counts) -> Counts:
    """Count the items: equal to the children, unless the Map makes batches.

    Of a Map with batches, read every batch.
    """
    by_status = map_items.items_by_status(run)
    if by_status is None:
        return children
    counts = {name: by_status[name.upper()] for name in _STATES}
    written = by_status.total() if children.results_written else 0
    return replace(children, **counts, total=by_status.total(), results_written=written)
