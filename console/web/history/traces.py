"""Keep the traces of executions, so that no history is read twice.

Traces (``engine.Trace``) are kept in memory, by execution, and fed only with what is new since the
last look. They hold ids and times, no payloads.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

import engine
from console.store.state import history_columns
from engine import Trace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.models import Execution

EVENTS_KEPT = 200_000
"""How many events the traces in memory may hold together."""


class _Traces:
    """The traces of the executions looked at last."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: OrderedDict[int, tuple[Lock, Trace]] = OrderedDict()

    def of(self, execution: Execution) -> tuple[Lock, Trace]:
        """Return the execution's trace and the lock to hold while using it."""
        with self._lock:
            known = self._known.get(execution.pk)
            if known is None:
                machine = engine.parse_stored(execution.definition.text)
                known = self._known[execution.pk] = (Lock(), Trace(engine.build_graph(machine)))
            self._known.move_to_end(execution.pk)
            total = sum(trace.last for _, trace in self._known.values())
            while total > EVENTS_KEPT and len(self._known) > 1:
                _, (_, dropped) = self._known.popitem(last=False)
                total -= dropped.last
            return known


_TRACES = _Traces()


@contextmanager
def open_trace(execution: Execution) -> Iterator[Trace]:
    """Yield the trace of everything committed so far; raise ``engine.DefinitionError``."""
    lock, trace = _TRACES.of(execution)
    with lock:
        _feed(trace, execution.pk)
        yield trace


def feed_up_to(execution: Execution, trace: Trace | None, upto: int) -> Trace:
    """Return a trace of the events up to one of them; raise ``engine.DefinitionError``.

    ``trace``: one that has not come so far, to go on with; None begins anew.
    """
    if trace is None:
        trace = Trace(engine.build_graph(engine.parse_stored(execution.definition.text)))
    _feed(trace, execution.pk, upto)
    return trace


def _feed(trace: Trace, execution_id: int, upto: int = history_columns.LAST) -> None:
    """Feed a trace with what it does not know yet."""
    batch = history_columns.read_batch(execution_id, trace.last, upto)
    if batch is not None:
        trace.take(batch)


def details_of(text: str) -> dict[str, Any]:
    """Return an event's details; types without any have an empty text."""
    return dict(json.loads(text)) if text else {}
