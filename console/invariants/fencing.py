"""Has each execution one writer, whose place in the history is where the history ends?  I2, I11."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console import arns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.invariants.found import FoundExecution
    from console.invariants.walk import Walk


def named(found: FoundExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """I2: an ARN, of which there is one, is made of the machine and the name: names are unique."""
    del walk
    one = found.execution
    if not arns.is_express(one.arn):
        wanted = arns.execution_arn(one.state_machine_arn, one.name)
        if one.arn != wanted:
            yield "I2", f"its machine and name say {wanted}"


def fence(found: FoundExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """I11: the run's next event is the one after the last, in its row and in its snapshot."""
    del walk
    if found.run is None:
        yield "I11", "the execution has no run"
        return
    following = max((one.id for one in found.events), default=0) + 1
    if found.run.next_event != following:
        yield "I11", f"its next event is {found.run.next_event}, wanted {following}"
    if found.running and found.run.version < 0:
        yield "I11", f"version {found.run.version}"
    if found.running and not found.run.parked:
        run = found.snapshot()
        if run and run.next_event != found.run.next_event:
            yield "I11", f"its snapshot goes on at event {run.next_event}, wanted {following}"
