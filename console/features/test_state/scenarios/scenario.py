"""Make a scenario of a recorded execution: a file that replays it with its recorded answers.

The file is a mock configuration of Step Functions Local (``StateMachines``, ``MockedResponses``)
with further members: ``Scenario`` describes the execution, ``TestState`` has requests that test
single states. ``docs/reference/scenarios.md`` lists the fields.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import engine
from console.features.data_flow import parameters
from console.statuses import ExecutionStatus, MachineType

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from console.recordings.recording import RecordedExecution

_ACTIONS = {"ExecutionAborted": "Stop", "ExecutionRedriven": "Redrive"}


def scenario_of(recording: RecordedExecution) -> dict[str, Any]:
    """Return the scenario of a finished execution.

    Raise ``engine.DefinitionError``, and ``ValueError`` or ``engine.JsonTextError`` for truncated
    payloads.
    """
    trace, calls = recording.trace, recording.calls
    responses = [recording.response(call) for call in calls]
    numbers: dict[str, list[int]] = {}  # state -> its calls, numbered as in a mock configuration
    for place, call in enumerate(calls):
        numbers.setdefault(recording.state(call.visit), []).append(place)
    arn = recording.arn
    is_express = arn.split(":")[5:6] == ["express"]
    return {
        "StateMachines": {
            recording.machine: {"TestCases": {recording.name: {state: state for state in numbers}}}
        },
        "MockedResponses": {
            state: {
                str(number): responses[place]
                for number, place in enumerate(places)
                if responses[place]
            }
            for state, places in numbers.items()
        },
        "Scenario": {
            "Format": engine.SCENARIO,
            "Type": MachineType.EXPRESS if is_express else MachineType.STANDARD,
            "Definition": json.loads(recording.definition),
            "Input": json.loads(recording.input),
            "Start": _start_section(recording),
            "Tasks": list(_task_entries(recording, numbers, responses)),
            "Acts": list(_people_actions(recording)),
            "Expected": {
                **_end_section(recording),
                "Ignore": [],
                "Path": [_path_entry(line) for line in engine.control_paths(trace)],
            },
        },
        "TestState": list(parameters.parameters_of(recording, zip(calls, responses, strict=True))),
    }


def _task_entries(
    recording: RecordedExecution,
    numbers: dict[str, list[int]],
    responses: Sequence[dict[str, Any] | None],
) -> Iterator[dict[str, Any]]:
    """Yield each call: its state, the index of its response, its duration."""
    places = {place: n for places in numbers.values() for n, place in enumerate(places)}
    for place, call in enumerate(recording.calls):
        entry: dict[str, Any] = {"State": recording.state(call.visit)}
        if call.visit.iteration:
            entry["Iteration"] = list(call.visit.iteration)
        if responses[place] is not None:
            took_ms = recording.event(call.end).at_ms - recording.event(call.begin).at_ms
            entry |= {"Number": places[place], "Milliseconds": took_ms}
        yield entry | engine.call_request(recording.details(call.begin))


def _people_actions(recording: RecordedExecution) -> Iterator[dict[str, Any]]:
    """Yield actions by people: stops and redrives."""
    for event in recording.events:
        if event.type in _ACTIONS:
            details = event.details or {}
            error = {"Error": details.get("error"), "Cause": details.get("cause")}
            act = {"Act": _ACTIONS[event.type], "Milliseconds": event.at_ms - recording.start_ms}
            yield act | {name: value for name, value in error.items() if value is not None}


def _start_section(recording: RecordedExecution) -> dict[str, Any]:
    start: dict[str, Any] = {
        "ExecutionArn": recording.arn,
        "ExecutionName": recording.name,
        "StateMachineArn": recording.machine_arn,
        "StateMachineName": recording.machine,
        "RoleArn": recording.role,
        "StartMs": recording.start_ms,
        "VersionArn": recording.version_arn,
        "AliasArn": recording.alias_arn,
    }
    if recording.start_at:
        texts = (f"{json.dumps(name)}:{text}" for name, text in recording.variables.items())
        start |= {"StartAt": recording.start_at, "Variables": "{" + ",".join(texts) + "}"}
    if recording.status == ExecutionStatus.TIMED_OUT:
        # its limit may differ from the definition's; it was stopped exactly at its limit
        redrives = (event for event in recording.events if event.type == "ExecutionRedriven")
        begun_ms = max((event.at_ms for event in redrives), default=recording.start_ms)
        start["TimeoutSeconds"] = (recording.stop_ms - begun_ms) // 1000
    return {name: value for name, value in start.items() if value not in ("", None)}


def _end_section(recording: RecordedExecution) -> dict[str, Any]:
    ending: dict[str, Any] = {"Status": recording.status}
    if recording.output is not None:
        ending["Output"] = json.loads(recording.output)
    error = {"Error": recording.error, "Cause": recording.cause}
    return ending | {name: value for name, value in error.items() if value is not None}


def _path_entry(line: engine.ControlPath) -> dict[str, Any]:
    entry: dict[str, Any] = {"Line": line.name, "States": list(line.states)}
    return entry | ({"Aborted": True} if line.aborted else {})
