"""Export an execution as a test: a file with all responses it received from outside.

The file is a mock configuration of Step Functions Local (``StateMachines``, ``MockedResponses``).
Further members: ``Scenario`` describes the execution, ``TestState`` has requests to test single
states. ``docs/reference/scenarios.md`` has the fields.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db.models import Sum
from django.db.models.functions import Length

import engine
from console.features.test_state.web import parameters
from console.masking import masked_execution
from console.models import HistoryEvent, MapRun, TaskRow
from console.statuses import ExecutionStatus, MachineType, TaskClock
from console.store.executions import replay
from console.store.map_runs import map_runs
from console.web.history import traces
from console.web.history.traces import open_trace
from engine import event_types

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from console.models import Execution
    from console.web.history.traces import VisitEvent
    from engine import Trace, Visit

_BEGINS = event_types.WORK_SCHEDULED | {"MapRunStarted", "MapRunRedriven"}
_OUTCOMES = engine.event_names(
    event_types.WORK_FAMILIES | {engine.Family.MAP_RUN}, *event_types.OUTCOME_STAGES
)
_ACTIONS = {"ExecutionAborted": "Stop", "ExecutionRedriven": "Redrive"}
_LARGEST = 32_000_000
"""Characters of a history that becomes a test, which is made in memory."""
_SHAPING = ("ResultSelector", "ResultPath", "OutputPath", "Output", "Assign")


@dataclass(slots=True)
class _ScenarioCall:
    """One call of a task. ``response``: None while open; ``attempts``: earlier attempts."""

    visit: Visit
    event: int
    at_ms: int
    attempts: int
    until_ms: int = 0
    response: dict[str, Any] | None = None


def is_too_large(execution: Execution) -> bool:
    """Whether an execution's history exceeds the size of a test."""
    rows = HistoryEvent.objects.filter(execution_id=execution.pk)
    return (rows.aggregate(all=Sum(Length("details")))["all"] or 0) > _LARGEST


def scenario_of(execution: Execution) -> dict[str, Any]:
    """Return the file of a finished execution; raise ``engine.DefinitionError``."""
    with open_trace(execution) as trace:
        owners = {
            event: visit
            for visits in trace.visits.values()
            for visit in visits
            for event in visit.events
        }
        events = list(traces.events_of_types(execution, [*_BEGINS, *_OUTCOMES, *_ACTIONS]))
        calls = list(_scenario_calls(execution, trace, owners, events))
        numbers = _call_numbers(trace, calls)
        path = [_call_line(line) for line in engine.control_paths(trace)]
        ended = [
            (call.visit, call.attempts, call.response)
            for call in calls
            if call.response is not None
        ]
        tried = list(parameters.parameters_of(execution, trace, ended))
    machine = execution.state_machine_arn.rpartition(":")[2]
    imported = execution.imported_ms is not None
    arn = execution.arn.split(":", 2)[2] if imported else execution.arn
    states = list(numbers)
    return {
        "StateMachines": {
            machine: {"TestCases": {execution.name: {state: state for state in states}}}
        },
        "MockedResponses": {
            state: {str(n): call.response for n, call in enumerate(state_calls) if call.response}
            for state, state_calls in numbers.items()
        },
        "Scenario": {
            "Format": engine.SCENARIO,
            "Type": MachineType.EXPRESS
            if arn.split(":")[5:6] == ["express"]
            else MachineType.STANDARD,
            "Definition": json.loads(execution.definition.text),
            "Input": json.loads(execution.input),
            "Start": _start_section(execution, arn, machine),
            "Tasks": _task_entries(trace, numbers, calls),
            "Acts": _people_actions(execution, events),
            "Expected": {**_end_section(execution), "Ignore": [], "Path": path},
        },
        "TestState": tried,
    }


def _scenario_calls(
    execution: Execution,
    trace: Trace,
    owners: dict[int, Visit],
    events: Iterable[VisitEvent],
) -> Iterator[_ScenarioCall]:
    """Yield each call, in the order made."""
    calls: list[_ScenarioCall] = []
    last: dict[int, _ScenarioCall] = {}  # by the first event of its visit
    attempts: Counter[int] = Counter()
    late = _heartbeats(execution)
    for event in events:
        visit = owners.get(event.id)
        if visit is None:
            continue
        key = visit.number
        if event.type in _BEGINS:
            last[key] = _ScenarioCall(visit, event.id, event.at_ms, attempts[key])
            attempts[key] += 1
            calls.append(last[key])
        elif event.type in _OUTCOMES and key in last and last[key].response is None:
            call = last[key]
            call.until_ms = event.at_ms
            call.response = _response(execution, trace, call, event, late)
    yield from calls


def _heartbeats(execution: Execution) -> set[int]:
    """Return tasks with a missed heartbeat, which the history only calls timed out."""
    rows = TaskRow.objects.filter(execution_id=execution.pk, clock=TaskClock.HEARTBEAT)
    return set(rows.values_list("task", flat=True))


