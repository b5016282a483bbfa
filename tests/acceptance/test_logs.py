"""boto3's CloudWatch Logs client reads over HTTP what executions logged."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from tests.acceptance.server import history, wait_for_end

if TYPE_CHECKING:
    from tests.acceptance.server import Server

pytestmark = pytest.mark.acceptance
ROLE = "arn:aws:iam::123456789012:role/tests"
MACHINE = {
    "StartAt": "How",
    "States": {
        "How": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.how", "StringEquals": "bad", "Next": "Bad"}],
            "Default": "Good",
        },
        "Good": {"Type": "Pass", "Result": "fine", "End": True},
        "Bad": {"Type": "Fail", "Error": "Bad", "Cause": "as asked"},
    },
}


def logging(group: str, level: str = "ALL", *, data: bool = True) -> dict[str, Any]:
    """Return a logging configuration."""
    arn = f"arn:aws:logs:us-east-1:123456789012:log-group:{group}:*"
    return {
        "level": level,
        "includeExecutionData": data,
        "destinations": [{"cloudWatchLogsLogGroup": {"logGroupArn": arn}}],
    }


def create(up: Server, name: str, configuration: dict[str, Any]) -> str:
    """Create a machine that logs; return its ARN."""
    arn: str = up.client().create_state_machine(
        name=name,
        definition=json.dumps(MACHINE),
        roleArn=ROLE,
        loggingConfiguration=configuration,
    )["stateMachineArn"]
    return arn


def run(up: Server, machine: str, how: str = "good") -> str:
    """Run an execution to its end; return its ARN."""
    client = up.client()
    started = client.start_execution(stateMachineArn=machine, input=json.dumps({"how": how}))
    wait_for_end(client, started["executionArn"])
    arn: str = started["executionArn"]
    return arn


def events(up: Server, group: str, **more: Any) -> list[dict[str, Any]]:
    """Return what FilterLogEvents finds, over all its pages."""
    pages = up.client("logs").get_paginator("filter_log_events")
    return [
        event for page in pages.paginate(logGroupName=group, **more) for event in page["events"]
    ]


def refused(act: Any, **params: Any) -> tuple[str, str]:
    """Return code and message of the error that a call gives."""
    with pytest.raises(ClientError) as caught:
        act(**params)
    error = caught.value.response["Error"]
    return error["Code"], error["Message"]


def test_a_stream_has_the_history_of_its_execution(up: Server) -> None:
    """One stream an execution, one line an event, in AWS's form."""
    logs, group = up.client("logs"), "/team/whole"
    logs.create_log_group(logGroupName=group)
    execution = run(up, create(up, "LogsWhole", logging(group)))
    (stream,) = logs.describe_log_streams(logGroupName=group)["logStreams"]
    assert re.fullmatch(
        r"states/LogsWhole/\d{4}-\d\d-\d\d-\d\d-\d\d/[0-9a-f]+", stream["logStreamName"]
    )
    got = logs.get_log_events(logGroupName=group, logStreamName=stream["logStreamName"])["events"]
    expected = history(up.client(), execution)
    assert [json.loads(event["message"])["type"] for event in got] == [
        event["type"] for event in expected
    ]
    assert [event["timestamp"] for event in got] == [
        round(event["timestamp"].timestamp() * 1000) for event in expected
    ]
    assert json.loads(got[1]["message"]) == {
        "id": "2",
        "type": "ChoiceStateEntered",
        "details": {
            "input": '{"how": "good"}',
            "inputDetails": {"truncated": False},
            "name": "How",
        },
        "redrive_count": "0",
        "previous_event_id": "0",
        "event_timestamp": str(got[1]["timestamp"]),
        "execution_arn": execution,
    }


