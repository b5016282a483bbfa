"""The replays of a review: recorded executions of a server, with both definitions."""

from __future__ import annotations

import copy
import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.server import ROOT, Server, wait_for_end
from tests.features.deploy.test_deploy import clean, command
from tests.features.review.golden import commit

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

ROLE = "arn:aws:iam::123456789012:role/r"
SECRET = "4111-1111-1111-1111"
FUNCTIONS = """
def charge(event, context):
    if event.get("refused"):
        raise ValueError("no money")
    return {"card": "4111-1111-1111-1111", "paid": event["amount"]}

def ship(event, context):
    return event
"""
FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:"
ORDERS: dict[str, Any] = {
    "StartAt": "Charge",
    "States": {
        "Charge": {"Type": "Task", "Resource": f"{FUNCTION}charge", "Next": "Large?"},
        "Large?": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.paid", "NumericGreaterThan": 100, "Next": "Ask"}],
            "Default": "Ship",
        },
        "Ask": {"Type": "Fail", "Error": "TooLarge"},
        "Ship": {"Type": "Task", "Resource": f"{FUNCTION}ship", "End": True},
    },
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server with three executions: one small, one large, one refused."""
    data = tmp_path_factory.mktemp("review") / "data"
    data.mkdir()
    (data / "paying.py").write_text(FUNCTIONS)
    functions = {"charge": "paying:charge", "ship": "paying:ship"}
    (data / "functions.json").write_text(json.dumps(functions))
    server = Server(data, options=("--empty",)).start()
    client = server.client()
    arn = client.create_state_machine(name="orders", definition=json.dumps(ORDERS), roleArn=ROLE)[
        "stateMachineArn"
    ]
    inputs = {"small": {"amount": 50}, "large": {"amount": 500}, "refused": {"refused": True}}
    for name, data_in in inputs.items():
        started = client.start_execution(stateMachineArn=arn, name=name, input=json.dumps(data_in))
        wait_for_end(client, started["executionArn"])
    yield server
    server.stop()


def review_change(server: Server, folder: Path, change: Callable[[Any], object]) -> str:
    """Return the Markdown about a change of the states, which never has a payload."""
    definition = copy.deepcopy(ORDERS)
    change(definition["States"])
    repository, output = folder / "repository", folder / "output"
    commit(repository, {"orders.asl.json": json.dumps(ORDERS)})
    commit(repository, {"orders.asl.json": json.dumps(definition)})
    done = subprocess.run(
        command(server, "review", "HEAD~1..HEAD", "--output", output),
        cwd=repository,
        env=clean() | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    text = (output / "review.md").read_text("utf-8")
    assert SECRET not in text
    return text


def test_a_change_without_effect_differs_nowhere(server: Server, tmp_path: Path) -> None:
    """All three executions are compared; the cost is the same."""
    text = review_change(
        server, tmp_path, lambda states: states["Charge"].update(TimeoutSeconds=60)
    )
    assert "**Replays:** 0 of 3 recorded executions differ." in text
    # 3 transitions and the end, 3 and the end, 1 and the end: 10 in all
    assert "**Cost of 1,000 executions:** $0.0833 before, $0.0833 after" in text
    assert "left out" not in text


def test_paths_errors_and_outputs_that_differ_are_named(server: Server, tmp_path: Path) -> None:
    """By the names of states and fields."""

    def change(states: Any) -> None:
        states["Large?"]["Choices"][0]["NumericGreaterThan"] = 10
        states["Charge"]["Catch"] = [{"ErrorEquals": ["ValueError"], "Next": "Ask"}]
        states["Ask"]["Error"] = "Asked"

    text = review_change(server, tmp_path, change)
    assert "**Replays:** 3 of 3 recorded executions differ." in text
    assert (
        "- `small`: `after Large?, goes to Ask instead of Ship; ends as FAILED instead of"
        " SUCCEEDED; has the error Asked instead of none`" in text
    )
    assert "- `large`: `has the error Asked instead of TooLarge`" in text
    assert "- `refused`: `after Charge, goes to Ask instead of the end" in text
    # refused: 2 states and the end in place of 1
    assert "$0.0833 before, $0.0917 after" in text


def test_another_output_is_named_by_its_place(server: Server, tmp_path: Path) -> None:
    """Without the values."""
    text = review_change(
        server, tmp_path, lambda states: states["Ship"].update(ResultPath="$.sent")
    )
    assert "- `small`: `has another output at $.sent`" in text


def test_a_call_without_an_answer_is_named(server: Server, tmp_path: Path) -> None:
    """The recording cannot tell what comes after it, also behind a Catcher for all errors."""

    def change(states: Any) -> None:
        states["Large?"]["Default"] = "Weigh"
        states["Weigh"] = {
            "Type": "Task",
            "Resource": f"{FUNCTION}weigh",
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Ship"}],
            "Next": "Ship",
        }

    text = review_change(server, tmp_path, change)
    assert "- `small`: `calls Weigh, which the recording has no answer for`" in text
    assert "**Replays:** 1 of 3 recorded executions differ." in text
    assert "state transitions of the 2 replays that end with both definitions, at the" in text


def test_a_definition_with_errors_cannot_run(server: Server, tmp_path: Path) -> None:
    """That is said of each execution."""
    text = review_change(server, tmp_path, lambda states: states["Ship"].pop("End"))
    assert "`cannot run: the definition has errors`" in text
    assert "Cost of" not in text