def _response(
    execution: Execution, trace: Trace, call: _ScenarioCall, end: VisitEvent, late: set[int]
) -> dict[str, Any] | None:
    if end.type == "MapRunSucceeded":
        result = _of_map_run(execution, trace, call)
        return None if result is None else {"Return": json.loads(result)}
    if engine.EVENT_TYPES[end.type].stage is engine.Stage.SUCCEEDED:
        return {"Return": json.loads(end.details.get("output", "null"))}
    thrown = {"Error": end.details.get("error"), "Cause": end.details.get("cause")}
    if call.event in late and engine.EVENT_TYPES[end.type].stage is engine.Stage.TIMED_OUT:
        thrown["Error"] = "States.HeartbeatTimeout"
    return {"Throw": {name: value for name, value in thrown.items() if value is not None}}


def _of_map_run(execution: Execution, trace: Trace, call: _ScenarioCall) -> str | None:
    """Return a distributed Map's result: from its children, or from the state's output."""
    node = trace.graph.by_id[call.visit.node]
    if not any(name in json.loads(node.text) for name in _SHAPING):
        payload = traces.payload_of(
            traces.read_events(execution, call.visit.events[-2:]),
            event_types.STATE_EXITS,
            "output",
        )
        return payload and payload[1]
    begun = [number for number in call.visit.events if number <= call.event]
    run = MapRun.objects.filter(parent_id=execution.pk, task__in=begun).order_by("-task").first()
    whole = None if run is None else map_runs.outputs_of(run)
    return (
        None if whole is None else masked_execution.masked_execution(execution).mask.payload(whole)
    )


def _call_numbers(trace: Trace, calls: Iterable[_ScenarioCall]) -> dict[str, list[_ScenarioCall]]:
    """Return state -> its calls in order, as a mock configuration counts them."""
    numbers: dict[str, list[_ScenarioCall]] = {}
    for call in calls:
        numbers.setdefault(trace.graph.by_id[call.visit.node].name, []).append(call)
    return numbers


def _task_entries(
    trace: Trace, numbers: dict[str, list[_ScenarioCall]], calls: Iterable[_ScenarioCall]
) -> list[dict[str, Any]]:
    """Return each call: its state, the index of its response, its duration."""
    places = {id(call): n for state_calls in numbers.values() for n, call in enumerate(state_calls)}
    entries = []
    for call in calls:
        entry: dict[str, Any] = {"State": trace.graph.by_id[call.visit.node].name}
        if call.visit.iteration:
            entry["Iteration"] = list(call.visit.iteration)
        if call.response is not None:
            entry |= {"Number": places[id(call)], "Milliseconds": call.until_ms - call.at_ms}
        entries.append(entry)
    return entries


def _people_actions(execution: Execution, events: Iterable[VisitEvent]) -> list[dict[str, Any]]:
    """Return people's actions on the execution: stops and redrives."""
    actions = []
    for event in events:
        if event.type in _ACTIONS:
            error = {"Error": event.details.get("error"), "Cause": event.details.get("cause")}
            act = {"Act": _ACTIONS[event.type], "Milliseconds": event.at_ms - execution.start_ms}
            actions.append(
                act | {name: value for name, value in error.items() if value is not None}
            )
    return actions


def _start_section(execution: Execution, arn: str, machine: str) -> dict[str, Any]:
    start = {
        "ExecutionArn": arn,
        "ExecutionName": execution.name,
        "StateMachineArn": execution.state_machine_arn,
        "StateMachineName": machine,
        "RoleArn": execution.role_arn,
        "StartMs": execution.start_ms,
        "VersionArn": execution.version_arn,
        "AliasArn": execution.alias_arn,
    }
    origin = replay.origin_of(execution)
    if origin is not None:
        variables = masked_execution.masked_execution(execution).variables(origin.variables)
        texts = ",".join(f"{json.dumps(name)}:{text}" for name, text in variables.items())
        start |= {"StartAt": origin.state, "Variables": "{" + texts + "}"}
    if execution.status == ExecutionStatus.TIMED_OUT and execution.stop_ms is not None:
        # its own limit may be another than its machine's, and it stopped exactly then
        begun = execution.redrive_ms or execution.start_ms
        start["TimeoutSeconds"] = (execution.stop_ms - begun) // 1000
    return {name: value for name, value in start.items() if value not in ("", None)}


def _end_section(execution: Execution) -> dict[str, Any]:
    ending: dict[str, Any] = {"Status": execution.status}
    if execution.output is not None:
        ending["Output"] = json.loads(execution.output)
    error = {"Error": execution.error, "Cause": execution.cause}
    return ending | {name: value for name, value in error.items() if value is not None}


def _call_line(line: engine.ControlPath) -> dict[str, Any]:
    entry: dict[str, Any] = {"Line": line.name, "States": list(line.states)}
    return entry | ({"Aborted": True} if line.aborted else {})
