"""Compute the data flow of a visit: the value after InputPath, Parameters, ResultSelector, ...

The engine runs the state again with its recorded input, result and variables. The stages are those
of TestState's inspectionData at the level DEBUG.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import engine
from console.features.data_flow.parameters import branch_ends
from console.masking import masked_execution
from console.models import HistoryEvent
from console.web.core import formatting
from console.web.execution.time_machine import variables_at
from console.web.history import traces
from engine import event_types

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.models import Execution
    from console.web.execution.panel import Panel
    from console.web.history.traces import VisitEvent
    from engine import Node, Trace, Visit

_STAGES = (
    ("input", "Input", ""),
    ("afterInputPath", "After InputPath", "InputPath"),
    ("afterParameters", "After Parameters", "Parameters"),
    ("afterArguments", "After Arguments", "Arguments"),
    ("afterItemsPath", "After ItemsPath", "ItemsPath"),
    ("afterItemsPointer", "After ItemsPointer", ""),
    ("afterItemSelector", "After ItemSelector", "ItemSelector"),
    ("afterItemBatcher", "After ItemBatcher", "ItemBatcher"),
    ("result", "Result", ""),
    ("afterResultSelector", "After ResultSelector", "ResultSelector"),
    ("afterResultPath", "After ResultPath", "ResultPath"),
    ("variables", "Assigned variables", "Assign"),
)
_SENT = event_types.WORK_SCHEDULED
_SUCCEEDED = engine.event_names(event_types.WORK_FAMILIES, engine.Stage.SUCCEEDED)
_TOKEN = "(a token of the execution)"
_MOST_EVENTS = 2_000


class UnknownStage(Exception):
    """Why a stage cannot be computed."""


@dataclass(frozen=True, slots=True)
class FlowStage:
    """The value after one stage. ``by``: the text of the field behind the stage, or ""."""

    name: str
    by: str
    payload: formatting.PayloadView
    unchanged: bool = False


@dataclass(frozen=True, slots=True)
class VisitDataFlow:
    """All stages of one visit. ``problem``: why some are missing, or ""."""

    stages: tuple[FlowStage, ...]
    problem: str = ""


def flow_of_step(execution: Execution, trace: Trace, panel: Panel) -> VisitDataFlow | None:
    """Return the stages of the visit in the panel; None if its input was not recorded."""
    node, events, with_failures = panel.node, panel.read, panel.with_failures
    visit = trace.visits[node.id][panel.number - 1]
    entered = traces.payload_of(events, event_types.STATE_ENTRIES, "input")
    if entered is None:
        return None
    output = traces.payload_of(events, event_types.STATE_EXITS, "output")
    try:
        mock = None
        if node.type in ("Task", "Map", "Parallel"):
            result = _recorded_result(execution, trace, visit, node, events)
            mock = _mock_of_work(execution, trace, visit, result, with_failures)
        trial = _try_state(execution, trace, node, visit, events[0], mock)
    except (engine.EngineError, UnknownStage, KeyError, ValueError) as error:
        return flow_of_test(node, {"input": entered[1]}, output and output[1], str(error))
    problem = ""
    if trial.status == "FAILED" and output is not None:
        problem = f"{trial.error}: {trial.cause}" if trial.cause else str(trial.error)
    stages = dict(trial.stages) | _as_sent(trial.stages, events)
    if mock is not None and mock.result is not None:
        stages.setdefault("result", mock.result)
    return flow_of_test(node, stages, output and output[1], problem)


def _try_state(
    execution: Execution,
    trace: Trace,
    node: Node,
    visit: Visit,
    entered: traces.VisitEvent,
    mock: engine.Mock | None,
) -> engine.Trial:
    machine, name = engine.parse_stored_state(execution.definition.text, node.name)
    return engine.try_state(
        machine,
        name,
        entered.details["input"],
        engine.Moment(visit.entered_ms, entered.id),
        about={"context": context_of(execution, node, visit, trace), "input": execution.input},
        mock=mock,
        variables=variables_at(execution, trace, entered.id),
    )


def _mock_of_work(
    execution: Execution,
    trace: Trace,
    visit: Visit,
    result: str | None,
    with_failures: Sequence[VisitEvent],
) -> engine.Mock:
    """Return the recorded result or error in place of the work; "none yet" while running."""
    if result is not None:
        return engine.Mock(result=result)
    error, cause = traces.failure_of_visit(execution, trace, visit, with_failures)
    return engine.Mock(error=error or "States.Runtime", cause=cause or "")


def _recorded_result(
    execution: Execution, trace: Trace, visit: Visit, node: Node, events: Sequence[VisitEvent]
) -> str | None:
    if visit.status != "succeeded":
        return None
    if node.type == "Task":
        payload = traces.payload_of(events, _SUCCEEDED, "output")
        return payload and payload[1]
    return output_of_children(execution, trace, node, visit)


def output_of_children(execution: Execution, trace: Trace, node: Node, visit: Visit) -> str | None:
    """Combine the outputs of iterations or branches, in order.

    None if some of it was not recorded. Raise ``UnknownStage`` for too many items, and for items
    that ran in child executions.
    """
    if node.type == "Parallel":
        ends = branch_ends(trace, node, visit)
    else:
        ends = _iteration_ends(execution, visit)
    rows = {event.id: event.details.get("output") for event in traces.read_events(execution, ends)}
    texts = [rows.get(end) for end in ends]
    return None if None in texts else "[" + ",".join(str(text) for text in texts) + "]"


def _iteration_ends(execution: Execution, visit: Visit) -> list[int]:
    """Return the last event of each iteration, from its success event."""
    if len(visit.events) > _MOST_EVENTS:
        raise UnknownStage(f"The Map has more than {_MOST_EVENTS // 2:,} items.")
    events = traces.read_events(execution, visit.events)
    started = max((event.id for event in events if event.type == "MapStateStarted"), default=0)
    endings = [
        event for event in events if event.type == "MapIterationSucceeded" and event.id > started
    ]
    if any(event.type == "MapRunStarted" for event in events):
        raise UnknownStage("The items ran in child executions.")
    return [
        event.previous for event in sorted(endings, key=lambda event: int(event.details["index"]))
    ]


def _as_sent(stages: dict[str, Any], events: Sequence[traces.VisitEvent]) -> dict[str, str]:
    """Return a Task's request as recorded: random numbers and times would differ now."""
    name = "afterArguments" if "afterArguments" in stages else "afterParameters"
    for event in reversed(events):
        text = event.details.get("parameters") or event.details.get("input")
        if event.type in _SENT and isinstance(text, str):
            return {name: text}
    return {}


