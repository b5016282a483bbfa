"""Actions of task workers: GetActivityTask, SendTaskSuccess, SendTaskFailure, SendTaskHeartbeat."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from console.awsapi.members import reads
from console.config import quotas
from console.db import signals
from console.errors import ErrorCode, ServiceError
from console.own_api import LongPoll
from console.statuses import Topic
from console.store.executions import outcome_steps
from console.store.tasks import activities, claim, complete, handover

if TYPE_CHECKING:
    from console.awsapi.operations.call import Call
    from console.db.writer import Change

_LONG_POLL_S = 60.0  # AWS: "the maximum time the service will hold on to the request"


@reads("activityArn workerName")
def get_activity_task(call: Call) -> LongPoll:
    """GetActivityTask: a long poll of up to a minute that holds no thread."""
    arn, worker = call.params["activityArn"], call.params.get("workerName") or ""
    topic = (Topic.ACTIVITY, arn)
    seen = signals.last_signal(topic)
    ready = activities.has_task(call.project, arn)
    most = quotas.quotas_of(call.project.name).activity_pollers
    if signals.subscribers(topic) >= most:
        raise ServiceError(
            ErrorCode.ActivityWorkerLimitExceeded, f"Too many workers poll the activity: {most}"
        )
    claims: list[claim.ClaimedTask] = []

    def given(work: claim.ClaimedTask | None) -> dict[str, Any] | None:
        if work is None:
            return None
        claims.append(work)
        return {"taskToken": work.token, "input": work.input}

    def look() -> Change[dict[str, Any] | None] | None:
        taking = handover.claim_activity_task(arn, worker)
        return None if taking is None else taking.then(given)

    def undo() -> None:
        claim.return_task(claims[-1])

    poll = LongPoll(look, topic, _LONG_POLL_S, {}, undo, one_each=True, short=True)
    return replace(poll, ready=True) if ready else replace(poll, seen=seen)


@reads("taskToken output")
def succeed(call: Call) -> Change[dict[str, Any]]:
    """SendTaskSuccess: end a task with its output."""
    params = call.params
    token, output = params["taskToken"], params["output"]
    return complete.pending_success(token, output, call.project, _ahead(call)).then(_empty)


@reads("taskToken error cause")
def fail(call: Call) -> Change[dict[str, Any]]:
    """SendTaskFailure: end a task with an error."""
    error, cause = call.params.get("error"), call.params.get("cause")
    token = call.params["taskToken"]
    ending = complete.pending_failure(token, error, cause, call.project, _ahead(call))
    return ending.then(_empty)


def _ahead(call: Call) -> complete.Ahead | None:
    """Return the function that steps the execution at once; None for a call by this server.

    If a Task makes the call (``parent``), the worker that runs the Task commits the call with the
    step of the Task's execution. A call with ``trusted`` is part of another call.
    """
    return outcome_steps.step_ahead if call.parent is None and not call.trusted else None


@reads("taskToken")
def heartbeat(call: Call) -> Change[dict[str, Any]]:
    """SendTaskHeartbeat: restart the heartbeat clock of a task."""
    return complete.pending_heartbeat(call.params["taskToken"], call.project).then(_empty)


def _empty(_: None) -> dict[str, Any]:
    return {}
