"""Several clients end the same task or execution: one wins, and the others learn that."""

from __future__ import annotations

import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from tests.chaos.load import Load, Report, execution_arn
from tests.chaos.shapes import ACTIVITY, CALLBACK
from tests.chaos.stage import begin, close

if TYPE_CHECKING:
    from pathlib import Path

    from tests.chaos.stage import Size
    from tests.postgres import Postgres

_TERMINAL = ("ExecutionSucceeded", "ExecutionFailed", "ExecutionAborted", "ExecutionTimedOut")


def callbacks(folder: Path, server: Postgres | None, size: Size) -> Report:
    """Eight senders race for each token: one wins, and the history has what it sent."""
    report = Report("callbacks", size.seed)
    yard = begin(folder, server, size)
    load = Load(yard, (CALLBACK,))
    load.start(size.n, 0)
    client = yard.client(64)
    wins: dict[str, list[int]] = {}

    def race(pool: ThreadPoolExecutor) -> None:
        task = client.get_activity_task(activityArn=ACTIVITY)
        token = task["taskToken"]
        results = list(pool.map(lambda k: _send(client, token, k, report), range(8)))
        number = json.loads(task["input"])["n"]
        wins[execution_arn("callback", f"callback-{number}")] = [k for k in results if k >= 0]

    with ThreadPoolExecutor(8) as senders:
        for _ in range(size.n):
            race(senders)
    load.wait(60)
    for arn, won in wins.items():
        got = client.describe_execution(executionArn=arn).get("output")
        if len(won) != 1 or got != str(won[0]):
            report.violations.append(f"{arn}: answered 200 to {won}, has {got}")
    report.n = len(wins)
    return close(yard, None, report)


def _send(client: Any, token: str, number: int, report: Report) -> int:
    """Send an outcome; return its number if it was taken, else -1."""
    try:
        client.send_task_success(taskToken=token, output=str(number))
    except client.exceptions.TaskTimedOut:
        return -1
    except client.exceptions.ClientError as error:
        report.violations.append(str(error))
        return -1
    return number


def stops(folder: Path, server: Postgres | None, size: Size) -> Report:
    """An outcome and a Stop within 5 ms of each other: one wins, and the other is told."""
    report = Report("stops", size.seed)
    yard = begin(folder, server, size)
    Load(yard, (CALLBACK,)).start(size.n, 0)
    client = yard.client(64)
    dice = random.Random(size.seed)
    ends = dict.fromkeys(("SUCCEEDED", "ABORTED"), 0)
    with ThreadPoolExecutor(2) as pool:
        for _ in range(size.n):
            task = client.get_activity_task(activityArn=ACTIVITY)
            number = json.loads(task["input"])["n"]
            arn = execution_arn("callback", f"callback-{number}")
            send_at, stop_at = (time.monotonic() + dice.uniform(0, 0.005) for _ in range(2))
            sent = pool.submit(_at, send_at, _send, client, task["taskToken"], number, report)
            reply = pool.submit(_at, stop_at, client.stop_execution, executionArn=arn).result()
            status, wrong = _one_end(client, arn, number, sent.result() >= 0, reply["stopDate"])
            ends[status] = ends.get(status, 0) + 1
            report.violations += wrong
    report.n = size.n
    report.facts |= ends
    return close(yard, None, report)


def _at(moment: float, act: Any, *arguments: Any, **more: Any) -> Any:
    """Do it at a moment of the monotonic clock."""
    time.sleep(max(moment - time.monotonic(), 0))
    return act(*arguments, **more)


def _one_end(client: Any, arn: str, number: int, sent: bool, told: Any) -> tuple[str, list[str]]:
    """Return how an execution ended, and what of the answers does not go with it."""
    execution = client.describe_execution(executionArn=arn)
    pages = client.get_paginator("get_execution_history").paginate(executionArn=arn)
    types = [event["type"] for page in pages for event in page["events"]]
    wrong = []
    if execution["stopDate"] != told:
        wrong.append(f"{arn}: Stop answered {told}, it ended {execution['stopDate']}")
    if [kind for kind in types if kind in _TERMINAL] != types[-1:]:
        wrong.append(f"{arn}: {types}")
    if sent != ("ActivitySucceeded" in types):
        wrong.append(f"{arn}: the outcome was {'taken' if sent else 'refused'}, events {types}")
    if execution["status"] == "SUCCEEDED" and execution["output"] != str(number):
        wrong.append(f"{arn}: got {execution['output']}")
    return execution["status"], wrong
