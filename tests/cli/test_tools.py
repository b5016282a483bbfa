"""One workflow as CDK, SAM, Serverless and Terraform have it: deployed, and run against moto.

``tests/cli/tools`` has the projects and what the real tools make of them.
"""

from __future__ import annotations

import json
import os
import re
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from console.command_line import main
from tests.acceptance.aws import KEYS, Moto
from tests.acceptance.server import Server, wait_for_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]  # moto is in the extra test-full
TOOLS = Path(__file__).parent / "tools"
FUNCTIONS = json.dumps(
    dict.fromkeys(("price", "price-test", "shop-test-price"), "tests.cli.test_tools:price")
)
PROJECTS = {
    "cdk/cdk.out": "order",
    "sam": "order-test",
    "sam/.aws-sam/build/template.yaml": "order-test",
    "serverless/serverless.yml": "order-test",
    "serverless/.serverless/cloudformation-template-update-stack.json": "order-test",
    "terraform/state.json": "order",
}
"""What is deployed -> the name of its state machine."""
END_S = 30.0


def price(event: Any, _: Any) -> Any:
    """Return the price of an order."""
    return {"total": event["amount"] * 2}


@pytest.fixture(scope="module")
def aws() -> Iterator[Moto]:
    """The table and the queue of the projects, in moto."""
    moto = Moto().start()
    moto.client("dynamodb").create_table(
        TableName="orders",
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
    )
    moto.client("sqs").create_queue(QueueName="shipments")
    yield moto
    moto.stop()


@pytest.fixture(scope="module")
def server(aws: Moto, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose Tasks call moto, and the function of the projects."""
    targets = json.dumps({"*": {"endpoint_url": aws.url, **KEYS}})
    server = Server(
        tmp_path_factory.mktemp("tools") / "data",
        options=("--empty", "--allow-reset"),
        STATEYARD_TARGETS=targets,
        STATEYARD_FUNCTIONS=FUNCTIONS,
    ).start()
    yield server
    server.stop()


@pytest.fixture
def deploy(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Empty the server; return ``stateyard deploy``, which returns what it prints."""
    asked = urllib.request.Request(
        f"{server.url}/reset", method="POST", headers={"X-Stateyard-Reset": "yes"}
    )
    urllib.request.urlopen(asked).close()
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)

    def run_command(path: Path, code: int = 0) -> str:
        with pytest.raises(SystemExit) as ended:
            main(["deploy", str(path), "--data", str(server.data)])
        captured = capsys.readouterr()
        assert (ended.value.code or 0) == code, captured
        return captured.out + captured.err

    return run_command


def saved(aws: Moto, number: str) -> dict[str, Any]:
    """Return what the table has of an order, once it is there."""
    deadline = time.monotonic() + END_S
    while True:
        answer = aws.client("dynamodb").get_item(TableName="orders", Key={"id": {"S": number}})
        if "Item" in answer:
            return dict(answer["Item"])
        assert time.monotonic() < deadline, number
        time.sleep(0.1)


def outcome(server: Server, name: str, data: str) -> Any:
    """Start a state machine; return its output."""
    client = server.client()
    arn = f"arn:aws:states:us-east-1:123456789012:stateMachine:{name}"
    started = client.start_execution(stateMachineArn=arn, input=data)
    ended = wait_for_end(client, started["executionArn"])
    assert ended["status"] == "SUCCEEDED", ended
    return json.loads(ended["output"])


def sent(aws: Moto, number: str) -> dict[str, Any]:
    """Return the message of an order, once the queue has it."""
    sqs = aws.client("sqs")
    address = sqs.get_queue_url(QueueName="shipments")["QueueUrl"]
    deadline = time.monotonic() + END_S
    while time.monotonic() < deadline:
        for message in sqs.receive_message(QueueUrl=address).get("Messages", ()):
            sqs.delete_message(QueueUrl=address, ReceiptHandle=message["ReceiptHandle"])
            body = json.loads(message["Body"])
            if body["id"] == number:
                return dict(body)
    raise AssertionError(number)


