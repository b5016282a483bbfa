"""View of the failure groups of the last day or week, with their trends."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from django.db.models import F
from django.views.decorators.http import require_safe

from console.db import clock
from console.features.failures.kinds import group_failures, trending_failures
from console.models import Execution, StateMachine
from console.statuses import BulkAction, ExecutionStatus, MachineStatus
from console.store.executions.refusals import refusals_of
from console.web.core.formatting import DAY
from console.web.core.scope import render, scope_of
from console.web.execution.root_cause import root_cause_of
from console.web.search import failures as store
from console.web.search import scan
from console.web.search.filters import ExecutionFilters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.http import HttpRequest, HttpResponse

    from console.features.failures.kinds import FailureGroup
    from console.models import Project
    from console.web.core.scope import Scope
    from console.web.execution.root_cause import RootCause


MOST = 5_000
"""The number of latest failures that are grouped."""
MOST_ROOTS = 20
"""The number of largest groups for which the history of the latest failure is read."""
MOST_SHOWN = 200
SPANS = {"24h": ("24 hours", DAY), "7d": ("7 days", 7 * DAY)}
MOST_PARENTS = 100
"""The maximum number of executions in one address."""


@require_safe
def failures_page(request: HttpRequest) -> HttpResponse:
    """Show ``/failures/``: groups of a day or week, of all state machines or one.

    Failed children of Map Runs are counted apart; with ``children=with`` they are grouped, too.
    """
    scope = scope_of(request)
    name = request.GET.get("machine", "")[:80]
    machine = scope.machine(name) if name else None
    chosen = request.GET.get("span", "")
    chosen = chosen if chosen in SPANS else "24h"
    now, span = clock.now_ms(), SPANS[chosen][1]
    with_children = request.GET.get("children") == "with"
    filters = ExecutionFilters(statuses=store.STATUSES, since=now - span)
    only_children = replace(filters, children="only")
    children = scan.find_keys(scope, machine, only_children, None, MOST + 1).keys
    if with_children:
        filters = replace(filters, children="with")
    part = scan.find_keys(scope, machine, filters, None, MOST + 1)
    failures = store.list_failures(scope.project, [number for _, number in part.keys[:MOST]])
    groups = group_failures(failures)
    context = {
        "section": "executions",
        "machine": machine,
        "spans": [(key, word) for key, (word, _) in SPANS.items()],
        "chosen": chosen,
        "total": len(failures),
        "with_children": with_children,
        "children": min(len(children), MOST),
        "most_children": len(children) > MOST,
        "cut": part.keys[MOST - 1][0] if len(part.keys) > MOST else None,
        "groups": trending_failures(groups[:MOST_SHOWN], span, now),
        "kinds": len(groups),
        "roots": _root_causes(scope, groups),
        "map_runs": map_runs_of(scope.project, groups[:MOST_SHOWN]) if with_children else {},
        "redrivable": _redrivable_kinds(groups[:MOST_SHOWN])
        if scope.may("RedriveExecution")
        else (),
        "replayable": _count_replayable(scope.project, groups[:MOST_SHOWN])
        if scope.may("StartExecution")
        else {},
    }
    return render(request, "failures/page.html", context)


def _redrivable_kinds(groups: list[FailureGroup]) -> set[str]:
    """Return the keys of groups whose state machine still exists, as a redrive needs it."""
    kinds = {
        group.like.key: {row.machine for row in group.failures if row.machine is not None}
        for group in groups
        if not group.like.is_child and not group.like.is_express
    }
    machines = set().union(*kinds.values())
    rows = StateMachine.objects.filter(pk__in=machines, status=MachineStatus.ACTIVE)
    active = set(rows.values_list("pk", flat=True))
    return {key for key, numbers in kinds.items() if numbers & active}


def _count_replayable(project: Project, groups: list[FailureGroup]) -> dict[str, int]:
    """Return group key -> number of executions with an earlier definition."""
    kinds = {
        failure.number: group.like.key
        for group in groups
        if not group.like.is_child
        for failure in group.failures
    }
    if not kinds:
        return {}
    rows = Execution.objects.filter(project=project, pk__in=kinds, map_run=None)
    rows = rows.filter(state_machine__status=MachineStatus.ACTIVE)
    earlier = rows.exclude(definition=F("state_machine__definition")).order_by()
    return Counter(kinds[number] for number in earlier.values_list("pk", flat=True))


def _root_causes(scope: Scope, groups: list[FailureGroup]) -> dict[str, RootCause]:
    """Return group key -> root cause of its latest failure in a Fail state."""
    newest = {group.like.number: group.like.key for group in groups[:MOST_ROOTS]}
    rows = Execution.objects.select_related("definition").filter(
        project=scope.project, pk__in=newest, status=ExecutionStatus.FAILED
    )
    roots = {newest[row.pk]: root_cause_of(scope.shown(row)) for row in rows}
    return {key: root for key, root in roots.items() if root is not None}


@dataclass(frozen=True, slots=True)
class MapRunsOfKind:
    """The Map Runs of a kind of failure. ``task``, ``parent``: those of the latest one.

    ``redrivable``: the numbers of the executions that a redrive can take, the newest first.
    """

    task: int
    parent: Execution
    redrivable: tuple[int, ...]


def map_runs_of(project: Project, groups: Sequence[FailureGroup]) -> dict[str, MapRunsOfKind]:
    """Return group key -> its Map Runs, for groups of child executions; in a few queries."""
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
    map_runs = {}
    for group in kinds:
        runs = [run_of[failure.number] for failure in group.failures if failure.number in run_of]
        tasks = [(parent, task) for parent, task in runs if parent in parents]
        if tasks:
            redrivable = dict.fromkeys(parent for parent, _ in tasks if parent not in refused)
            numbers = tuple(redrivable) if len(redrivable) <= MOST_PARENTS else ()
            map_runs[group.like.key] = MapRunsOfKind(tasks[0][1], parents[tasks[0][0]], numbers)
    return map_runs


def _read_parents(project: Project, numbers: set[int]) -> dict[int, Execution]:
    rows = Execution.objects.filter(project=project, pk__in=numbers).select_related("state_machine")
    return rows.defer(*scan.BARE).in_bulk()
