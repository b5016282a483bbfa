"""State machines reach AWS services, and answers and errors are worded as AWS words them."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from tests.acceptance.integrations.runs import ROLE, create_machine, output_of, run_task
from tests.acceptance.server import history, wait_for_end
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.acceptance.aws import Moto

pytestmark = pytest.mark.acceptance
NO_ITEM = {"TableName": "none", "Key": {"k": {"S": "a"}}}


def test_a_message_reaches_the_queue(sfn: Any, aws: Moto) -> None:
    """An object becomes its text; the result has the members of the older SDK."""
    queue = aws.client("sqs").create_queue(QueueName="orders")["QueueUrl"]
    body = {"QueueUrl": queue, "MessageBody": {"order.$": "$.id"}}
    output = output_of(run_task(sfn, "sqs:sendMessage", body, {"id": 7}))
    assert output["SdkHttpMetadata"]["HttpStatusCode"] == 200
    assert output["MessageId"]
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
    output_of(
        run_task(
            sfn, "dynamodb:putItem", {"TableName": "t", "Item": {"k": {"S": "a"}, "n": {"N": "1"}}}
        )
    )
    assert output_of(run_task(sfn, "dynamodb:getItem", key))["Item"]["n"] == {"N": "1"}
    change = {"UpdateExpression": "SET n = :n", "ExpressionAttributeValues": {":n": {"N": "2"}}}
    output_of(run_task(sfn, "dynamodb:updateItem", {**key, **change}))
    assert aws.client("dynamodb").get_item(**key)["Item"]["n"] == {"N": "2"}
    output_of(run_task(sfn, "dynamodb:deleteItem", key))
    assert "Item" not in aws.client("dynamodb").get_item(**key)
    refused = {**key, **change, "ConditionExpression": "attribute_exists(k)"}
    ended = run_task(sfn, "dynamodb:updateItem", refused)
    assert ended["error"] == "DynamoDB.ConditionalCheckFailedException"
    assert "(Service: AmazonDynamoDBv2; Status Code: 400; Error Code: Cond" in ended["cause"]


def test_a_topic_and_a_bus_take_what_is_published(sfn: Any, aws: Moto) -> None:
    """SNS and EventBridge."""
    topic = aws.client("sns").create_topic(Name="news")["TopicArn"]
    assert output_of(run_task(sfn, "sns:publish", {"TopicArn": topic, "Message": "x"}))["MessageId"]
    missing = run_task(sfn, "sns:publish", {"TopicArn": topic + "-no", "Message": "x"})
    assert missing["error"] == "SNS.NotFoundException"
    entry = {"Source": "me", "DetailType": "d", "Detail": {"a": 1}}
    output = output_of(run_task(sfn, "events:putEvents", {"Entries": [entry]}))
    assert output["FailedEntryCount"] == 0
    assert "SdkHttpMetadata" not in output


def test_any_sdk_action(sfn: Any, aws: Moto) -> None:
    """PascalCase, blobs as text, times as ISO 8601, errors as the newer SDK names them."""
    aws.client("s3").create_bucket(Bucket="bucket")
    place = {"Bucket": "bucket", "Key": "k"}
    output_of(run_task(sfn, "aws-sdk:s3:putObject", {**place, "Body": {"a": 1}}))
    output = output_of(run_task(sfn, "aws-sdk:s3:getObject", place))
    assert json.loads(output["Body"]) == {"a": 1}
    assert output["LastModified"].endswith("Z")
    assert "SdkHttpMetadata" not in output
    missing = run_task(sfn, "aws-sdk:s3:getObject", {**place, "Key": "no"})
    assert missing["error"] == "S3.NoSuchKeyException"
    assert "(Service: S3, Status Code: 404, Request ID: " in missing["cause"]
    secret = {"Name": "s", "SecretString": "x"}
    answer = output_of(run_task(sfn, "aws-sdk:secretsmanager:createSecret", secret))
    assert answer["Arn"]


@pytest.mark.parametrize(
    ("resource", "parameters", "error", "words"),
    [
        (
            "sqs:sendMessage",
            {"Nothing.$": "$"},
            "States.Runtime",
            'The field "Nothing" is not supp',
        ),
        ("sqs:sendMessage", {"QueueUrl": "q"}, "States.Runtime", "MessageBody"),
        ("aws-sdk:dynamodb:getItem", NO_ITEM, "DynamoDb.ResourceNotFoundException", "(Service: D"),
    ],
)
def test_what_cannot_be_called(
    sfn: Any, resource: str, parameters: Any, error: str, words: str
) -> None:
    """The error says which field, or is the service's own."""
    ended = run_task(sfn, resource, parameters)
    assert ended["error"] == error, ended
    assert words in ended["cause"]


