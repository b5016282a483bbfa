"""Compute the status of each state from the whole history of an execution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.history.fold import Trace

if TYPE_CHECKING:
    from collections.abc import Iterable

    from engine.graph import Graph
    from engine.history.batch import RecordedEvent
    from engine.history.visits import VisitStatus


def paint(graph: Graph, events: Iterable[RecordedEvent]) -> dict[str, VisitStatus]:
    """Return node id -> status from *all* events of an execution, in order.

    Statuses: the values of ``VisitStatus``; a state that was not entered is absent. A
    state that runs many times (loop, Map) shows its latest visit; of several concurrent iterations,
    the first of ``fold.SHOWN_FIRST``. ``Trace`` does the same for a history in portions.
    """
    trace = Trace(graph)
    trace.feed(events)
    return trace.statuses()
