"""Write the program of a worker that polls an activity, for its page."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django.http import HttpRequest

    from console.web.core.scope import Scope

_PROGRAM = """\
import json

import boto3
from botocore.config import Config

sfn = boto3.Session(profile_name="stateyard").client(
    "stepfunctions",
    endpoint_url="{address}",
    region_name="{region}",
    config=Config(read_timeout=70),  # a poll waits up to a minute
)


def work(task_input):
    return task_input  # your work


while True:
    task = sfn.get_activity_task(
        activityArn="{arn}",
        workerName="worker-1",
    )
    if not task.get("taskToken"):
        continue  # a minute without a task
    try:
        result = work(json.loads(task["input"]))
    except Exception as error:
        sfn.send_task_failure(
            taskToken=task["taskToken"],
            error=type(error).__name__,
            cause=str(error),
        )
    else:
        sfn.send_task_success(taskToken=task["taskToken"], output=json.dumps(result))
"""


def worker_program(request: HttpRequest, scope: Scope, name: str) -> str:
    """Return a Python program that works the tasks of an activity of this scope."""
    return _PROGRAM.format(
        address=f"{request.scheme}://{request.get_host()}",
        region=scope.region,
        arn=scope.arn("activity", name),
    )
