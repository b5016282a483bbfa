"""State machines reach AWS services, and answers and errors are worded as AWS words them.

(Above 300 lines: one server of services, started once for all of them.)
"""

from __future__ import annotations

import io
import json
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from botocore.exceptions import ClientError
from pyarrow import parquet

from tests.acceptance.aws import KEYS, Moto
from tests.acceptance.server import Server, history, wait_for_end

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.acceptance
ROLE = "arn:aws:iam::123456789012:role/test"
MOCKS = {
    "StateMachines": {
        "mocked": {
            "TestCases": {
                "Happy": {"Call": "Flaky", "Send": "Sent"},
                "Sad": {"Call": "Broken"},
            }
        }
    },
    "MockedResponses": {
        "Flaky": {
            "0": {"Throw": {"Error": "Busy", "Cause": "try again"}},
            "1-2": {"Return": {"StatusCode": 200, "Payload": 7}},
        },
        "Sent": {"0": {"Return": {"MessageId": "m"}}},
        "Broken": {"0-5": {"Throw": {"Error": "Gone", "Cause": "for good"}}},
    },
}
NO_ITEM = {"TableName": "none", "Key": {"k": {"S": "a"}}}


@pytest.fixture(scope="module")
def aws() -> Iterator[Moto]:
    """The services."""
    moto = Moto().start()
    yield moto
    moto.stop()