def test_a_function_by_name(sfn: Any) -> None:
    """``lambda:invoke`` wraps the answer of a registered function; another one is not found."""
    output = output_of(run_task(sfn, "lambda:invoke", {"FunctionName": "AddressFinder:$LATEST"}))
    assert (output["StatusCode"], output["ExecutedVersion"]) == (200, "$LATEST")
    ended = run_task(sfn, "lambda:invoke", {"FunctionName": "nobody"})
    assert ended["error"] == "Lambda.ResourceNotFoundException"


def test_the_history_names_service_and_action(sfn: Any, aws: Moto) -> None:
    """TaskScheduled has resourceType, resource, region and parameters."""
    topic = aws.client("sns").create_topic(Name="told")["TopicArn"]
    ended = run_task(sfn, "sns:publish", {"TopicArn": topic, "Message": "x"})
    scheduled = next(e for e in history(sfn, ended["executionArn"]) if e["type"] == "TaskScheduled")
    details = scheduled["taskScheduledEventDetails"]
    assert (details["resourceType"], details["resource"]) == ("sns", "publish")
    assert json.loads(details["parameters"])["Message"] == "x"


# -- what goes on elsewhere ------------------------------------------------------------------------


def received_token(aws: Moto, queue: str) -> str:
    """Return the token in the next message of a queue."""
    client = aws.client("sqs")
    (message,) = wait_until(lambda: client.receive_message(QueueUrl=queue).get("Messages"))
    return str(json.loads(message["Body"])["token"])


def test_a_callback_ends_the_task(sfn: Any, aws: Moto) -> None:
    """The token travels in the message; whoever has it sends the result."""
    queue = aws.client("sqs").create_queue(QueueName="callbacks")["QueueUrl"]
    body = {"QueueUrl": queue, "MessageBody": {"token.$": "$$.Task.Token"}}
    state = {"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken"}
    arn = create_machine(sfn, **state, Parameters=body)
    started = sfn.start_execution(stateMachineArn=arn)["executionArn"]
    token = received_token(aws, queue)
    # The queue hands the message out before its answer to SendMessage is in the history.
    wait_until(lambda: "TaskSubmitted" in [event["type"] for event in history(sfn, started)])
    sfn.send_task_heartbeat(taskToken=token)
    sfn.send_task_success(taskToken=token, output='{"paid": true}')
    assert output_of(wait_for_end(sfn, started)) == {"paid": True}
    kinds = [event["type"] for event in history(sfn, started)]
    assert kinds[2:6] == ["TaskScheduled", "TaskStarted", "TaskSubmitted", "TaskSucceeded"]


def test_a_silent_callback_times_out(sfn: Any, aws: Moto) -> None:
    """Heartbeats keep it; without them the state times out, never early and soon after."""
    queue = aws.client("sqs").create_queue(QueueName="silent")["QueueUrl"]
    body = {"QueueUrl": queue, "MessageBody": {"token.$": "$$.Task.Token"}}
    state = {"Type": "Task", "Resource": "arn:aws:states:::sqs:sendMessage.waitForTaskToken"}
    arn = create_machine(sfn, **state, Parameters=body, HeartbeatSeconds=4)
    started = sfn.start_execution(stateMachineArn=arn)["executionArn"]
    token = received_token(aws, queue)
    for _ in range(6):
        time.sleep(0.8)
        beaten = time.time()
        sfn.send_task_heartbeat(taskToken=token)
    ended = wait_for_end(sfn, started)
    assert (ended["status"], ended["error"]) == ("FAILED", "States.Timeout")
    assert 4 <= ended["stopDate"].timestamp() - beaten < 12
    with pytest.raises(ClientError, match="TaskTimedOut"):
        sfn.send_task_success(taskToken=token, output="1")


@pytest.mark.parametrize(
    ("pattern", "shown"), [(".sync", '{"a":1}'), (".sync:2", {"a": 1}), ("", None)]
)
def test_nested_executions(sfn: Any, pattern: str, shown: Any) -> None:
    """Started only, or waited for with the child's output as text or as JSON."""
    child = create_machine(sfn, Type="Pass")
    parameters = {"StateMachineArn": child, "Input": {"a": 1}}
    output = output_of(run_task(sfn, f"states:startExecution{pattern}", parameters))
    assert output["ExecutionArn"].startswith(child.replace(":stateMachine:", ":execution:"))
    if pattern:
        assert (output["Status"], output["Output"]) == ("SUCCEEDED", shown)


