"""Answer the calls of a reproduction as the import that it repeats was answered.

A reproduction has the test case ``import:NUMBER:UNTIL``: the number of the import, and the event
that entered the state from which calls are live again; 0: none is live. A call is found by its
state, its index in each Map around it, and the number of earlier calls of this state and index.
Imports do not change, so the places of their answers are cached; the answers stay in the database.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import engine
from console.models import Execution, HistoryEvent
from console.recordings.failing import calls_before
from console.recordings.recording import CALL_BEGINNINGS, CALL_OUTCOMES, list_calls
from console.store.state import history_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CASE = re.compile(r"import:(\d{1,18}):(\d{1,6})")
_LOST = "States.Runtime"

_CallPlace = tuple[str, tuple[int, ...]]


class _CallEvent(NamedTuple):
    """An event as ``list_calls`` reads it."""

    id: int
    type: str


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """The answer to a call: an ``output``, or with None an error and a cause."""

    output: str | None
    error: str | None = None
    cause: str | None = None


def import_case(number: int, until: int) -> str:
    """Return the test case of a reproduction."""
    return f"import:{number}:{until}"


def is_import_case(test_case: str) -> bool:
    """Whether a test case is that of a reproduction."""
    return _CASE.fullmatch(test_case) is not None


def recorded_answer(execution_id: int, task: int) -> RecordedAnswer | None:
    """Return the recorded answer to a task of a reproduction; None for a live call."""
    execution = Execution.objects.get(pk=execution_id)
    match = _CASE.fullmatch(execution.test_case)
    if match is None:
        return None
    number, until = int(match[1]), int(match[2])
    # A mock configuration could have a test case of this name, too, so check that the import is
    # of this project.
    if not Execution.imports.filter(pk=number, project=execution.project_id).exists():
        return RecordedAnswer(None, _LOST, "The import of this reproduction was deleted.")
    place, before = _counted_calls(execution_id, execution.arn).place_of(task)
    recorded = _recorded_calls(number, until).get(place, ())
    if before >= len(recorded) or not recorded[before]:
        if until:
            return None
        cause = f"The import has no answer to call {before + 1} of {place[0]}."
        return RecordedAnswer(None, _LOST, cause)
    return _read_answer(number, recorded[before])


@dataclass(slots=True)
class _CountedCalls:
    """The calls of a reproduction, counted while its history grows: each event is read once."""

    execution_id: int
    trace: engine.Trace
    places: dict[int, tuple[_CallPlace, int]] = field(default_factory=dict)
    counts: Counter[_CallPlace] = field(default_factory=Counter)
    lock: Lock = field(default_factory=Lock)

    def place_of(self, task: int) -> tuple[_CallPlace, int]:
        """Return the place of a call, and how many earlier calls have the same."""
        with self.lock:
            if task > self.trace.last:
                self._read_on()
            return self.places[task]

    def _read_on(self) -> None:
        trace, before = self.trace, self.trace.last
        batch = history_columns.read_batch(self.execution_id, before)
        if batch is not None:
            trace.take(batch)
        for number in range(before + 1, trace.last + 1):
            if trace.kind_of(number)[0] in CALL_BEGINNINGS:
                node, visit = trace.owner_of(number)
                place = trace.graph.by_id[node].name, trace.lines[visit].iteration
                self.places[number] = place, self.counts[place]
                self.counts[place] += 1


@lru_cache(maxsize=32)
def _counted_calls(execution_id: int, arn: str) -> _CountedCalls:
    """Return the calls of a reproduction. ``arn``: a number may be used again after a reset."""
    execution = Execution.objects.select_related("definition").get(pk=execution_id, arn=arn)
    machine = engine.parse_stored(execution.definition.text)
    return _CountedCalls(execution_id, engine.Trace(engine.build_graph(machine)))


@lru_cache(maxsize=32)
def _recorded_calls(number: int, until: int) -> Mapping[_CallPlace, Sequence[int]]:
    """Return the events that ended the recorded calls by place; 0 for one never answered."""
    execution = Execution.imports.select_related("definition").get(pk=number)
    trace = engine.Trace(engine.build_graph(engine.parse_stored(execution.definition.text)))
    batch = history_columns.read_batch(number)
    if batch is not None:
        trace.take(batch)
    rows = HistoryEvent.objects.filter(
        execution_id=number, type__in=CALL_BEGINNINGS | CALL_OUTCOMES
    )
    events = [_CallEvent(*row) for row in rows.order_by("event_id").values_list("event_id", "type")]
    ends: dict[_CallPlace, list[int]] = {}
    for call in calls_before(trace, list_calls(trace, events), until):
        place = trace.graph.by_id[call.visit.node].name, call.visit.iteration
        ends.setdefault(place, []).append(call.end)
    return ends


def _read_answer(number: int, event: int) -> RecordedAnswer:
    row = HistoryEvent.objects.get(execution_id=number, event_id=event)
    details = json.loads(row.details) if row.details else {}
    if engine.EVENT_TYPES[row.type].stage is engine.Stage.SUCCEEDED:
        if "output" not in details:
            return RecordedAnswer(None, _LOST, "The import was recorded without its payloads.")
        return RecordedAnswer(details["output"])
    return RecordedAnswer(None, details.get("error"), details.get("cause"))
