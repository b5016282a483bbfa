"""Policies are evaluated as IAM's documentation says, with values that are not known."""

from __future__ import annotations

import json
from typing import Any

import pytest

from console.features.roles.evaluation import (
    Need,
    PolicyError,
    RoleAccount,
    RoleSource,
    decide,
    examine,
    needs_of,
    parse_policy,
)

TAG = "aws:ResourceTag/env"
OBJECT = "arn:aws:s3:::bucket/folder/file"


def verdict_on(
    need: Need, *statements: dict[str, Any], gaps: tuple[str, ...] = (), boundary: Any = None
) -> str:
    """Return the verdict of a policy with these statements; they allow by default."""
    listed = [{"Effect": "Allow", **statement} for statement in statements]
    limits = None if boundary is None else (("boundary", {"Statement": boundary}),)
    role = RoleSource("r", (("policy", {"Statement": listed}),), gaps, limits)
    return str(decide(need, role).verdict)


def wanted(action: str = "s3:GetObject", resource: str = OBJECT, **context: Any) -> Need:
    """Return a permission; ``context``: keys with ``__`` for ``:`` and their values."""
    keys = {key.replace("__", ":").lower(): value for key, value in context.items()}
    return Need("Call", action, resource, "call", keys)


@pytest.mark.parametrize(
    ("action", "resource", "verdict"),
    [
        ("s3:GetObject", "*", "allowed"),
        ("S3:getobject", "*", "allowed"),
        ("s3:Get*", "arn:aws:s3:::bucket/*", "allowed"),
        ("s3:*Object", "arn:aws:s3:::bucket/folder/fil?", "allowed"),
        ("*", "arn:aws:s3:::*", "allowed"),
        ("s3:*", "arn:aws:s3", "allowed"),
        ("s3:*", "arn:${AWS::Partition}:s3", "unknown"),
        ("s3:PutObject", "*", "missing"),
        ("s3:GetObjectAcl", "*", "missing"),
        ("s3:GetObject", "arn:aws:s3:::bucket", "missing"),
        ("s3:GetObject", "arn:aws:s3:::bucket/fold?", "missing"),
        ("s3:GetObject", "arn:aws:s3:::${Bucket}/*", "unknown"),
        ("s3:GetObject", "arn:aws:s3:::${Bucket}", "unknown"),
        ("s3:GetObject", "arn:aws:sqs:::${Bucket}/*", "missing"),
        ("s3:GetObject", "arn:aws:s3:::bucket/${*}/file", "missing"),
        ("s3:GetObject", "{{resolve:ssm:/arn}}", "unknown"),
    ],
)
def test_wildcards(action: str, resource: str, verdict: str) -> None:
    """``*`` and ``?`` match; a part that only a deployment knows makes it unknown."""
    assert verdict_on(wanted(), {"Action": action, "Resource": resource}) == verdict


@pytest.mark.parametrize(
    ("pattern", "resource", "verdict"),
    [
        ("*", "${}", "allowed"),
        ("arn:aws:sqs:us-east-1:1:q", "${}", "unknown"),
        (
            "arn:aws:dynamodb:us-east-1:1:table/*",
            "arn:aws:dynamodb:us-east-1:1:table/${}",
            "allowed",
        ),
        (
            "arn:aws:dynamodb:us-east-1:1:table/a?",
            "arn:aws:dynamodb:us-east-1:1:table/${}",
            "unknown",
        ),
        (
            "arn:aws:dynamodb:us-east-1:2:table/*",
            "arn:aws:dynamodb:us-east-1:1:table/${}",
            "missing",
        ),
        ("arn:aws:sns:${AWS::Region}:1:t", "arn:aws:sns:${AWS::Region}:1:t", "allowed"),
        ("arn:aws:sns:eu-west-1:1:t", "arn:aws:sns:${AWS::Region}:1:t", "unknown"),
        ("arn:aws:sns:${AWS::Region}:1:t", "arn:aws:sns:${AWS::Region}:1:u", "missing"),
        ("arn:aws:sns:${}:1:t", "arn:aws:sns:${}:1:t", "unknown"),
        ("arn:aws:xray:*", "*", "missing"),
    ],
)
def test_resources_that_are_known_in_part(pattern: str, resource: str, verdict: str) -> None:
    """Equal placeholders are equal; what an execution makes is covered by ``*`` alone."""
    need = wanted("a:B", resource)
    assert verdict_on(need, {"Action": "a:B", "Resource": pattern}) == verdict


