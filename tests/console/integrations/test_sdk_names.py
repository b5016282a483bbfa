"""The names of ``aws-sdk`` integrations are those that Step Functions writes.

The table over all operations of all services is made from botocore's models.
"""

from __future__ import annotations

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import botocore.session
import pytest
from botocore.exceptions import ClientError

import engine
from console.integrations import aws, names, sdk_names, shapes
from console.integrations.outcome import Failed, Succeeded, TaskAttempt

if TYPE_CHECKING:
    from collections.abc import Iterator

    from botocore.model import ServiceModel

SERVICES = botocore.session.Session().get_available_services()
RUN = re.compile(r"[A-Za-z][A-Z]+")


def structures(model: ServiceModel) -> Iterator[Any]:
    """Yield every structure that an operation of a service takes or answers."""
    for name in model.shape_names:
        shape = model.shape_for(name)
        if shape.type_name == "structure":
            yield shape


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_every_field_of_every_service_round_trips(part: int) -> None:
    """No two fields of a structure get one name, and each name leads back to its field."""
    for service in SERVICES[part::8]:
        for shape in structures(names.service_model.__wrapped__(service)):
            spelled = {sdk_names.sdk_field_name(shape, name): name for name in shape.members}
            assert len(spelled) == len(shape.members), (service, shape.name)
            members = shapes.member_names(shape, sdk_names.sdk_field_name)
            for name, member in spelled.items():
                assert members[name] == members[member] == member, (service, shape.name)
                assert name[0].isupper() or not name[0].isalpha()
                run = RUN.match(name)  # no run of capitals is left, but before a word: ETag
                assert run is None or (len(run[0]) == 2 and name[2:3].islower()), (service, name)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_every_operation_round_trips(part: int) -> None:
    """An answer in AWS's names, given as parameters of the same shape, is the answer again."""
    for service in SERVICES[part::8]:
        model = names.service_model.__wrapped__(service)
        for name in model.operation_names:
            operation = model.operation_model(name)
            for shape in (operation.input_shape, operation.output_shape):
                if shape is None or shape.is_document_type:
                    continue
                sample = _sample(shape, ())
                shown = shapes.from_answer(
                    shape, sample, epoch=False, field_name=sdk_names.sdk_field_name
                )
                back = shapes.to_request(shape, shown, "", sdk_names.sdk_field_name)
                assert _texts(back) == _texts(sample), (service, name)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_each_action_that_a_resource_may_name_is_known(part: int) -> None:
    """The names found in the text of a model are those of the model, but for what AWS excludes."""
    services = sorted(names.client_names())[part::8]
    for service in services:
        model = names.service_model.__wrapped__(names.client_names()[service])
        for name in model.operation_names:
            operation = model.operation_model(name)
            excluded = (
                service in names._NOT_OFFERED_SERVICES
                or name in names._NOT_OFFERED.get(service, ())
                or operation.has_event_stream_input
                or operation.has_event_stream_output
            )
            exists = names.has_operation(service, name[:1].lower() + name[1:])
            assert exists is not excluded, (service, name)
        assert not names.has_operation(service, "noSuchAction")
    assert not names.has_operation("nosuchservice", "getObject")


def _sample(shape: Any, above: tuple[str, ...]) -> Any:
    """Return a value with the fields of a shape; below the second level only those that must be."""
    kind = shape.type_name
    if kind == "structure":
        if shape.is_document_type:
            return {}
        names = shape.members if len(above) < 2 else shape.required_members
        inside = (*above, shape.name)
        return {name: _sample(shape.members[name], inside) for name in names}
    if kind == "list":
        return [_sample(shape.member, above)]
    if kind == "map":
        return {"KEY": _sample(shape.value, above)}
    if kind == "boolean":
        return True
    if kind in ("integer", "long", "float", "double"):
        return 1
    return b"x" if kind == "blob" else "x"


def _texts(value: Any) -> Any:
    return engine.loads(engine.dumps(_plain(value)))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.decode() if isinstance(value, bytes) else value


# -- names that were seen on AWS -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("member", "name"),
    [
        ("DBInstanceIdentifier", "DbInstanceIdentifier"),
        ("DBInstances", "DbInstances"),
        ("SourceDBInstanceIdentifier", "SourceDBInstanceIdentifier"),
        ("MultiAZ", "MultiAZ"),
        ("TTL", "Ttl"),
        ("KMSKeyArn", "KmsKeyArn"),
        ("ACL", "Acl"),
        ("SSESpecification", "SseSpecification"),
        ("SSEKMSKeyId", "SsekmsKeyId"),
        ("ETag", "ETag"),
        ("MD5OfMessageBody", "Md5OfMessageBody"),
        ("vCPUHour", "VcpuHour"),
        ("nextToken", "NextToken"),
        ("BOOL", "Bool"),
        ("S", "S"),
    ],
)
def test_a_field(member: str, name: str) -> None:
    """A run of capitals at the beginning is one word, and nothing else changes."""
    assert sdk_names.spell_field(member) == name


