"""Actions on Map Runs: DescribeMapRun, ListMapRuns, UpdateMapRun."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.awsapi import paging
from console.awsapi.members import reads
from console.awsapi.operations.call import Call, present, seconds
from console.models import MapRun
from console.store.executions.find import get_execution
from console.store.map_runs import map_counts, map_runs

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST = 2**31 - 1  # of the column; no Map has so many items
_SETTINGS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "maxConcurrency": ("max_concurrency", int),
    "toleratedFailureCount": ("tolerated_count", lambda count: min(count, _MOST)),
    "toleratedFailurePercentage": ("tolerated_percentage", float),
}


@reads("mapRunArn")
def describe(call: Call) -> dict[str, Any]:
    """DescribeMapRun."""
    run = map_runs.get_map_run(call.project, call.params["mapRunArn"])
    children = map_counts.count_executions(run)
    return {
        "mapRunArn": run.arn,
        "executionArn": run.parent.arn,
        "status": run.status,
        "startDate": seconds(run.start_ms),
        **present(stopDate=None if run.stop_ms is None else seconds(run.stop_ms)),
        "maxConcurrency": run.max_concurrency,
        "toleratedFailurePercentage": run.tolerated_percentage or 0.0,
        "toleratedFailureCount": run.tolerated_count or 0,
        "itemCounts": _counts(map_counts.count_items(run, children)),
        "executionCounts": _counts(children),
        "redriveCount": run.redrive_count,
        **present(redriveDate=None if run.redrive_ms is None else seconds(run.redrive_ms)),
    }


def _counts(counts: map_counts.Counts) -> dict[str, int]:
    return {
        "pending": counts.pending,
        "running": counts.running,
        "pendingRedrive": counts.pending_redrive,
        "succeeded": counts.succeeded,
        "failed": counts.failed,
        "timedOut": counts.timed_out,
        "aborted": counts.aborted,
        "total": counts.total,
        "resultsWritten": counts.results_written,
        "failuresNotRedrivable": counts.not_redrivable,
    }


@reads("executionArn maxResults nextToken")
def list_page(call: Call) -> dict[str, Any]:
    """ListMapRuns of an execution."""
    execution = get_execution(call.project, call.params["executionArn"])
    after = paging.open_position(call, call.params) or 0
    rows = MapRun.objects.filter(parent=execution, pk__gt=after).order_by("pk")
    runs = list(rows[: paging.page_size(call.params) + 1])
    return paging.page_answer(
        call, "mapRuns", runs, lambda run: _item(run, execution.arn), lambda run: run.pk
    )


def _item(run: MapRun, parent: str) -> dict[str, Any]:
    return {
        "executionArn": parent,
        "mapRunArn": run.arn,
        "stateMachineArn": run.state_machine_arn,
        "startDate": seconds(run.start_ms),
        **present(stopDate=None if run.stop_ms is None else seconds(run.stop_ms)),
    }


@reads("mapRunArn maxConcurrency toleratedFailurePercentage toleratedFailureCount")
def update(call: Call) -> dict[str, Any]:
    """UpdateMapRun."""
    run = map_runs.get_map_run(call.project, call.params["mapRunArn"])
    changed = {
        column: convert(call.params[name])
        for name, (column, convert) in _SETTINGS.items()
        if call.params.get(name) is not None
    }
    map_runs.update_map_run(run, call.actor, **changed)
    return {}