def test_a_deny_wins() -> None:
    """An explicit Deny overrides any Allow; one that may apply makes it unknown."""
    allow = {"Action": "s3:*", "Resource": "*"}
    deny = {"Effect": "Deny", "Action": "s3:Get*", "Resource": "arn:aws:s3:::bucket/*"}
    assert verdict_on(wanted(), allow, deny) == "denied"
    assert verdict_on(wanted("s3:PutObject"), allow, deny) == "allowed"
    assert verdict_on(wanted(), allow, deny | {"Resource": "arn:aws:s3:::${B}/*"}) == "unknown"
    assert verdict_on(wanted(), deny | {"Resource": "arn:aws:s3:::${B}/*"}) == "missing"


def test_a_permission_that_may_not_be_needed_never_fails() -> None:
    """It is unknown, with the reason, if it is missing or denied."""
    need = Need("Call", "glue:GetTable", "*", "call", {}, "needed for a query of such data")
    deny = {"Effect": "Deny", "Action": "glue:*", "Resource": "*"}
    for statement in (deny, {"Action": "s3:*", "Resource": "*"}):
        role = RoleSource("r", (("policy", {"Statement": {"Effect": "Allow", **statement}}),))
        decision = decide(need, role)
        assert (str(decision.verdict), decision.reasons) == ("unknown", (need.reason,))
    assert verdict_on(need, {"Action": "*", "Resource": "*"}) == "allowed"


def test_not_action_and_not_resource() -> None:
    """They match everything but what they list (the examples of the reference)."""
    not_iam = {"NotAction": "iam:*", "Resource": "*"}
    assert verdict_on(wanted("sqs:SendMessage"), not_iam) == "allowed"
    assert verdict_on(wanted("iam:PassRole"), not_iam) == "missing"
    all_but_reads = {"Effect": "Deny", "NotAction": ["S3:get*", "s3:list*"], "Resource": "*"}
    everything = {"Action": "*", "Resource": "*"}
    assert verdict_on(wanted(), everything, all_but_reads) == "allowed"
    assert verdict_on(wanted("s3:PutObject"), everything, all_but_reads) == "denied"
    elsewhere = {
        "Effect": "Deny",
        "Action": "s3:*",
        "NotResource": ["arn:aws:s3:::bucket", "arn:aws:s3:::bucket/*"],
    }
    allow = {"Action": "s3:*", "Resource": "*"}
    assert verdict_on(wanted(), allow, elsewhere) == "allowed"
    assert verdict_on(wanted(resource="arn:aws:s3:::other/file"), allow, elsewhere) == "denied"
    assert verdict_on(wanted(resource="arn:aws:s3:::${}/file"), allow, elsewhere) == "unknown"


def test_a_region_condition() -> None:
    """``aws:RequestedRegion`` of the reference: deny outside of a region."""
    allow = {"Action": "*", "Resource": "*"}
    outside = {
        "Effect": "Deny",
        "NotAction": ["iam:*", "cloudfront:*"],
        "Resource": "*",
        "Condition": {"StringNotEquals": {"aws:RequestedRegion": ["eu-central-1", "eu-west-1"]}},
    }
    here = {"aws__RequestedRegion": ("eu-west-1",)}
    assert verdict_on(wanted("sqs:SendMessage", "*", **here), allow, outside) == "allowed"
    there = {"aws__RequestedRegion": ("us-east-1",)}
    assert verdict_on(wanted("sqs:SendMessage", "*", **there), allow, outside) == "denied"
    assert verdict_on(wanted("iam:PassRole", "*", **there), allow, outside) == "allowed"
    unknown = {"aws__RequestedRegion": ("${AWS::Region}",)}
    assert verdict_on(wanted("sqs:SendMessage", "*", **unknown), allow, outside) == "unknown"


