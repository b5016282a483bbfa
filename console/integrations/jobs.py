"""Which jobs are waited for (``.sync``), how is their end seen, and how are they cancelled?

A job is looked at by one more call of the same service; what to ask is settled when it is
submitted and kept with the task. Source: the optimized integrations' pages of the documentation.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import engine
from console.integrations import aws
from console.integrations.outcome import Failed, Outcome, Submitted, Succeeded, Task

if TYPE_CHECKING:
    from collections.abc import Mapping

_FIRST_S, _GROWTH, _MOST_S = 0.5, 1.5, 10.0
# What says nothing about the job: the service is out of reach or busy, and is asked again.
_PASSING = (
    "SdkClientException",
    "ThrottlingException",
    "TooManyRequestsException",
    "ServiceUnavailableException",
)
_METADATA = ("SdkHttpMetadata", "SdkResponseMetadata")


@dataclass(frozen=True, slots=True)
class Job:
    """How a job is followed.

    ``look``: the call that describes it; ``ask``: its parameters, where ``@A.0.B`` is taken from
    the first answer and ``?A`` from the task's own parameters. ``status``: where its answer has
    the status; ``good`` and ``bad`` end the task, anything else goes on. ``result``: what of the
    answer is the task's result. ``cancel``: the call that stops it, and its parameters.
    """

    look: str
    ask: Mapping[str, Any]
    status: str
    good: frozenset[str]
    bad: frozenset[str]
    result: str = ""
    cancel: tuple[str, Mapping[str, Any]] | None = None


def _sagemaker(kind: str) -> Job:
    named = {f"{kind}Name": f"?{kind}Name"}
    status = f"{kind}Status"
    good, bad = frozenset({"Completed"}), frozenset({"Failed", "Stopped"})
    return Job(f"describe{kind}", named, status, good, bad, cancel=(f"stop{kind}", named))


def _codebuild(kind: str, look: str, stop: str) -> Job:
    bad = frozenset({"FAILED", "FAULT", "STOPPED", "TIMED_OUT"})
    batch = "Batch" if kind == "BuildBatch" else ""
    where = f"{'BuildBatches' if batch else 'Builds'}.0"
    one = f"@{kind}.Id"
    return Job(
        look,
        {"Ids": [one]},
        f"{where}.Build{batch}Status",
        frozenset({"SUCCEEDED"}),
        bad,
        result=where,
        cancel=(stop, {"Id": one}),
    )


_EXECUTION = {"ExecutionArn": "@ExecutionArn"}
_NESTED = Job(
    "describeExecution",
    _EXECUTION,
    "Status",
    frozenset({"SUCCEEDED"}),
    frozenset({"FAILED", "TIMED_OUT", "ABORTED"}),
    cancel=("stopExecution", _EXECUTION),
)
_RUN = {"JobName": "?JobName", "RunId": "@JobRunId"}
_SERVERLESS = {"ApplicationId": "@ApplicationId", "JobRunId": "@JobRunId"}
_CONTAINERS = {"VirtualClusterId": "@VirtualClusterId", "Id": "@Id"}

JOBS: dict[tuple[str, str], Job] = {
    ("states", "startExecution"): _NESTED,
    ("batch", "submitJob"): Job(
        "describeJobs",
        {"Jobs": ["@JobId"]},
        "Jobs.0.Status",
        frozenset({"SUCCEEDED"}),
        frozenset({"FAILED"}),
        result="Jobs.0",
        cancel=("terminateJob", {"JobId": "@JobId", "Reason": "The execution was stopped."}),
    ),
    ("ecs", "runTask"): Job(
        "describeTasks",
        {"Cluster": "?Cluster", "Tasks": ["@Tasks.0.TaskArn"]},
        "Tasks.0.LastStatus",
        frozenset({"STOPPED"}),
        frozenset(),
        result="Tasks.0",
        cancel=("stopTask", {"Cluster": "?Cluster", "Task": "@Tasks.0.TaskArn"}),
    ),
    ("glue", "startJobRun"): Job(
        "getJobRun",
        _RUN,
        "JobRun.JobRunState",
        frozenset({"SUCCEEDED"}),
        frozenset({"FAILED", "TIMEOUT", "STOPPED", "ERROR"}),
        result="JobRun",
        cancel=("batchStopJobRun", {"JobName": "?JobName", "JobRunIds": ["@JobRunId"]}),
    ),
    ("databrew", "startJobRun"): Job(
        "describeJobRun",
        {"Name": "?Name", "RunId": "@RunId"},
        "State",
        frozenset({"SUCCEEDED"}),
        frozenset({"FAILED", "TIMEOUT", "STOPPED"}),
        cancel=("stopJobRun", {"Name": "?Name", "RunId": "@RunId"}),
    ),
    ("sagemaker", "createTrainingJob"): _sagemaker("TrainingJob"),
    ("sagemaker", "createTransformJob"): _sagemaker("TransformJob"),
    ("sagemaker", "createProcessingJob"): _sagemaker("ProcessingJob"),
    ("sagemaker", "createHyperParameterTuningJob"): _sagemaker("HyperParameterTuningJob"),
    ("sagemaker", "createLabelingJob"): _sagemaker("LabelingJob"),
    ("athena", "startQueryExecution"): Job(
        "getQueryExecution",
        {"QueryExecutionId": "@QueryExecutionId"},
        "QueryExecution.Status.State",
        frozenset({"SUCCEEDED"}),
        frozenset({"FAILED", "CANCELLED"}),
        cancel=("stopQueryExecution", {"QueryExecutionId": "@QueryExecutionId"}),
    ),
    ("codebuild", "startBuild"): _codebuild("Build", "batchGetBuilds", "stopBuild"),
    ("codebuild", "startBuildBatch"): _codebuild(
        "BuildBatch", "batchGetBuildBatches", "stopBuildBatch"
    ),
    ("codebuild", "retryBuildBatch"): _codebuild(
        "BuildBatch", "batchGetBuildBatches", "stopBuildBatch"
    ),
    ("elasticmapreduce", "createCluster"): Job(
        "describeCluster",
        {"ClusterId": "@JobFlowId"},
        "Cluster.Status.State",
        frozenset({"WAITING"}),
        frozenset({"TERMINATING", "TERMINATED", "TERMINATED_WITH_ERRORS"}),
        cancel=("terminateCluster", {"JobFlowIds": ["@JobFlowId"]}),
    ),
    ("emr-serverless", "startJobRun"): Job(
        "getJobRun",
        _SERVERLESS,
        "JobRun.State",
        frozenset({"SUCCESS"}),
        frozenset({"FAILED", "CANCELLED"}),
        cancel=("cancelJobRun", _SERVERLESS),
    ),
    ("emr-containers", "startJobRun"): Job(
        "describeJobRun",
        _CONTAINERS,
        "JobRun.State",
        frozenset({"COMPLETED"}),
        frozenset({"FAILED", "CANCELLED"}),
        cancel=("cancelJobRun", _CONTAINERS),
    ),
    ("mediaconvert", "createJob"): Job(
        "getJob",
        {"Id": "@Job.Id"},
        "Job.Status",
        frozenset({"COMPLETE"}),
        frozenset({"ERROR", "CANCELED"}),
        cancel=("cancelJob", {"Id": "@Job.Id"}),
    ),
}


# -- following -------------------------------------------------------------------------------------


def submit(task: Task, answer: str) -> Submitted | Failed:
    """Return what the task waits for after its first call answered."""
    job = JOBS.get((task.service, task.action))
    if job is None:
        return Failed("States.TaskFailed", f"'{task.resource}' cannot be waited for here yet.")
    first = engine.loads(answer)
    if task.service == "ecs" and first.get("Failures"):
        return Failed("AmazonECS.Unknown", engine.dumps(first["Failures"]))
    given = engine.loads(task.input)
    kept = {"ask": _filled(job.ask, first, given)}
    if job.cancel is not None:
        kept["cancel"] = _filled(job.cancel[1], first, given)
    return Submitted(answer, engine.dumps(kept), _FIRST_S)


def look(task: Task, kept: str) -> Outcome | None:
    """Look at a job; return the task's outcome, None while the job goes on."""
    job = JOBS[task.service, task.action]
    told = aws.call(replace(task, action=job.look, input=engine.dumps(engine.loads(kept)["ask"])))
    if isinstance(told, Failed):
        return None if (told.error or "").endswith(_PASSING) else told
    if not isinstance(told, Succeeded):
        return None
    answer = {k: v for k, v in engine.loads(told.output).items() if k not in _METADATA}
    status = _at(answer, job.status)
    if status not in job.good | job.bad:
        return None
    found = _described(task, _at(answer, job.result) if job.result else answer)
    well = status in job.good and _containers_well(task, found)
    if well:
        return Succeeded(engine.dumps(_parsed(task, found)))
    return Failed("States.TaskFailed", engine.dumps(found))


