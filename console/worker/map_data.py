"""Read the items of a distributed Map from S3 (ItemReader) and write its results (ResultWriter).

Both call S3, so neither runs in a transaction. After a crash, reading or writing starts again from
the beginning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.db.project_names import project_of
from console.integrations import items, results, targets
from console.statuses import UNSUCCESSFUL, ExecutionStatus
from console.store.executions import step
from console.store.map_runs import map_items, map_runs

import engine  # isort: skip

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.store.map_runs.map_items import Outside

_WAYS = {
    ExecutionStatus.SUCCEEDED: [ExecutionStatus.SUCCEEDED],
    ExecutionStatus.FAILED: list(UNSUCCESSFUL),
    "PENDING": [],
}
"""Name of a result file -> the statuses of the children in it. The file PENDING is always empty."""


def waits_outside(map_run_id: int) -> bool:
    """Whether a Map Run has items to read or results to write."""
    return any(find(map_run_id) is not None for find in (map_items.to_read, map_items.to_write))


def move_items(map_run_id: int) -> None:
    """Read the pending items of a Map Run, or write its pending results."""
    transfer = map_items.to_read(map_run_id)
    if transfer is not None:
        _read(transfer)
        return
    transfer = map_items.to_write(map_run_id)
    if transfer is not None:
        _write(transfer)


def _read(transfer: Outside) -> None:
    try:
        map_items.store_items(transfer.map_run, _inputs(transfer))
    except items.ReaderError as error:
        map_runs.fail_map_run(transfer.map_run, "States.ItemReaderFailed", str(error))
    except engine.StatesError as error:
        map_runs.fail_map_run(transfer.map_run, error.name or "States.Runtime", error.cause or "")


def _inputs(transfer: Outside) -> Iterator[str]:
    loaded = step.load_running(transfer.execution_id)
    if loaded is None:
        return
    machine, run = loaded
    source = items.read_items(transfer.part, *_place(transfer.execution_arn))
    now = step.current_moment(machine, transfer.execution_arn)
    yield from engine.child_inputs(machine, run, transfer.task, source, now)


def _place(execution_arn: str) -> tuple[str, targets.MachineKey]:
    """Return region and state machine of an execution, which select the S3 target."""
    machine = targets.MachineKey(project_of(execution_arn), targets.machine_of(execution_arn))
    return execution_arn.split(":")[3], machine


def _write(transfer: Outside) -> None:
    records = {
        way: map(map_items.describe_child, map_items.list_results(transfer.map_run, statuses))
        for way, statuses in _WAYS.items()
    }
    place = _place(transfer.execution_arn)
    try:
        output = results.write_results(transfer.part, transfer.arn, records, *place)
    except results.WriterError as error:
        map_runs.fail_map_run(transfer.map_run, "States.ResultWriterFailed", str(error))
    else:
        map_runs.end_map_run(transfer.map_run, output)