@pytest.mark.parametrize(
    ("condition", "values", "verdict"),
    [
        ({"StringEquals": {TAG: "dev"}}, ("dev",), "allowed"),
        ({"StringEquals": {TAG: "dev"}}, ("Dev",), "missing"),
        ({"StringEqualsIgnoreCase": {TAG: "dev"}}, ("Dev",), "allowed"),
        ({"StringEquals": {TAG: ["dev", "test"]}}, ("test",), "allowed"),
        ({"StringEquals": {TAG: "d*"}}, ("dev",), "missing"),
        ({"StringLike": {TAG: "d*"}}, ("dev",), "allowed"),
        ({"StringNotLike": {TAG: "d*"}}, ("dev",), "missing"),
        ({"StringNotEquals": {TAG: "prod"}}, ("dev",), "allowed"),
        ({"StringEquals": {"AWS:resourcetag/ENV": "dev"}}, ("dev",), "allowed"),
        ({"StringEquals": {TAG: "dev"}}, (), "missing"),
        ({"StringNotEquals": {TAG: "prod"}}, (), "allowed"),
        ({"StringEqualsIfExists": {TAG: "dev"}}, (), "allowed"),
        ({"StringEqualsIfExists": {TAG: "dev"}}, ("x",), "missing"),
        ({"Null": {TAG: "true"}}, (), "allowed"),
        ({"Null": {TAG: "false"}}, (), "missing"),
        ({"Null": {TAG: False}}, ("dev",), "allowed"),
        ({"ForAllValues:StringEquals": {TAG: ["a", "b"]}}, ("a", "b"), "allowed"),
        ({"ForAllValues:StringEquals": {TAG: ["a"]}}, ("a", "b"), "missing"),
        ({"ForAllValues:StringEquals": {TAG: ["a"]}}, (), "allowed"),
        ({"ForAnyValue:StringEquals": {TAG: ["b"]}}, ("a", "b"), "allowed"),
        ({"ForAnyValue:StringEquals": {TAG: ["b"]}}, (), "missing"),
        ({"ForAnyValue:StringNotEquals": {TAG: ["b"]}}, (), "missing"),
        ({"ForAnyValue:StringNotEquals": {TAG: ["b"]}}, ("a", "b"), "allowed"),
        ({"ForAnyValue:StringNotEquals": {TAG: ["a", "b"]}}, ("a", "b"), "missing"),
        ({"ForAnyValue:StringEqualsIfExists": {TAG: ["b"]}}, (), "unknown"),
        ({"ForAllValues:StringNotEquals": {TAG: ["b"]}}, (), "allowed"),
        ({"ForAllValues:StringNotEquals": {TAG: ["b"]}}, ("a", "b"), "missing"),
        ({"StringNotEqualsIfExists": {TAG: "dev"}}, ("dev",), "missing"),
        ({"Bool": {TAG: True}}, ("true",), "allowed"),
        ({"NumericLessThanEquals": {TAG: "10"}}, ("9",), "allowed"),
        ({"NumericGreaterThan": {TAG: 10}}, ("9",), "missing"),
        ({"ArnLike": {TAG: "arn:aws:iam::*:role/a*"}}, ("arn:aws:iam::1:role/ab",), "allowed"),
        ({"ArnLike": {TAG: "arn:aws:*:role/a"}}, ("arn:aws:iam::1:role/a",), "unknown"),
        ({"ArnNotEquals": {TAG: "arn:aws:iam::1:role/a"}}, ("arn:aws:iam::1:role/b",), "allowed"),
        ({"ArnLike": {TAG: "arn:aws:sns:${AWS::Region}:1:a"}}, ("arn:aws:sns:r:1:a",), "unknown"),
        ({"ArnLike": {TAG: "arn:aws:sns:${AWS::Region}:1:a"}}, ("arn:aws:sns:r:1:b",), "missing"),
        ({"ArnLike": {TAG: "arn:aws:sns:*:1:a"}}, ("arn:aws:sns:${AWS::Region}:1:a",), "allowed"),
        ({"StringEquals": {TAG: "dev"}}, ("${}",), "unknown"),
        ({"StringEquals": {TAG: "${aws:PrincipalTag/env}"}}, ("dev",), "unknown"),
        ({"StringEquals": {"aws:PrincipalTag/team": "dev"}}, ("dev",), "unknown"),
        ({"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}, ("dev",), "unknown"),
        ({"DateLessThan": {"aws:CurrentTime": "2030-01-01T00:00:00Z"}}, ("dev",), "unknown"),
        ({"StringEquals": {TAG: "x", "aws:PrincipalTag/a": "b"}}, ("dev",), "missing"),
    ],
)
def test_conditions(condition: dict[str, Any], values: tuple[str, ...], verdict: str) -> None:
    """Each operator of texts, ARNs, numbers and sets; a key of the call that is not known."""
    need = Need("Call", "a:B", "*", "call", {"aws:resourcetag/env": values})
    assert verdict_on(need, {"Action": "*", "Resource": "*", "Condition": condition}) == verdict


def test_a_reason_names_what_is_not_evaluated() -> None:
    """An operator that is not evaluated is named, with its statement."""
    statement = {
        "Sid": "Office",
        "Effect": "Allow",
        "Action": "*",
        "Resource": "*",
        "Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}},
    }
    role = RoleSource("r", (("policy", {"Statement": statement}),))
    assert decide(wanted(), role).reasons == (
        "policy: Statement 1 (Office): the condition operator IpAddress is not evaluated",
    )


def test_a_gap_makes_missing_permissions_unknown() -> None:
    """A policy that is not here may allow more; a Deny wins all the same."""
    sqs = {"Action": "sqs:*", "Resource": "*"}
    assert verdict_on(wanted(), sqs, gaps=("the policy X is not here",)) == "unknown"
    assert verdict_on(wanted("sqs:SendMessage"), sqs, gaps=("gap",)) == "allowed"
    deny = {"Effect": "Deny", "Action": "*", "Resource": "*"}
    assert verdict_on(wanted(), deny, gaps=("gap",)) == "denied"


def test_a_boundary_limits_the_role() -> None:
    """Both the policies and the permissions boundary have to allow it."""
    allow = {"Action": "*", "Resource": "*"}
    sqs = [{"Effect": "Allow", "Action": "sqs:*", "Resource": "*"}]
    assert verdict_on(wanted("sqs:SendMessage"), allow, boundary=sqs) == "allowed"
    assert verdict_on(wanted("s3:GetObject"), allow, boundary=sqs) == "missing"


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        ([], "p: got a list, wanted a policy: an object with Statement"),
        ({"Statement": [], "Statement2": 1}, "p: got the unknown element Statement2"),
        ({"Statement": ["x"]}, "p: Statement 1: got a text, wanted an object"),
        (
            {"Statement": {"Effect": "allow", "Action": "*", "Resource": "*"}},
            "p: Statement 1.Effect: got 'allow', wanted Allow or Deny",
        ),
        (5, "p: got a number, wanted a policy: an object with Statement"),
        (True, "p: got a boolean, wanted a policy: an object with Statement"),
        (
            {"Statement": {"Effect": "Allow", "Action": "*"}},
            "p: Statement 1: got neither, wanted Resource or NotResource",
        ),
        (
            {"Statement": {"Effect": "Allow", "Action": "*", "NotAction": "*", "Resource": "*"}},
            "p: Statement 1: got both Action and NotAction, wanted Action or NotAction",
        ),
        (
            {"Statement": {"Effect": "Allow", "Action": [{"Ref": "A"}], "Resource": "*"}},
            "p: Statement 1.Action: got an object, wanted a text",
        ),
        (
            {"Statement": {"Effect": "Allow", "Principal": "*", "Action": "*"}},
            "p: Statement 1: got Principal, wanted a policy of a role: it names no principal",
        ),
        (
            {"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*", "Condition": []}},
            "p: Statement 1.Condition: got a list, wanted an object",
        ),
    ],
)
def test_bad_policies(policy: Any, problem: str) -> None:
    """A policy of another shape is refused with place, actual and expected value."""
    with pytest.raises(PolicyError) as error:
        parse_policy(policy, "p")
    assert str(error.value) == problem


