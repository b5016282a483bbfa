"""Read what a list says of its executions beside their own columns: error, and where they are.

An execution that runs is in the state it entered last. One that failed has the state it failed in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.db.models import OuterRef, Subquery

from console.masking import masked_execution
from console.models import Execution, HistoryEvent
from console.statuses import ExecutionStatus
from console.store.executions.failed_states import failed_states
from console.web.search import failure_groups
from engine import event_types

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from console.models import Project


@dataclass(frozen=True, slots=True)
class RowFacts:
    """``entered``: the number of the event by which a running execution entered its state, or 0.

    ``error``: as its reader may see it. ``parent``: the execution that started it, if one did.
    """

    error: str = ""
    state: str = ""
    entered: int = 0
    parent: Execution | None = None


def read_row_facts(project: Project, executions: Sequence[Execution]) -> dict[int, RowFacts]:
    """Return execution number -> facts, in a few queries however many executions there are."""
    running = [each.pk for each in executions if each.status == ExecutionStatus.RUNNING]
    failed = [each.pk for each in executions if each.status in failure_groups.STATUSES]
    errors = Execution.stored.filter(pk__in=failed, error__isnull=False)
    masks = masked_execution.masks_of(project, failed)
    states = failed_states(failed)
    error_by_number = {
        number: masks[number].words(error or "")
        for number, error in errors.values_list("pk", "error")
    }
    facts = {
        number: RowFacts(error_by_number.get(number, ""), states.get(number, ""))
        for number in failed
    }
    entered = current_states(running)
    facts |= {number: RowFacts("", *entered[number]) for number in entered}
    parents = _parents_of(project, executions)
    return facts | {
        number: replace(facts.get(number, RowFacts()), parent=parent)
        for number, parent in parents.items()
    }


def _parents_of(project: Project, executions: Sequence[Execution]) -> dict[int, Execution]:
    """Return execution number -> the execution that started it, without a query if none did."""
    number_of_parent = {each.pk: each.parent for each in executions if each.parent is not None}
    if not number_of_parent:
        return {}
    rows = Execution.objects.filter(project=project, pk__in=set(number_of_parent.values()))
    parents = {row.pk: row for row in rows.only("arn", "name", "state_machine_arn", "imported_ms")}
    return {
        number: parents[parent] for number, parent in number_of_parent.items() if parent in parents
    }


def current_states(numbers: Collection[int]) -> dict[int, tuple[str, int]]:
    """Return the state that each running execution entered last, and the number of that event."""
    if not numbers:
        return {}
    entries = HistoryEvent.objects.filter(
        execution=OuterRef("pk"), type__in=event_types.STATE_ENTRIES
    ).order_by("-event_id")
    rows = (
        Execution.objects.filter(pk__in=numbers)
        .annotate(at=Subquery(entries.values("state")[:1]))
        .annotate(entered=Subquery(entries.values("event_id")[:1]))
    )
    return {
        number: (state, event)
        for number, state, event in rows.values_list("pk", "at", "entered")
        if event is not None
    }
