"""Count the child executions of Map Runs per state and by failure, for the graph.

The states inside a distributed Map run in child executions. The graph shows how many children
entered each of them, and their outcomes. A Map Run with too many events is not counted: a page must
not read millions of events, and partial counts would be wrong.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.db.models import Count, F, Func, Q, Subquery

from console.masking import masked_execution
from console.models import Execution, HistoryEvent, RunRow
from console.statuses import ExecutionStatus
from console.web.core import formatting
from console.web.core.formatting import cause_of, normalized_text

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from console.masking.mask import Mask
    from console.models import MapRun, Project

MOST_CHILDREN, MOST_EVENTS = 1_000, 100_000
"""Map Runs with more children, or more events of all of them, are not counted."""
MOST_FAILED = 1_000
"""The maximum number of failed children that are grouped; further ones are only counted."""
MOST_KINDS = 5
FAILURES, OTHER_KINDS = "failures", "other"
"""Filter values of a list of children: by status (failed, timed out), or by a kind not listed."""
_LONGEST = 120
FAILED_STATUSES = (ExecutionStatus.FAILED, ExecutionStatus.TIMED_OUT)
_FAILED_COLUMNS = ("arn", "name", "state_machine_arn", "item_index", "status", "error", "cause")
_KEPT = 64
_ENDED: dict[tuple[tuple[int, str, str], ...], dict[str, ChildCounts]] = {}
"""Stamps of ended Map Runs -> their counts, cached because an open page asks at every poll."""
_OPEN = {
    ExecutionStatus.RUNNING: "running",
    ExecutionStatus.FAILED: "failed",
    ExecutionStatus.TIMED_OUT: "failed",
    ExecutionStatus.ABORTED: "aborted",
}
"""Status of a child -> status of its last, unfinished state."""


@dataclass(slots=True)
class ChildCounts:
    """The number of children that entered a state, by outcome."""

    entered: int = 0
    running: int = 0
    failed: int = 0
    aborted: int = 0

    @property
    def passed(self) -> int:
        """Return the number of children that completed the state."""
        return self.entered - self.running - self.failed - self.aborted

    @property
    def status(self) -> formatting.StatusLabel:
        """Return the label of the worst outcome."""
        tones = ("failed", "running", "aborted")
        tone = next((tone for tone in tones if getattr(self, tone)), "succeeded")
        return formatting.StatusLabel(tone, formatting.IN_CHILD_EXECUTIONS.word)

    @property
    def text(self) -> str:
        """Return the counts in words: ``90 passed · 20 failed``."""
        counts = {
            "passed": self.passed,
            "failed": self.failed,
            "running": self.running,
            "aborted": self.aborted,
        }
        return " · ".join(f"{count:,} {word}" for word, count in counts.items() if count)


@dataclass(frozen=True, slots=True)
class FailureKind:
    """Children of a Map Run with the same failure, by index.

    ``cause``: the common part of their causes; ``pattern``: the key of the group: the cause without
    numbers and ids. ``example``: the cause of the first one, "" if it is ``cause``.
    """

    error: str
    cause: str
    pattern: str
    example: str
    children: tuple[Execution, ...]

    @property
    def count(self) -> int:
        """Return the number of children."""
        return len(self.children)

    @property
    def first(self) -> Execution:
        """Return the child with the lowest index."""
        return self.children[0]

    @property
    def key(self) -> str:
        """Return the key of the kind in URLs."""
        return hashlib.sha256(f"{self.error}\0{self.pattern}".encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class ChildFailures:
    """The failed children of a Map Run by error and cause, most frequent first.

    ``task``: the number of the Map Run in the history of its parent; ``status``: the filter of the
    list of children that shows them; ``waiting``: how many children wait for a redrive.
    """

    task: int
    status: str
    failed: int
    total: int
    kinds: tuple[FailureKind, ...]
    waiting: int = 0

    @property
    def more(self) -> int:
        """Return the number of failed children beyond the listed kinds."""
        return self.failed - sum(kind.count for kind in self.kinds)


def count_children(runs: Collection[MapRun]) -> dict[str, ChildCounts]:
    """Return state name -> counts, over the children of several Map Runs."""
    numbers = [run.pk for run in runs if run.started <= MOST_CHILDREN]
    if not numbers or sum(run.started for run in runs) > MOST_CHILDREN:
        return {}
    key = tuple(sorted((run.pk, run.arn, _stamp(run)) for run in runs))
    if key in _ENDED:
        return _ENDED[key]
    counts = _counted(numbers)
    if all(run.stop_ms is not None for run in runs):  # nothing happens in it until a redrive
        while len(_ENDED) >= _KEPT:
            _ENDED.pop(next(iter(_ENDED)), None)
        _ENDED[key] = counts
    return counts


def _stamp(run: MapRun) -> str:
    """Return a stamp that changes when a child of a Map Run ends or is redriven."""
    ends = (run.started, run.succeeded, run.failed, run.timed_out, run.aborted)
    return repr((run.stop_ms, run.redrive_count, run.pending_redrive, *ends))


def _counted(numbers: Sequence[int]) -> dict[str, ChildCounts]:
    events = RunRow.objects.filter(execution__map_run__in=numbers).order_by()
    total = events.annotate(total=Func(F("next_event"), function="SUM")).values("total")
    rows = (
        HistoryEvent.objects.filter(execution__map_run__in=numbers)
        .alias(total=Subquery(total))  # in the same query, which comes with every page
        .filter(total__lte=MOST_EVENTS)
        .exclude(state="")
        .values_list("execution_id", "execution__status", "state")
        .annotate(
            entered=Count("event_id", filter=Q(type__endswith="StateEntered")),
            left=Count("event_id", filter=Q(type__endswith="StateExited")),
        )
        .order_by()
    )
    counts: dict[str, ChildCounts] = {}
    for _, status, state, entries, exits in rows:
        state_counts = counts.setdefault(state, ChildCounts())
        state_counts.entered += 1
        open_as = _OPEN.get(status) if entries > exits else None
        if open_as is not None:
            setattr(state_counts, open_as, getattr(state_counts, open_as) + 1)
    return counts


def failures_of_children(project: Project, run: MapRun) -> ChildFailures | None:
    """Return the failures of a Map Run's children, None without any."""
    rows = failed_children(run)
    return group_failures(run, rows, masked_execution.masks_of(project, [row.pk for row in rows]))


