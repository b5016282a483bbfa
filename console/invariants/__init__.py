"""Check the invariants I1 to I17: what the engine promises of its rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.invariants import (
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
from console.invariants.found import batches
from console.invariants.violation import Violation
from console.invariants.walk import Walk
from console.models import Definition, Execution

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from django.db.models import QuerySet

    from console.invariants.found import FoundExecution

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
    wanted: QuerySet[Execution] | None = None, checked: Checked | None = None
) -> Iterator[Violation]:
    """Yield what is wrong with the executions, some at a time.

    ``wanted``: None for all, and for the rows that are of none.
    """
    for batch in batches(Execution.objects.all() if wanted is None else wanted):
        for found in batch:
            yield from of_execution(found)
        if checked is not None:
            checked.n += len(batch)
    if wanted is None:
        yield from orphans.orphans()


def of_execution(found: FoundExecution) -> Iterator[Violation]:
    """Yield what is wrong with one execution; a check that its rows break says so."""
    walk = Walk(found.events)
    for one in OF_EXECUTIONS:
        try:
            for number, what in one(found, walk):
                yield Violation(number, found.execution.arn, what)
        except Definition.DoesNotExist:
            continue  # I17 says so
        except (KeyError, IndexError, ValueError, TypeError) as error:
            where = f"{one.__module__.rpartition('.')[2]}.{one.__name__}"
            yield Violation("I3", found.execution.arn, f"{where} cannot read its rows: {error!r}")


__all__ = ["OF_EXECUTIONS", "Checked", "Violation", "check", "of_execution"]
