"""Explain which service, target and settings entry a Task would use, without calling anything.

Secrets are never shown: keys are only said to be present, and addresses lose user, password and
query.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.conf import settings

from console import own_api
from console.integrations import (
    REGISTRY,
    function,
    harness,
    invoke,
    jobs,
    names,
    targets,
)
from console.integrations.redaction import without_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from console.config.function_options import FoundFunction
    from engine import Resource

_HERE = "this server"
_SAMPLES_ONLY = (
    "Only state machines with the role of the samples can call the sample function of this name. "
    "Register one of your own in functions.json."
)


@dataclass(frozen=True, slots=True)
class CallPlan:
    """The call of a Task: ``callee``, ``where``, and the deciding ``entry`` of the settings.

    ``problem``: why nothing would be called, "" if something would. ``then``: what the Task
    waits for after the answer (a job or a callback), "" for nothing.
    """

    callee: str
    where: str = ""
    region: str = ""
    credentials: str = ""
    entry: str = ""
    problem: str = ""
    then: str = ""


def plan_call(
    resource: Resource, parameters: Any, machine: targets.MachineKey, *, sample: bool = False
) -> CallPlan:
    """Return the call plan of a Task of a state machine.

    ``parameters``: its Parameters or Arguments; ``sample``: it is of a sample machine.
    """
    if resource.kind == "activity":
        return _activity(resource.arn, machine.project, sample=sample)
    if resource.kind == "lambda":
        name = function.function_name(resource.arn)
        return _function(name, resource.arn, machine, sample=sample)
    then = _then(resource)
    if _invokes(resource):
        return _with(_invoke(parameters, machine, sample=sample), then)
    if resource.service in ("http", "apigateway"):
        return _with(_web_plan(resource.service, parameters, machine), then)
    if problem := jobs.left_out(resource.service, resource.action, resource.pattern):
        return CallPlan(f"{resource.service}:{resource.action}", problem=problem)
    if resource.service == "eks" and resource.action in jobs.CLUSTER_ACTIONS:
        return _with(_cluster(resource.action, parameters, machine), then)
    if resource.service not in REGISTRY and not resource.service.startswith(names.SDK):
        call_name = f"{resource.service}:{resource.action}"
        return CallPlan(
            call_name, problem="This service integration cannot be called from here yet."
        )
    if resource.service == "bedrockagentcore":
        registered = _harness(parameters, machine)
        if registered is not None:
            return registered
    return _with(_service(resource, machine), then)


def _invokes(resource: Resource) -> bool:
    """Whether a Task invokes a function named in its parameters."""
    if resource.service == invoke.SDK_SERVICE:
        return resource.action in invoke.SDK_ACTIONS
    return (resource.service, resource.action) == ("lambda", "invoke")


def _harness(parameters: Any, machine: targets.MachineKey) -> CallPlan | None:
    """Return the function in ``functions.json`` that stands for a harness; None without one."""
    arn = parameters.get("HarnessArn") if isinstance(parameters, dict) else None
    name = harness.harness_name(arn) if isinstance(arn, str) else ""
    registration = targets.find_harness(name, machine)
    if registration is None:
        return None
    return CallPlan(f"harness {name}", _place(registration), entry=registration.where)


def describe_entry(target: Mapping[str, Any], where: str) -> CallPlan:
    """Return a description of a service's settings entry."""
    return CallPlan(
        callee="",
        where=without_secrets(str(target.get("endpoint_url") or "AWS itself")),
        region=str(target.get("region") or settings.STATEYARD_REGION),
        credentials=_credentials(target),
        entry=where,
    )


def _with(plan: CallPlan, then: str) -> CallPlan:
    return CallPlan(
        plan.callee,
        plan.where,
        plan.region,
        plan.credentials,
        plan.entry,
        plan.problem,
        "" if plan.problem else then,
    )


def _then(resource: Resource) -> str:
    if resource.pattern == ".waitForTaskToken":
        return "waits until somebody sends the task token back"
    if not resource.pattern:
        return ""
    job = jobs.find_job(resource.service, resource.action)
    return f"waits for the job's end, by {job.look}" if job else "waits for the job's end"


def _activity(arn: str, project: str, *, sample: bool) -> CallPlan:
    name = arn.rpartition(":")[2]
    registration = targets.find_activity(name, project, sample=sample)
    if registration is not None:
        problem = function.find_problem(registration)
        return CallPlan(
            f"activity {name}", _place(registration), entry=registration.where, problem=problem
        )
    return CallPlan(f"activity {name}", "any activity worker, by GetActivityTask")


