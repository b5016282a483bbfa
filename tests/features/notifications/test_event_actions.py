"""EventBridge's actions follow the caller's role and refuse wrong requests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from console import access
from console.awsapi import services, shapes
from console.awsapi.operations.call import Call
from console.db.audit import Actor
from console.errors import ErrorCode, ServiceError
from console.features.notifications.store import rules
from console.models import AuditEntry, EventRule, EventTarget, OutboxEvent
from tests.console.store.helpers import PASS, create
from tests.refusals import raises_code

if TYPE_CHECKING:
    from console.models import Project

PATTERN = '{"source": ["shop"]}'
ENTRY = {"Source": "shop", "DetailType": "Order", "Detail": '{"total": 1}'}
HOOK = {"Id": "1", "Arn": "https://example.com/"}


def ask(project: Project, action: str, role: str = "editor", **params: Any) -> dict[str, Any]:
    """Call an action as the edge does, from the check of the request on."""
    from django.contrib.auth import get_user_model

    user, _ = get_user_model().objects.get_or_create(username=role)
    principal = access.Principal(user, project, role)
    handler = services.EVENTS.handler(action)
    access.authorize(principal, services.EVENTS.permission(action))
    shapes.check_params(services.EVENTS.operation(action), params)
    answer = handler(Call(action, params, principal, "us-east-1", Actor(role, "AKIA")))
    assert isinstance(answer, dict)
    return answer


def code(project: Project, action: str, **params: Any) -> str:
    """Return the code with which an action refuses."""
    with pytest.raises(ServiceError) as caught:
        ask(project, action, **params)
    return caught.value.code


CHANGES: dict[str, dict[str, Any]] = {
    "PutRule": {"Name": "r", "EventPattern": PATTERN},
    "PutTargets": {"Rule": "r", "Targets": [HOOK]},
    "DisableRule": {"Name": "r"},
    "EnableRule": {"Name": "r"},
    "RemoveTargets": {"Rule": "r", "Ids": ["1"]},
    "DeleteRule": {"Name": "r"},
}


def test_only_an_editor_changes_rules(project: Project) -> None:
    """Each change is the editor's, and in the audit with the key it was made with."""
    for action, params in CHANGES.items():
        with pytest.raises(access.Denied, match=f"events:{action}"):
            ask(project, action, "operator", **params)
        ask(project, action, **params)
    entries = AuditEntry.objects.order_by("pk")
    assert [entry.action for entry in entries] == [f"events:{action}" for action in CHANGES]
    assert {(entry.actor, entry.key_id) for entry in entries} == {("editor", "AKIA")}


def test_a_viewer_reads_and_an_operator_puts_events(project: Project) -> None:
    """Reading takes no more than being a member."""
    ask(project, "PutRule", **CHANGES["PutRule"])
    assert ask(project, "ListRules", "viewer")["Rules"][0]["Name"] == "r"
    with pytest.raises(access.Denied, match="events:PutEvents"):
        ask(project, "PutEvents", "viewer", Entries=[ENTRY])
    ask(project, "PutEvents", "operator", Entries=[ENTRY])
    assert OutboxEvent.objects.count() == 1


@pytest.mark.parametrize(
    "detail",
    [
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1e999}',
        f"{'[' * 600}{']' * 600}",
        '{"a": "\\ud800"}',
    ],
    ids=["nan", "infinity", "1e999", "deep", "surrogate"],
)
def test_a_detail_that_no_execution_takes_is_refused(project: Project, detail: str) -> None:
    """It was accepted, and no target could have it: each delivery became a dead letter."""
    ask(project, "PutRule", **CHANGES["PutRule"])
    if detail.startswith("["):
        detail = f'{{"a": {detail}}}'
    answer = ask(project, "PutEvents", "operator", Entries=[ENTRY | {"Detail": detail}])
    assert answer["Entries"][0]["ErrorCode"] == "MalformedDetail"
    assert OutboxEvent.objects.count() == 0


