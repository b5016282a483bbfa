"""Build TestState parameters that repeat a state of a recorded execution."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import engine

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from console.recordings.recording import RecordedCall, RecordedExecution
    from engine import Node, Trace, Visit

MOST = 50
"""Maximum number of attempts per state."""
_MOST_EVENTS = 2_000


def parameters_of(
    recording: RecordedExecution, answers: Iterable[tuple[RecordedCall, dict[str, Any] | None]]
) -> Iterator[dict[str, Any]]:
    """Yield TestState parameters for each attempt, without definition and role.

    ``answers``: the calls with their responses, as in a mock configuration.
    """
    counts: Counter[str] = Counter()
    chosen: list[tuple[Visit, int, dict[str, Any] | None]] = []
    for call, response in answers:
        if response is None:
            continue
        counts[call.visit.node] += 1
        if counts[call.visit.node] <= MOST:
            chosen.append((call.visit, call.attempts, _mock_of_response(response)))
    trace = recording.trace
    for node in (node for node in trace.graph.nodes if node.type in ("Parallel", "Map")):
        if not counts[node.id]:
            visits = trace.visits.get(node.id, [])[:MOST]
            chosen += [(visit, visit.attempts - 1, None) for visit in visits]
    chosen.sort(key=lambda pair: (pair[0].events[0], pair[1]))
    for visit, retries, mock in chosen:
        yield from _attempt_parameters(recording, visit, retries, mock)


def _attempt_parameters(
    recording: RecordedExecution, visit: Visit, retries: int, mock: dict[str, Any] | None
) -> Iterator[dict[str, Any]]:
    node = recording.trace.graph.by_id[visit.node]
    state_input = recording.details(visit.number).get("input")
    mock = mock or _mock_of_group(recording, visit)
    if mock is None or state_input is None:
        return
    params: dict[str, Any] = {"stateName": node.name, "input": state_input, "mock": mock}
    variables = recording.variables_at(visit.number)
    if variables:
        texts = (f"{json.dumps(name)}:{text}" for name, text in variables.items())
        params["variables"] = "{" + ",".join(texts) + "}"
    if "$$." in node.text or "$states.context" in node.text:
        context = _context_of(recording, node, visit)
        params["context"] = json.dumps(context, ensure_ascii=False)
    if retries:
        params["stateConfiguration"] = {"retrierRetryCount": retries}
    yield params


def _context_of(recording: RecordedExecution, node: Node, visit: Visit) -> dict[str, Any]:
    """Return the context object of a visit, without its item, which TestState does not accept."""
    return {
        "Execution": {
            "Id": recording.arn,
            "Input": json.loads(recording.input),
            "StartTime": engine.iso_text(recording.start_ms),
            "Name": recording.name,
            "RoleArn": recording.role,
            "RedriveCount": sum(event.type == "ExecutionRedriven" for event in recording.events),
        },
        "StateMachine": {"Id": recording.machine_arn, "Name": recording.machine},
        "State": {
            "Name": node.name,
            "EnteredTime": engine.iso_text(visit.entered_ms),
            "RetryCount": max(0, visit.attempts - 1),
        },
        "Task": {"Token": "(a token of the execution)"},
    }


def _mock_of_group(recording: RecordedExecution, visit: Visit) -> dict[str, Any] | None:
    """Return the recorded result of a Parallel or Map, None if unknown."""
    if visit.status != "succeeded":
        return None
    node = recording.trace.graph.by_id[visit.node]
    is_parallel = node.type == "Parallel"
    ends = (
        branch_ends(recording.trace, node, visit) if is_parallel else _item_ends(recording, visit)
    )
    if ends is None:
        return None
    texts = [recording.details(end).get("output") for end in ends]
    if None in texts:
        return None
    result = "[" + ",".join(str(text) for text in texts) + "]"
    return {"result": result, "fieldValidationMode": "NONE"}


def _item_ends(recording: RecordedExecution, visit: Visit) -> list[int] | None:
    """Return the last event of each iteration; None if too many, or in child executions."""
    events = [recording.event(number) for number in visit.events]
    if len(events) > _MOST_EVENTS or any(event.type == "MapRunStarted" for event in events):
        return None
    started = max((event.id for event in events if event.type == "MapStateStarted"), default=0)
    ends = [
        event for event in events if event.type == "MapIterationSucceeded" and event.id > started
    ]
    return [
        event.previous
        for event in sorted(ends, key=lambda event: int((event.details or {})["index"]))
    ]


def branch_ends(trace: Trace, node: Node, visit: Visit) -> list[int]:
    """Return the last event of each branch."""
    first, last = visit.events[0], visit.events[-1]
    ends = []
    for group in (group for group in trace.graph.groups if group.owner == node.id):
        inner = (node.id for node in trace.graph.nodes if node.group == group.id)
        visits = (visit for name in inner for visit in trace.visits.get(name, ()))
        within = (inner.events[-1] for inner in visits if inner.iteration == visit.iteration)
        ends.append(max(number for number in within if first < number < last))
    return ends


def _mock_of_response(response: dict[str, Any]) -> dict[str, Any]:
    """Return a response as a TestState mock."""
    if "Return" in response:
        # no validation: the service did give this answer
        return {"result": engine.dumps(response["Return"]), "fieldValidationMode": "NONE"}
    thrown = response["Throw"]
    error_output = {"error": thrown.get("Error"), "cause": thrown.get("Cause")}
    return {
        "errorOutput": {name: value for name, value in error_output.items() if value is not None}
    }
