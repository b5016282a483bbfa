"""What the editor proposes: functions, activities, state machines, service actions, errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import engine
from console.features.editor.data_paths import data_paths
from console.features.editor.edits.definition_tree import FIELD_ORDER
from console.models import Activity, StateMachine
from console.web.machines import calls

if TYPE_CHECKING:
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


@dataclass(frozen=True, slots=True)
class Suggestions:
    """Names of the yard that a form proposes."""

    functions: tuple[str, ...]
    machines: tuple[str, ...]
    resources: tuple[str, ...]
    errors: tuple[str, ...] = ERRORS
    fields: tuple[str, ...] = ("StartAt", "States", "TimeoutSeconds", *FIELD_ORDER)
    types: tuple[str, ...] = TYPES
    paths: tuple[str, ...] = PATHS


def suggestions_for(scope: Scope, machine: StateMachine | None = None) -> Suggestions:
    """Return what there is in the reader's project and region, and in a machine's last data."""
    project = scope.project
    known = calls.list_functions(project) + calls.list_sample_functions(project)
    functions = tuple(dict.fromkeys(each.name for each in known))[:_MOST]
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