def _function(name: str, arn: str, machine: targets.MachineKey, *, sample: bool) -> CallPlan:
    call_name = f"function {name}"
    registration = targets.find_registered_function(name, arn, machine, sample=sample)
    if registration is not None:
        return CallPlan(
            call_name,
            _place(registration),
            entry=registration.where,
            problem=function.find_problem(registration),
        )
    remote = targets.find_entry("lambda", machine)
    if remote is None and name in settings.STATEYARD_SAMPLE_FUNCTIONS:
        return CallPlan(call_name, problem=_SAMPLES_ONLY)
    if remote is None:
        return CallPlan(
            call_name, problem="No function of this name is registered in functions.json."
        )
    return _call_plan(f"{call_name}, Lambda Invoke", remote)


def _place(registration: FoundFunction) -> str:
    """Return where a registered function runs."""
    if function.is_url(registration.target):
        return without_secrets(registration.target)
    if function.shares_process(registration.options):
        return f"{_HERE}: {registration.target}"
    python = registration.options.python
    return f"a process of its own{f' of {python}' if python else ''}: {registration.target}"


def _invoke(parameters: Any, machine: targets.MachineKey, *, sample: bool) -> CallPlan:
    function_name = parameters.get("FunctionName") if isinstance(parameters, dict) else None
    if not isinstance(function_name, str) or function_name.startswith("{%"):
        return CallPlan(
            "the function that FunctionName names at run time", "as functions.json says"
        )
    name = invoke.named_function(function_name)
    return _function(name, invoke.function_arn(name), machine, sample=sample)


def _web_plan(service: str, parameters: Any, machine: targets.MachineKey) -> CallPlan:
    url = parameters.get("ApiEndpoint") if isinstance(parameters, dict) else None
    method = parameters.get("Method", "") if isinstance(parameters, dict) else ""
    call_name = f"{service} {method}".strip()
    entry = targets.find_exact_entry(service, machine)
    if entry is None:
        return CallPlan(
            call_name, problem=f'"{service}" is not in targets.json: no address may be called.'
        )
    if service == "apigateway":
        base = entry.target.get("endpoint_url")
        url = base or (f"https://{url}" if url else None)
    if not isinstance(url, str) or url.startswith("{%"):
        return CallPlan(
            call_name, "the address that ApiEndpoint names at run time", entry=entry.where
        )
    return CallPlan(call_name, without_secrets(url), entry=entry.where)


def _cluster(action: str, parameters: Any, machine: targets.MachineKey) -> CallPlan:
    """Return the call plan of a Task with a Kubernetes cluster."""
    fields = parameters if isinstance(parameters, dict) else {}
    call_name = "kubernetes: run a job"
    if action == "call":
        call_name = f"kubernetes {fields.get('Method', '')} {fields.get('Path', '')}".strip()
    entry = targets.find_exact_entry(targets.KUBERNETES, machine)
    if entry is None:
        return CallPlan(
            call_name, problem='"kubernetes" is not in targets.json: no cluster may be called.'
        )
    url = fields.get("Endpoint")
    where = "the cluster that Endpoint names at run time"
    if isinstance(url, str) and not url.startswith("{%"):
        where = without_secrets(url)
    token = "a token in targets.json" if entry.target.get("token") else _credentials(entry.target)
    return CallPlan(call_name, where, credentials=token, entry=entry.where)


def _service(resource: Resource, machine: targets.MachineKey) -> CallPlan:
    operation = names.find_operation(resource.service, resource.action)
    if operation is None:
        call_name = f"{resource.service}:{resource.action}"
        return CallPlan(call_name, problem="There is no operation behind this resource.")
    call_name = f"{operation.client} {operation.model.name}"
    if targets.is_here(operation.client, machine):
        problem = ""
        if not own_api.serves(operation.client, operation.model.name):
            problem = f"This server does not serve {operation.model.name} of '{operation.client}'."
        return CallPlan(
            call_name, _HERE, credentials="the rights of the execution", problem=problem
        )
    entry = targets.find_entry(operation.client, machine)
    if entry is None:
        problem = f"No target for '{operation.client}' in targets.json, and none under \"*\"."
        return CallPlan(call_name, problem=problem)
    return _call_plan(call_name, entry)


def _call_plan(call_name: str, entry: targets.Entry) -> CallPlan:
    description = describe_entry(entry.target, entry.where)
    return CallPlan(
        call_name, description.where, description.region, description.credentials, description.entry
    )


def _credentials(target: Mapping[str, Any]) -> str:
    if targets.OF_PAGE in target:
        return "a key in the project settings"
    if target.get("access_key_id"):
        return "a key in targets.json"
    if target.get("profile"):
        return f"profile {target['profile']}"
    return "of the server's environment"