@pytest.fixture(scope="module")
def server(aws: Moto, web: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose targets are those services."""
    http = {"endpoints": [web], "connections": {"shop": {"name": "X-Key", "value": "secret"}}}
    everything = {"endpoint_url": aws.url, **KEYS}
    targets = json.dumps({"*": everything, "http": http, "apigateway": {"endpoint_url": web}})
    data = tmp_path_factory.mktemp("targets") / "data"
    data.parent.joinpath("mocks.json").write_text(json.dumps(MOCKS), encoding="utf-8")
    mocks = str(data.parent / "mocks.json")
    functions = json.dumps({"AddressFinder": "console.samples.functions:find_address"})
    running = Server(
        data, STEPYARD_TARGETS=targets, STEPYARD_FUNCTIONS=functions, SFN_MOCK_CONFIG=mocks
    ).start()
    yield running
    running.stop()


@pytest.fixture
def sfn(server: Server) -> Any:
    """A client of the server."""
    return server.client()


def run(sfn: Any, resource: str, parameters: Any, data: Any = None) -> dict[str, Any]:
    """Run a machine of one Task; return how it ended."""
    state = {"Type": "Task", "Resource": f"arn:aws:states:::{resource}", "End": True}
    definition = {"StartAt": "T", "States": {"T": {**state, "Parameters": parameters}}}
    made = sfn.create_state_machine(
        name=uuid.uuid4().hex, definition=json.dumps(definition), roleArn=ROLE
    )
    started = sfn.start_execution(
        stateMachineArn=made["stateMachineArn"], input=json.dumps({} if data is None else data)
    )
    return wait_for_end(sfn, started["executionArn"])


def output(ended: dict[str, Any]) -> Any:
    """Return the output of what must have succeeded."""
    assert ended["status"] == "SUCCEEDED", ended
    return json.loads(ended["output"])


def test_a_message_reaches_the_queue(sfn: Any, aws: Moto) -> None:
    """An object becomes its text; the result has the members of the older SDK."""
    queue = aws.client("sqs").create_queue(QueueName="orders")["QueueUrl"]
    body = {"QueueUrl": queue, "MessageBody": {"order.$": "$.id"}}
    found = output(run(sfn, "sqs:sendMessage", body, {"id": 7}))
    assert found["SdkHttpMetadata"]["HttpStatusCode"] == 200
    assert found["MessageId"]
    (message,) = aws.client("sqs").receive_message(QueueUrl=queue)["Messages"]
    assert json.loads(message["Body"]) == {"order": 7}


def test_an_item_is_put_got_changed_and_deleted(sfn: Any, aws: Moto) -> None:
    """The four optimized calls of DynamoDB, and the table as boto3 sees it."""
    aws.client("dynamodb").create_table(
        TableName="t",
        KeySchema=[{"AttributeName": "k", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "k", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    key = {"TableName": "t", "Key": {"k": {"S": "a"}}}
    output(
        run(sfn, "dynamodb:putItem", {"TableName": "t", "Item": {"k": {"S": "a"}, "n": {"N": "1"}}})
    )
    assert output(run(sfn, "dynamodb:getItem", key))["Item"]["n"] == {"N": "1"}
    change = {"UpdateExpression": "SET n = :n", "ExpressionAttributeValues": {":n": {"N": "2"}}}
    output(run(sfn, "dynamodb:updateItem", {**key, **change}))
    assert aws.client("dynamodb").get_item(**key)["Item"]["n"] == {"N": "2"}
    output(run(sfn, "dynamodb:deleteItem", key))
    assert "Item" not in aws.client("dynamodb").get_item(**key)
    refused = {**key, **change, "ConditionExpression": "attribute_exists(k)"}
    ended = run(sfn, "dynamodb:updateItem", refused)
    assert ended["error"] == "DynamoDB.ConditionalCheckFailedException"
    assert "(Service: AmazonDynamoDBv2; Status Code: 400; Error Code: Cond" in ended["cause"]


def test_a_topic_and_a_bus_take_what_is_published(sfn: Any, aws: Moto) -> None:
    """SNS and EventBridge."""
    topic = aws.client("sns").create_topic(Name="news")["TopicArn"]
    assert output(run(sfn, "sns:publish", {"TopicArn": topic, "Message": "x"}))["MessageId"]
    missing = run(sfn, "sns:publish", {"TopicArn": topic + "-no", "Message": "x"})
    assert missing["error"] == "SNS.NotFoundException"
    entry = {"Source": "me", "DetailType": "d", "Detail": {"a": 1}}
    found = output(run(sfn, "events:putEvents", {"Entries": [entry]}))
    assert found["FailedEntryCount"] == 0
    assert "SdkHttpMetadata" not in found


def test_any_sdk_action(sfn: Any, aws: Moto) -> None:
    """PascalCase, blobs as text, times as ISO 8601, errors as the newer SDK names them."""
    aws.client("s3").create_bucket(Bucket="bucket")
    place = {"Bucket": "bucket", "Key": "k"}
    output(run(sfn, "aws-sdk:s3:putObject", {**place, "Body": {"a": 1}}))
    found = output(run(sfn, "aws-sdk:s3:getObject", place))
    assert json.loads(found["Body"]) == {"a": 1}
    assert found["LastModified"].endswith("Z")
    assert "SdkHttpMetadata" not in found
    missing = run(sfn, "aws-sdk:s3:getObject", {**place, "Key": "no"})
    assert missing["error"] == "S3.NoSuchKeyException"
    assert "(Service: S3, Status Code: 404, Request ID: " in missing["cause"]
    secret = {"Name": "s", "SecretString": "x"}
    made = output(run(sfn, "aws-sdk:secretsmanager:createSecret", secret))
    assert made["Arn"]


@pytest.mark.parametrize(
    ("resource", "parameters", "error", "words"),
    [
        ("sqs:sendMessage", {"Nothing": 1}, "States.Runtime", 'The field "Nothing" is not supp'),
        ("sqs:sendMessage", {"QueueUrl": "q"}, "States.Runtime", "MessageBody"),
        ("aws-sdk:dynamodb:getItem", NO_ITEM, "DynamoDb.ResourceNotFoundException", "(Service: D"),
    ],
)
def test_what_cannot_be_called(
    sfn: Any, resource: str, parameters: Any, error: str, words: str
) -> None:
    """The error says which field, or is the service's own."""
    ended = run(sfn, resource, parameters)
    assert ended["error"] == error, ended
    assert words in ended["cause"]


def test_a_function_by_name(sfn: Any) -> None:
    """``lambda:invoke`` wraps the answer of a registered function; another one is not found."""
    found = output(run(sfn, "lambda:invoke", {"FunctionName": "AddressFinder:$LATEST"}))
    assert (found["StatusCode"], found["ExecutedVersion"]) == (200, "$LATEST")
    ended = run(sfn, "lambda:invoke", {"FunctionName": "nobody"})
    assert ended["error"] == "Lambda.ResourceNotFoundException"


def test_the_history_names_service_and_action(sfn: Any, aws: Moto) -> None:
    """TaskScheduled has resourceType, resource, region and parameters."""
    topic = aws.client("sns").create_topic(Name="told")["TopicArn"]
    ended = run(sfn, "sns:publish", {"TopicArn": topic, "Message": "x"})
    scheduled = next(e for e in history(sfn, ended["executionArn"]) if e["type"] == "TaskScheduled")
    details = scheduled["taskScheduledEventDetails"]
    assert (details["resourceType"], details["resource"]) == ("sns", "publish")
    assert json.loads(details["parameters"])["Message"] == "x"


# -- what goes on elsewhere ------------------------------------------------------------------------


def machine(sfn: Any, **state: Any) -> str:
    """Create a machine of one state; return its ARN."""
    definition = {"StartAt": "C", "States": {"C": {"End": True, **state}}}
    if state["Type"] == "Fail":
        del definition["States"]["C"]["End"]
    made = sfn.create_state_machine(
        name=uuid.uuid4().hex, definition=json.dumps(definition), roleArn=ROLE
    )
    arn: str = made["stateMachineArn"]
    return arn


def test_a_callback_ends_the_task(sfn: Any, aws: Moto) -> None:
    """The token travels in the message; whoever has it sends the result."""
    queue = aws.client("sqs").create_queue(QueueName="callbacks")["QueueUrl"]
    body = {"QueueUrl": queue, "MessageBody": {"token.$": "$$.Task.Token"}}
    state = {"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken"}
    arn = machine(sfn, **state, Parameters=body)
    started = sfn.start_execution(stateMachineArn=arn)["executionArn"]
    found = aws.client("sqs").receive_message(QueueUrl=queue, WaitTimeSeconds=5)["Messages"]
    token = json.loads(found[0]["Body"])["token"]
    sfn.send_task_heartbeat(taskToken=token)
    sfn.send_task_success(taskToken=token, output='{"paid": true}')
    assert output(wait_for_end(sfn, started)) == {"paid": True}
    kinds = [event["type"] for event in history(sfn, started)]
    assert kinds[2:6] == ["TaskScheduled", "TaskStarted", "TaskSubmitted", "TaskSucceeded"]


def test_a_silent_callback_times_out(sfn: Any, aws: Moto) -> None:
    """Heartbeats keep it; without them the state times out, never early and soon after."""
    queue = aws.client("sqs").create_queue(QueueName="silent")["QueueUrl"]
    body = {"QueueUrl": queue, "MessageBody": {"token.$": "$$.Task.Token"}}
    state = {"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken"}
    arn = machine(sfn, **state, Parameters=body, HeartbeatSeconds=2)
    started = sfn.start_execution(stateMachineArn=arn)["executionArn"]
    found = aws.client("sqs").receive_message(QueueUrl=queue, WaitTimeSeconds=5)["Messages"]
    token = json.loads(found[0]["Body"])["token"]
    for _ in range(4):
        time.sleep(0.8)
        sfn.send_task_heartbeat(taskToken=token)
    beaten = time.time()
    ended = wait_for_end(sfn, started)
    assert (ended["status"], ended["error"]) == ("FAILED", "States.Timeout")
    assert 1.9 < ended["stopDate"].timestamp() - beaten < 3.2
    with pytest.raises(ClientError, match="TaskTimedOut"):
        sfn.send_task_success(taskToken=token, output="1")


@pytest.mark.parametrize(
    ("pattern", "shown"), [(".sync", '{"a":1}'), (".sync:2", {"a": 1}), ("", None)]
)
def test_nested_executions(sfn: Any, pattern: str, shown: Any) -> None:
    """Started only, or waited for with the child's output as text or as JSON."""
    child = machine(sfn, Type="Pass")
    parameters = {"StateMachineArn": child, "Input": {"a": 1}}
    found = output(run(sfn, f"states:startExecution{pattern}", parameters))
    assert found["ExecutionArn"].startswith(child.replace(":stateMachine:", ":execution:"))
    if pattern:
        assert (found["Status"], found["Output"]) == ("SUCCEEDED", shown)


def test_a_failed_child_fails_its_parent(sfn: Any) -> None:
    """The error is States.TaskFailed with the child's description, or that of a missing machine."""
    child = machine(sfn, Type="Fail", Error="Boom", Cause="it broke")
    ended = run(sfn, "states:startExecution.sync", {"StateMachineArn": child})
    assert ended["error"] == "States.TaskFailed"
    told = json.loads(ended["cause"])
    assert (told["Status"], told["Error"], told["Cause"]) == ("FAILED", "Boom", "it broke")
    missing = run(sfn, "states:startExecution", {"StateMachineArn": child + "-no"})
    assert missing["error"] == "StepFunctions.StateMachineDoesNotExistException"


def test_a_stop_reaches_the_child(sfn: Any) -> None:
    """The job of a task that is over is cancelled."""
    child = machine(sfn, Type="Wait", Seconds=600)
    state = {"Type": "Task", "Resource": "arn:aws:states:::states:startExecution.sync"}
    parent = machine(sfn, **state, Parameters={"StateMachineArn": child})
    started = sfn.start_execution(stateMachineArn=parent)["executionArn"]
    deadline = time.monotonic() + 10
    while "TaskSubmitted" not in [event["type"] for event in history(sfn, started)]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    sfn.stop_execution(executionArn=started)
    (nested,) = sfn.list_executions(stateMachineArn=child)["executions"]
    assert wait_for_end(sfn, nested["executionArn"])["status"] == "ABORTED"


def test_a_token_by_the_sdk(sfn: Any) -> None:
    """``aws-sdk:sfn`` speaks to this server, and its errors are the newer SDK's."""
    ended = run(sfn, "aws-sdk:sfn:sendTaskFailure", {"TaskToken": "NoSuchTaskToken"})
    assert ended["error"] == "Sfn.InvalidTokenException"
    assert ended["cause"].startswith("Invalid Token: 'Invalid token' (Service: Sfn, Status Code:")


def test_jobs_are_waited_for(sfn: Any, aws: Moto) -> None:
    """Athena and Glue, at a server that finishes their jobs at once."""
    query = {"QueryString": "SELECT 1", "ResultConfiguration": {"OutputLocation": "s3://b/"}}
    found = output(run(sfn, "athena:startQueryExecution.sync", query))
    assert found["QueryExecution"]["Status"]["State"] == "SUCCEEDED"
    glue = aws.client("glue")
    glue.create_job(Name="job", Role="r", Command={"Name": "glueetl"})
    found = output(run(sfn, "glue:startJobRun.sync", {"JobName": "job"}))
    assert found["JobRunState"] == "SUCCEEDED"


# -- web addresses ---------------------------------------------------------------------------------


class _Web(BaseHTTPRequestHandler):
    """Answers with what it was asked."""

    def do_POST(self) -> None:
        """Answer 200, or the status in the path."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status = 200 if self.path.startswith("/ok") else 404
        told = {"path": self.path, "key": self.headers.get("X-Key"), "body": body.decode()}
        data = json.dumps(told).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def web() -> Iterator[str]:
    """An address that answers."""
    served = ThreadingHTTPServer(("127.0.0.1", 0), _Web)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{served.server_port}"
    served.shutdown()
    served.server_close()


def test_http_tasks(sfn: Any, web: str) -> None:
    """Query and body go out, the connection's key with them; errors carry the status."""
    connection = {"ConnectionArn": "arn:aws:events:us-east-1:123456789012:connection/shop/1"}
    wanted = {"Method": "POST", "InvocationConfig": connection, "RequestBody": {"a": 1}}
    asked = {**wanted, "ApiEndpoint": f"{web}/ok", "QueryParameters": {"q": ["1", "2"]}}
    found = output(run(sfn, "http:invoke", asked))
    assert found["StatusCode"] == 200
    assert found["ResponseBody"] == {"path": "/ok?q=1&q=2", "key": "secret", "body": '{"a":1}'}
    missing = run(sfn, "http:invoke", {**wanted, "ApiEndpoint": f"{web}/no"})
    assert missing["error"] == "States.Http.StatusCode.404"
    elsewhere = run(sfn, "http:invoke", {**wanted, "ApiEndpoint": "http://169.254.169.254/ok"})
    assert "not among the endpoints" in elsewhere["cause"]
    bad = run(sfn, "http:invoke", {**asked, "Headers": {"Host": "x"}})
    assert bad["error"] == "States.Runtime"


def test_an_api_gateway(sfn: Any) -> None:
    """Stage and path make the address."""
    asked = {"ApiEndpoint": "x.execute-api", "Method": "POST", "Stage": "ok", "Path": "a b"}
    found = output(run(sfn, "apigateway:invoke", asked))
    assert found["ResponseBody"]["path"] == "/ok/a%20b"
    missing = run(sfn, "apigateway:invoke", {**asked, "Stage": "no"})
    assert missing["error"] == "ApiGateway.404"


# -- items and results in buckets ------------------------------------------------------------------


def mapped(sfn: Any, reader: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Run a distributed Map over what a reader reads; return how it ended."""
    config = {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    child = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
    processor = {"ProcessorConfig": config, **child}
    part = {"Resource": "arn:aws:states:::s3:getObject", **reader}
    arn = machine(sfn, Type="Map", ItemReader=part, ItemProcessor=processor, **more)
    return wait_for_end(sfn, sfn.start_execution(stateMachineArn=arn)["executionArn"])


def test_a_map_reads_its_items_from_a_bucket(sfn: Any, aws: Moto) -> None:
    """CSV, JSON Lines and listings; selected and batched by the engine."""
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="items")
    s3.put_object(Bucket="items", Key="a.csv", Body=b"n,s\n1,x\n2,y\n3,z\n")
    s3.put_object(Bucket="items", Key="b.jsonl", Body=b'{"n": 1}\n{"n": 2}\n')
    place = {"Parameters": {"Bucket": "items", "Key": "a.csv"}}
    config = {"InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW"}
    found = output(mapped(sfn, {**place, "ReaderConfig": config}))
    assert found == [{"n": "1", "s": "x"}, {"n": "2", "s": "y"}, {"n": "3", "s": "z"}]
    selector = {"at.$": "$$.Map.Item.Index", "s.$": "$$.Map.Item.Value.s"}
    batches = {"ItemSelector": selector, "ItemBatcher": {"MaxItemsPerBatch": 2}}
    found = output(mapped(sfn, {**place, "ReaderConfig": {**config, "MaxItems": 3}}, **batches))
    assert found[0] == {"Items": [{"at": 0, "s": "x"}, {"at": 1, "s": "y"}]}
    lines = {"Parameters": {"Bucket": "items", "Key": "b.jsonl"}}
    found = output(mapped(sfn, {**lines, "ReaderConfig": {"InputType": "JSONL"}}))
    assert found == [{"n": 1}, {"n": 2}]
    listing = {"Resource": "arn:aws:states:::s3:listObjectsV2", "Parameters": {"Bucket": "items"}}
    assert [one["Key"] for one in output(mapped(sfn, listing))] == ["a.csv", "b.jsonl"]
    flat = {"InputType": "JSONL", "Transformation": "LOAD_AND_FLATTEN"}
    only = {**listing, "Parameters": {"Bucket": "items", "Prefix": "b"}, "ReaderConfig": flat}
    assert output(mapped(sfn, only)) == [{"n": 1}, {"n": 2}]


def test_a_map_reads_parquet_and_what_athena_unloaded(sfn: Any, aws: Moto) -> None:
    """A Parquet file's rows, and those of the files that a manifest of Athena names."""
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="lake")
    for number in (1, 2):
        file = io.BytesIO()
        parquet.write_table(pa.table({"n": [number], "s": [f"row {number}"]}), file)
        s3.put_object(Bucket="lake", Key=f"out/part {number}?", Body=file.getvalue())
    names = "".join(f"s3://lake/out/part {number}?\n" for number in (1, 2))
    s3.put_object(Bucket="lake", Key="out/q-manifest.csv", Body=names.encode())
    rows = [{"n": 1, "s": "row 1"}, {"n": 2, "s": "row 2"}]
    one = {"Parameters": {"Bucket": "lake", "Key": "out/part 1?"}}
    assert output(mapped(sfn, {**one, "ReaderConfig": {"InputType": "PARQUET"}})) == rows[:1]
    unloaded = {"Parameters": {"Bucket": "lake", "Key": "out/q-manifest.csv"}}
    config = {"InputType": "PARQUET", "ManifestType": "ATHENA_DATA"}
    assert output(mapped(sfn, {**unloaded, "ReaderConfig": config})) == rows
    selector = {"n.$": "$$.Map.Item.Value.n", "from.$": "$$.Map.Item.Source"}
    found = output(mapped(sfn, {**unloaded, "ReaderConfig": config}, ItemSelector=selector))
    assert found[1] == {"n": 2, "from": "S3://lake/out/part 2?"}


def test_the_members_of_an_object_are_items(sfn: Any, aws: Moto) -> None:
    """A child gets key and value; the context object has them apart."""
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="objects")
    s3.put_object(Bucket="objects", Key="in.json", Body=b'{"a": {"x": 1}, "b": 2}')
    reader = {
        "Parameters": {"Bucket": "objects", "Key": "in.json"},
        "ReaderConfig": {"InputType": "JSON"},
    }
    pairs = [{"Key": "a", "Value": {"x": 1}}, {"Key": "b", "Value": 2}]
    assert output(mapped(sfn, reader)) == pairs
    selector = {
        "key.$": "$$.Map.Item.Key",
        "value.$": "$$.Map.Item.Value",
        "at.$": "$$.Map.Item.Index",
    }
    assert output(mapped(sfn, reader, ItemSelector=selector)) == [
        {"key": "a", "value": {"x": 1}, "at": 0},
        {"key": "b", "value": 2, "at": 1},
    ]