@pytest.mark.parametrize(
    ("resource", "codes", "name"),
    [
        (
            "aws-sdk:sqs:sendMessage",
            ("QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue"),
            "Sqs.QueueDoesNotExistException",
        ),
        ("aws-sdk:s3:putObject", ("NoSuchBucket",), "S3.NoSuchBucketException"),
        ("aws-sdk:s3:listObjectsV2", ("NoSuchBucket",), "S3.NoSuchBucketException"),
        (
            "aws-sdk:rds:deleteDBInstance",
            ("DBInstanceNotFound",),
            "Rds.DbInstanceNotFoundException",
        ),
        ("aws-sdk:rds:deleteDBInstance", ("AccessDenied",), "Rds.RdsException"),
        ("aws-sdk:ec2:describeInstances", ("InvalidInstanceID.NotFound",), "Ec2.Ec2Exception"),
        (
            "aws-sdk:eventbridge:putEvents",
            ("AccessDeniedException",),
            "EventBridge.AccessDeniedException",
        ),
        (
            "aws-sdk:cloudwatchlogs:putLogEvents",
            ("AccessDeniedException",),
            "CloudWatchLogs.AccessDeniedException",
        ),
        ("aws-sdk:dynamodb:getItem", ("ValidationException",), "DynamoDb.DynamoDbException"),
        ("aws-sdk:elasticache:describeCacheClusters", ("X",), "ElastiCache.ElastiCacheException"),
        ("aws-sdk:apigateway:getRestApis", ("X",), "ApiGateway.ApiGatewayException"),
        ("aws-sdk:lambda:invoke", ("KMSInvalidStateException",), "Lambda.KmsInvalidStateException"),
        (
            "aws-sdk:databasemigration:describeEndpoints",
            ("X",),
            "DatabaseMigration.DatabaseMigrationException",
        ),
        ("aws-sdk:config:listAggregateDiscoveredResources", ("X",), "Config.ConfigException"),
        ("aws-sdk:sfn:startExecution", ("InvalidArn",), "Sfn.InvalidArnException"),
        ("sqs:sendMessage", ("MissingParameter",), "SQS.AmazonSQSException"),
        ("dynamodb:putItem", ("ValidationException",), "DynamoDB.AmazonDynamoDBException"),
    ],
)
def test_an_error(resource: str, codes: tuple[str, ...], name: str) -> None:
    """Shapes become Java classes, known to all operations of their service."""
    service, _, action = resource.rpartition(":")
    operation = names.find_operation(service, action)
    assert operation is not None
    assert names.exception_name(operation, *codes) == name


# -- a call ----------------------------------------------------------------------------------------


def made(resource: str, parameters: Any, answer: Any) -> tuple[Any, Any]:
    """Return what a task sends, and what came of it if the service answers so."""
    service, _, action = resource.rpartition(":")
    arn = "arn:aws:states:us-east-1:123456789012:execution:m:x"
    task = TaskAttempt(
        "service", resource, service, action, engine.dumps(parameters), "key", arn, "token"
    )
    asked = aws.build_request(task)
    if isinstance(asked, Failed):
        return asked, asked

    def send() -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    return asked.sent, aws.request_outcome(task, asked, send)


def result(outcome: Any) -> Any:
    """Return the value of a success."""
    assert isinstance(outcome, Succeeded)
    return engine.loads(outcome.output)


@pytest.mark.parametrize("name", ["DbInstanceIdentifier", "DBInstanceIdentifier"])
def test_both_spellings_are_taken_and_aws_is_written(name: str) -> None:
    """Definitions written for AWS work, and those that were written for Stateyard before."""
    response = {"DBInstances": [{"DBInstanceStatus": "available", "MultiAZ": False}]}
    sent, outcome = made("aws-sdk:rds:describeDBInstances", {name: "orders"}, response)
    assert sent == {"DBInstanceIdentifier": "orders"}
    expected = {"DbInstances": [{"DbInstanceStatus": "available", "MultiAZ": False}]}
    assert result(outcome) == expected


def test_causes_have_the_names_of_aws() -> None:
    """What is missing is named as it should be written."""
    failed, _ = made("aws-sdk:rds:createDBInstance", {"DbInstanceClass": "c"}, {})
    assert "The field 'DbInstanceIdentifier' is required but was missing" in failed.cause
    assert "DBInstance" not in failed.cause