def test_levels_and_data_are_what_the_configuration_says(up: Server) -> None:
    """ERROR and FATAL log failures only; without data there are no payloads; OFF logs nothing."""
    start = ["ExecutionStarted", "ChoiceStateEntered", "ChoiceStateExited"]
    failure = ["FailStateEntered", "ExecutionFailed"]
    success = ["PassStateEntered", "PassStateExited", "ExecutionSucceeded"]
    expected = {
        "ALL": [*start, *failure, *start, *success],
        "ERROR": failure,
        "FATAL": failure[1:],
        "OFF": [],
    }
    for level, types in expected.items():
        group = f"/aws/vendedlogs/states/{level}"
        machine = create(up, f"Logs{level}", logging(group, level, data=False))
        run(up, machine, "bad")
        run(up, machine)
        lines = [json.loads(event["message"]) for event in events(up, group)]
        assert [line["type"] for line in lines] == types
        assert all(not {"input", "output"} & set(line["details"]) for line in lines)
        streams = up.client("logs").describe_log_streams(logGroupName=group)["logStreams"]
        assert len(streams) == len({line["execution_arn"] for line in lines})


def test_a_change_counts_for_executions_that_start_later(up: Server) -> None:
    """An update sends new executions elsewhere; those before stay where they were."""
    first, second = "/aws/vendedlogs/states/first", "/aws/vendedlogs/states/second"
    machine = create(up, "LogsMoves", logging(first))
    execution = run(up, machine)
    up.client().update_state_machine(stateMachineArn=machine, loggingConfiguration=logging(second))
    two = run(up, machine)
    up.client().update_state_machine(stateMachineArn=machine, loggingConfiguration={"level": "OFF"})
    run(up, machine)

    def executions(group: str) -> set[str]:
        return {json.loads(line["message"])["execution_arn"] for line in events(up, group)}

    assert executions(first) == {execution}
    assert executions(second) == {two}
    up.client().delete_state_machine(stateMachineArn=machine)
    assert executions(first) == {execution}


def test_lines_are_found_by_terms_and_selectors(up: Server) -> None:
    """filterPattern, times and streams narrow a search down."""
    group = "/aws/vendedlogs/states/found"
    machine = create(up, "LogsFound", logging(group))
    good, bad = run(up, machine), run(up, machine, "bad")

    def found(pattern: str, **more: Any) -> list[tuple[str, str]]:
        lines = [
            json.loads(event["message"])
            for event in events(up, group, filterPattern=pattern, **more)
        ]
        return [(line["execution_arn"], line["type"]) for line in lines]

    assert found('{ $.type = "ExecutionFailed" }') == [(bad, "ExecutionFailed")]
    assert found('{ $.type = "Execution*" && $.details.error NOT EXISTS }') == [
        (good, "ExecutionStarted"),
        (good, "ExecutionSucceeded"),
        (bad, "ExecutionStarted"),
    ]
    assert found('"as asked" -Started') == [(bad, "ExecutionFailed")]
    everything = events(up, group)
    assert len({event["eventId"] for event in everything}) == len(everything) == 11
    last = everything[-1]
    assert last in events(up, group, startTime=last["timestamp"], endTime=last["timestamp"])
    assert events(up, group, startTime=last["timestamp"] + 1) == []
    only = events(up, group, logStreamNames=[last["logStreamName"]])
    assert [
        event for event in everything if event["logStreamName"] == last["logStreamName"]
    ] == only
    assert refused(up.client("logs").filter_log_events, logGroupName=group, filterPattern="{ x }")[
        0
    ] == ("InvalidParameterException")


