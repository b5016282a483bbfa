"""``eks:call`` and ``eks:runJob``: the Kubernetes API of a cluster, and jobs that run in it.

Source: "Create and manage Amazon EKS clusters with Step Functions" of the documentation.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from botocore.model import ShapeResolver

import engine
from console.integrations import aws, cluster, shapes
from console.integrations.outcome import (
    Failed,
    Outcome,
    Submitted,
    Succeeded,
    TaskAttempt,
    unusable_parameters,
)

ACTIONS = ("call", "runJob")
ATTEMPT = "stateyard/attempt"
"""The annotation by which a call that is made again finds the job that it had made."""
_ENDPOINT = re.compile(r"https?://[^/?#\s]+(/[^?#\s]*)?")
_METHODS = ("GET", "POST", "PUT", "DELETE", "HEAD", "PATCH")
_FIRST_LOOK_S = 0.5
_CONFLICT, _GONE, _TOO_MANY, _TROUBLE = 409, 404, 429, 500
_MOST_READ = 6 * 1024 * 1024  # of what is only looked at here: pods are long
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
    """Ask the cluster's API what the state says, or begin its job; else call EKS itself."""
    if task.action not in ACTIONS:
        return aws.call(task)
    try:
        asked = _asked(task.action, engine.loads(task.input))
        return _begin(task, asked) if task.action == "runJob" else _call(task, asked).outcome
    except shapes.ParametersError as error:
        return unusable_parameters(task, str(error))
    except cluster.NotNamedError as error:
        return Failed("States.TaskFailed", str(error))
    except cluster.NoAnswerError as error:
        return Failed("EKS.SdkClientException", str(error))


def find_problem(action: str, given: Any) -> str:
    """Return why parameters are no request, "" if they are one."""
    try:
        _asked(action, given)
    except shapes.ParametersError as error:
        return str(error)
    return ""


# -- a job from its beginning to its end -----------------------------------------------------------


def submit_job(task: TaskAttempt, answer: str) -> Submitted | Failed:
    """Return what a ``.sync`` task waits for: the job that the cluster has made."""
    name = _value_at(engine.loads(answer), "ResponseBody", "metadata", "name")
    if not isinstance(name, str):
        return Failed("EKS.SdkClientException", f"The cluster's answer is no Job: {answer}")
    path = _path(_asked("runJob", engine.loads(task.input)), name)
    return Submitted(answer, engine.dumps({"Path": path}), _FIRST_LOOK_S)


def poll_job(task: TaskAttempt, kept: str) -> Outcome | None:
    """Look at a job; return the task's outcome, None while the job goes on."""
    asked, path = _asked("runJob", engine.loads(task.input)), engine.loads(kept)["Path"]
    try:
        answer = cluster.send_request(task, asked, "GET", path, most=_MOST_READ)
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
        one["type"]
        for one in _value_at(job, "status", "conditions") or ()
        if one["status"] == "True"
    }
    if not ended & {"Complete", "Failed"}:
        return None
    if asked.get("LogOptions", {}).get("RetrieveLogs"):
        job = {**job, "logs": _logs(task, asked, job["metadata"]["name"])}
    text = engine.dumps(job)
    return Succeeded(text) if "Complete" in ended else Failed("States.TaskFailed", text)


def cancel_job(task: TaskAttempt, kept: str) -> Outcome:
    """Delete a job whose task is over, with its pods."""
    asked = _asked("runJob", engine.loads(task.input))
    query = {"propagationPolicy": ["Background"]}  # the API would leave the pods running
    try:
        answer = cluster.send_request(task, asked, "DELETE", engine.loads(kept)["Path"], query)
    except cluster.NoAnswerError as error:
        return Failed("EKS.SdkClientException", str(error))
    return Succeeded(answer.told) if answer.status == _GONE else answer.outcome


