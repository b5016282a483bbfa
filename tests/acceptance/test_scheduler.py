"""boto3's ``scheduler`` client manages schedules over HTTP, and they start executions."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from tests.acceptance.test_events import machine
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.acceptance.server import Server

pytestmark = pytest.mark.acceptance

ROLE = "arn:aws:iam::123456789012:role/test"
OFF = {"Mode": "OFF"}


@pytest.fixture
def scheduler(up: Server) -> Iterator[Any]:
    """A boto3 client with the owner's key; what it made is deleted."""
    client = up.client("scheduler")
    yield client
    for row in client.list_schedules()["Schedules"]:
        client.delete_schedule(Name=row["Name"], GroupName=row["GroupName"])
    for group in client.list_schedule_groups()["ScheduleGroups"]:
        if group["Name"] != "default":
            client.delete_schedule_group(Name=group["Name"])


@pytest.fixture
def target(up: Server) -> dict[str, Any]:
    """A target that starts a machine."""
    return {"Arn": machine(up, "scheduled"), "RoleArn": ROLE, "Input": '{"from": "a schedule"}'}


def refused(call: Any, **params: Any) -> tuple[str, str, int]:
    """Return code, message and HTTP status of a call that must be refused."""
    with pytest.raises(ClientError) as caught:
        call(**params)
    answer = caught.value.response
    status: int = answer["ResponseMetadata"]["HTTPStatusCode"]
    return answer["Error"]["Code"], answer["Error"]["Message"], status


def inputs_of(up: Server, arn: str) -> list[Any]:
    """Return the inputs of a machine's executions, newest first."""
    sfn = up.client()
    rows = sfn.list_executions(stateMachineArn=arn)["executions"]
    return [
        json.loads(sfn.describe_execution(executionArn=row["executionArn"])["input"])
        for row in rows
    ]