def test_events_are_as_they_were_put(project: Project) -> None:
    """With their time and resources; without a rule they are taken and forgotten."""
    ask(project, "PutEvents", "operator", Entries=[ENTRY])
    assert OutboxEvent.objects.count() == 0
    ask(project, "PutRule", **CHANGES["PutRule"])
    entry = ENTRY | {"Time": 1_700_000_000, "Resources": ["order-7"]}
    answer = ask(project, "PutEvents", "operator", Entries=[entry])
    row = OutboxEvent.objects.get()
    assert json.loads(row.body) == {
        "version": "0",
        "id": answer["Entries"][0]["EventId"],
        "detail-type": "Order",
        "source": "shop",
        "account": "123456789012",
        "time": "2023-11-14T22:13:20Z",
        "region": "us-east-1",
        "resources": ["order-7"],
        "detail": {"total": 1},
    }
    assert row.about == "order-7"


@pytest.mark.postgres_too
def test_a_rule_put_again_is_made_anew(project: Project) -> None:
    """What is not given is as if it had never been; its targets stay."""
    ask(project, "PutRule", **CHANGES["PutRule"], Description="d", State="DISABLED")
    ask(project, "PutTargets", **CHANGES["PutTargets"])
    ask(project, "PutRule", Name="r", ScheduleExpression="rate(1 hour)")
    shown = ask(project, "DescribeRule", Name="r")
    assert (shown["State"], shown["ScheduleExpression"]) == ("ENABLED", "rate(1 hour)")
    assert {"Description", "EventPattern"}.isdisjoint(shown)
    assert EventTarget.objects.count() == 1


@pytest.mark.parametrize(
    ("action", "params", "expected"),
    [
        ("PutRule", {"Name": "r"}, "ValidationException"),
        ("PutRule", {"Name": "a b", "EventPattern": PATTERN}, "ValidationException"),
        ("PutRule", {"Name": "r", "EventPattern": "{"}, "InvalidEventPatternException"),
        ("PutRule", {"Name": "r", "ScheduleExpression": "x"}, "ValidationException"),
        (
            "PutRule",
            {"Name": "r", "EventPattern": PATTERN, "EventBusName": "other"},
            "ResourceNotFoundException",
        ),
        ("DescribeRule", {"Name": "r"}, "ResourceNotFoundException"),
        ("EnableRule", {"Name": "r"}, "ResourceNotFoundException"),
        ("PutTargets", {"Rule": "r", "Targets": [HOOK]}, "ResourceNotFoundException"),
        ("RemoveTargets", {"Rule": "r", "Ids": ["1"]}, "ResourceNotFoundException"),
        ("TestEventPattern", {"EventPattern": "{", "Event": "{}"}, "InvalidEventPatternException"),
        ("TestEventPattern", {"EventPattern": PATTERN, "Event": "{"}, "ValidationException"),
        ("ListRules", {"NextToken": "made up"}, "ValidationException"),
        (
            "PutEvents",
            {"Entries": [ENTRY | {"Detail": json.dumps({"x": "y" * 262_144})}]},
            "ValidationException",
        ),
        ("PutEvents", {"Entries": [ENTRY | {"Time": 1e15}]}, "SerializationException"),
    ],
)
def test_what_is_wrong_is_refused(
    project: Project, action: str, params: dict[str, Any], expected: str
) -> None:
    """With EventBridge's code."""
    assert code(project, action, **params) == expected


def test_there_are_limits(project: Project) -> None:
    """Five targets a rule, three hundred rules, no Id twice."""
    ask(project, "PutRule", **CHANGES["PutRule"])
    six = [HOOK | {"Id": str(number)} for number in range(6)]
    assert code(project, "PutTargets", Rule="r", Targets=six) == "LimitExceededException"
    assert code(project, "PutTargets", Rule="r", Targets=[HOOK, HOOK]) == "ValidationException"
    assert EventTarget.objects.count() == 0
    for number in range(299):
        EventRule.objects.create(
            project=project, region="us-east-1", name=f"n{number}", arn=f"a{number}", created_ms=1
        )
    over = {"Name": "one-more", "EventPattern": PATTERN}
    assert code(project, "PutRule", **over) == "LimitExceededException"
    ask(project, "PutRule", Name="r", EventPattern='{"source": ["other"]}')


