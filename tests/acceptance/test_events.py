"""boto3's ``events`` client and rules work over HTTP, and a kill loses no notification."""

from __future__ import annotations

import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from tests.acceptance.aws import KEYS, Moto
from tests.acceptance.server import Server, free_port, wait_for_end
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.acceptance

ROLE = "arn:aws:iam::123456789012:role/test"
PASS = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
ENDS = {
    "source": ["aws.states"],
    "detail-type": ["Step Functions Execution Status Change"],
    "detail": {"status": ["SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"]},
}


class Hook:
    """A web address on a fixed port that can be opened late, and can keep its callers waiting."""

    def __init__(self) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.got: list[dict[str, Any]] = []
        self.answering = threading.Event()
        self.answering.set()
        self.server: ThreadingHTTPServer | None = None

    def open(self) -> None:
        """Listen."""
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                hook.got.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                assert hook.got[-1]["id"] == self.headers["X-Stateyard-Event-Id"]
                hook.answering.wait(30)
                try:
                    self.send_response(200)
                    self.end_headers()
                except OSError:
                    return  # the caller was killed

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        """Listen no more."""
        self.answering.set()
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()


@pytest.fixture(scope="module")
def moto() -> Iterator[Moto]:
    """AWS services to send to."""
    moto = Moto().start()
    yield moto
    moto.stop()


@pytest.fixture
def hook() -> Iterator[Hook]:
    """A web address that is not open yet."""
    hook = Hook()
    yield hook
    hook.close()


@pytest.fixture
def server(tmp_path: Path, hook: Hook) -> Iterator[Server]:
    """A server that may call the hook."""
    targets = {"http": {"endpoints": [hook.url]}}
    server = Server(tmp_path / "data", STATEYARD_TARGETS=json.dumps(targets)).start()
    yield server
    server.stop()


def machine(server: Server, name: str, definition: dict[str, Any] = PASS) -> str:
    """Create a machine and return its ARN."""
    machine = server.client().create_state_machine(
        name=name, definition=json.dumps(definition), roleArn=ROLE
    )
    arn: str = machine["stateMachineArn"]
    return arn


def rule(server: Server, name: str, target: str, pattern: dict[str, Any] = ENDS) -> None:
    """Make a rule with one target."""
    events = server.client("events")
    events.put_rule(Name=name, EventPattern=json.dumps(pattern))
    answer = events.put_targets(Rule=name, Targets=[{"Id": "1", "Arn": target}])
    assert answer["FailedEntryCount"] == 0, answer


def test_a_kill_between_commit_and_sending_loses_no_notification(
    server: Server, hook: Hook
) -> None:
    """Killed at once after the executions' ends, and again later, each is told with its one id."""
    arn = machine(server, "quick")
    rule(server, "ends", f"{hook.url}/hook")
    client = server.client()
    started = [client.start_execution(stateMachineArn=arn)["executionArn"] for _ in range(20)]
    server.kill()  # nobody listens at the hook yet, so nothing has been delivered
    hook.open()
    server.start()
    wait_until(lambda: {event["resources"][0] for event in hook.got} == set(started))
    ids = {(event["resources"][0], event["id"]) for event in hook.got}
    assert len(ids) == len(started), "each execution is told with one id, however often"
    assert all(event["detail"]["status"] == "SUCCEEDED" for event in hook.got)


def test_a_kill_while_sending_sends_the_same_again(server: Server, hook: Hook) -> None:
    """The receiver had it and did not answer: it gets it once more, and knows it by its id."""
    arn = machine(server, "quick")
    rule(server, "ends", f"{hook.url}/hook")
    hook.open()
    hook.answering.clear()
    server.client().start_execution(stateMachineArn=arn)
    wait_until(lambda: hook.got)
    server.kill()
    hook.answering.set()
    server.start()
    wait_until(lambda: len(hook.got) > 1)
    assert hook.got[0] == hook.got[1]


def test_a_kill_starts_no_machine_twice(server: Server) -> None:
    """A rule starts a second machine once for each event, though the server dies on the way."""
    first, second = machine(server, "first"), machine(server, "second")
    only = {"detail": {"stateMachineArn": [first], "status": ["SUCCEEDED"]}}
    rule(server, "chain", second, only)
    client = server.client()
    started = {client.start_execution(stateMachineArn=first)["executionArn"] for _ in range(20)}
    server.kill()
    server.start()

    def caused() -> list[str]:
        executions = client.list_executions(stateMachineArn=second)["executions"]
        return (
            [execution["executionArn"] for execution in executions]
            if len(executions) >= len(started)
            else []
        )

    inputs = [
        json.loads(wait_for_end(client, execution)["input"])["detail"]["executionArn"]
        for execution in wait_until(caused)
    ]
    assert Counter(inputs) == Counter(started)