def test_answers_of_the_aws_cli_are_policies() -> None:
    """``get-role-policy`` and ``get-policy-version`` wrap the document."""
    document = {"Statement": {"Effect": "Allow", "Action": "a:B", "Resource": "*"}}
    for answer in (
        {"RoleName": "r", "PolicyName": "p", "PolicyDocument": document},
        {"PolicyVersion": {"Document": document, "VersionId": "v1", "IsDefaultVersion": True}},
    ):
        assert parse_policy(answer, "p") == parse_policy(document, "p")


# -- what a definition needs -----------------------------------------------------------------------

HOME = RoleAccount("123456789012", "us-east-1")


def needed(state: dict[str, Any], **options: Any) -> set[tuple[str, str]]:
    """Return the actions and resources that a state needs."""
    definition = {"StartAt": "S", "States": {"S": {"End": True, **state}}, **options}
    return {(need.action, need.resource) for need in needs_of(json.dumps(definition), "flow", HOME)}


def task(resource: str, **parameters: Any) -> dict[str, Any]:
    """Return a Task with parameters."""
    return {"Type": "Task", "Resource": f"arn:aws:states:::{resource}", "Parameters": parameters}


def test_a_distributed_map_needs_children_reader_and_writer() -> None:
    """Children and redrive as AWS documents them, the objects that it reads and writes."""
    inner = task("sns:publish", TopicArn="arn:aws:sns:us-east-1:123456789012:t")
    state = {
        "Type": "Map",
        "Label": "Run",
        "ItemProcessor": {
            "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
            "StartAt": "Inner",
            "States": {"Inner": {"End": True, **inner}},
        },
        "ItemReader": {
            "Resource": "arn:aws:states:::s3:getObject",
            "Parameters": {"Bucket": "in", "Key": "list.csv"},
        },
        "ResultWriter": {
            "Resource": "arn:aws:states:::s3:putObject",
            "Parameters": {"Bucket": "out", "Prefix.$": "$.prefix"},
        },
    }
    states = "arn:aws:states:us-east-1:123456789012"
    written = "arn:aws:s3:::out/${}/${}"
    assert needed(state) == {
        ("states:StartExecution", f"{states}:stateMachine:flow"),
        ("states:DescribeExecution", f"{states}:execution:flow:${{}}"),
        ("states:StopExecution", f"{states}:execution:flow:${{}}"),
        ("states:RedriveExecution", f"{states}:execution:flow/Run:${{}}"),
        ("s3:GetObject", "arn:aws:s3:::in/list.csv"),
        ("s3:PutObject", written),
        ("s3:GetObject", written),
        ("s3:ListMultipartUploadParts", written),
        ("s3:AbortMultipartUpload", written),
        ("sns:Publish", "arn:aws:sns:us-east-1:123456789012:t"),
    }
    state["ItemReader"] = {
        "Resource": "arn:aws:states:::s3:listObjectsV2",
        "Parameters": {"Bucket": "in", "Prefix": "a/"},
    }
    assert ("s3:ListBucket", "arn:aws:s3:::in") in needed(state)


