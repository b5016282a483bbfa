"""What does the history of an execution say, without reading it twice?

Traces (``engine.Trace``) are kept in memory, by execution, and fed only with what is new since the
last look. They hold ids and times, no payloads.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from django.db.models import Case, F, TextField, Value, When

import engine
from console.models import HistoryEvent
from engine import Trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
                machine = engine.parse(execution.definition.text)
                known = self._known[execution.pk] = (Lock(), Trace(engine.graph(machine)))
            self._known.move_to_end(execution.pk)
            total = sum(trace.last for _, trace in self._known.values())
            while total > EVENTS_KEPT and len(self._known) > 1:
                _, (_, dropped) = self._known.popitem(last=False)
                total -= dropped.last
            return known


_TRACES = _Traces()


@contextmanager
def traced(execution: Execution) -> Iterator[Trace]:
    """Yield the trace of everything committed so far; raise ``engine.DefinitionError``."""
    lock, trace = _TRACES.of(execution)
    with lock:
        trace.feed(_events(execution.pk, trace.last))
        yield trace


def fed(execution: Execution, trace: Trace | None, upto: int) -> Trace:
    """Return a trace of the events up to one of them; raise ``engine.DefinitionError``.

    ``trace``: one that has not come so far, to go on with; None begins anew.
    """
    if trace is None:
        trace = Trace(engine.graph(engine.parse(execution.definition.text)))
    trace.feed(_events(execution.pk, trace.last, upto))
    return trace


class _Row(NamedTuple):
    """An event as the trace wants it; a tuple, for there may be 25,000."""

    id: int
    previous: int
    at_ms: int
    type: str
    state: str
    details: Mapping[str, Any] | None = None


def _events(execution_id: int, after: int, upto: int = 1 << 30) -> Iterator[_Row]:
    length = Case(
        When(type="MapStateStarted", then=F("details")),
        default=Value(""),
        output_field=TextField(),
    )
    rows = (
        HistoryEvent.objects.filter(
            execution_id=execution_id, event_id__gt=after, event_id__lte=upto
        )
        .order_by("event_id")
        .values_list("event_id", "previous", "at_ms", "type", "state", length)
    )
    for number, previous, at_ms, kind, state, text in rows.iterator(chunk_size=5000):
        yield _Row(number, previous, at_ms, kind, state, details_of(text) if text else None)


def details_of(text: str) -> dict[str, Any]:
    """Return an event's details; types without any have an empty text."""
    return dict(json.loads(text)) if text else {}