def test_what_cannot_be_read_fails_the_map(sfn: Any, aws: Moto) -> None:
    """The Map fails with States.ItemReaderFailed, which a Catch can take."""
    del aws
    missing = {"Parameters": {"Bucket": "nobody", "Key": "k"}, "ReaderConfig": {}}
    ended = mapped(sfn, missing)
    assert ended["error"] == "States.ItemReaderFailed"
    assert "NoSuchBucket" in ended["cause"]


def test_a_map_writes_its_results_to_a_bucket(sfn: Any, aws: Moto) -> None:
    """The state yields where the manifest is; the manifest names the files."""
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="results")
    s3.put_object(Bucket="results", Key="in.json", Body=b"[1, 2]")
    reader = {"Parameters": {"Bucket": "results", "Key": "in.json"}}
    writer = {
        "Resource": "arn:aws:states:::s3:putObject",
        "Parameters": {"Bucket": "results", "Prefix": "out"},
    }
    found = output(
        mapped(sfn, {**reader, "ReaderConfig": {"InputType": "JSON"}}, ResultWriter=writer)
    )
    place = found["ResultWriterDetails"]
    assert place["Key"].startswith("out/")
    manifest = json.loads(s3.get_object(**place)["Body"].read())
    (file,) = manifest["ResultFiles"]["SUCCEEDED"]
    records = json.loads(s3.get_object(Bucket="results", Key=file["Key"])["Body"].read())
    assert [(one["Status"], one["Output"]) for one in records] == [
        ("SUCCEEDED", "1"),
        ("SUCCEEDED", "2"),
    ]


