"""Explain what a Task would call, and where: resolved as a call is, with nothing called.

Never says a secret: keys are told as being there, addresses without user, password and query.
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
    jobtable,
    kubernetes,
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
    "The function of this name is called by state machines with the role of the samples only. "
    "Register one of your own in functions.json."
)


@dataclass(frozen=True, slots=True)
class CallPlan:
    """``what`` is called, ``where``, and which ``entry`` of the settings says so.

    ``problem``: why nothing would be called, "" if something would. ``then``: what is waited for.
    """

    what: str
    where: str = ""
    region: str = ""
    credentials: str = ""
    entry: str = ""
    problem: str = ""
    then: str = ""


def plan_call(
    resource: Resource, given: Any, machine: targets.MachineKey, *, sample: bool = False
) -> CallPlan:
    """Return what a Task of a state machine calls.

    ``given``: its Parameters or Arguments; ``sample``: it is of a sample machine.
    """
    if resource.kind == "activity":
        return _activity(resource.arn, machine.project, sample=sample)
    if resource.kind == "lambda":
        name = function.function_name(resource.arn)
        return _function(name, resource.arn, machine, sample=sample)
    then = _then(resource)
    if _invokes(resource):
        return _with(_invoke(given, machine, sample=sample), then)
    if resource.service in ("http", "apigateway"):
        return _with(_web_plan(resource.service, given, machine), then)
    if resource.service == "eks" and resource.action in kubernetes.ACTIONS:
        return _with(_cluster(resource.action, given, machine), then)
    if resource.service not in REGISTRY and not resource.service.startswith(names.SDK):
        what = f"{resource.service}:{resource.action}"
        return CallPlan(what, problem="This service integration cannot be called from here yet.")
    if resource.service == "bedrockagentcore":
        registered = _harness(given, machine)
        if registered is not None:
            return registered
    return _with(_service(resource, machine), then)


def _invokes(resource: Resource) -> bool:
    """Tell whether a Task invokes a function that its parameters name."""
    if resource.service == invoke.SDK_SERVICE:
        return resource.action in invoke.SDK_ACTIONS
    return (resource.service, resource.action) == ("lambda", "invoke")


def _harness(given: Any, machine: targets.MachineKey) -> CallPlan | None:
    """Return what stands for a harness in ``functions.json``; None if nothing does."""
    named = given.get("HarnessArn") if isinstance(given, dict) else None
    name = harness.harness_name(named) if isinstance(named, str) else ""
    found = targets.find_harness(name, machine)
    if found is None:
        return None
    return CallPlan(f"harness {name}", _place(found), entry=found.where)


def describe_entry(said: Mapping[str, Any], where: str) -> CallPlan:
    """Return what an entry of the settings says of a service."""
    return CallPlan(
        what="",
        where=without_secrets(str(said.get("endpoint_url") or "AWS itself")),
        region=str(said.get("region") or settings.STATEYARD_REGION),
        credentials=_credentials(said),
        entry=where,
    )


def _with(made: CallPlan, then: str) -> CallPlan:
    return CallPlan(
        made.what,
        made.where,
        made.region,
        made.credentials,
        made.entry,
        made.problem,
        "" if made.problem else then,
    )


def _then(resource: Resource) -> str:
    if resource.pattern == ".waitForTaskToken":
        return "waits until somebody sends the task token back"
    if not resource.pattern:
        return ""
    job = jobtable.JOBS.get((resource.service, resource.action))
    return f"waits for the job's end, by {job.look}" if job else "waits for the job's end"


def _activity(arn: str, project: str, *, sample: bool) -> CallPlan:
    name = arn.rpartition(":")[2]
    found = targets.find_activity(name, project, sample=sample)
    if found is not None:
        problem = function.find_problem(found)
        return CallPlan(f"activity {name}", _place(found), entry=found.where, problem=problem)
    return CallPlan(f"activity {name}", "whoever polls it with GetActivityTask")


def _function(name: str, arn: str, machine: targets.MachineKey, *, sample: bool) -> CallPlan:
    what = f"function {name}"
    found = targets.find_registered_function(name, arn, machine, sample=sample)
    if found is not None:
        return CallPlan(
            what, _place(found), entry=found.where, problem=function.find_problem(found)
        )
    remote = targets.find_entry("lambda", machine)
    if remote is None and name in settings.STATEYARD_SAMPLE_FUNCTIONS:
        return CallPlan(what, problem=_SAMPLES_ONLY)
    if remote is None:
        return CallPlan(what, problem="No function of this name is registered in functions.json.")
    return _call_plan(f"{what}, Lambda Invoke", remote)


def _place(found: FoundFunction) -> str:
    """Return where a registered function runs."""
    if function.is_url(found.target):
        return without_secrets(found.target)
    if function.shares_process(found.options):
        return f"{_HERE}: {found.target}"
    python = found.options.python
    return f"a process of its own{f' of {python}' if python else ''}: {found.target}"


def _invoke(given: Any, machine: targets.MachineKey, *, sample: bool) -> CallPlan:
    named = given.get("FunctionName") if isinstance(given, dict) else None
    if not isinstance(named, str) or named.startswith("{%"):
        return CallPlan(
            "the function that FunctionName names at run time", "as functions.json says"
        )
    name = invoke.named_function(named)
    return _function(name, invoke.function_arn(name), machine, sample=sample)


def _web_plan(service: str, given: Any, machine: targets.MachineKey) -> CallPlan:
    url = given.get("ApiEndpoint") if isinstance(given, dict) else None
    method = given.get("Method", "") if isinstance(given, dict) else ""
    what = f"{service} {method}".strip()
    found = targets.find_exact_entry(service, machine)
    if found is None:
        return CallPlan(
            what, problem=f'"{service}" is not in targets.json: no address may be called.'
        )
    if service == "apigateway":
        base = found.target.get("endpoint_url")
        url = base or (f"https://{url}" if url else None)
    if not isinstance(url, str) or url.startswith("{%"):
        return CallPlan(what, "the address that ApiEndpoint names at run time", entry=found.where)
    return CallPlan(what, without_secrets(url), entry=found.where)


def _cluster(action: str, given: Any, machine: targets.MachineKey) -> CallPlan:
    """Return what a Task asks of a Kubernetes cluster."""
    known = given if isinstance(given, dict) else {}
    what = "kubernetes: run a job"
    if action == "call":
        what = f"kubernetes {known.get('Method', '')} {known.get('Path', '')}".strip()
    found = targets.find_exact_entry(targets.KUBERNETES, machine)
    if found is None:
        return CallPlan(
            what, problem='"kubernetes" is not in targets.json: no cluster may be called.'
        )
    url = known.get("Endpoint")
    where = "the cluster that Endpoint names at run time"
    if isinstance(url, str) and not url.startswith("{%"):
        where = without_secrets(url)
    token = "a token in targets.json" if found.target.get("token") else _credentials(found.target)
    return CallPlan(what, where, credentials=token, entry=found.where)


def _service(resource: Resource, machine: targets.MachineKey) -> CallPlan:
    operation = names.find_operation(resource.service, resource.action)
    if operation is None:
        what = f"{resource.service}:{resource.action}"
        return CallPlan(what, problem="There is no operation behind this resource.")
    what = f"{operation.client} {operation.model.name}"
    if targets.is_here(operation.client, machine):
        problem = ""
        if not own_api.serves(operation.client, operation.model.name):
            problem = f"This server does not serve {operation.model.name} of '{operation.client}'."
        return CallPlan(what, _HERE, credentials="the rights of the execution", problem=problem)
    found = targets.find_entry(operation.client, machine)
    if found is None:
        problem = f"No target for '{operation.client}' in targets.json, and none under \"*\"."
        return CallPlan(what, problem=problem)
    return _call_plan(what, found)


def _call_plan(what: str, found: targets.Entry) -> CallPlan:
    made = describe_entry(found.target, found.where)
    return CallPlan(what, made.where, made.region, made.credentials, made.entry)


def _credentials(said: Mapping[str, Any]) -> str:
    if said.get("access_key_id"):
        return "a key in targets.json"
    if said.get("profile"):
        return f"profile {said['profile']}"
    return "of the server's environment"
