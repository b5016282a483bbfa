"""Run ``.sync`` Tasks: submit a job, poll the job until its end, and cancel it.

A ``Job`` describes the polling call. Its parameters are fixed when the job is submitted, and stored
with the task. Here is the job of a nested execution; the feature ``service_jobs`` has all others.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import engine
from console.feature import Hook, hooked
from console.integrations import aws
from console.integrations.outcome import Failed, Outcome, Submitted, Succeeded, TaskAttempt

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from engine import Resource

NOTHING = "-"
"""The value of ``Job.result`` for a job whose description contains no result."""
CLUSTER_ACTIONS = ("call", "runJob")
"""The actions of ``eks`` that are calls of a Kubernetes cluster."""
_FIRST_S, _GROWTH, _MOST_S = 0.5, 1.5, 10.0
_KNOWN_S = 300  # by its documentation, ECS knows what it began after five minutes at the latest
# Errors that say nothing about the job: the service is unreachable or busy, and is polled again.
_OUT_OF_REACH = "SdkClientException"
_BUSY = re.compile(
    r"\(Service: [^;]*; Status Code: (5\d\d|429|\d+; Error Code: \w*"
    r"(Throttl|TooManyRequests|RequestLimitExceeded)\w*);"
)
_UNKNOWN = re.compile(r"(NotFound|NotFoundException|ResourceNotFoundException)")
_METADATA = ("SdkHttpMetadata", "SdkResponseMetadata")


# -- the jobs of services --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Job:
    """How a job is polled, judged and cancelled.

    ``look``: the call that polls the job; ``ask``: its parameters, where ``@A.0.B`` is a value
    of the first answer, ``@A.*.B`` all such values of a list, and ``?A`` one of the task's own
    parameters. ``status``: the place of the status in the answer; a status in ``good`` lets the
    task succeed, one in ``bad`` lets it fail; with any other status the job is running. ``result``:
    the part of the answer that is the task's result, under the name ``under`` if set; ``also``:
    further values, from the first answer. ``gone``: a job that the service no longer knows has
    succeeded. ``cancel``: the call that stops the job, and its parameters. ``each``: the first call
    may start several jobs; question and answer then have lists, ``status`` is that of one job, each
    job is stopped by its own call, and the result is the single job or the list of several.
    """

    look: str
    ask: Mapping[str, Any]
    status: str
    good: frozenset[str]
    bad: frozenset[str]
    result: str = ""
    under: str = ""
    also: Mapping[str, Any] = field(default_factory=dict)
    gone: bool = False
    cancel: tuple[str, Mapping[str, Any]] | None = None
    each: str = ""


_EXECUTION = {"ExecutionArn": "@ExecutionArn"}
_NESTED = Job(
    "describeExecution",
    _EXECUTION,
    "Status",
    frozenset({"SUCCEEDED"}),
    frozenset({"FAILED", "TIMED_OUT", "ABORTED"}),
    cancel=("stopExecution", _EXECUTION),
)


class JobRunner(Protocol):
    """A module that runs the jobs of an action."""

    def submit_job(self, task: TaskAttempt, answer: str) -> Submitted | Failed:
        """Return the job to wait for, from the answer to a task's first call."""

    def poll_job(self, task: TaskAttempt, job_text: str) -> Outcome | None:
        """Poll a job; return the task's outcome, None while the job is running."""

    def cancel_job(self, task: TaskAttempt, job_text: str) -> Outcome | None:
        """Try to cancel the job of a finished task."""


@dataclass(frozen=True, slots=True)
class ServiceJobs:
    """Integrations of a feature, by service, or by service and action.

    ``calls``: call the service; ``problems``: why the service would reject a Task's parameters;
    ``jobs``: the jobs to poll; ``runners``: the modules that run other jobs.
    """

    calls: Mapping[str, Callable[[TaskAttempt], Outcome]]
    problems: Mapping[str, Callable[[Resource, Any], str]]
    jobs: Mapping[tuple[str, str], Job]
    runners: Mapping[tuple[str, str], JobRunner]


