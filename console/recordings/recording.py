"""The class of recorded executions: events, visits and calls."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import engine
from engine import event_types

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from console.recordings.printed import Printed
    from engine import Trace, Visit

CALL_BEGINNINGS = event_types.WORK_SCHEDULED | {"MapRunStarted", "MapRunRedriven"}
"""Event types that begin a Task's call, or the items of a distributed Map."""
CALL_OUTCOMES = engine.event_names(
    event_types.WORK_FAMILIES | {engine.Family.MAP_RUN}, *event_types.OUTCOME_STAGES
)
_NOT_SCHEDULED = frozenset({"LambdaFunctionScheduleFailed", "ActivityScheduleFailed"})
_SHAPING = ("ResultSelector", "ResultPath", "OutputPath", "Output", "Assign")


@dataclass(slots=True)
class RecordedCall:
    """One call of a Task, or one Map Run. ``begin``, ``end``: the ids of its events.

    ``end``: 0 without an answer. ``attempts``: number of earlier calls of the same visit.
    """

    visit: Visit
    begin: int
    attempts: int
    end: int = 0


@dataclass(frozen=True)
class RecordedExecution:
    """A recorded execution, with payloads masked for its reader.

    ``machine``: the name of its state machine. ``status``: "RUNNING" without an end. ``start_at``,
    ``variables``: where an execution that began inside its definition began, and with which
    variables. ``heartbeats``: calls with a missed heartbeat. ``map_result``: returns the result of
    the Map Run started by one of the passed events, None if unknown.
    """

    definition: str
    events: Sequence[engine.Event]
    arn: str
    name: str
    machine: str
    machine_arn: str
    input: str
    status: str
    output: str | None = None
    error: str | None = None
    cause: str | None = None
    role: str = ""
    version_arn: str = ""
    alias_arn: str = ""
    start_at: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    heartbeats: frozenset[int] = frozenset()
    map_result: Callable[[Sequence[int]], str | None] = lambda _events: None

    @cached_property
    def trace(self) -> Trace:
        """Return the trace of its events; raise ``engine.DefinitionError``."""
        trace = engine.Trace(engine.build_graph(engine.parse_stored(self.definition)))
        trace.feed(self.events)
        return trace

    @property
    def start_ms(self) -> int:
        """Return its start in epoch milliseconds."""
        return self.events[0].at_ms if self.events else 0

    @property
    def stop_ms(self) -> int:
        """Return the time of its last event in epoch milliseconds."""
        return self.events[-1].at_ms if self.events else 0

    def event(self, number: int) -> engine.Event:
        """Return an event by its number, from 1."""
        return self.events[number - 1]

    def details(self, number: int) -> Mapping[str, Any]:
        """Return the details of an event."""
        return self.event(number).details or {}

    def state(self, visit: Visit) -> str:
        """Return the name of the state of a visit."""
        return self.trace.graph.by_id[visit.node].name

    @cached_property
    def calls(self) -> list[RecordedCall]:
        """Return all calls, in the order made."""
        return list_calls(self.trace, self.events)

    def variables_at(self, number: int) -> dict[str, str]:
        """Return the variables visible on entry to a state: name -> JSON text."""
        values = dict(self.variables)
        for event in self.events[: number - 1]:
            assigned = (event.details or {}).get("assignedVariables")
            if assigned and self.trace.is_within(number - 1, event.id):
                values |= assigned
        return values

    def response(self, call: RecordedCall) -> dict[str, Any] | None:
        """Return the answer to a call in the form of a mock configuration, None without one.

        Raise ``ValueError`` for a truncated or omitted payload.
        """
        if not call.end:
            return None
        event, details = self.event(call.end), self.details(call.end)
        stage = engine.EVENT_TYPES[event.type].stage
        if event.type == "MapRunSucceeded":
            result = self._result_of_map_run(call)
            return None if result is None else {"Return": json.loads(result)}
        if stage is engine.Stage.SUCCEEDED:
            return {"Return": json.loads(details.get("output", ""))}
        thrown = {"Error": details.get("error"), "Cause": details.get("cause")}
        if stage is engine.Stage.TIMED_OUT and call.begin in self.heartbeats:
            thrown["Error"] = "States.HeartbeatTimeout"
        return {"Throw": {name: value for name, value in thrown.items() if value is not None}}

    def _result_of_map_run(self, call: RecordedCall) -> str | None:
        """Return a distributed Map's result: its output, or ``map_result``."""
        state = json.loads(self.trace.graph.by_id[call.visit.node].text)
        shaping = [name for name in _SHAPING if name in state]
        if shaping == ["ResultPath"] and state["ResultPath"] is None:
            return "null"  # it is dropped, whatever it was
        if shaping:
            return self.map_result([number for number in call.visit.events if number <= call.begin])
        for number in reversed(call.visit.events[-2:]):
            if self.event(number).type in event_types.STATE_EXITS:
                output: str | None = self.details(number).get("output")
                return output
        return None


class TypedEvent(Protocol):
    """The fields of an event that ``list_calls`` reads."""

    @property
    def id(self) -> int:
        """Return its number, from 1."""

    @property
    def type(self) -> str:
        """Return its type, such as ``TaskScheduled``."""


def list_calls(trace: Trace, events: Iterable[TypedEvent]) -> list[RecordedCall]:
    """Return the calls in a history, in the order made.

    ``trace``: the history's trace; ``events``: at least the events of calls.
    """
    owners = {
        event: visit
        for visits in trace.visits.values()
        for visit in visits
        for event in visit.events
    }
    calls: list[RecordedCall] = []
    last: dict[int, RecordedCall] = {}  # by the first event of its visit
    attempts: Counter[int] = Counter()
    for event in events:
        visit = owners.get(event.id)
        if visit is None:
            continue
        key = visit.number
        if event.type in CALL_BEGINNINGS:
            last[key] = RecordedCall(visit, event.id, attempts[key])
            attempts[key] += 1
            calls.append(last[key])
        elif event.type in _NOT_SCHEDULED:  # AWS writes it in place of a beginning
            calls.append(RecordedCall(visit, event.id, attempts[key], event.id))
            attempts[key] += 1
        elif event.type in CALL_OUTCOMES and key in last and not last[key].end:
            last[key].end = event.id
    return calls


def recording_of(printed: Printed) -> RecordedExecution:
    """Return the recording of a parsed history."""
    description, last = printed.description, printed.events[-1]
    ended = last.type in event_types.EXECUTION_ENDS
    details = dict(last.details or {}) if ended else {}
    arn = str(description.get("executionArn") or "")
    machine_arn = str(
        description.get("stateMachineArn") or printed.machine.get("stateMachineArn") or ""
    )
    started = (printed.events[0].details or {}).get("input")
    return RecordedExecution(
        definition=printed.definition,
        events=printed.events,
        arn=arn,
        name=str(description.get("name") or arn.rpartition(":")[2] or "recorded"),
        machine=str(printed.machine.get("name") or machine_arn.rpartition(":")[2] or "machine"),
        machine_arn=machine_arn,
        input=str(description.get("input") or started or ""),
        status=str(event_types.EXECUTION_ENDS.get(last.type, "RUNNING")),
        output=details.get("output"),
        error=details.get("error"),
        cause=details.get("cause"),
        role=str(printed.machine.get("roleArn") or ""),
    )