def test_pages_go_on_where_the_last_one_ended(up: Server) -> None:
    """Small pages of anything add up to the whole; a token is good for its query only."""
    logs, group = up.client("logs"), "/aws/vendedlogs/states/pages"
    machine = create(up, "LogsPages", logging(group))
    for _ in range(3):
        run(up, machine)
    whole = events(up, group)
    assert len(whole) == 18
    assert events(up, group, PaginationConfig={"PageSize": 4}) == whole
    one_by_one = logs.get_paginator("describe_log_streams").paginate(
        logGroupName=group, descending=True, PaginationConfig={"PageSize": 1}
    )
    names = [stream["logStreamName"] for page in one_by_one for stream in page["logStreams"]]
    assert names == sorted({event["logStreamName"] for event in whole}, reverse=True)
    stream = {"logGroupName": group, "logStreamName": names[0]}
    page = logs.get_log_events(**stream, limit=4)
    newest = [event["message"] for event in page["events"]]
    before = logs.get_log_events(**stream, limit=4, nextToken=page["nextBackwardToken"])
    mine = [event["message"] for event in whole if event["logStreamName"] == names[0]]
    assert newest == mine[-4:]
    assert [event["message"] for event in before["events"]] == mine[:2]
    end = logs.get_log_events(**stream, nextToken=page["nextForwardToken"])
    assert (end["events"], end["nextForwardToken"]) == ([], page["nextForwardToken"])
    other = {**stream, "logStreamName": names[1]}
    code = refused(logs.get_log_events, **other, nextToken=page["nextBackwardToken"])[0]
    assert code == "InvalidParameterException"


def test_groups_are_made_listed_and_deleted(up: Server) -> None:
    """Events of a deleted log group stay away when a group of that name is made again."""
    logs, group = up.client("logs"), "/team/groups"
    logs.create_log_group(logGroupName=group)
    assert refused(logs.create_log_group, logGroupName=group)[0] == "ResourceAlreadyExistsException"
    (listed,) = logs.describe_log_groups(logGroupNamePrefix="/team/gr")["logGroups"]
    assert listed["arn"] == f"arn:aws:logs:us-east-1:123456789012:log-group:{group}:*"
    machine = create(up, "LogsGroups", logging(group))
    run(up, machine)
    (stream,) = logs.describe_log_streams(logGroupName=group)["logStreams"]
    logs.delete_log_group(logGroupName=group)
    assert refused(events, up=up, group=group)[0] == "ResourceNotFoundException"
    logs.create_log_group(logGroupName=group)
    assert events(up, group) == []
    parameters = {"logGroupName": group, "logStreamName": stream["logStreamName"]}
    assert refused(logs.get_log_events, **parameters)[0] == "ResourceNotFoundException"
    run(up, machine)
    assert len(events(up, group)) == 6


@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        ({"level": "ALL"}, "Must specify exactly one Log Destination."),
        (
            {"level": "ALL", "destinations": logging("/a")["destinations"] * 2},
            "Must specify exactly one Log Destination.",
        ),
        (logging("/team/nowhere"), "Log Destination not found."),
        (
            {
                "level": "ALL",
                "destinations": [
                    {
                        "cloudWatchLogsLogGroup": {
                            "logGroupArn": "arn:aws:logs:us-east-1:123456789012:log-group:/team/x"
                        }
                    }
                ],
            },
            "Log Group ARN must be provided with '*' qualifier.",
        ),
    ],
)
def test_a_logging_configuration_is_checked(
    up: Server, configuration: dict[str, Any], message: str
) -> None:
    """A logging configuration is checked at creation and update, in AWS's words."""
    expected = ("InvalidLoggingConfiguration", f"Invalid Logging Configuration: {message}")
    assert refused(create, up=up, name="LogsWrong", configuration=configuration) == expected
    machine = create(up, "LogsRight", {"level": "OFF"})
    update = up.client().update_state_machine
    got = refused(update, stateMachineArn=machine, loggingConfiguration=configuration)
    assert got == expected


def test_only_a_deleted_group_is_not_made_when_first_named(up: Server) -> None:
    """AWS's own prefix makes the group that a machine names, but not one that was deleted."""
    logs, group = up.client("logs"), "/aws/vendedlogs/states/gone"
    create(up, "LogsBefore", logging(group))
    assert logs.describe_log_groups(logGroupNamePattern="states/gone")["logGroups"]
    logs.delete_log_group(logGroupName=group)
    code, message = refused(create, up=up, name="LogsAfter", configuration=logging(group))
    assert code == "InvalidLoggingConfiguration"
    assert message.endswith("Log Destination not found.")