def test_a_failed_child_fails_its_parent(sfn: Any) -> None:
    """The error is States.TaskFailed with the child's description, or that of a missing machine."""
    child = create_machine(sfn, Type="Fail", Error="Boom", Cause="it broke")
    ended = run_task(sfn, "states:startExecution.sync", {"StateMachineArn": child})
    assert ended["error"] == "States.TaskFailed"
    told = json.loads(ended["cause"])
    assert (told["Status"], told["Error"], told["Cause"]) == ("FAILED", "Boom", "it broke")
    missing = run_task(sfn, "states:startExecution", {"StateMachineArn": child + "-no"})
    assert missing["error"] == "StepFunctions.StateMachineDoesNotExistException"


def test_a_stop_reaches_the_child(sfn: Any) -> None:
    """The job of a task that is over is cancelled."""
    child = create_machine(sfn, Type="Wait", Seconds=600)
    state = {"Type": "Task", "Resource": "arn:aws:states:::states:startExecution.sync"}
    parent = create_machine(sfn, **state, Parameters={"StateMachineArn": child})
    started = sfn.start_execution(stateMachineArn=parent)["executionArn"]
    wait_until(lambda: "TaskSubmitted" in [event["type"] for event in history(sfn, started)])
    sfn.stop_execution(executionArn=started)
    (nested,) = sfn.list_executions(stateMachineArn=child)["executions"]
    assert wait_for_end(sfn, nested["executionArn"])["status"] == "ABORTED"


def test_a_token_by_the_sdk(sfn: Any) -> None:
    """``aws-sdk:sfn`` speaks to this server, and its errors are the newer SDK's."""
    ended = run_task(sfn, "aws-sdk:sfn:sendTaskFailure", {"TaskToken": "NoSuchTaskToken"})
    assert ended["error"] == "Sfn.InvalidTokenException"
    assert ended["cause"].startswith("Invalid Token: 'Invalid token' (Service: Sfn, Status Code:")


def test_jobs_are_waited_for(sfn: Any, aws: Moto) -> None:
    """Athena and Glue, at a server that finishes their jobs at once."""
    query = {"QueryString": "SELECT 1", "ResultConfiguration": {"OutputLocation": "s3://b/"}}
    output = output_of(run_task(sfn, "athena:startQueryExecution.sync", query))
    assert output["QueryExecution"]["Status"]["State"] == "SUCCEEDED"
    glue = aws.client("glue")
    glue.create_job(Name="job", Role="r", Command={"Name": "glueetl"})
    output = output_of(run_task(sfn, "glue:startJobRun.sync", {"JobName": "job"}))
    assert output["JobRunState"] == "SUCCEEDED"


# -- web addresses ---------------------------------------------------------------------------------


def test_http_tasks(sfn: Any, web: str) -> None:
    """Query and body go out, the connection's key with them; errors carry the status.

    The web server sends the key back: the result has a mask in its place.
    """
    connection = {"ConnectionArn": "arn:aws:events:us-east-1:123456789012:connection/shop/1"}
    request = {"Method": "POST", "InvocationConfig": connection, "RequestBody": {"a": 1}}
    asked = {**request, "ApiEndpoint": f"{web}/ok", "QueryParameters": {"q": ["1", "2"]}}
    output = output_of(run_task(sfn, "http:invoke", asked))
    assert output["StatusCode"] == 200
    assert output["ResponseBody"] == {"path": "/ok?q=1&q=2", "key": "(masked)", "body": '{"a":1}'}
    missing = run_task(sfn, "http:invoke", {**request, "ApiEndpoint": f"{web}/no"})
    assert missing["error"] == "States.Http.StatusCode.404"
    elsewhere = run_task(
        sfn, "http:invoke", {**request, "ApiEndpoint": "http://169.254.169.254/ok"}
    )
    assert "not among the endpoints" in elsewhere["cause"]
    bad = run_task(sfn, "http:invoke", {**asked, "Headers": {"Host": "x"}})
    assert bad["error"] == "States.Runtime"


def test_an_api_gateway(sfn: Any) -> None:
    """Stage and path make the address."""
    asked = {"ApiEndpoint": "x.execute-api", "Method": "POST", "Stage": "ok", "Path": "a b"}
    output = output_of(run_task(sfn, "apigateway:invoke", asked))
    assert output["ResponseBody"]["path"] == "/ok/a%20b"
    missing = run_task(sfn, "apigateway:invoke", {**asked, "Stage": "no"})
    assert missing["error"] == "ApiGateway.404"


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

    output = output_of(case("#Happy"))
    assert output == {"called": {"StatusCode": 200, "Payload": 7}, "sent": {"MessageId": "m"}}
    assert case("#Sad")["error"] == "Gone"
    assert case("")["error"] == "Lambda.ResourceNotFoundException"
    with pytest.raises(ClientError, match="no test case 'Other'"):
        case("#Other")