def context_of(execution: Execution, node: Node, visit: Visit, trace: Trace) -> dict[str, Any]:
    """Return the context object of a visit, as far as known."""
    context: dict[str, Any] = {
        "Execution": {
            "Id": execution.arn,
            "Input": json.loads(execution.input),
            "StartTime": engine.iso_text(execution.start_ms),
            "Name": execution.name,
            "RoleArn": execution.role_arn,
            "RedriveCount": execution.redrive_count,
        },
        "StateMachine": {
            "Id": execution.state_machine_arn,
            "Name": execution.state_machine_arn.rpartition(":")[2],
        },
        "State": {
            "Name": node.name,
            "EnteredTime": engine.iso_text(visit.entered_ms),
            "RetryCount": max(0, visit.attempts - 1),
        },
        "Task": {"Token": _TOKEN},
    }
    if visit.iteration:
        item = {"Index": visit.iteration[-1], **_iteration_item(execution, trace, visit)}
        context["Map"] = {"Item": item}
    return context


def _iteration_item(execution: Execution, trace: Trace, visit: Visit) -> dict[str, Any]:
    """Return an iteration's item if the history has it: the input of its first state."""
    every = (visit for many in trace.visits.values() for visit in many)
    first = min(visit_.number for visit_ in every if visit_.iteration == visit.iteration)
    text = (
        HistoryEvent.objects.filter(execution_id=execution.pk, event_id=first)
        .values_list("details", flat=True)
        .first()
    )
    details = json.loads(
        masked_execution.masked_execution(execution).event(first, text or "") or "{}"
    ).get("input")
    return {} if details is None else {"Value": json.loads(details)}


def flow_of_test(
    node: Node, stages: dict[str, Any], output: str | None, problem: str = ""
) -> VisitDataFlow:
    """Return the data flow of a TestState result: inspectionData and output."""
    written = json.loads(node.text)
    stages_made: list[FlowStage] = []
    before = ""
    rows = [(stages.get(key), title, written.get(field)) for key, title, field in _STAGES]
    rows.append((output, "Output", written.get("Output", written.get("OutputPath"))))
    for text, title, by in rows:
        if isinstance(text, str):
            by_text = "" if by is None else json.dumps(by, ensure_ascii=False)
            is_same = bool(stages_made) and _is_equal(text, before)
            stages_made.append(FlowStage(title, by_text, formatting.payload_view(text), is_same))
            before = before if title == "Assigned variables" else text
    return VisitDataFlow(tuple(stages_made), problem)


def _is_equal(text: str, other: str) -> bool:
    """Whether two texts have the same JSON value."""
    return text == other or (
        len(text) < formatting.TREE_LIMIT and formatting.is_equal_but_for_spaces(text, other)
    )
