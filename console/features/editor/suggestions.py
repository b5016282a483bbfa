"""Suggestions in the editor's forms: names of functions, state machines, actions, and paths."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import engine
from console.features.editor.edits.definition_tree import FIELD_ORDER
from console.features.targets import calls
from console.masking import masked_execution
from console.models import Activity, Execution, HistoryEvent, StateMachine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.masking.mask import Mask
    from console.web.core.scope import Scope

_MOST = 500
TYPES = ("Task", "Choice", "Parallel", "Map", "Pass", "Wait", "Succeed", "Fail")
PATHS = (
    *("$", "$$.Execution.Id", "$$.Execution.Input", "$$.Execution.Name", "$$.Execution.StartTime"),
    *("$$.State.Name", "$$.State.EnteredTime", "$$.StateMachine.Id", "$$.Task.Token"),
    *("$$.Map.Item.Index", "$$.Map.Item.Value", "{% $states.input %}", "{% $states.result %}"),
    *("{% $states.errorOutput %}", "{% $states.context.Execution.Id %}"),
)
ERRORS = (
    *("States.ALL", "States.TaskFailed", "States.Timeout", "States.HeartbeatTimeout"),
    *("States.Permissions", "States.DataLimitExceeded", "States.Runtime"),
    *("States.ResultPathMatchFailure", "States.ParameterPathFailure", "States.BranchFailed"),
    *("States.NoChoiceMatched", "States.IntrinsicFailure", "States.ItemReaderFailed"),
    *("States.ExceedToleratedFailureThreshold", "States.ResultWriterFailed"),
    *("States.QueryEvaluationError", "Lambda.ServiceException", "Lambda.TooManyRequestsException"),
)
_MOST_PATHS = 200
_MOST_STEPS = 50
_MOST_CHARACTERS = 65_536
"""Longer payloads are ignored: they take longer to parse than the page takes."""
_DEPTH = 6
_JSONPATH, _JSONATA = "${}", "{{% $states.input{} %}}"
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Suggestions:
    """The suggested names, by kind."""

    functions: tuple[str, ...]
    machines: tuple[str, ...]
    resources: tuple[str, ...]
    errors: tuple[str, ...] = ERRORS
    fields: tuple[str, ...] = ("StartAt", "States", "TimeoutSeconds", *FIELD_ORDER)
    types: tuple[str, ...] = TYPES
    paths: tuple[str, ...] = PATHS


def suggestions_for(scope: Scope, machine: StateMachine | None = None) -> Suggestions:
    """Return names from the reader's project and region, and paths of recent data."""
    project = scope.project
    entries = calls.list_functions(project) + calls.list_sample_functions(project)
    functions = tuple(dict.fromkeys(each.name for each in entries))[:_MOST]
    machines = StateMachine.objects.filter(project=project, region=scope.region).order_by("name")
    activities = Activity.objects.filter(project=project, region=scope.region).order_by("name")
    resources = (
        *activities.values_list("arn", flat=True)[:_MOST],
        *(f"arn:aws:states:::{action}" for action in engine.service_actions()),
    )
    own = () if machine is None else data_paths(machine)
    return Suggestions(
        functions,
        tuple(machines.values_list("arn", flat=True)[:_MOST]),
        resources,
        paths=(*own, *PATHS),
    )


def data_paths(machine: StateMachine) -> tuple[str, ...]:
    """Return JSONPaths or JSONata expressions into the inputs of the last execution's states.

    Only names are returned, no values, and nothing below a masked value.
    """
    execution = (
        Execution.objects.filter(state_machine=machine, map_run=None)
        .order_by("-start_ms", "-id")
        .only("pk", "input")
        .first()
    )
    if execution is None:
        return ()
    mask = masked_execution.masks_of(machine.project, [execution.pk])[execution.pk]
    payloads = [mask.payload(execution.input), *_state_inputs(execution, mask)]
    places = dict.fromkeys(
        place
        for payload in payloads
        if len(payload) <= _MOST_CHARACTERS
        for place in _places(_value(payload), "", _DEPTH)
    )
    chosen = list(places)[:_MOST_PATHS]
    return tuple(form.format(place) for form in _forms(machine) for place in chosen)


def _forms(machine: StateMachine) -> tuple[str, ...]:
    """Return the spellings of a path in the query languages of a definition."""
    text = machine.definition.text
    if '"JSONata"' not in text:
        return (_JSONPATH,)
    return (_JSONATA, _JSONPATH) if '"JSONPath"' in text else (_JSONATA,)


def _state_inputs(execution: Execution, mask: Mask) -> Iterator[str]:
    """Yield the masked inputs of the first entered states."""
    rows = HistoryEvent.objects.filter(execution=execution, type__endswith="StateEntered")
    for details in rows.order_by("event_id").values_list("details", flat=True)[:_MOST_STEPS]:
        entered = _value(mask.details(details))
        if isinstance(entered, dict):
            yield str(entered.get("input", ""))


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _places(value: Any, place: str, depth: int) -> Iterator[str]:
    """Yield the paths of all values inside a value, outer paths first. ``place``: its own path."""
    if depth == 0:
        return
    if isinstance(value, list) and value:
        yield f"{place}[0]"
        yield from _places(value[0], f"{place}[0]", depth - 1)
    elif isinstance(value, dict):
        for key, member in value.items():
            if _NAME.fullmatch(key):
                yield f"{place}.{key}"
                yield from _places(member, f"{place}.{key}", depth - 1)