def failed_children(run: MapRun) -> list[Execution]:
    """Return the first ``MOST_FAILED`` failed children of a Map Run, by index."""
    children = Execution.objects.filter(map_run=run.pk, status__in=FAILED_STATUSES)
    return list(children.order_by("item_index").only(*_FAILED_COLUMNS)[:MOST_FAILED])


def group_failures(
    run: MapRun, rows: Sequence[Execution], masks: Mapping[int, Mask], most: int = MOST_KINDS
) -> ChildFailures | None:
    """Group failed children by their masked error and cause; None without any.

    ``most``: how many kinds are listed. Those that wait for a redrive have failed, too.
    """
    if not rows:
        return None
    statuses = {row.status for row in rows}
    counted = run.failed + run.timed_out
    return ChildFailures(
        run.task,
        FAILURES if len(statuses) > 1 else statuses.pop(),
        len(rows) if len(rows) < MOST_FAILED else max(counted, len(rows)),
        run.total,
        tuple(_kinds(rows, masks)[:most]),
        run.pending_redrive,
    )


def failure_kinds(project: Project, run: MapRun) -> list[FailureKind]:
    """Return the failure kinds of the failed children read, most frequent first.

    The key of a kind is made from the text that the reader may see, so it reveals nothing masked.
    """
    rows = failed_children(run)
    return _kinds(rows, masked_execution.masks_of(project, [row.pk for row in rows]))


def _kinds(rows: Sequence[Execution], masks: Mapping[int, Mask]) -> list[FailureKind]:
    """Return the failure kinds of children, most frequent first."""
    alike: dict[tuple[str, str], list[Execution]] = {}
    causes: dict[int, str] = {}
    for row in rows:
        error = masks[row.pk].words(row.error or "")
        cause = (row.cause and masks[row.pk].payload(row.cause)) or ""
        causes[row.pk] = cause
        pattern = normalized_text(cause).removeprefix(f"{error}: ")
        alike.setdefault((error, pattern), []).append(row)
    kinds = [
        _kind(error, pattern, failed, [causes[row.pk] for row in failed])
        for (error, pattern), failed in alike.items()
    ]
    return sorted(kinds, key=lambda kind: -kind.count)  # stable: the first child decides


def _kind(
    error: str, pattern: str, failed: Sequence[Execution], causes: Sequence[str]
) -> FailureKind:
    """Return a failure kind; its cause is the part common to all causes."""
    example = _short_cause(causes[0])
    if all(cause == causes[0] for cause in causes):
        return FailureKind(error, example, pattern, "", tuple(failed))
    return FailureKind(error, _shortened(pattern), pattern, example, tuple(failed))


def _short_cause(text: str) -> str:
    """Return a cause in one line."""
    cause = cause_of(text)
    words = (cause.message or cause.raw) if cause is not None else ""
    return _shortened(" ".join(words.split()))


def _shortened(words: str) -> str:
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"