def test_a_task_with_another_role_needs_to_assume_it() -> None:
    """The other role makes the call."""
    role = "arn:aws:iam::999999999999:role/other"
    state = task("sqs:sendMessage", QueueUrl="q") | {"Credentials": {"RoleArn": role}}
    assert needed(state) == {("sts:AssumeRole", role)}


@pytest.mark.parametrize(
    ("call", "parameters", "need"),
    [
        (
            "ecs:runTask",
            {"TaskDefinition": "family"},
            ("ecs:RunTask", "arn:aws:ecs:us-east-1:123456789012:task-definition/family:${}"),
        ),
        (
            "ecs:runTask.sync",
            {"TaskDefinition": "arn:aws:ecs:us-east-1:1:task-definition/family:3"},
            ("ecs:RunTask", "arn:aws:ecs:us-east-1:1:task-definition/family:3"),
        ),
        (
            "ecs:runTask",
            {"TaskDefinition": "${Task}"},
            ("ecs:RunTask", "arn:aws:ecs:us-east-1:123456789012:task-definition/${Task}"),
        ),
        (
            "lambda:invoke",
            {"FunctionName": "999999999999:function:f", "Qualifier": "live"},
            ("lambda:InvokeFunction", "arn:aws:lambda:us-east-1:999999999999:function:f:live"),
        ),
        (
            "states:startExecution.sync",
            {"StateMachineArn": "arn:aws:states:r:1:stateMachine:${AWS::StackName}-x:live"},
            ("states:StopExecution", "arn:aws:states:r:1:execution:${AWS::StackName}-x:${}"),
        ),
        (
            "sqs:sendMessage",
            {"QueueUrl": "https://sqs.${AWS::Region}.amazonaws.com/${AWS::AccountId}/q"},
            ("sqs:SendMessage", "arn:aws:sqs:${AWS::Region}:${AWS::AccountId}:q"),
        ),
    ],
)
def test_names_become_the_arns_that_iam_authorizes(
    call: str, parameters: dict[str, Any], need: tuple[str, str]
) -> None:
    """A family of ECS has a revision, an execution the name of its state machine."""
    assert need in needed(task(call, **parameters))


