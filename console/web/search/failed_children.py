"""Say what can be done about kinds of failed children of Map Runs: their parents redrive them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.models import Execution
from console.statuses import BulkAction
from console.store.executions.refusals import refusals_of
from console.web.search import scan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.models import Project
    from console.web.search.failure_groups import FailureGroup

MOST_PARENTS = 100
"""How many executions one address names."""


@dataclass(frozen=True, slots=True)
class MapRunsOfKind:
    """Where children of one kind failed: ``task``, ``parent``: the Map Run of the newest.

    ``redrivable``: the numbers of the executions that a redrive can take, the newest first.
    """

    task: int
    parent: Execution
    redrivable: tuple[int, ...]


def map_runs_of(project: Project, groups: Sequence[FailureGroup]) -> dict[str, MapRunsOfKind]:
    """Return key of a group -> its Map Runs, of the groups of children; in a few queries."""
    kinds = [group for group in groups if group.like.is_child]
    if not kinds:
        return {}
    children = [failure.number for group in kinds for failure in group.failures]
    rows = Execution.objects.filter(project=project, pk__in=children).order_by()
    run_of = {
        child: (parent, task)
        for child, parent, task in rows.values_list("pk", "map_run__parent", "map_run__task")
    }
    parents = _read_parents(project, {parent for parent, _ in run_of.values()})
    refused = refusals_of(BulkAction.REDRIVE, list(parents.values()))
    made = {}
    for group in kinds:
        runs = [run_of[failure.number] for failure in group.failures if failure.number in run_of]
        known = [(parent, task) for parent, task in runs if parent in parents]
        if known:
            redrivable = dict.fromkeys(parent for parent, _ in known if parent not in refused)
            numbers = tuple(redrivable) if len(redrivable) <= MOST_PARENTS else ()
            made[group.like.key] = MapRunsOfKind(known[0][1], parents[known[0][0]], numbers)
    return made


def _read_parents(project: Project, numbers: set[int]) -> dict[int, Execution]:
    rows = Execution.objects.filter(project=project, pk__in=numbers).select_related("state_machine")
    return rows.defer(*scan.BARE).in_bulk()