_NO_SERVICES = ServiceJobs({}, {}, {}, {})


def service_jobs() -> ServiceJobs:
    """Return the integrations that this server's features add."""
    added = hooked(Hook.SERVICE_JOBS)
    return added[0]() if added else _NO_SERVICES


def find_job(service: str, action: str) -> Job | None:
    """Return the job of an action, None if it starts none that can be polled."""
    if (service, action) == ("states", "startExecution"):
        return _NESTED
    return service_jobs().jobs.get((service, action))


def left_out(service: str, action: str, pattern: str) -> str:
    """Return why this server cannot run a Task without ``service_jobs``; "" if it can."""
    if hooked(Hook.SERVICE_JOBS) or service == "states":
        return ""
    cluster = service == "eks" and action in CLUSTER_ACTIONS
    if cluster or service == "elasticmapreduce" or pattern.startswith(".sync"):
        resource = f"{service}:{action}{pattern}"
        return f"STATEYARD_FEATURES leaves out service_jobs, which runs '{resource}'."
    return ""


# -- running a job ---------------------------------------------------------------------------------


def submit_job(task: TaskAttempt, answer: str) -> Submitted | Failed:
    """Return the job to wait for, from the answer to a task's first call."""
    job = find_job(task.service, task.action)
    if job is None:
        return Failed("States.TaskFailed", f"'{task.resource}' cannot be waited for here yet.")
    refused = placement_failure(task, answer)
    if refused is not None:
        return refused
    first, parameters = engine.loads(answer), engine.loads(task.input)
    record = {"ask": _fill_template(job.ask, first, parameters), "since": int(time.time())}
    if job.also:
        record["also"] = _fill_template(job.also, first, parameters)
    if job.cancel is not None:
        record["cancel"] = _fill_template(job.cancel[1], first, parameters)
    return Submitted(answer, engine.dumps(record), _FIRST_S)


def placement_failure(task: TaskAttempt, answer: str) -> Failed | None:
    """Return the failure of a task that ECS could not place: ECS answers 200 with failures."""
    if task.service != "ecs":
        return None
    result = engine.loads(answer)
    if result.get("Tasks") and not result.get("Failures"):
        return None
    return Failed("AmazonECS.Unknown", engine.dumps(result.get("Failures", [])))


def poll_job(task: TaskAttempt, job_text: str) -> Outcome | None:
    """Poll a job; return the task's outcome, None while the job is running."""
    job, record = find_job(task.service, task.action), engine.loads(job_text)
    if job is None:
        cause = left_out(task.service, task.action, task.pattern)
        return Failed("States.TaskFailed", cause or f"'{task.resource}' has no job to poll.")
    outcome = aws.call(replace(task, action=job.look, input=engine.dumps(record["ask"])))
    if isinstance(outcome, Failed):
        return _not_told(job, outcome, record)
    if not isinstance(outcome, Succeeded):
        return None
    answer = {k: v for k, v in engine.loads(outcome.output).items() if k not in _METADATA}
    statuses = _statuses(job, answer, record)
    if None in statuses and _lost(answer, record):
        return Failed("AmazonECS.Unknown", engine.dumps(answer["Failures"]))
    if not job.good | job.bad >= set(statuses):
        return None
    return _ended(task, job, answer, record, well=job.good >= set(statuses))


def cancel_job(task: TaskAttempt, job_text: str) -> Outcome | None:
    """Try to cancel the job of a finished task, as Step Functions does."""
    job = find_job(task.service, task.action)
    if job is None or job.cancel is None:
        return None
    parameters = engine.loads(job_text).get("cancel", {})
    outcomes = [
        aws.call(replace(task, action=job.cancel[0], input=engine.dumps(request)))
        for request in _apart(job, parameters)
    ]
    return next((outcome for outcome in outcomes if isinstance(outcome, Failed)), outcomes[-1])


def next_look_s(looks: int) -> float:
    """Return the seconds until the next poll: short at first, then ten."""
    return float(min(_FIRST_S * _GROWTH ** min(looks, 20), _MOST_S))


