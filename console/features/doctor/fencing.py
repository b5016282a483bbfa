"""Check I2 and I11: an execution has one writer, who is at the end of the history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console import arns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.features.doctor.found import FoundExecution
    from console.features.doctor.walk import Walk


def named(record: FoundExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """I2: an ARN, of which there is one, is made of the machine and the name: names are unique."""
    del walk
    execution = record.execution
    if not arns.is_express(execution.arn):
        expected = arns.execution_arn(execution.state_machine_arn, execution.name)
        if execution.arn != expected:
            yield "I2", f"its machine and name say {expected}"


def fence(record: FoundExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """I11: the run's next event is the one after the last, in its row and in its snapshot."""
    del walk
    if record.run is None:
        yield "I11", "the execution has no run"
        return
    following = max((event.id for event in record.events), default=0) + 1
    if record.run.next_event != following:
        yield "I11", f"its next event is {record.run.next_event}, wanted {following}"
    if record.running and record.run.version < 0:
        yield "I11", f"version {record.run.version}"
    if record.running and not record.run.parked:
        run = record.snapshot()
        if run and run.next_event != record.run.next_event:
            yield "I11", f"its snapshot goes on at event {run.next_event}, wanted {following}"
