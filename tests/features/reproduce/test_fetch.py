"""``stateyard fetch``: executions come home from a server that speaks AWS's API."""

from __future__ import annotations

import json
from argparse import Namespace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from console.features.reproduce.commands import fetch
from tests.acceptance.server import Server, wait_for_end
from tests.features.deploy.test_deploy import run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.acceptance
ROLE = "arn:aws:iam::123456789012:role/r"
FAILS = {
    "StartAt": "Reject",
    "States": {"Reject": {"Type": "Fail", "Error": "Refused", "Cause": "no such order"}},
}
ITEM = {
    "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
    "StartAt": "Odd?",
    "States": {
        "Odd?": {
            "Type": "Choice",
            "Choices": [{"Variable": "$", "NumericEquals": 2, "Next": "Bad"}],
            "Default": "Good",
        },
        "Bad": {"Type": "Fail", "Error": "Two"},
        "Good": {"Type": "Succeed"},
    },
}


def parent(child: str) -> dict[str, Any]:
    """Return a state machine with a Map Run of three items, then a child that fails."""
    return {
        "StartAt": "Each",
        "States": {
            "Each": {
                "Type": "Map",
                "ItemsPath": "$.items",
                "ItemProcessor": ITEM,
                "ToleratedFailurePercentage": 100,
                "ResultPath": None,
                "Next": "Ask",
            },
            "Ask": {
                "Type": "Task",
                "Resource": "arn:aws:states:::states:startExecution.sync:2",
                "Parameters": {"StateMachineArn": child, "Input.$": "$"},
                "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Done"}],
                "End": True,
            },
            "Done": {"Type": "Pass", "Result": "handled", "End": True},
        },
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server that stands for AWS."""
    server = Server(tmp_path_factory.mktemp("fetch") / "data", options=("--empty",)).start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def execution(server: Server) -> str:
    """Return the ARN of an execution with a Map Run and a failed child."""
    client = server.client()
    create = {"roleArn": ROLE}
    child = client.create_state_machine(name="child", definition=json.dumps(FAILS), **create)
    machine = client.create_state_machine(
        name="orders", definition=json.dumps(parent(child["stateMachineArn"])), **create
    )
    started = client.start_execution(
        stateMachineArn=machine["stateMachineArn"], name="run-7", input='{"items": [1, 2, 3]}'
    )
    assert wait_for_end(client, started["executionArn"])["status"] == "SUCCEEDED"
    return str(started["executionArn"])


@pytest.mark.slow
def test_an_execution_comes_with_what_it_started(
    server: Server, execution: str, tmp_path: Path
) -> None:
    """Child, Map Run and items, the failed one first; a replay of all does the same."""
    lines = run(server, "fetch", execution, "--to", tmp_path).splitlines()
    assert lines[0] == f"SUCCEEDED  {tmp_path}/orders/run-7.history.json"
    assert lines[1].startswith(f"SUCCEEDED  {tmp_path}/orders/run-7.map-run-")
    assert lines[1].endswith(": 3 of 3 items")
    assert lines[2].startswith(f"FAILED Refused  {tmp_path}/child/")
    assert lines[3].startswith("FAILED Two  ")
    assert [line.partition("  ")[0] for line in lines[4:]] == ["SUCCEEDED"] * 2
    replayed = run(server, "replay", tmp_path, "--format", "table").splitlines()
    assert replayed[-1] == "5 of 5 the same", replayed


@pytest.mark.slow
def test_children_and_items_can_be_left_out(server: Server, execution: str, tmp_path: Path) -> None:
    """None at all, or the failed item alone."""
    (line,) = run(server, "fetch", execution, "--to", tmp_path, "--no-children").splitlines()
    assert line == f"SUCCEEDED  {tmp_path}/orders/run-7.history.json"
    lines = run(server, "fetch", execution, "--to", tmp_path, "--items", "1").splitlines()
    assert lines[1].endswith(": 1 of 3 items")
    assert lines[3].startswith("FAILED Two  ")
    assert len(lines) == 4


@pytest.mark.slow
def test_what_is_not_there_is_named(server: Server, execution: str, tmp_path: Path) -> None:
    """The others are saved all the same."""
    lost = execution.replace("run-7", "lost")
    text = run(server, "fetch", lost, execution, "--no-children", "--to", tmp_path, code=1)
    assert f"stateyard: {lost}: " in text
    assert "ExecutionDoesNotExist" in text
    assert (tmp_path / "orders" / "run-7.machine.json").exists()


class StatesWithoutMapRuns:
    """A client whose role must not call DescribeMapRun; each execution has a Map Run."""

    def describe_execution(self, executionArn: str) -> dict[str, Any]:  # noqa: N803 - of boto3
        """Return a description."""
        parts = executionArn.split(":")
        machine = ":".join([*parts[:5], "stateMachine", parts[6]])
        return {"stateMachineArn": machine, "name": parts[7], "status": "SUCCEEDED"}

    def describe_state_machine_for_execution(self, **_: str) -> dict[str, Any]:
        """Return a state machine."""
        return {"definition": json.dumps(FAILS), "name": "orders"}

    def get_paginator(self, _: str) -> StatesWithoutMapRuns:
        """Return the pages of a history."""
        return self

    def paginate(self, **_: str) -> list[dict[str, Any]]:
        """Return one page."""
        event = {"id": 1, "type": "MapRunStarted", "timestamp": datetime(2026, 1, 1, tzinfo=UTC)}
        return [{"events": [{**event, "mapRunStartedEventDetails": {"mapRunArn": "arn:run"}}]}]

    def describe_map_run(self, **_: str) -> dict[str, Any]:
        """Refuse."""
        denied = {"Code": "AccessDeniedException", "Message": "not authorized"}
        raise ClientError({"Error": denied}, "DescribeMapRun")


def test_a_denied_map_run_keeps_no_other_execution(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All executions are saved; the error names the one whose Map Run is not."""
    arns = [f"arn:aws:states:eu-west-1:1:execution:orders:{name}" for name in ("a", "b")]
    options = Namespace(arns=arns, to=tmp_path, no_children=False, items=20)
    assert fetch._save_all(StatesWithoutMapRuns(), options) == 1
    output, errors = capsys.readouterr()
    assert output.splitlines() == [
        f"SUCCEEDED  {tmp_path}/orders/{name}.history.json" for name in ("a", "b")
    ]
    assert [line.split(": ")[1] for line in errors.splitlines()] == arns
    assert errors.count("AccessDeniedException") == 2


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("orders",), "orders: got no ARN of an execution"),
        (("arn:aws:states:eu-west-1:1:stateMachine:m",), "got no ARN of an execution"),
        (("arn:aws:states:eu-west-1:1:express:m:n:u",), "whose history AWS does not keep"),
        (("arn:aws:states:eu-west-1:1:execution:m:n", "--items", "-1"), "--items: got -1"),
    ],
)
def test_wrong_use_calls_nobody(
    words: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2 and one sentence."""
    from console import command_line

    with pytest.raises(SystemExit) as end:
        command_line.main(["fetch", *words, "--endpoint-url", "http://127.0.0.1:1"])
    assert end.value.code == 2
    assert problem in capsys.readouterr().err