def test_a_schedule_from_its_creation_to_its_end(scheduler: Any, target: dict[str, Any]) -> None:
    """What is given comes back, defaults are filled in, and times are times."""
    start = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    end = start + timedelta(days=2)
    answer = scheduler.create_schedule(
        Name="nightly.one_x-1",
        ScheduleExpression="cron(30 2 * * ? *)",
        ScheduleExpressionTimezone="Europe/Rome",
        StartDate=start,
        EndDate=end,
        Description="at night",
        State="DISABLED",
        FlexibleTimeWindow={"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 15},
        Target={**target, "RetryPolicy": {"MaximumRetryAttempts": 3}},
    )
    account = target["Arn"].split(":")[4]
    arn = f"arn:aws:scheduler:us-east-1:{account}:schedule/default/nightly.one_x-1"
    assert answer["ScheduleArn"] == arn
    schedule = scheduler.get_schedule(Name="nightly.one_x-1")
    del schedule["ResponseMetadata"]
    created = schedule.pop("CreationDate")
    assert abs(created - datetime.now(UTC)) < timedelta(minutes=5)
    assert schedule.pop("LastModificationDate") >= created
    assert schedule == {
        "Arn": arn,
        "Name": "nightly.one_x-1",
        "GroupName": "default",
        "State": "DISABLED",
        "Description": "at night",
        "StartDate": start,
        "EndDate": end,
        "ScheduleExpression": "cron(30 2 * * ? *)",
        "ScheduleExpressionTimezone": "Europe/Rome",
        "FlexibleTimeWindow": {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 15},
        "ActionAfterCompletion": "NONE",
        "Target": {
            **target,
            "RetryPolicy": {"MaximumEventAgeInSeconds": 86400, "MaximumRetryAttempts": 3},
        },
    }
    again = scheduler.update_schedule(
        Name="nightly.one_x-1",
        ScheduleExpression="rate(5 minutes)",
        State="DISABLED",
        FlexibleTimeWindow=OFF,
        Target=target,
    )
    assert again["ScheduleArn"] == arn
    schedule = scheduler.get_schedule(Name="nightly.one_x-1", GroupName="default")
    assert schedule["CreationDate"] == created
    assert schedule["FlexibleTimeWindow"] == OFF
    assert schedule["ScheduleExpressionTimezone"] == "UTC"
    assert not {"StartDate", "EndDate", "Description"} & set(schedule)
    scheduler.delete_schedule(Name="nightly.one_x-1")
    assert refused(scheduler.get_schedule, Name="nightly.one_x-1") == (
        "ResourceNotFoundException",
        "Schedule nightly.one_x-1 does not exist.",
        404,
    )
    assert refused(scheduler.delete_schedule, Name="nightly.one_x-1")[0] == (
        "ResourceNotFoundException"
    )


def test_schedules_start_executions(up: Server, scheduler: Any, target: dict[str, Any]) -> None:
    """A rate starts at once, one moment once, and the input's attributes are filled in."""
    scheduler.create_schedule(
        Name="rate", ScheduleExpression="rate(1 hour)", FlexibleTimeWindow=OFF, Target=target
    )
    assert wait_until(lambda: inputs_of(up, target["Arn"])) == [{"from": "a schedule"}]
    scheduler.delete_schedule(Name="rate")
    once = machine(up, "scheduled-once")
    moment = (datetime.now(UTC) + timedelta(seconds=2)).strftime("%Y-%m-%dT%H:%M:%S")
    text = '{"arn": "<aws.scheduler.schedule-arn>", "at": "<aws.scheduler.scheduled-time>"}'
    schedule = scheduler.create_schedule(
        Name="once",
        ScheduleExpression=f"at({moment})",
        FlexibleTimeWindow=OFF,
        ActionAfterCompletion="DELETE",
        Target={"Arn": once, "RoleArn": ROLE, "Input": text},
    )
    expected = [{"arn": schedule["ScheduleArn"], "at": f"{moment}Z"}]
    assert wait_until(lambda: inputs_of(up, once)) == expected
    wait_until(lambda: not scheduler.list_schedules(NamePrefix="once")["Schedules"])


def test_without_an_input_the_target_gets_the_event(up: Server, scheduler: Any) -> None:
    """Its source is the scheduler, its resource the schedule."""
    arn = machine(up, "scheduled-plain")
    target = {"Arn": arn, "RoleArn": ROLE}
    schedule = scheduler.create_schedule(
        Name="plain", ScheduleExpression="rate(2 days)", FlexibleTimeWindow=OFF, Target=target
    )
    event = wait_until(lambda: inputs_of(up, arn))[0]
    assert (event["source"], event["detail-type"]) == ("aws.scheduler", "Scheduled Event")
    assert event["resources"] == [schedule["ScheduleArn"]]


def test_the_universal_target_starts_a_machine(up: Server, scheduler: Any) -> None:
    """Its input is StartExecution's parameters."""
    arn = machine(up, "scheduled-universal")
    params = {"StateMachineArn": arn, "Input": '{"x": 1}', "Name": "<aws.scheduler.execution-id>"}
    scheduler.create_schedule(
        Name="universal",
        ScheduleExpression="rate(1 day)",
        FlexibleTimeWindow=OFF,
        Target={
            "Arn": "arn:aws:scheduler:::aws-sdk:sfn:startExecution",
            "RoleArn": ROLE,
            "Input": json.dumps(params),
        },
    )
    assert wait_until(lambda: inputs_of(up, arn)) == [{"x": 1}]


def test_groups(scheduler: Any, target: dict[str, Any]) -> None:
    """A name stands once in a group, and a group goes with its schedules."""
    answer = scheduler.create_schedule_group(Name="team", Tags=[{"Key": "a", "Value": "b"}])
    arn = answer["ScheduleGroupArn"]
    assert arn.endswith(":schedule-group/team")
    assert refused(scheduler.create_schedule_group, Name="team")[::2] == ("ConflictException", 409)
    rest: dict[str, Any] = {
        "ScheduleExpression": "rate(1 day)",
        "State": "DISABLED",
        "FlexibleTimeWindow": OFF,
        "Target": target,
    }
    for group in ("default", "team"):
        scheduler.create_schedule(Name="same", GroupName=group, **rest)
    scheduler.create_schedule(Name="other", **rest)
    pages = scheduler.get_paginator("list_schedules").paginate(PaginationConfig={"PageSize": 1})
    listed = [(row["GroupName"], row["Name"]) for page in pages for row in page["Schedules"]]
    assert listed == [("default", "other"), ("default", "same"), ("team", "same")]
    of_team = scheduler.list_schedules(GroupName="team", State="DISABLED")["Schedules"]
    assert [row["Target"] for row in of_team] == [{"Arn": target["Arn"]}]
    assert scheduler.list_schedules(State="ENABLED")["Schedules"] == []
    assert refused(scheduler.list_schedules, GroupName="nobodys")[0] == "ResourceNotFoundException"
    names = [group["Name"] for group in scheduler.list_schedule_groups()["ScheduleGroups"]]
    assert names == ["default", "team"]
    assert scheduler.get_schedule_group(Name="default")["State"] == "ACTIVE"
    scheduler.tag_resource(ResourceArn=arn, Tags=[{"Key": "c/ä", "Value": "d"}])
    scheduler.untag_resource(ResourceArn=arn, TagKeys=["a"])
    tags = scheduler.list_tags_for_resource(ResourceArn=arn)["Tags"]
    assert tags == [{"Key": "c/ä", "Value": "d"}]
    scheduler.delete_schedule_group(Name="team")
    assert refused(scheduler.get_schedule, Name="same", GroupName="team")[0] == (
        "ResourceNotFoundException"
    )
    assert refused(scheduler.create_schedule, Name="x", GroupName="team", **rest)[:2] == (
        "ResourceNotFoundException",
        "Schedule group team does not exist.",
    )
    assert refused(scheduler.delete_schedule_group, Name="default")[0] == "ValidationException"


def test_the_same_token_makes_one_schedule(scheduler: Any, target: dict[str, Any]) -> None:
    """An SDK that tries again gets the first answer; another request gets a conflict."""
    params: dict[str, Any] = {
        "Name": "token",
        "ScheduleExpression": "rate(1 day)",
        "State": "DISABLED",
        "FlexibleTimeWindow": OFF,
        "Target": target,
    }
    first = scheduler.create_schedule(**params, ClientToken="t-1")
    again = scheduler.create_schedule(**params, ClientToken="t-1")
    assert first["ScheduleArn"] == again["ScheduleArn"]
    assert refused(scheduler.create_schedule, **params, ClientToken="t-2") == (
        "ConflictException",
        "Schedule token already exists.",
        409,
    )


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ScheduleExpression": "rate(5 minute)"}, "Invalid Schedule Expression rate(5 minute)."),
        ({"ScheduleExpression": "at(2030-13-01T00:00:00)"}, "of the form yyyy-mm-ddThh:mm:ss"),
        ({"ScheduleExpression": "at(2030-01-01)"}, "of the form yyyy-mm-ddThh:mm:ss"),
        ({"ScheduleExpressionTimezone": "Mars/Base"}, "'Mars/Base' is not a time zone"),
        ({"FlexibleTimeWindow": {"Mode": "FLEXIBLE"}}, "MaximumWindowInMinutes"),
        ({"StartDate": datetime(2020, 1, 1, tzinfo=UTC)}, "cannot be earlier than 5 minutes ago"),
        ({"Name": "a b"}, "'Name' failed to satisfy constraint"),
        ({"Input": "no JSON"}, "Input: must be well-formed JSON"),
        ({"Input": '{"a": NaN}'}, "Input: must be well-formed JSON"),
        ({"Input": '{"a": 1e999}'}, "Input: must be well-formed JSON"),
        ({"Arn": "arn:aws:states:us-east-1:123456789012:stateMachine:no"}, "Does Not Exist"),
        ({"Arn": "arn:aws:scheduler:::aws-sdk:sqs:sendMessage"}, "'arn:aws:scheduler:::"),
        ({"Arn": "https://example.com/"}, "is not an ARN"),
        ({"KinesisParameters": {"PartitionKey": "x"}}, "KinesisParameters: this server has no"),
    ],
)
def test_what_is_no_schedule_is_refused(
    scheduler: Any, target: dict[str, Any], changes: dict[str, Any], words: str
) -> None:
    """With a ValidationException that says which member, what it got and what it wanted."""
    inner = {"Arn", "Input", "KinesisParameters"}
    params: dict[str, Any] = {
        "Name": "wrong",
        "ScheduleExpression": "rate(1 day)",
        "FlexibleTimeWindow": OFF,
        **{name: value for name, value in changes.items() if name not in inner},
        "Target": {**target, **{name: changes[name] for name in inner & set(changes)}},
    }
    code, message, status = refused(scheduler.create_schedule, **params)
    assert (code, status) == ("ValidationException", 400)
    assert words in message