def test_rules_and_targets_over_the_api(up: Server) -> None:
    """Made, described, listed, switched, refused, removed: as boto3 expects it."""
    events = up.client("events")
    arn = events.put_rule(
        Name="nightly", ScheduleExpression="cron(0 3 * * ? *)", Description="at night"
    )["RuleArn"]
    assert arn == "arn:aws:events:us-east-1:123456789012:rule/nightly"
    shown = events.describe_rule(Name="nightly")
    assert (shown["ScheduleExpression"], shown["State"]) == ("cron(0 3 * * ? *)", "ENABLED")
    assert (shown["EventBusName"], shown["Description"]) == ("default", "at night")
    events.disable_rule(Name="nightly")
    assert events.describe_rule(Name="nightly")["State"] == "DISABLED"
    events.enable_rule(Name="nightly")
    target = {"Id": "t", "Arn": machine(up, "Nightly"), "Input": '{"night": true}'}
    wrong = {"Id": "w", "Arn": "arn:aws:kinesis:us-east-1:123456789012:stream/f"}
    answer = events.put_targets(Rule="nightly", Targets=[target, wrong])
    assert answer["FailedEntryCount"] == 1
    assert answer["FailedEntries"][0]["TargetId"] == "w"
    assert events.list_targets_by_rule(Rule="nightly")["Targets"] == [target]
    names = events.list_rule_names_by_target(TargetArn=target["Arn"])["RuleNames"]
    assert names == ["nightly"]
    with pytest.raises(ClientError, match="since it has targets"):
        events.delete_rule(Name="nightly")
    events.remove_targets(Rule="nightly", Ids=["t"])
    events.delete_rule(Name="nightly")
    with pytest.raises(events.exceptions.ResourceNotFoundException):
        events.describe_rule(Name="nightly")
    with pytest.raises(events.exceptions.InvalidEventPatternException, match="object or an array"):
        events.put_rule(Name="bad", EventPattern='{"source": "x"}')
    with pytest.raises(ClientError, match="ScheduleExpression is not valid"):
        events.put_rule(Name="bad", ScheduleExpression="rate(1 minutes)")


def test_rules_are_listed_by_the_page(up: Server) -> None:
    """ListRules filters by prefix, and its token works with the same query only."""
    events = up.client("events")
    for number in range(5):
        events.put_rule(Name=f"page-{number}", EventPattern='{"source": ["x"]}')
    names: list[str] = []
    token: dict[str, str] = {}
    while True:
        answer = events.list_rules(NamePrefix="page-", Limit=2, **token)
        names += [rule["Name"] for rule in answer["Rules"]]
        if "NextToken" not in answer:
            break
        token = {"NextToken": answer["NextToken"]}
    assert names == [f"page-{number}" for number in range(5)]
    with pytest.raises(ClientError, match="NextToken is not valid"):
        events.list_rules(NamePrefix="other", **token)


def test_events_of_ones_own_start_a_machine(up: Server) -> None:
    """PutEvents, matched by a pattern; entries that are none are refused by themselves."""
    events, client = up.client("events"), up.client()
    arn = machine(up, "OnOrder")
    rule(up, "orders", arn, {"source": ["shop"], "detail": {"total": [{"numeric": [">", 10]}]}})
    good = {"Source": "shop", "DetailType": "Order", "Detail": '{"total": 12}'}
    answer = events.put_events(
        Entries=[
            good,
            good | {"Detail": '{"total": 5}'},
            good | {"Detail": "[1]"},
            good | {"Source": "aws.states"},
            {"Source": "shop"},
        ]
    )
    assert answer["FailedEntryCount"] == 3
    codes = [entry.get("ErrorCode") for entry in answer["Entries"]]
    assert codes[2:] == ["MalformedDetail", "NotAuthorizedForSourceException", "InvalidArgument"]
    (started,) = wait_until(lambda: client.list_executions(stateMachineArn=arn)["executions"])
    assert started["name"].startswith(answer["Entries"][0]["EventId"])
    event = json.loads(client.describe_execution(executionArn=started["executionArn"])["input"])
    assert (event["source"], event["detail"]) == ("shop", {"total": 12})


def test_a_pattern_is_tried(up: Server) -> None:
    """TestEventPattern, without any rule."""
    events = up.client("events")
    event = dict.fromkeys(("id", "account", "time", "region", "detail-type"), "x")
    event |= {"source": "shop", "resources": []}
    ask = events.test_event_pattern
    assert ask(EventPattern='{"source": ["shop"]}', Event=json.dumps(event))["Result"] is True
    assert ask(EventPattern='{"source": ["x"]}', Event=json.dumps(event))["Result"] is False
    with pytest.raises(ClientError, match="lacks id"):
        ask(EventPattern='{"source": ["x"]}', Event="{}")


def test_queues_and_topics_get_the_event(moto: Moto, tmp_path: Path) -> None:
    """SQS, FIFO queues, SNS with a queue behind it and a dead-letter queue get the event."""
    targets = json.dumps({"*": {"endpoint_url": moto.url, **KEYS}})
    server = Server(tmp_path / "data", STATEYARD_TARGETS=targets).start()
    sqs, sns = moto.client("sqs"), moto.client("sns")
    urls = {}
    for name in ("plain", "fan", "row.fifo", "dead"):
        fifo = {"FifoQueue": "true"} if name.endswith("fifo") else {}
        urls[name] = sqs.create_queue(QueueName=name, Attributes=fifo)["QueueUrl"]
    topic = sns.create_topic(Name="topic")["TopicArn"]
    place = "arn:aws:sqs:us-east-1:123456789012"
    sns.subscribe(
        TopicArn=topic,
        Protocol="sqs",
        Endpoint=f"{place}:fan",
        Attributes={"RawMessageDelivery": "true"},
    )
    try:
        for name, arn in {"q": f"{place}:plain", "f": f"{place}:row.fifo", "t": topic}.items():
            rule(server, name, arn)
        arn = machine(server, "quick")
        lost = {"Id": "1", "Arn": f"{place}:none", "DeadLetterConfig": {"Arn": f"{place}:dead"}}
        server.client("events").put_rule(Name="d", EventPattern=json.dumps(ENDS))
        server.client("events").put_targets(Rule="d", Targets=[lost])
        started = server.client().start_execution(stateMachineArn=arn)["executionArn"]
        for url in urls.values():
            (message,) = wait_until(
                lambda url=url: sqs.receive_message(QueueUrl=url).get("Messages")
            )
            assert json.loads(message["Body"])["resources"] == [started]
    finally:
        server.stop()
