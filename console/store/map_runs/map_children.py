"""Start the child executions of a Map Run, several in one transaction.

Like a started execution, a child runs ahead before its insert: a child without calls is stored as
already ended. All children of a transaction share a short time for that, because others wait for
the Map Run's row; a worker continues. Faults of a child are computed from those of its Map Run, so
that a child whose start was rolled back gets the same again.
"""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING

from django.db.models import F

import engine
from console import arns
from console.db import clock, merged, signals
from console.models import Execution, MapRun
from console.store.events import outbox
from console.store.executions.start import cache_run, insert_execution, prepare_start
from console.store.map_runs import map_items, map_tasks
from console.store.state import crash_watch, transition_rate

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.store.executions.start import PreparedStart

AT_ONCE = 100
"""Maximum number of children started in one transaction."""
_MAX_CONCURRENCY = 1_000
_TOGETHER = 10
_AHEAD_S = 0.02


def concurrency(run: MapRun) -> int:
    """Return how many children of a Map Run may run at once."""
    return min(run.max_concurrency or _MAX_CONCURRENCY, _MAX_CONCURRENCY)


def start_children(run: MapRun, finished: int) -> bool:
    """Start the next children (inside a transaction that locks the Map Run).

    ``finished``: the number of ended children. Return whether more may be started.
    """
    limit = concurrency(run)
    unstarted, free = run.total - run.started, limit - (run.started - finished)
    room = min(free, unstarted)
    now = min(room, AT_ONCE)
    # Children started together cost a fraction each; so a tenth of the concurrency may be unused.
    if now <= 0 or (free < limit // _TOGETHER and free < unstarted):
        return False
    items = map_items.take_items(run.pk, run.started, now)
    prepared = _prepare(run, [(_new_child(run, index, text), index) for index, text in items])
    outbox.has_rules(run.parent.project_id)  # read ahead: a change that queries is not merged
    merged.write_together(lambda: _insert(run, prepared))
    MapRun.objects.filter(pk=run.pk).update(started=F("started") + now)
    return room > now or any(start.has_ended for _, start in prepared)


def _new_child(run: MapRun, index: int, text: str) -> Execution:
    name = str(uuid.uuid4())
    parent = run.parent
    return Execution(
        project_id=parent.project_id,
        state_machine_arn=run.state_machine_arn,
        arn=_child_arn(run, name),
        name=name,
        role_arn=parent.role_arn,
        definition_id=run.definition_id,
        machine_updated_ms=parent.machine_updated_ms,
        input=text,
        start_ms=clock.now_ms(),
        started_by=parent.started_by,
        test_case=parent.test_case,
        map_run_id=run.pk,
        item_index=index,
        edited_by=parent.edited_by,
        acting_for=parent.acting_for,
        depth=parent.depth,
    )


def _child_arn(run: MapRun, name: str) -> str:
    if run.express:
        return arns.express_child_arn(run.state_machine_arn, name)
    return arns.execution_arn(run.state_machine_arn, name)


def _faults_of(run: MapRun) -> Callable[[int], engine.FaultPlan | None]:
    """Return the function from a child's index to its faults; a redrive goes on without them."""
    if run.faults is None or run.parent.redrive_count:
        return lambda _: None
    faults = engine.load_child_faults(run.faults)
    return lambda index: faults.plan_of(index, run.total)


def _prepare(
    run: MapRun, children: list[tuple[Execution, int]]
) -> list[tuple[Execution, PreparedStart]]:
    """Compute the first steps of children.

    1. A child's first step kills the process.  2. Its successor finds the Map Run, and computes
    that step again.  Therefore the task is watched, and after a death no child is stepped ahead:
    the child is then stepped by itself, and ended by the guard that knows it.
    """
    ahead = not transition_rate.is_limited(run.parent.project.name, run.parent.arn)
    ahead = ahead and not map_tasks.was_lost(run.parent_id, run.task)
    until = time.monotonic() + _AHEAD_S
    prepared, faults_of = [], _faults_of(run)
    with crash_watch.watch(run.parent_id, run.task):
        for child, index in children:
            left_s = until - time.monotonic()
            faults = faults_of(index)
            child.faults = engine.faults_text(faults) if faults else None
            start = prepare_start(
                child,
                _machine_name(run),
                ahead=ahead and left_s > 0,
                ahead_s=left_s,
                debugging=((), faults),
            )
            prepared.append((child, start))
    return prepared


def _machine_name(run: MapRun) -> str:
    return run.state_machine_arn.rpartition(":")[2]


def _insert(run: MapRun, prepared: list[tuple[Execution, PreparedStart]]) -> None:
    for child, start in prepared:
        insert_execution(child, _machine_name(run), start)
        if not start.has_ended:
            signals.after_commit(lambda child=child, start=start: cache_run(child, start))  # type: ignore[misc]
