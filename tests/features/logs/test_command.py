"""``stateyard logs`` and ``stateyard open`` against a real server, and the AWS CLI beside them."""

from __future__ import annotations

import json
import subprocess
import threading
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.server import ROOT, Server, wait_for_end
from tests.features.deploy.test_deploy import clean, command, run

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]
ROLE = "arn:aws:iam::123456789012:role/logs"
LAMBDA = "arn:aws:lambda:us-east-1:123456789012:function:talk"
TALK = """
import os, time
def talk(event, context):
    print("said", event["n"])
    while "go" in event and not os.path.exists(event["go"]):
        time.sleep(0.02)
    if event.get("bad"):
        raise ValueError("no good")
    return event["n"]
"""
DEFINITION = {
    "StartAt": "Talk",
    "States": {"Talk": {"Type": "Task", "Resource": LAMBDA, "End": True}},
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a function that prints."""
    data = tmp_path_factory.mktemp("logs") / "data"
    data.mkdir()
    (data / "talking.py").write_text(TALK, encoding="utf-8")
    (data / "functions.json").write_text(json.dumps({"talk": "talking:talk"}), encoding="utf-8")
    server = Server(data, options=("--empty",)).start()
    server.client().create_state_machine(
        name="Talks", definition=json.dumps(DEFINITION), roleArn=ROLE
    )
    yield server
    server.stop()


def start(server: Server, name: str, **event: Any) -> str:
    """Start an execution; return its ARN."""
    machine = "arn:aws:states:us-east-1:123456789012:stateMachine:Talks"
    started = server.client().start_execution(
        stateMachineArn=machine, name=name, input=json.dumps(event)
    )
    return str(started["executionArn"])


def test_events_and_output_stand_together(server: Server) -> None:
    """By the name of the machine, and by the ARN of one execution."""
    good, bad = start(server, "good", n=1), start(server, "bad", n=2, bad=True)
    for arn in (good, bad):
        wait_for_end(server.client(), arn)
    lines = run(server, "logs", good).splitlines()
    assert all("Z  good  " in line for line in lines)
    shown = "\n".join(lines)
    for part in (
        "ExecutionStarted",
        "TaskStateEntered  Talk",
        "talk  START RequestId: ",
        "talk  said 1",
        "talk  REPORT RequestId: ",
        "ExecutionSucceeded",
    ):
        assert part in shown
    assert [line[:24] for line in lines] == sorted(line[:24] for line in lines)
    shown = run(server, "logs", "Talks", "--last", "2")
    assert "LambdaFunctionFailed  ValueError" in shown
    assert "talk  [ERROR] ValueError: no good" in shown
    assert "good  talk  said 1" in shown
    assert "bad  talk  said 2" in shown


def test_follow_shows_new_lines_until_the_end(server: Server) -> None:
    """While the function runs there are its events, then its output, then nothing more."""
    go = server.data / "go"
    arn = start(server, "followed", n=3, go=str(go))
    process = subprocess.Popen(
        command(server, "logs", arn, "--follow"),
        cwd=ROOT,
        env=clean(),
        stdout=subprocess.PIPE,
        text=True,
    )
    killer = threading.Timer(120, process.kill)
    killer.start()
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert "ExecutionStarted" in first
        go.touch()
        rest = process.stdout.read()
        assert process.wait() == 0
    finally:
        killer.cancel()
        process.kill()
        process.wait()
        process.stdout.close()
    assert "talk  said 3" in rest
    assert "ExecutionSucceeded" in rest
    assert rest.count("said 3") == 1


def test_the_aws_cli_reads_the_log_of_a_function(server: Server) -> None:
    """``aws logs filter-log-events``, with a pattern; a group of nobody is not found."""
    wait_for_end(server.client(), start(server, "for-aws", n=4))
    run(server, "logs", "Talks")  # which waits until the log is there
    logs = server.client("logs")
    page = logs.filter_log_events(logGroupName="/aws/lambda/talk", filterPattern='"said 4"')
    (event,) = page["events"]
    assert event["message"] == "said 4"
    assert event["logStreamName"].endswith("/[$LATEST]Talks/for-aws")
    pages = logs.get_paginator("filter_log_events").paginate(
        logGroupName="/aws/lambda/talk", PaginationConfig={"PageSize": 3}
    )
    messages = [event["message"] for page in pages for event in page["events"]]
    assert messages.count("said 4") == 1
    whole = logs.filter_log_events(logGroupName="/aws/lambda/talk")["events"]
    assert messages == [event["message"] for event in whole]
    with pytest.raises(logs.exceptions.ResourceNotFoundException):
        logs.filter_log_events(logGroupName="/aws/lambda/nobody")


def test_boto3_walks_from_the_group_of_a_function_to_its_lines(server: Server) -> None:
    """As tools do that know no Step Functions: groups, the newest stream, its events."""
    wait_for_end(server.client(), start(server, "walked", n=6))
    run(server, "logs", "Talks")  # which waits until the log is there
    logs, group = server.client("logs"), "/aws/lambda/talk"
    pages = logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix="/aws/lambda")
    assert [row["logGroupName"] for page in pages for row in page["logGroups"]] == [group]
    (newest,) = logs.describe_log_streams(
        logGroupName=group, orderBy="LastEventTime", descending=True, limit=1
    )["logStreams"]
    assert newest["logStreamName"].endswith("/[$LATEST]Talks/walked")
    got = logs.get_log_events(logGroupName=group, logStreamName=newest["logStreamName"])
    assert [event["message"].split()[0] for event in got["events"]] == [
        *("START", "said", "END", "REPORT")
    ]
    # what `aws logs tail` of the second version of the AWS CLI asks
    tailed = logs.filter_log_events(
        logGroupIdentifier=group, interleaved=True, startTime=got["events"][0]["timestamp"]
    )
    assert "said 6" in [event["message"] for event in tailed["events"]]


def test_open_prints_the_address_of_a_page(server: Server) -> None:
    """Which leads there; what does not exist is said."""
    arn = start(server, "opened", n=5)
    address = run(server, "open", arn, "--print").strip()
    assert address == f"{server.url}/arn/{arn}"
    assert run(server, "open", "Talks", "--print").strip().endswith(":stateMachine:Talks")
    assert "StateMachineDoesNotExist" in run(server, "open", "Nobody", "--print", code=2)
    wait_for_end(server.client(), arn)


def test_wrong_names_are_said(server: Server) -> None:
    """With the exit code of a refusal."""
    assert "ExecutionDoesNotExist" in run(
        server, "logs", "arn:aws:states:us-east-1:123456789012:execution:Talks:nobody", code=2
    )
    assert "StateMachineDoesNotExist" in run(server, "logs", "Nobody", code=2)