@pytest.mark.parametrize("path", PROJECTS)
def test_a_project_runs_against_moto(
    server: Server, aws: Moto, deploy: Callable[..., str], path: str
) -> None:
    """One command deploys it; a start and an event both price, save and ship an order."""
    shown = deploy(TOOLS / path)
    name = PROJECTS[path]
    assert f"+ state machine {name}: created" in shown
    assert {line[0] for line in changes_of(shown)} == {"+"}
    data = json.dumps({"id": path, "amount": 21})
    assert outcome(server, name, data)["price"] == {"total": 42}
    assert saved(aws, path)["total"] == {"N": "42"}
    assert sent(aws, path)["price"] == {"total": 42}
    detail = json.dumps({"id": f"event {path}", "amount": 4})
    entry = {"Source": "shop", "DetailType": "placed", "Detail": detail}
    server.client("events").put_events(Entries=[entry])
    assert saved(aws, f"event {path}")["total"] == {"N": "8"}
    assert {line[0] for line in changes_of(deploy(TOOLS / path))} == {"="}


def changes_of(shown: str) -> list[str]:
    """Return the lines of changes, without warnings and notes on roles."""
    return [
        line
        for line in shown.splitlines()
        if not re.match(r"stateyard: (warning|note): .*: role ", line)
    ]


def test_a_state_machine_of_the_cdk_starts_another(
    server: Server, aws: Moto, deploy: Callable[..., str]
) -> None:
    """The definition of the second is an asset, with a substitution."""
    deploy(TOOLS / "cdk/cdk.out")
    assert outcome(server, "Nightly", "{}")["price"] == {"total": 2}
    assert saved(aws, "nightly")["total"] == {"N": "2"}
    schedule = server.client("scheduler").get_schedule(Name="EveryNight")
    assert schedule["Target"]["Arn"].endswith(":stateMachine:Nightly")


def test_the_plan_of_a_first_apply_names_what_it_does_not_know(
    deploy: Callable[..., str],
) -> None:
    """The address of the queue is in the definition, and there is no queue yet."""
    shown = deploy(TOOLS / "terraform/plan.json", code=2)
    assert "aws_sfn_state_machine.order.definition: got a value that is known after" in shown


def test_events_of_serverless_keep_their_input(
    server: Server, deploy: Callable[..., str], tmp_path: Path
) -> None:
    """Path, template, queue for what fails, and ``method: scheduler`` with its time zone."""
    service = (TOOLS / "serverless/serverless.yml").read_text("utf-8")
    queue = "arn:aws:sqs:us-east-1:123456789012:lost"
    events = f"""events:
        - schedule:
            rate: cron(30 12 ? * MON-FRI *)
            method: scheduler
            timezone: America/New_York
            enabled: false
            input: {{id: noon, amount: 1}}
        - eventBridge:
            event: {{source: [shop]}}
            deadLetterConfig: {queue}
            inputTransformer:
              inputPathsMap: {{n: $.detail.id}}
              inputTemplate: '{{"id": <n>, "amount": 1}}'
"""
    before, _, rest = service.partition("events:\n")
    after = rest[rest.index("      definition:") :]
    (tmp_path / "serverless.yml").write_text(f"{before}{events}{after}", "utf-8")
    deploy(tmp_path)
    noon = server.client("scheduler").get_schedule(Name="order-test-1")
    assert noon["ScheduleExpressionTimezone"] == "America/New_York"
    assert noon["State"] == "DISABLED"
    assert json.loads(noon["Target"]["Input"]) == {"id": "noon", "amount": 1}
    (target,) = server.client("events").list_targets_by_rule(Rule="order-test-2")["Targets"]
    assert target["InputTransformer"]["InputPathsMap"] == {"n": "$.detail.id"}
    assert target["DeadLetterConfig"] == {"Arn": queue}
    *changes, note = deploy(tmp_path).splitlines()
    assert {line[0] for line in changes} == {"="}
    assert "role orderRole: 3 permissions are not known" in note  # its file is not in this folder


def test_what_no_call_can_carry_is_named_and_the_rest_deployed(
    deploy: Callable[..., str], tmp_path: Path
) -> None:
    """The client refuses a value before the server sees it; the message says of which thing."""
    state = json.loads((TOOLS / "terraform/state.json").read_text("utf-8"))
    resources = state["values"]["root_module"]["resources"]
    (schedule,) = (
        resource for resource in resources if resource["type"] == "aws_scheduler_schedule"
    )
    window = {"mode": "FLEXIBLE", "maximum_window_in_minutes": -1}
    schedule["values"]["flexible_time_window"] = [window]
    (tmp_path / "state.json").write_text(json.dumps(state), "utf-8")
    shown = deploy(tmp_path / "state.json", code=1)
    assert "aws_scheduler_schedule.nightly: schedule nightly: " in shown
    assert "MaximumWindowInMinutes, value: -1" in shown
    assert "+ state machine order: created" in shown