# -- the end of a job ------------------------------------------------------------------------------


def _not_told(job: Job, outcome: Failed, record: Any) -> Outcome | None:
    """Return the failure of a task whose job the service did not describe."""
    error, cause = outcome.error or "", outcome.cause or ""
    if error.endswith(_OUT_OF_REACH) or _BUSY.search(cause):
        return None
    if job.gone and _UNKNOWN.search(error):
        return Succeeded(engine.dumps(record.get("also", {})))
    return outcome


def _statuses(job: Job, answer: Any, record: Any) -> list[Any]:
    """Return the status of each started job; None where the service reports none."""
    if not job.each:
        return [_value_at(answer, job.status)]
    statuses = [_value_at(item, job.status) for item in answer.get(job.each, [])]
    return statuses + [None] * (len(record["ask"][job.each]) - len(statuses))


def _lost(answer: Any, record: Any) -> bool:
    """Whether ECS has forgotten tasks; a new task may not be known yet."""
    missing = [
        failure for failure in answer.get("Failures", []) if failure.get("Reason") == "MISSING"
    ]
    return bool(missing) and time.time() - record.get("since", 0) > _KNOWN_S


def _apart(job: Job, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the parameters of the calls that stop the jobs, one call per job."""
    lists = {name: value for name, value in parameters.items() if isinstance(value, list)}
    if not job.each or not lists:
        return [parameters]
    return [parameters | {name: part} for name, value in lists.items() for part in value]


def _ended(task: TaskAttempt, job: Job, answer: Any, record: Any, *, well: bool) -> Outcome:
    description = _value_at(answer, job.result) if job.result not in ("", NOTHING) else answer
    if job.each and len(answer[job.each]) == 1:
        description = answer[job.each][0]
    if task.service == "states":
        description = _child_result(description)
    described = {job.under: description} if job.under else description
    if not (well and _containers_well(task, description)):
        return Failed("States.TaskFailed", engine.dumps(described))
    result = {} if job.result == NOTHING else _parse_nested(task, described)
    return Succeeded(engine.dumps(result | record.get("also", {})))


def _containers_well(task: TaskAttempt, description: Any) -> bool:
    """Whether an ECS task succeeded: every container exited with 0."""
    if task.service != "ecs":
        return True
    for ecs_task in description.get("Tasks", [description]):
        codes = [container.get("ExitCode") for container in ecs_task.get("Containers", [])]
        if set(codes) != {0}:
            return False
    return True


def _child_result(execution: Any) -> Any:
    """Return a child execution as its parent's result [recorded]."""
    hidden = ("RedriveCount", "RedriveStatus", "RedriveStatusReason")
    return {name: value for name, value in execution.items() if name not in hidden}


def _parse_nested(task: TaskAttempt, result: Any) -> Any:
    """``.sync:2``: input and output of a nested execution as JSON, not as text."""
    if task.service != "states" or task.pattern != ".sync:2":
        return result
    read = {name: engine.loads(result[name]) for name in ("Input", "Output") if name in result}
    return {**result, **read}


# -- places in parameters and answers --------------------------------------------------------------


def _fill_template(template: Any, first: Any, parameters: Any) -> Any:
    """Fill the values into a template; omit missing values."""
    if isinstance(template, str) and template[:1] in "@?":
        return _value_at(first if template[0] == "@" else parameters, template[1:])
    if isinstance(template, list):
        return [_fill_template(part, first, parameters) for part in template]
    if isinstance(template, str):
        return template
    pairs = ((name, _fill_template(part, first, parameters)) for name, part in template.items())
    return {name: value for name, value in pairs if value is not None}


def _value_at(value: Any, path: str) -> Any:
    for place, name in enumerate(path.split(".")):
        if name == "*":
            rest = ".".join(path.split(".")[place + 1 :])
            return [_value_at(part, rest) for part in value or []]
        if isinstance(value, list):
            value = value[int(name)] if int(name) < len(value) else None
        else:
            value = value.get(name) if isinstance(value, dict) else None
    return value
