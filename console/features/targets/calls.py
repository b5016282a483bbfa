"""Show which target each Task of a state machine calls, according to the settings."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from django.conf import settings

import engine
from console import arns
from console.config.function_options import (
    SHARED_PROCESS,
    FoundFunction,
    FunctionOptions,
    is_function,
)
from console.config.functions_file import FunctionsFile
from console.features.targets import explain
from console.integrations import function, permissions, targets
from console.integrations.redaction import without_secrets
from console.models import Activity, StateMachine
from console.samples import is_sample, samples_condition
from console.web.core import formatting

if TYPE_CHECKING:
    from django.db.models import QuerySet

    from console.models import Project

_KINDS = {"activity:": "Activity", "harness:": "Harness"}
"""The prefix of a name in ``functions.json`` that is not a function's -> its kind."""


@dataclass(frozen=True, slots=True)
class ServiceTarget:
    """A line of the settings. ``machine``: its owner, "" for all; ``name``: the service's."""

    machine: str
    name: str
    plan: explain.CallPlan


@dataclass(frozen=True, slots=True)
class FunctionTarget:
    """A registered function or activity. ``where``: a URL, or a Python callable.

    ``shared``: the callable runs in the server's process; ``sample``: it serves sample machines
    only; ``own``: it is registered for this project. ``problem``: why a call would fail, "" if
    nothing is known against it.
    """

    machine: str
    kind: str
    name: str
    where: str
    python: bool
    shared: bool = False
    options: FunctionOptions = SHARED_PROCESS
    sample: bool = False
    problem: str = ""
    own: bool = False


@dataclass(frozen=True, slots=True)
class TaskCall:
    """A Task with its call plan, and the ``template`` of its input.

    ``node``: its id in the graph; ``activity`` and ``function``: the called name, "" for another
    kind of call or a name that is only known at run time; ``denied``: IAM's name of the action that
    the machine's role is denied, "" if it may.
    """

    state: str
    resource: str
    plan: explain.CallPlan
    template: formatting.PayloadView | None
    denied: str = ""
    node: str = ""
    activity: str = ""
    function: str = ""


def list_services(project: Project) -> list[ServiceTarget]:
    """Return the targets of services: general targets first, then those of state machines."""
    return [
        ServiceTarget(machine, name, explain.describe_entry(setting, name))
        for machine, section in targets.sections_of(project.name)
        for name, setting in section.items()
        if name not in targets.APART and isinstance(setting, dict)
    ]


def list_own_services(project: Project) -> list[str]:
    """Return the services that this server answers itself, by their names in ``targets.json``."""
    machine = targets.MachineKey(project.name)
    return sorted(service for service in targets.OWN_SERVICES if targets.is_here(service, machine))


def list_origins(project: Project) -> list[tuple[str, str, str]]:
    """Return state machine, kind and name of allowed HTTP and EKS origins, without secrets."""
    origins = []
    for machine, section in targets.sections_of(project.name):
        clusters = section.get(targets.KUBERNETES, {}).get("endpoints", ())
        origins += [(machine, "Cluster", without_secrets(str(url))) for url in clusters]
        setting = section.get("http", {})
        urls = [without_secrets(str(url)) for url in setting.get("endpoints", ())]
        origins += [(machine, "Address", url) for url in urls]
        origins += [
            (machine, f"Connection ({connection.get('type', 'API_KEY')})", name)
            for name, connection in setting.get("connections", {}).items()
        ]
    return origins


def list_functions(project: Project) -> list[FunctionTarget]:
    """Return the registered functions and activities of a project, by name."""
    of_file, of_page, general = (setting for _, setting in targets.functions_of(project.name))
    own = targets.functions_over(of_file, of_page)
    every: list[tuple[str, Any]] = [("", targets.functions_over(own, general))]
    every += [
        (machine, section.get(targets.FUNCTIONS, {}))
        for machine, section in targets.sections_of(project.name)
        if machine
    ]
    return [
        _function(machine, name, targets.read_function(target, name, setting), own=name in own)
        for machine, setting in every
        for name, target in sorted(setting.items())
        if is_function(name, target)
    ]


