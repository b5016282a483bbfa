"""Run ``eks:call`` and ``eks:runJob``: call the Kubernetes API of a cluster, and run jobs in it.

Source: "Create and manage Amazon EKS clusters with Step Functions" of the documentation.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from botocore.model import ShapeResolver

import engine
from console.features.service_jobs import cluster
from console.integrations import aws, shapes
from console.integrations import parameters as service_parameters
from console.integrations.jobs import CLUSTER_ACTIONS
from console.integrations.outcome import (
    Failed,
    Outcome,
    Submitted,
    Succeeded,
    TaskAttempt,
    unusable_parameters,
)

if TYPE_CHECKING:
    from engine import Resource

ATTEMPT = "stateyard/attempt"
"""Annotation with the idempotency key: after a crash, a repeated call finds its job by it."""
_ENDPOINT = re.compile(r"https?://[^/?#\s]+(/[^?#\s]*)?")
_METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD", "PATCH")
_FIRST_LOOK_S = 0.5
_CONFLICT, _GONE, _TOO_MANY, _TROUBLE = 409, 404, 429, 500
_MOST_READ = 6 * 1024 * 1024
"""Maximum size in bytes of a job or a list of pods.

It is larger than the maximum of a payload, because lists of pods are long.
"""
_CLUSTER = {name: {"shape": "Text"} for name in ("ClusterName", "CertificateAuthority", "Endpoint")}
_SHAPES = ShapeResolver(
    {
        "Text": {"type": "string"},
        "Flag": {"type": "boolean"},
        "Json": {"type": "structure", "members": {}, "document": True},
        "Texts": {"type": "list", "member": {"shape": "Text"}},
        "Query": {"type": "map", "key": {"shape": "Text"}, "value": {"shape": "Texts"}},
        "Logs": {
            "type": "structure",
            "members": {
                "RetrieveLogs": {"shape": "Flag"},
                "RawLogs": {"shape": "Flag"},
                "LogParameters": {"shape": "Query"},
            },
        },
        "call": {
            "type": "structure",
            "required": [*_CLUSTER, "Method", "Path"],
            "members": {
                **_CLUSTER,
                "Method": {"shape": "Text"},
                "Path": {"shape": "Text"},
                "QueryParameters": {"shape": "Query"},
                "RequestBody": {"shape": "Json"},
            },
        },
        "runJob": {
            "type": "structure",
            "required": [*_CLUSTER, "Job"],
            "members": {
                **_CLUSTER,
                "Namespace": {"shape": "Text"},
                "Job": {"shape": "Json"},
                "LogOptions": {"shape": "Logs"},
            },
        },
    }
)


def call(task: TaskAttempt) -> Outcome:
    """Run a Task of the service ``eks``; return its outcome.

    ``eks:call`` sends the state's request to the cluster, ``eks:runJob`` creates the job there. Any
    other action, such as ``createCluster``, is a call of the AWS service EKS.
    """
    if task.action not in CLUSTER_ACTIONS:
        return aws.call(task)
    try:
        parameters = _check_parameters(task.action, engine.loads(task.input))
        return (
            _begin(task, parameters) if task.action == "runJob" else _call(task, parameters).outcome
        )
    except shapes.ParametersError as error:
        return unusable_parameters(task, str(error))
    except cluster.NotNamedError as error:
        return Failed("States.TaskFailed", str(error))
    except cluster.NoAnswerError as error:
        return Failed("EKS.SdkClientException", str(error))


def parameter_problem(resource: Resource, parameters: Any) -> str:
    """Return why the cluster or EKS would reject the parameters; "" if it accepts them."""
    if resource.action in CLUSTER_ACTIONS:
        return find_problem(resource.action, parameters)
    return service_parameters.model_problem(resource, parameters)


def find_problem(action: str, parameters: Any) -> str:
    """Return the error in the parameters of ``call`` or ``runJob``, "" if they are valid."""
    try:
        _check_parameters(action, parameters)
    except shapes.ParametersError as error:
        return str(error)
    return ""


# -- a job from its beginning to its end -----------------------------------------------------------


def submit_job(task: TaskAttempt, answer: str) -> Submitted | Failed:
    """Return the job to poll for a ``.sync`` Task, from the cluster's answer to its creation."""
    name = _value_at(engine.loads(answer), "ResponseBody", "metadata", "name")
    if not isinstance(name, str):
        return Failed("EKS.SdkClientException", f"The cluster's answer is no Job: {answer}")
    path = _path(_check_parameters("runJob", engine.loads(task.input)), name)
    return Submitted(answer, engine.dumps({"Path": path}), _FIRST_LOOK_S)


def poll_job(task: TaskAttempt, job_text: str) -> Outcome | None:
    """Query a job; return the Task's outcome, None while the job is running.

    Errors of the cluster (no answer, 429, 5xx) do not end the Task: the job is queried again later.
    """
    parameters, path = (
        _check_parameters("runJob", engine.loads(task.input)),
        engine.loads(job_text)["Path"],
    )
    try:
        answer = cluster.send_request(task, parameters, "GET", path, most=_MOST_READ)
    except cluster.NotNamedError as error:
        return Failed("States.TaskFailed", str(error))
    except cluster.NoAnswerError:
        return None
    if answer.status >= _TROUBLE or answer.status == _TOO_MANY:
        return None
    if isinstance(answer.outcome, Failed):
        return answer.outcome
    job = answer.value
    ended = {
        condition["type"]
        for condition in _value_at(job, "status", "conditions") or ()
        if condition["status"] == "True"
    }
    if not ended & {"Complete", "Failed"}:
        return None
    if parameters.get("LogOptions", {}).get("RetrieveLogs"):
        job = {**job, "logs": _logs(task, parameters, job["metadata"]["name"])}
    text = engine.dumps(job)
    return Succeeded(text) if "Complete" in ended else Failed("States.TaskFailed", text)


