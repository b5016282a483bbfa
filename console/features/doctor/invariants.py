"""Check the invariants I1 to I17: what the engine promises of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.features.doctor import (
    attempts,
    fencing,
    order,
    orphans,
    pages,
    progress,
    results,
    states,
    timing,
)
from console.features.doctor.found import batches
from console.features.doctor.violation import Violation
from console.features.doctor.walk import Walk
from console.models import Definition, Execution

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.db.models import QuerySet

    from console.features.doctor.found import FoundExecution

    Check = Callable[[FoundExecution, Walk], Iterator[tuple[str, str]]]

OF_EXECUTIONS: tuple[Check, ...] = (
    progress.check_progress,
    progress.counts,
    progress.rest,
    fencing.named,
    fencing.fence,
    order.numbering,
    order.ending,
    states.visits,
    states.outcomes,
    attempts.attempts,
    timing.never_early,
    results.in_order,
    pages.stitched,
)
"""Every check of one execution: it yields the invariant's id and what is wrong."""


@dataclass
class Checked:
    """How much was looked at."""

    n: int = 0


def check(
    executions: QuerySet[Execution] | None = None, checked: Checked | None = None
) -> Iterator[Violation]:
    """Yield the violations of the executions, a batch at a time.

    ``executions``: None for all, and for the rows that are of none.
    """
    for batch in batches(Execution.objects.all() if executions is None else executions):
        for record in batch:
            yield from of_execution(record)
        if checked is not None:
            checked.n += len(batch)
    if executions is None:
        yield from orphans.orphans()


def of_execution(record: FoundExecution) -> Iterator[Violation]:
    """Yield the violations of one execution; an unreadable row is a violation, too."""
    walk = Walk(record.events)
    for invariant in OF_EXECUTIONS:
        try:
            for number, problem in invariant(record, walk):
                yield Violation(number, record.execution.arn, problem)
        except Definition.DoesNotExist:
            continue  # I17 says so
        except (KeyError, IndexError, ValueError, TypeError) as error:
            where = f"{invariant.__module__.rpartition('.')[2]}.{invariant.__name__}"
            yield Violation("I3", record.execution.arn, f"{where} cannot read its rows: {error!r}")


__all__ = ["OF_EXECUTIONS", "Checked", "Violation", "check", "of_execution"]
