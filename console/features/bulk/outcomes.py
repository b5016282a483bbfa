"""Count the outcomes of a bulk job, and the present statuses of its executions, for its page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Count

from console.features.bulk.models import BulkItem
from console.features.bulk.store import NOT_RUNNING
from console.models import Execution
from console.statuses import BulkAction, BulkItemStatus, ExecutionStatus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.features.bulk.models import BulkJob

_STARTS = (BulkAction.START, BulkAction.REPLAY)
"""The actions that start new executions."""


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """The present statuses of the executions that a job redrove or started; they add up."""

    total: int
    succeeded: int
    failed: int
    running: int
    aborted: int
    deleted: int


@dataclass(frozen=True, slots=True)
class JobResult:
    """Counts of a job's items by outcome. ``ended``: already ended before the stop."""

    action: str
    done: int
    ended: int
    failed: int
    remaining: int

    @property
    def parts(self) -> list[tuple[str, str]]:
        """Return tone and words of each nonzero count: ``3 stopped``."""
        done = {
            BulkAction.STOP: "stopped",
            BulkAction.REDRIVE: "redriven",
            BulkAction.START: "started again",
            BulkAction.PAUSE: "paused",
            BulkAction.RESUME: "resumed",
            BulkAction.REPLAY: "replayed",
        }[BulkAction(self.action)]
        counts = (
            ("succeeded", self.done, done),
            ("idle", self.ended, "already ended"),
            ("failed", self.failed, "failed" if self.action == BulkAction.STOP else "refused"),
            ("running", self.remaining, "to do"),
        )
        return [(tone, f"{count:,} {word}") for tone, count, word in counts if count]


def count_results(jobs: Sequence[BulkJob]) -> dict[int, JobResult]:
    """Return job -> counts of its items so far. Two queries that read an index."""
    items = BulkItem.objects.filter(job__in=[job.pk for job in jobs]).order_by()
    counts: dict[int, dict[str, int]] = {job.pk: {} for job in jobs}
    for number, status, count in items.values_list("job_id", "status").annotate(Count("position")):
        counts[number][status] = count
    late = items.filter(status=BulkItemStatus.REFUSED, error=NOT_RUNNING)
    ended = dict(late.values_list("job_id").annotate(Count("position")))
    results = {}
    for job in jobs:
        done = counts[job.pk].get(BulkItemStatus.DONE, 0)
        refused = counts[job.pk].get(BulkItemStatus.REFUSED, 0)
        late_count = ended.get(job.pk, 0)
        results[job.pk] = JobResult(
            *(job.action, done, late_count, refused - late_count),
            remaining=sum(counts[job.pk].values()) - done - refused,
        )
    return results


def count_outcomes(job: BulkJob) -> JobOutcome | None:
    """Return the present statuses of the executions a job redrove or started; None for other jobs.

    Two queries, limited by the size of a job.
    """
    if job.action not in (BulkAction.REDRIVE, *_STARTS):
        return None
    done = BulkItem.objects.filter(job=job, status=BulkItemStatus.DONE)
    rows = Execution.objects.filter(project=job.project_id)
    if job.action in _STARTS:
        rows = rows.filter(arn__in=done.values("result"))
    else:
        rows = rows.filter(pk__in=done.values("number"))
    counts = dict(rows.order_by().values_list("status").annotate(Count("pk")))
    total, there = done.count(), sum(counts.values())
    return JobOutcome(
        total=total,
        succeeded=counts.get(ExecutionStatus.SUCCEEDED, 0),
        failed=counts.get(ExecutionStatus.FAILED, 0) + counts.get(ExecutionStatus.TIMED_OUT, 0),
        running=counts.get(ExecutionStatus.RUNNING, 0),
        aborted=counts.get(ExecutionStatus.ABORTED, 0),
        deleted=max(total - there, 0),
    )


def statuses_now(job: BulkJob, items: Sequence[BulkItem]) -> dict[int, str]:
    """Return position -> present status of the execution, for executions that still exist.

    For an item that started a new execution, its status. At most two queries.
    """
    rows = Execution.objects.filter(project=job.project_id)
    started = {item.result: item.position for item in items if item.result}
    others = {item.number: item.position for item in items if not item.result}
    statuses: dict[int, str] = {}
    if started:
        named = rows.filter(arn__in=started).values_list("arn", "status")
        statuses |= {started[arn]: status for arn, status in named}
    if others:
        numbered = rows.filter(pk__in=others).values_list("pk", "status")
        statuses |= {others[number]: status for number, status in numbered}
    return statuses