def cancel_job(task: TaskAttempt, job_text: str) -> Outcome:
    """Delete the job of a Task that was stopped or timed out, with its pods."""
    parameters = _check_parameters("runJob", engine.loads(task.input))
    query = {"propagationPolicy": ["Background"]}  # the API would leave the pods running
    try:
        answer = cluster.send_request(
            task, parameters, "DELETE", engine.loads(job_text)["Path"], query
        )
    except cluster.NoAnswerError as error:
        return Failed("EKS.SdkClientException", str(error))
    return Succeeded(answer.result) if answer.status == _GONE else answer.outcome


def _begin(task: TaskAttempt, parameters: dict[str, Any]) -> Outcome:
    """Create the job; reuse a job created by an earlier dispatch of this attempt."""
    about = parameters["Job"].get("metadata", {})
    notes = {**about.get("annotations", {}), ATTEMPT: task.idempotency_key}
    marked = {**parameters["Job"], "metadata": {**about, "annotations": notes}}
    answer = cluster.send_request(task, parameters, "POST", _path(parameters), body=marked)
    if answer.status == _CONFLICT and about.get("name"):
        existing = cluster.send_request(
            task, parameters, "GET", _path(parameters, str(about["name"]))
        )
        if _value_at(existing.value, "metadata", "annotations", ATTEMPT) == task.idempotency_key:
            return existing.outcome
    return answer.outcome


def _parse_job(job: Any) -> Any:
    """Return the object of ``Job``, which may be an object or JSON text; None if it is invalid."""
    try:
        job = engine.loads(job) if isinstance(job, str) else job
    except engine.JsonTextError:
        return None
    about = job.get("metadata", {}) if isinstance(job, dict) else None
    notes = about.get("annotations", {}) if isinstance(about, dict) else None
    return job if isinstance(notes, dict) else None


def _path(parameters: dict[str, Any], name: str = "") -> str:
    """Return the path of the Task's jobs in the Kubernetes API, or of the job with a name."""
    space = parameters.get("Namespace") or "default"
    every = f"/apis/batch/v1/namespaces/{quote(space, safe='')}/jobs"
    return f"{every}/{quote(name, safe='')}" if name else every


# -- what its containers wrote ---------------------------------------------------------------------


def _logs(task: TaskAttempt, parameters: dict[str, Any], job: str) -> dict[str, Any]:
    """Return the logs of a job's containers, with an error in place of a log if it is missing."""
    pods = _path(parameters).replace("/apis/batch/v1/", "/api/v1/").removesuffix("jobs") + "pods"
    try:
        query = {"labelSelector": [f"job-name={job}"]}
        answer = cluster.send_request(task, parameters, "GET", pods, query, most=_MOST_READ)
        if isinstance(answer.outcome, Failed):
            return {"error": answer.outcome.error, "cause": answer.outcome.cause}
    except cluster.NoAnswerError as error:
        return {"error": "EKS.SdkClientException", "cause": str(error)}
    logs = {}
    for pod in answer.value.get("items") or ():
        name = pod["metadata"]["name"]
        names = [container["name"] for container in pod["spec"]["containers"]]
        where = f"{pods}/{quote(name, safe='')}/log"
        logs[name] = {
            "containers": {
                container: _read_log(task, parameters, where, container) for container in names
            }
        }
    return {"pods": logs}


def _read_log(
    task: TaskAttempt, parameters: dict[str, Any], path: str, container: str
) -> dict[str, Any]:
    options = parameters["LogOptions"]
    query = {**options.get("LogParameters", {}), "container": [container]}
    try:
        answer = cluster.send_request(task, parameters, "GET", path, query)
    except cluster.NoAnswerError as error:
        return {"error": "EKS.SdkClientException", "cause": str(error)}
    if isinstance(answer.outcome, Failed):
        return {"error": answer.outcome.error, "cause": answer.outcome.cause}
    return {"log": answer.text if options.get("RawLogs") else answer.value}


# -- requests --------------------------------------------------------------------------------------


def _check_parameters(action: str, parameters: Any) -> dict[str, Any]:
    """Check the parameters; return them by name, or raise ``ParametersError``."""
    members = parameters
    if isinstance(parameters, dict):
        # Treat null as missing: for AWS services the service would refuse it, but no service checks
        # these parameters.
        members = {name: value for name, value in parameters.items() if value is not None}
    request = shapes.to_request(_SHAPES.get_shape_by_name(action), members, "")
    if action == "runJob":
        request["Job"] = _parse_job(request["Job"])
    rules = {
        "Endpoint": _ENDPOINT.fullmatch(request["Endpoint"]) is not None,
        "Job": request.get("Job", {}) is not None,
        "Method": request.get("Method", "GET") in _METHODS,
        "Path": request.get("Path", "/").startswith("/"),
    }
    wrong = [name for name, well in rules.items() if not well]
    if wrong:
        problems = (f"The value of the field '{name}' has an invalid format" for name in wrong)
        raise shapes.ParametersError(", ".join(problems))
    return request


def _call(task: TaskAttempt, parameters: dict[str, Any]) -> cluster.Answer:
    path = quote(parameters["Path"], safe="/%:@!$&'()*+,;=~")
    query, body = parameters.get("QueryParameters", {}), parameters.get("RequestBody")
    return cluster.send_request(task, parameters, parameters["Method"], path, query, body)


def _value_at(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