def test_wrong_targets_are_refused_by_themselves(project: Project) -> None:
    """The others of the request are put."""
    ask(project, "PutRule", **CHANGES["PutRule"])
    machine = create(project, PASS).arn
    targets = [
        {"Id": "good", "Arn": machine, "InputPath": "$.detail"},
        {"Id": "gone", "Arn": f"{machine}x"},
        {"Id": "both", "Arn": machine, "Input": "1", "InputPath": "$"},
        {"Id": "odd", "Arn": "arn:aws:s3:::bucket"},
    ]
    answer = ask(project, "PutTargets", Rule="r", Targets=targets)
    assert [entry["TargetId"] for entry in answer["FailedEntries"]] == ["gone", "both", "odd"]
    assert ask(project, "ListTargetsByRule", Rule="r") == {"Targets": targets[:1]}


def test_a_rule_has_tags(project: Project) -> None:
    """Terraform's provider gives tags with PutRule, and reads them after each change."""
    tags = [{"Key": "team", "Value": "shop"}, {"Key": "cost", "Value": ""}]
    arn = ask(project, "PutRule", **CHANGES["PutRule"], Tags=tags)["RuleArn"]
    assert ask(project, "ListTagsForResource", "viewer", ResourceARN=arn) == {"Tags": tags}
    other = [{"Key": "team", "Value": "not by PutRule"}]
    ask(project, "PutRule", **CHANGES["PutRule"], Tags=other)
    ask(project, "TagResource", ResourceARN=arn, Tags=[{"Key": "cost", "Value": "9"}])
    ask(project, "UntagResource", ResourceARN=arn, TagKeys=["nobody", "team"])
    remaining = ask(project, "ListTagsForResource", ResourceARN=arn)["Tags"]
    assert remaining == [{"Key": "cost", "Value": "9"}]
    told = AuditEntry.objects.filter(target=arn).values_list("action", flat=True)
    assert {"events:TagResource", "events:UntagResource"} <= set(told)
    ask(project, "DeleteRule", Name="r")
    assert code(project, "ListTagsForResource", ResourceARN=arn) == "ResourceNotFoundException"
    ask(project, "PutRule", **CHANGES["PutRule"])
    assert ask(project, "ListTagsForResource", ResourceARN=arn) == {"Tags": []}


@pytest.mark.postgres_too
def test_wrong_tags_change_nothing(project: Project) -> None:
    """Those of AWS's own, too many, and those of a rule that is not there."""
    wrong = {"Tags": [{"Key": "fine", "Value": "1"}, {"Key": "AWS:own", "Value": "1"}]}
    assert code(project, "PutRule", **CHANGES["PutRule"], **wrong) == "ValidationException"
    assert not EventRule.objects.exists()
    arn = ask(project, "PutRule", **CHANGES["PutRule"])["RuleArn"]
    assert code(project, "TagResource", ResourceARN=arn, **wrong) == "ValidationException"
    many = [{"Key": f"k{number}", "Value": "v"} for number in range(51)]
    assert code(project, "TagResource", ResourceARN=arn, Tags=many) == "ValidationException"
    assert ask(project, "ListTagsForResource", ResourceARN=arn) == {"Tags": []}
    for nothing in (f"{arn}x", "arn:aws:events:eu-west-1:123456789012:rule/r", "r\0"):
        answer = code(project, "ListTagsForResource", ResourceARN=nothing)
        assert answer == "ResourceNotFoundException"


def test_what_is_not_served_says_so(project: Project) -> None:
    """An action that the model has and we have not."""
    with raises_code(ErrorCode.UnknownOperationException, match="not served yet"):
        ask(project, "CreateEventBus", Name="x")