def test_a_map_flattens_its_own_result(sfn: Any, aws: Moto) -> None:
    """Without a bucket the writer's configuration shapes what the state yields."""
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="nested")
    s3.put_object(Bucket="nested", Key="in.json", Body=b"[[1, [2]], [], 3]")
    reader = {"Parameters": {"Bucket": "nested", "Key": "in.json"}}
    writer = {"WriterConfig": {"Transformation": "FLATTEN", "OutputType": "JSON"}}
    ended = mapped(sfn, {**reader, "ReaderConfig": {"InputType": "JSON"}}, ResultWriter=writer)
    assert output(ended) == [1, [2], 3]


def test_a_map_yields_all_that_is_known_of_its_children(sfn: Any, aws: Moto) -> None:
    """Transformation NONE without a bucket: the descriptions that a file would have."""
    s3 = aws.client("s3")
    s3.create_bucket(Bucket="known")
    s3.put_object(Bucket="known", Key="in.json", Body=b"[7]")
    reader = {"Parameters": {"Bucket": "known", "Key": "in.json"}}
    writer = {"WriterConfig": {"Transformation": "NONE", "OutputType": "JSON"}}
    ended = mapped(sfn, {**reader, "ReaderConfig": {"InputType": "JSON"}}, ResultWriter=writer)
    (child,) = output(ended)
    described = sfn.describe_execution(executionArn=child["ExecutionArn"])
    assert child == {
        "ExecutionArn": described["executionArn"],
        "Input": "7",
        "InputDetails": {"Included": True},
        "Name": described["name"],
        "Output": "7",
        "OutputDetails": {"Included": True},
        "RedriveCount": 0,
        "RedriveStatus": "NOT_REDRIVABLE",
        "RedriveStatusReason": "Execution is SUCCEEDED and cannot be redriven",
        "StartDate": child["StartDate"],
        "StateMachineArn": described["stateMachineArn"],
        "Status": "SUCCEEDED",
        "StopDate": child["StopDate"],
    }


