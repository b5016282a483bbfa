"""Build TestState parameters that repeat a state of an execution with its recorded data."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import engine
from console.web.execution import data_flow
from console.web.history import traces

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from console.models import Execution
    from engine import Trace, Visit

MOST = 50
"""For how many attempts of a state there are parameters."""


def parameters_of(
    execution: Execution, trace: Trace, attempts: Iterable[tuple[Visit, int, dict[str, Any]]]
) -> Iterator[dict[str, Any]]:
    """Yield TestState parameters for each attempt, without definition and role.

    ``attempts``: visit, how many were before in it, and the response as in a mock configuration.
    """
    counts: Counter[str] = Counter()
    chosen: list[tuple[Visit, int, dict[str, Any] | None]] = []
    for visit, retries, response in attempts:
        counts[visit.node] += 1
        if counts[visit.node] <= MOST:
            chosen.append((visit, retries, _mock_of_response(response)))
    for node in (node for node in trace.graph.nodes if node.type in ("Parallel", "Map")):
        if not counts[node.id]:
            visits = trace.visits.get(node.id, [])[:MOST]
            chosen += [(visit, visit.attempts - 1, None) for visit in visits]
    chosen.sort(key=lambda pair: (pair[0].events[0], pair[1]))
    entered = _entry_inputs(execution, [visit.number for visit, _, _ in chosen])
    for visit, retries, mock in chosen:
        yield from _attempt_parameters(execution, trace, visit, retries, mock, entered)


def _attempt_parameters(
    execution: Execution,
    trace: Trace,
    visit: Visit,
    retries: int,
    mock: dict[str, Any] | None,
    entered: dict[int, str],
) -> Iterator[dict[str, Any]]:
    node = trace.graph.by_id[visit.node]
    state_input = entered.get(visit.number)
    mock = mock or _mock_of_group(execution, trace, visit)
    if mock is None or state_input is None:
        return
    params: dict[str, Any] = {"stateName": node.name, "input": state_input, "mock": mock}
    variables = data_flow.variables_at(execution, trace, visit.number)
    if variables != "{}":
        params["variables"] = variables
    if "$$." in node.text or "$states.context" in node.text:
        context = data_flow.context_of(execution, node, visit, trace)
        context.pop("Map", None)  # TestState takes none
        params["context"] = json.dumps(context, ensure_ascii=False)
    if retries:
        params["stateConfiguration"] = {"retrierRetryCount": retries}
    yield params


def _mock_of_group(execution: Execution, trace: Trace, visit: Visit) -> dict[str, Any] | None:
    """Return the recorded result of a Parallel or Map, None if unknown."""
    if visit.status != "succeeded":
        return None
    try:
        output = data_flow.output_of_children(
            execution, trace, trace.graph.by_id[visit.node], visit
        )
    except data_flow.UnknownStage:
        return None
    return None if output is None else {"result": output, "fieldValidationMode": "NONE"}


def _mock_of_response(response: dict[str, Any]) -> dict[str, Any]:
    """Return a response as a TestState mock."""
    if "Return" in response:
        # what was answered once is an answer, whatever the service's model says
        return {"result": engine.dumps(response["Return"]), "fieldValidationMode": "NONE"}
    thrown = response["Throw"]
    error_output = {"error": thrown.get("Error"), "cause": thrown.get("Cause")}
    return {
        "errorOutput": {name: value for name, value in error_output.items() if value is not None}
    }


def _entry_inputs(execution: Execution, events: list[int]) -> dict[int, str]:
    """Return entry event -> input of the state."""
    read = traces.read_in_pieces(execution, events)
    return {event.id: event.details["input"] for event in read if "input" in event.details}