def cancel(task: Task, kept: str) -> Outcome | None:
    """Stop a job whose task is over; no more than an attempt, as with the service."""
    job = JOBS.get((task.service, task.action))
    if job is None or job.cancel is None:
        return None
    parameters = engine.loads(kept).get("cancel", {})
    return aws.call(replace(task, action=job.cancel[0], input=engine.dumps(parameters)))


def next_look_s(looks: int) -> float:
    """Return the seconds until the next look: soon at first, then every ten."""
    return float(min(_FIRST_S * _GROWTH ** min(looks, 20), _MOST_S))


def _filled(template: Any, first: Any, given: Any) -> Any:
    """Put the values in their places; leave out what is not there."""
    if isinstance(template, str) and template[:1] in "@?":
        return _at(first if template[0] == "@" else given, template[1:])
    if isinstance(template, list):
        return [_filled(one, first, given) for one in template]
    if isinstance(template, str):
        return template
    pairs = ((name, _filled(one, first, given)) for name, one in template.items())
    return {name: value for name, value in pairs if value is not None}


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        if isinstance(value, list):
            value = value[int(name)] if int(name) < len(value) else None
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value


def _containers_well(task: Task, found: Any) -> bool:
    """ECS says only that a task stopped: well if every container ended with 0."""
    if task.service != "ecs":
        return True
    containers = found.get("Containers", [])
    return bool(containers) and all(one.get("ExitCode") == 0 for one in containers)


def _described(task: Task, found: Any) -> Any:
    """Return a nested execution as it is shown to its parent [recorded]."""
    if task.service == "states":
        hidden = ("RedriveCount", "RedriveStatus", "RedriveStatusReason")
        return {name: value for name, value in found.items() if name not in hidden}
    return {"Build": found} if task.service == "codebuild" else found


def _parsed(task: Task, found: Any) -> Any:
    """``.sync:2``: input and output of a nested execution as JSON, not as text."""
    if task.service != "states" or task.pattern != ".sync:2":
        return found
    read = {name: engine.loads(found[name]) for name in ("Input", "Output") if name in found}
    return {**found, **read}