@pytest.mark.parametrize(
    ("call", "parameters", "needs"),
    [
        ("s3:listObjectsV2", {"Bucket": "b"}, {("s3:ListBucket", "arn:aws:s3:::b")}),
        ("s3:headObject", {"Bucket": "b", "Key": "k"}, {("s3:GetObject", "arn:aws:s3:::b/k")}),
        (
            "s3:copyObject",
            {"Bucket": "b", "Key": "k", "CopySource": "/a/x"},
            {("s3:PutObject", "arn:aws:s3:::b/k"), ("s3:GetObject", "arn:aws:s3:::a/x")},
        ),
        ("s3:listBuckets", {}, {("s3:ListAllMyBuckets", "*")}),
        (
            "sfn:startSyncExecution",
            {"StateMachineArn": "arn:aws:states:us-east-1:1:stateMachine:m"},
            {("states:StartSyncExecution", "arn:aws:states:us-east-1:1:stateMachine:m")},
        ),
        (
            "dynamodb:query",
            {"TableName": "t"},
            {("dynamodb:Query", "arn:aws:dynamodb:us-east-1:123456789012:table/t")},
        ),
        (
            "dynamodb:query",
            {"TableName": "t", "IndexName": "i"},
            {("dynamodb:Query", "arn:aws:dynamodb:us-east-1:123456789012:table/t/index/i")},
        ),
        (
            "dynamodb:scan",
            {"TableName": "arn:aws:dynamodb:eu-west-1:1:table/t", "IndexName.$": "$.i"},
            {("dynamodb:Scan", "arn:aws:dynamodb:eu-west-1:1:table/t/index/${}")},
        ),
        (
            "s3:getObject",
            {"Bucket": "b", "Key": "k", "VersionId": "v"},
            {("s3:GetObjectVersion", "arn:aws:s3:::b/k")},
        ),
        (
            "s3:deleteObject",
            {"Bucket": "b", "Key": "k", "VersionId.$": "$.v"},
            {("s3:DeleteObjectVersion", "arn:aws:s3:::b/k")},
        ),
        (
            "s3:copyObject",
            {"Bucket": "b", "Key": "k", "CopySource": "a/x?versionId=v"},
            {("s3:PutObject", "arn:aws:s3:::b/k"), ("s3:GetObjectVersion", "arn:aws:s3:::a/x")},
        ),
        (
            "s3:putObject",
            {"Bucket": "b", "Key": "k", "ACL": "private", "GrantRead.$": "$.x", "Tagging": "a=b"},
            {
                ("s3:PutObject", "arn:aws:s3:::b/k"),
                ("s3:PutObjectAcl", "arn:aws:s3:::b/k"),
                ("s3:PutObjectTagging", "arn:aws:s3:::b/k"),
            },
        ),
        (
            "s3:createMultipartUpload",
            {"Bucket": "b", "Key": "k", "ObjectLockMode": "COMPLIANCE"},
            {
                ("s3:PutObject", "arn:aws:s3:::b/k"),
                ("s3:PutObjectRetention", "arn:aws:s3:::b/k"),
            },
        ),
        ("sts:getCallerIdentity", {}, set()),
        ("cognitoidentityprovider:initiateAuth", {"ClientId": "c"}, set()),
        (
            "eventbridge:putRule",
            {"Name": "r", "EventBusName": "b"},
            {("events:PutRule", "${}")},
        ),
        (
            "secretsmanager:getSecretValue",
            {"SecretId": "s"},
            {
                (
                    "secretsmanager:GetSecretValue",
                    "arn:aws:secretsmanager:us-east-1:123456789012:secret:s-${}",
                )
            },
        ),
        (
            "ssm:getParameter",
            {"Name": "/a/b"},
            {("ssm:GetParameter", "arn:aws:ssm:us-east-1:123456789012:parameter/a/b")},
        ),
        (
            "kms:decrypt",
            {"KeyId": "1234"},
            {("kms:Decrypt", "arn:aws:kms:us-east-1:123456789012:key/1234")},
        ),
        (
            "lambda:invoke",
            {"FunctionName": "f", "Qualifier": "1"},
            {("lambda:InvokeFunction", "arn:aws:lambda:us-east-1:123456789012:function:f:1")},
        ),
        ("cloudwatchlogs:putLogEvents", {}, {("logs:PutLogEvents", "${}")}),
        ("ec2:describeInstances", {}, {("ec2:DescribeInstances", "${}")}),
        ("apigateway:getRestApis", {}, {("", "${}")}),
        ("dynamodb:transactWriteItems", {"TransactItems": []}, {("", "${}")}),
    ],
)
def test_calls_of_the_sdk(
    call: str, parameters: dict[str, Any], needs: set[tuple[str, str]]
) -> None:
    """IAM's names where they differ from the API's, and the resources that requests name."""
    assert needed(task(f"aws-sdk:{call}", **parameters)) == needs


def test_an_unknown_action_is_unknown_even_for_an_administrator() -> None:
    """Its action has no name, so no statement can be said to allow it."""
    definition = {
        "StartAt": "S",
        "States": {"S": {"End": True, **task("aws-sdk:apigateway:getRestApis")}},
    }
    needs = needs_of(json.dumps(definition), "flow", HOME)
    everything = {"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}}
    report = examine(needs, RoleSource("r", (("p", everything),)), "flow")
    assert [str(each.verdict) for each in report.decisions] == ["unknown"]
    assert (report.unused, report.unused_count) == ((), "-")