def test_dynamodb() -> None:
    """``aws-sdk:dynamodb`` follows the newer SDK, the optimized integration the older."""
    item = {"Item": {"a": {"SS": ["x"]}, "b": {"BOOL": True}, "c": {"NULL": True}}}
    parameters = {"TableName": "t", "Key": {"a": {"S": "1"}}}
    _, outcome = made("aws-sdk:dynamodb:getItem", parameters, item)
    expected = {"a": {"Ss": ["x"]}, "b": {"Bool": True}, "c": {"Nul": True}}
    assert result(outcome)["Item"] == expected
    _, outcome = made("dynamodb:getItem", parameters, item)
    assert result(outcome)["Item"] == item["Item"]
    sent, _ = made("aws-sdk:dynamodb:putItem", {"TableName": "t", "Item": expected}, {})
    assert sent["Item"] == item["Item"]


def test_a_query_compatible_error_is_its_shape() -> None:
    """Botocore hands out the old code as the code, and the shape beside it."""
    error = {
        "Code": "AWS.SimpleQueueService.NonExistentQueue",
        "QueryErrorCode": "QueueDoesNotExist",
        "Message": "The specified queue does not exist.",
    }
    refused = ClientError({"Error": error}, "SendMessage")
    parameters = {"QueueUrl": "q", "MessageBody": "m"}
    _, outcome = made("aws-sdk:sqs:sendMessage", parameters, refused)
    assert outcome.error == "Sqs.QueueDoesNotExistException"


# -- null parameters -------------------------------------------------------------------------------


def test_a_null_is_given_and_is_not_sent() -> None:
    """A required parameter that is null is no reason to refuse the request; it is left out."""
    parameters = {"TableName": "t", "Item": None}
    sent, _ = made("aws-sdk:dynamodb:putItem", parameters, {})
    assert sent == {"TableName": "t"}
    operation = names.find_operation("aws-sdk:dynamodb", "putItem")
    assert operation is not None
    assert shapes.find_problems(operation.model.input_shape, parameters, operation.field_name) == []


class _Refusing(BaseHTTPRequestHandler):
    """Answers 400 as a service that misses a parameter."""

    def do_POST(self) -> None:
        """Refuse a request whose body has no null."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        assert b"null" not in body
        told = b'{"__type": "ValidationException", "message": "must not be null"}'
        self.send_response(400)
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def refusing_server() -> Iterator[str]:
    """Return the address of a service that refuses each request."""
    served = ThreadingHTTPServer(("127.0.0.1", 0), _Refusing)
    threading.Thread(target=served.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{served.server_port}"
    served.shutdown()
    served.server_close()


@pytest.mark.parametrize(
    ("resource", "parameters", "error"),
    [
        (
            "aws-sdk:dynamodb:putItem",
            {"TableName": "t", "Item": None},
            "DynamoDb.DynamoDbException",
        ),
        ("sqs:sendMessage", {"QueueUrl": "q", "MessageBody": None}, "SQS.AmazonSQSException"),
        ("aws-sdk:s3:getObject", {"Bucket": "b", "Key": None}, "S3.SdkClientException"),
    ],
)
def test_the_service_judges_a_null(
    resource: str, parameters: Any, error: str, settings: Any, refusing_server: str
) -> None:
    """The request arrives without the parameter; one that has it in its URL cannot be made."""
    keys = {"access_key_id": "x", "secret_access_key": "x"}
    settings.STATEYARD_TARGETS = {"*": {"endpoint_url": refusing_server, **keys}}
    service, _, action = resource.rpartition(":")
    arn = "arn:aws:states:us-east-1:123456789012:execution:m:x"
    task = TaskAttempt(
        "service", resource, service, action, engine.dumps(parameters), "key", arn, "token"
    )
    outcome = aws.call(task)
    assert isinstance(outcome, Failed)
    assert outcome.error == error


def test_headers_of_this_server_do_not_leak() -> None:
    """Step Functions sends no ``cache-control``; the result of a nested execution has none."""
    about = {"HTTPHeaders": {"cache-control": "no-store", "date": "d"}, "HTTPStatusCode": 200}
    answer = {"executionArn": "a", "startDate": None, "ResponseMetadata": about}
    _, outcome = made("states:startExecution", {"StateMachineArn": "m"}, answer)
    headers = result(outcome)["SdkHttpMetadata"]["HttpHeaders"]
    assert headers == {"connection": "keep-alive", "Date": "d"}