def test_what_no_column_holds_is_refused(project: Project) -> None:
    """EventBridge takes a role of 1,600 characters, which PostgreSQL answered with an error."""
    role = "arn:aws:iam::123456789012:role/" + "x" * 400
    refused = code(project, "PutRule", Name="r", EventPattern=PATTERN, RoleArn=role)
    assert refused == "ValidationException"


def test_a_rule_that_is_deleted_while_it_is_switched_does_not_exist(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between reading it and writing it: told as if it had never been there."""
    ask(project, "PutRule", Name="r", EventPattern=PATTERN)
    read = rules.get_rule

    def gone(*args: Any) -> EventRule:
        rule = read(*args)
        EventRule.objects.filter(pk=rule.pk).delete()
        return rule

    monkeypatch.setattr(rules, "get_rule", gone)
    assert code(project, "EnableRule", Name="r") == "ResourceNotFoundException"


@pytest.mark.postgres_too
def test_an_address_with_a_nul_has_no_rules(project: Project) -> None:
    """PostgreSQL takes no such text, so it is asked for one that no rule has."""
    assert ask(project, "ListRuleNamesByTarget", TargetArn="\0") == {"RuleNames": []}


UPLOAD = {
    "Source": "aws.s3",
    "DetailType": "Object Created",
    "Detail": '{"bucket": {"name": "orders"}, "object": {"key": "1.json"}}',
}


def test_events_of_aws_are_refused_by_default(project: Project) -> None:
    """As AWS refuses them, for the owner, too."""
    (answer,) = ask(project, "PutEvents", "owner", Entries=[UPLOAD])["Entries"]
    assert answer["ErrorCode"] == "NotAuthorizedForSourceException"
    assert not AuditEntry.objects.exists()


@pytest.mark.parametrize(
    ("role", "taken"), [("operator", False), ("editor", True), ("owner", True)]
)
def test_editors_put_events_of_aws_where_that_is_on(
    project: Project, settings: Any, role: str, taken: bool
) -> None:
    """They are marked in the event, and in the audit with who did it; others are as ever."""
    settings.STATEYARD_INJECT_AWS_EVENTS = True
    pattern = '{"source": ["aws.s3"], "detail": {"bucket": {"name": ["orders"]}}}'
    ask(project, "PutRule", Name="r", EventPattern=pattern)
    AuditEntry.objects.all().delete()
    answer = ask(project, "PutEvents", role, Entries=[UPLOAD, ENTRY])
    assert ("EventId" in answer["Entries"][0], "EventId" in answer["Entries"][1]) == (taken, True)
    texts = [json.loads(event.body) for event in OutboxEvent.objects.all()]
    marks = {text["source"]: text.get("stateyard") for text in texts}
    assert marks == ({"aws.s3": {"injectedBy": role}} if taken else {}) | {"shop": None}
    audited = [(entry.action, entry.target, entry.reason) for entry in AuditEntry.objects.all()]
    assert audited == [("events:InjectAwsEvents", "aws.s3", "Object Created")] * taken


def test_an_event_that_nobody_waits_for_is_audited_too(project: Project, settings: Any) -> None:
    """It was put in the name of AWS all the same."""
    settings.STATEYARD_INJECT_AWS_EVENTS = True
    assert ask(project, "PutEvents", Entries=[UPLOAD])["FailedEntryCount"] == 0
    assert AuditEntry.objects.get().target == "aws.s3"


def test_changes_of_executions_cannot_be_made_up(project: Project, settings: Any) -> None:
    """What this server tells of its executions is true."""
    settings.STATEYARD_INJECT_AWS_EVENTS = True
    (answer,) = ask(project, "PutEvents", Entries=[UPLOAD | {"Source": "aws.states"}])["Entries"]
    assert answer["ErrorCode"] == "NotAuthorizedForSourceException"