# -- mocks -----------------------------------------------------------------------------------------


def test_a_mock_configuration_of_step_functions_local(sfn: Any) -> None:
    """The test case behind # decides what mocked states get; errors go to Retry as always."""
    retry = [{"ErrorEquals": ["Busy"], "IntervalSeconds": 1}]
    call = {"Resource": "arn:aws:states:::lambda:invoke", "Parameters": {"FunctionName": "no"}}
    place = {"QueueUrl": "http://127.0.0.1:9/q", "MessageBody": "x"}
    send = {"Resource": "arn:aws:states:::sqs:sendMessage", "Parameters": place, "End": True}
    states = {
        "Call": {"Type": "Task", **call, "Retry": retry, "ResultPath": "$.called", "Next": "Send"},
        "Send": {"Type": "Task", **send, "ResultPath": "$.sent"},
    }
    definition = json.dumps({"StartAt": "Call", "States": states})
    arn = sfn.create_state_machine(name="mocked", definition=definition, roleArn=ROLE)[
        "stateMachineArn"
    ]

    def case(name: str) -> dict[str, Any]:
        started = sfn.start_execution(stateMachineArn=f"{arn}{name}", input="{}")
        return wait_for_end(sfn, started["executionArn"])

    found = output(case("#Happy"))
    assert found == {"called": {"StatusCode": 200, "Payload": 7}, "sent": {"MessageId": "m"}}
    assert case("#Sad")["error"] == "Gone"
    assert case("")["error"] == "Lambda.ResourceNotFoundException"
    with pytest.raises(ClientError, match="no test case 'Other'"):
        case("#Other")
