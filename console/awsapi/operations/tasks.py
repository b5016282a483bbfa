"""The actions of task workers."""

from __future__ import annotations

from typing import Any

from console import quotas
from console.awsapi.operations.call import Call, Later
from console.errors import ActivityWorkerLimitExceeded
from console.store import activities, handout, hints, tasks

_LONG_POLL_S = 60.0  # AWS: "the maximum time the service will hold on to the request"


def get_activity_task(call: Call) -> Later:
    """GetActivityTask: waits up to a minute for work, holding no thread."""
    activity = activities.get(call.project, call.params["activityArn"])
    worker = call.params.get("workerName") or ""
    most = quotas.of(call.project.name).activity_pollers
    if hints.listening(("activity", activity.arn)) >= most:
        raise ActivityWorkerLimitExceeded(f"Too many workers poll the activity: {most}")
    taken: list[tasks.Work] = []

    def look() -> dict[str, Any] | None:
        work = handout.take(activity.arn, worker)
        if work is None:
            return None
        taken.append(work)
        return {"taskToken": work.token, "input": work.input}

    def undo() -> None:
        tasks.put_back(taken[-1])

    topic = ("activity", activity.arn)
    return Later(look, topic, _LONG_POLL_S, {}, undo, found=look(), one_each=True)


def succeed(call: Call) -> dict[str, Any]:
    """SendTaskSuccess."""
    tasks.succeed(call.params["taskToken"], call.params["output"], call.project)
    return {}


def fail(call: Call) -> dict[str, Any]:
    """SendTaskFailure."""
    error, cause = call.params.get("error"), call.params.get("cause")
    tasks.fail(call.params["taskToken"], error, cause, call.project)
    return {}


def heartbeat(call: Call) -> dict[str, Any]:
    """SendTaskHeartbeat."""
    tasks.heartbeat(call.params["taskToken"], call.project)
    return {}