def test_a_region_has_its_own_schedules(up: Server, scheduler: Any, target: dict[str, Any]) -> None:
    """As on AWS, where a client of another region finds none of them."""
    scheduler.create_schedule(
        Name="here",
        ScheduleExpression="rate(1 day)",
        State="DISABLED",
        FlexibleTimeWindow=OFF,
        Target=target,
    )
    elsewhere = up.client("scheduler", region="us-west-2")
    assert elsewhere.list_schedules()["Schedules"] == []
    assert refused(elsewhere.get_schedule, Name="here")[0] == "ResourceNotFoundException"


def test_the_signature_covers_path_and_query(up: Server) -> None:
    """A wrong secret is refused for each method."""
    wrong = up.client("scheduler", secret="x" * 40)
    assert refused(wrong.list_schedules, NamePrefix="a")[::2] == ("InvalidSignatureException", 400)
    assert refused(wrong.delete_schedule, Name="a")[0] == "InvalidSignatureException"


def test_rules_and_schedules_do_not_see_each_other(
    up: Server, scheduler: Any, target: dict[str, Any]
) -> None:
    """They may have the same name."""
    events = up.client("events")
    scheduler.create_schedule(
        Name="both",
        ScheduleExpression="rate(1 day)",
        State="DISABLED",
        FlexibleTimeWindow=OFF,
        Target=target,
    )
    assert refused(events.describe_rule, Name="both")[0] == "ResourceNotFoundException"
    events.put_rule(Name="both", ScheduleExpression="rate(1 day)", State="DISABLED")
    listed = [rule["Name"] for rule in events.list_rules(NamePrefix="both")["Rules"]]
    assert listed == ["both"]
    assert events.list_rule_names_by_target(TargetArn=target["Arn"])["RuleNames"] == []
    events.delete_rule(Name="both")
    assert scheduler.get_schedule(Name="both")["State"] == "DISABLED"
