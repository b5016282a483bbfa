"""Find the failing visit of a recorded execution, and the calls before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import engine

if TYPE_CHECKING:
    from collections.abc import Iterable

    from console.recordings.recording import RecordedCall
    from engine import Trace, Visit

_OPEN_AT_END = (engine.VisitStatus.ABORTED, engine.VisitStatus.TIMED_OUT)


def failing_visit(trace: Trace) -> Visit | None:
    """Return the visit in which an execution failed, None if it succeeded.

    This is the innermost failed visit; the caught visit, if a Fail state ended the execution after
    a Catch; the last open visit of an aborted or timed-out execution.
    """
    culprit = trace.culprit
    if culprit is None:
        stopped = [number for number, status in trace.ended.items() if status in _OPEN_AT_END]
        return trace.visit(*trace.owner_of(max(stopped))) if stopped else None
    if trace.graph.by_id[culprit.node].type != "Fail":
        return culprit
    caught = [
        number
        for number, status in trace.ended.items()
        if status == engine.VisitStatus.CAUGHT
        and number < culprit.number
        and trace.is_within(culprit.number, number)
    ]
    if not caught:
        return culprit
    node, number = trace.owner_of(max(caught))
    return trace.visit(*(trace.lines[number].failure_inside(node, number) or (node, number)))


def calls_before(trace: Trace, calls: Iterable[RecordedCall], until: int) -> list[RecordedCall]:
    """Return the calls made before a visit, and later calls of concurrent lines of control.

    ``until``: the event that entered the visit; 0 for all calls.
    """
    if not until:
        return list(calls)
    outside = (
        number
        for number in range(until, trace.last + 1)
        if trace.lines[number].attempt is None  # the execution's own line continues
    )
    limit = next(outside, trace.last + 1)
    return [
        call
        for call in calls
        if call.begin < until or (call.begin < limit and not trace.is_within(until, call.begin))
    ]