def functions_problem() -> str:
    """Return the error in ``functions.json``, "" if it is valid."""
    file = settings.STATEYARD_FUNCTIONS
    if not isinstance(file, FunctionsFile):
        return ""
    file.entries()
    return file.problem.replace(str(file.path), file.path.name)


def list_sample_functions(project: Project) -> list[FunctionTarget]:
    """Return the sample functions that sample state machines of a project call."""
    machines = StateMachine.objects.filter(samples_condition("role_arn"), project=project)
    keys = [targets.MachineKey(project.name, name) for name in _names(machines)]
    return [
        _function("", name, FoundFunction(target, f"samples: {name}", SHARED_PROCESS))
        for name, target in sorted(settings.STATEYARD_SAMPLE_FUNCTIONS.items())
        if any(_calls_sample(key, name, project) for key in keys)
    ]


def _names(machines: QuerySet[StateMachine]) -> list[str]:
    return list(machines.values_list("name", flat=True).distinct())


def _calls_sample(machine: targets.MachineKey, name: str, project: Project) -> bool:
    """Whether a sample state machine calls its own function, unaffected by settings."""
    if name.startswith("activity:"):
        activity = targets.find_activity(name.removeprefix("activity:"), project.name, sample=True)
    else:
        region = settings.STATEYARD_REGION
        partition = arns.partition_of(region)
        arn = f"arn:{partition}:lambda:{region}:{project.account_id}:function:{name}"
        activity = targets.find_registered_function(name, arn, machine, sample=True)
    return activity is not None and activity.where.startswith("samples: ")


def _function(
    machine: str, name: str, entry: FoundFunction, *, own: bool = False
) -> FunctionTarget:
    kind = next((kind for kind in _KINDS if name.startswith(kind)), "")
    url = function.is_url(entry.target)
    return FunctionTarget(
        machine,
        _KINDS.get(kind, "Function"),
        name.removeprefix(kind),
        without_secrets(entry.target) if url else entry.target,
        python=not url,
        shared=not url and function.shares_process(entry.options),
        options=entry.options,
        sample=entry.where.startswith("samples: "),
        problem=function.find_problem(entry),
        own=own,
    )


def calls_of_machine(machine: StateMachine) -> list[TaskCall]:
    """Return the call of each Task, in definition order; raise DefinitionError."""
    calls: list[TaskCall] = []
    for node in engine.build_graph(
        engine.parse_stored(machine.definition.text, machine.type)
    ).nodes:
        state = json.loads(node.text)
        resource = engine.parse_resource(str(state.get("Resource", "")))
        if node.type != "Task" or resource is None:
            continue
        template = state.get("Arguments", state.get("Parameters"))
        where = (
            None
            if template is None
            else formatting.payload_view(json.dumps(template, ensure_ascii=False))
        )
        whose = targets.MachineKey(machine.project.name, machine.name)
        plan = explain.plan_call(resource, template, whose, sample=is_sample(machine.role_arn))
        denied = _denied_action(machine.project.name, machine.role_arn, resource)
        kind, _, name = plan.callee.partition(",")[0].partition(" ")
        calls.append(
            TaskCall(
                *(node.name, resource.arn, plan, where, denied, node.id),
                activity=name if kind == "activity" else "",
                function=name if kind == "function" else "",
            )
        )
    activity_arns = {call.resource for call in calls if call.activity}
    existing = (
        Activity.objects.filter(project=machine.project_id, arn__in=activity_arns)
        if activity_arns
        else ()
    )
    arns_there = {activity.arn for activity in existing}
    return [
        replace(call, activity=call.activity if call.resource in arns_there else "")
        for call in calls
    ]


def _denied_action(project: str, role_arn: str, resource: engine.Resource) -> str:
    action = permissions.needed_action(resource.kind, resource.service, resource.action)
    return action if permissions.denies(project, role_arn, action) else ""