def _begin(task: TaskAttempt, asked: dict[str, Any]) -> Outcome:
    """Create the job; reuse a job created by an earlier dispatch of this attempt."""
    about = asked["Job"].get("metadata", {})
    notes = {**about.get("annotations", {}), ATTEMPT: task.idempotency_key}
    marked = {**asked["Job"], "metadata": {**about, "annotations": notes}}
    answer = cluster.send_request(task, asked, "POST", _path(asked), body=marked)
    if answer.status == _CONFLICT and about.get("name"):
        known = cluster.send_request(task, asked, "GET", _path(asked, str(about["name"])))
        if _value_at(known.value, "metadata", "annotations", ATTEMPT) == task.idempotency_key:
            return known.outcome
    return answer.outcome


def _parsed(job: Any) -> Any:
    """Return a Job that is given as JSON or as its text, None if it is none."""
    try:
        job = engine.loads(job) if isinstance(job, str) else job
    except engine.JsonTextError:
        return None
    about = job.get("metadata", {}) if isinstance(job, dict) else None
    notes = about.get("annotations", {}) if isinstance(about, dict) else None
    return job if isinstance(notes, dict) else None


def _path(asked: dict[str, Any], name: str = "") -> str:
    """Return where the task's jobs are, or one of them."""
    space = asked.get("Namespace") or "default"
    every = f"/apis/batch/v1/namespaces/{quote(space, safe='')}/jobs"
    return f"{every}/{quote(name, safe='')}" if name else every


# -- what its containers wrote ---------------------------------------------------------------------


def _logs(task: TaskAttempt, asked: dict[str, Any], job: str) -> dict[str, Any]:
    """Return the logs of a job's containers, as far as they can be had."""
    pods = _path(asked).replace("/apis/batch/v1/", "/api/v1/").removesuffix("jobs") + "pods"
    try:
        query = {"labelSelector": [f"job-name={job}"]}
        answer = cluster.send_request(task, asked, "GET", pods, query, most=_MOST_READ)
        if isinstance(answer.outcome, Failed):
            return {"error": answer.outcome.error, "cause": answer.outcome.cause}
    except cluster.NoAnswerError as error:
        return {"error": "EKS.SdkClientException", "cause": str(error)}
    found = {}
    for pod in answer.value.get("items") or ():
        name = pod["metadata"]["name"]
        names = [one["name"] for one in pod["spec"]["containers"]]
        where = f"{pods}/{quote(name, safe='')}/log"
        found[name] = {"containers": {one: _read_log(task, asked, where, one) for one in names}}
    return {"pods": found}


def _read_log(
    task: TaskAttempt, asked: dict[str, Any], path: str, container: str
) -> dict[str, Any]:
    options = asked["LogOptions"]
    query = {**options.get("LogParameters", {}), "container": [container]}
    try:
        answer = cluster.send_request(task, asked, "GET", path, query)
    except cluster.NoAnswerError as error:
        return {"error": "EKS.SdkClientException", "cause": str(error)}
    if isinstance(answer.outcome, Failed):
        return {"error": answer.outcome.error, "cause": answer.outcome.cause}
    return {"log": answer.text if options.get("RawLogs") else answer.value}


# -- requests --------------------------------------------------------------------------------------


def _asked(action: str, given: Any) -> dict[str, Any]:
    """Return the parameters under their own names; raise ``ParametersError``."""
    known = given
    if isinstance(given, dict):  # a cluster is asked by Stateyard: no service judges a null
        known = {name: one for name, one in given.items() if one is not None}
    asked = shapes.to_request(_SHAPES.get_shape_by_name(action), known, "")
    if action == "runJob":
        asked["Job"] = _parsed(asked["Job"])
    rules = {
        "Endpoint": _ENDPOINT.fullmatch(asked["Endpoint"]) is not None,
        "Job": asked.get("Job", {}) is not None,
        "Method": asked.get("Method", "GET") in _METHODS,
        "Path": asked.get("Path", "/").startswith("/"),
    }
    wrong = [name for name, well in rules.items() if not well]
    if wrong:
        said = (f"The value of the field '{name}' has an invalid format" for name in wrong)
        raise shapes.ParametersError(", ".join(said))
    return asked


def _call(task: TaskAttempt, asked: dict[str, Any]) -> cluster.Answer:
    path = quote(asked["Path"], safe="/%:@!$&'()*+,;=~")
    query, body = asked.get("QueryParameters", {}), asked.get("RequestBody")
    return cluster.send_request(task, asked, asked["Method"], path, query, body)


def _value_at(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
