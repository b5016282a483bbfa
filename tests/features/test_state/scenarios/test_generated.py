"""Tests made of executions and definitions: they pass as they are made."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import engine
from console import command_line
from console.features.test_state.scenarios.files import read_scenario
from console.features.test_state.scenarios.tests import write_mocks, write_test_state
from tests.features.test_state.scenarios.helpers import (
    ANSWERS,
    ORDERS,
    busy_once,
    changed,
    printed,
    write_files,
)

if TYPE_CHECKING:
    from pathlib import Path

INPUT = {"total": 120, "items": [1, 2], "say": "it's '''odd''' \\ \u2028 \U0001f600"}


@pytest.fixture
def history(tmp_path: Path) -> Path:
    """Return the history file of an execution with a retried call and two items."""
    return write_files(tmp_path, printed(ORDERS, INPUT, {**ANSWERS, "Check": busy_once()}))


def generate(*words: object) -> int:
    """Run the command; return its exit code."""
    with pytest.raises(SystemExit) as end:
        command_line.main(["test", "generate", *map(str, words)])
    return int(end.value.code or 0)


def run_pytest(file: Path) -> subprocess.CompletedProcess[str]:
    """Run a file with pytest, in a process of its own."""
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", file.name]
    # options of the surrounding run stay out: a second -q drops the summary
    env = {**os.environ, "PYTEST_ADDOPTS": ""}
    return subprocess.run(
        words, cwd=file.parent, capture_output=True, text=True, check=False, env=env
    )


def test_a_file_for_pytest_passes(history: Path, tmp_path: Path) -> None:
    """As generated, with quotes and other odd characters in its input."""
    file = tmp_path / "test_orders.py"
    assert generate(history, "--to", file) == 0
    done = run_pytest(file)
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_it_tests_a_definition_beside_it(history: Path, tmp_path: Path) -> None:
    """It fails, with the place, once the definition does otherwise."""
    definition = tmp_path / "orders.asl.json"
    definition.write_text(json.dumps(ORDERS), encoding="utf-8")
    file = tmp_path / "tests" / "test_orders.py"  # in a folder that the command makes
    assert generate(history, "--to", file, "--definition", definition) == 0
    assert "Path(__file__).parent / '../orders.asl.json'" in file.read_text("utf-8")
    assert run_pytest(file).returncode == 0
    other = changed(ORDERS, "States/Approve/Next", "Ship")
    definition.write_text(json.dumps(other), encoding="utf-8")
    done = run_pytest(file)
    assert done.returncode == 1
    assert "path, state 4 (after Approve): got Ship, wanted Each" in done.stdout


def test_a_file_that_cannot_be_written_is_named(
    history: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file stands where its folder belongs."""
    assert generate(history, "--to", history / "test_orders.py") == 2
    assert capsys.readouterr().err == f"stateyard: {history}: File exists\n"


def test_what_chance_decides_is_left_out(tmp_path: Path) -> None:
    """A UUID in an output and in the input of a call; another way is refused."""
    uuid: dict[str, Any] = {"Type": "Pass", "Parameters": {"id.$": "States.UUID()", "n": 1}}
    definition = changed(ORDERS, "States/Done", {**uuid, "End": True})
    first = {**uuid, "Next": "Check", "ResultPath": "$.first"}
    definition = changed(changed(definition, "States/First", first), "StartAt", "First")
    history = write_files(tmp_path, printed(definition, INPUT, ANSWERS))
    text = json.loads(history.read_text("utf-8"))
    for event in text["events"]:  # as another run would have had it
        for details in event.values():
            if isinstance(details, dict):
                for key in ("input", "output", "parameters"):
                    if key in details:
                        value = json.loads(details[key])
                        details[key] = json.dumps(_with_other_ids(value))
    history.write_text(json.dumps(text), encoding="utf-8")
    file = tmp_path / "test_orders.py"
    assert generate(history, "--to", file) == 0
    assert run_pytest(file).returncode == 0
    written = file.read_text("utf-8")
    assert '"Ignore": [\n    "$.id"' in written
    assert '"Path"' in written


def _with_other_ids(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: "an-id" if key == "id" and part != 7 else _with_other_ids(part)
            for key, part in value.items()
        }
    return value


def test_a_way_that_cannot_be_repeated_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the place where it parts."""
    texts = printed(ORDERS, INPUT, ANSWERS)
    machine = json.loads(texts["machine"])
    other = changed(ORDERS, "States/Approve/Next", "Ship")
    texts["machine"] = json.dumps({**machine, "definition": json.dumps(other)})
    assert generate(write_files(tmp_path, texts)) == 1
    assert "a test of it would fail: path, state 4" in capsys.readouterr().err


def test_a_suite_has_calls_and_answers(history: Path) -> None:
    """Each CLI input is one that TestState takes, and the answers follow from it."""
    suite = json.loads(write_test_state(read_scenario(history)))
    assert [each["name"] for each in suite] == [
        *("Check 1", "Check 2", "Approve 1", "Each 1"),
        *("Pack 1", "Pack 2", "Ship 1"),
    ]
    assert suite[0]["expected"] == {"status": "RETRIABLE", "error": "Busy", "cause": "later"}
    assert suite[1]["cliInput"]["stateConfiguration"] == {"retrierRetryCount": 1}
    assert suite[1]["expected"]["nextState"] == "Big?"
    assert json.loads(suite[2]["expected"]["output"])["by"] == "ada"
    from botocore.session import get_session
    from botocore.validate import ParamValidator

    model = get_session().get_service_model("stepfunctions").operation_model("TestState")
    for each in suite:
        report = ParamValidator().validate(each["cliInput"], model.input_shape)
        assert not report.has_errors(), report.generate_report()


@pytest.mark.parametrize(
    ("resource", "parameters"),
    [
        ("lambda:invoke", {"FunctionName": "f", "Payload.$": "$"}),
        ("lambda:invoke.waitForTaskToken", {"FunctionName": "f", "Payload.$": "$"}),
        ("dynamodb:getItem", {"TableName": "t", "Key": {"id": {"S": "1"}}}),
        ("sqs:sendMessage", {"QueueUrl": "q", "MessageBody.$": "$"}),
        ("aws-sdk:s3:headObject", {"Bucket": "b", "Key": "k"}),
        ("states:startExecution.sync:2", {"StateMachineArn": "a", "Input.$": "$"}),
    ],
)
def test_calls_of_services_become_tests_of_each_kind(
    resource: str, parameters: dict[str, Any], tmp_path: Path
) -> None:
    """Optimized integrations, with each pattern, and the SDK's."""
    definition: dict[str, Any] = {
        "StartAt": "Call",
        "States": {
            "Call": {
                "Type": "Task",
                "Resource": f"arn:aws:states:::{resource}",
                "Parameters": parameters,
                "End": True,
            }
        },
    }
    written = printed(definition, {"n": 1}, {"Call": lambda _: {"done": 1}})
    history = write_files(tmp_path, written)
    for kind in ("pytest", "test-state", "mock-config"):
        assert generate(history, "--as", kind, "--to", tmp_path / f"test_{kind[0]}.py") == 0
    (tried,) = json.loads((tmp_path / "test_t.py").read_text("utf-8"))
    assert tried["expected"]["status"] == "SUCCEEDED"
    assert "done" in tried["expected"]["output"]


def test_an_execution_without_calls_is_no_suite(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A suite without a test would always pass; a file for pytest compares path and output."""
    definition = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
    history = write_files(tmp_path, printed(definition, {}, {}))
    for kind in ("test-state", "mock-config"):
        assert generate(history, "--as", kind) == 2
        said = f"{history}: got an execution without a call for {kind}, wanted the kind pytest"
        assert said in capsys.readouterr().err
    assert generate(history, "--as", "pytest") == 0


def test_a_mock_configuration_answers_a_run(history: Path) -> None:
    """The engine reads the file, and the run has the recorded output."""
    configuration = json.loads(write_mocks(read_scenario(history)))
    assert [*configuration] == ["StateMachines", "MockedResponses"]
    tasks = engine.mocked_tasks(configuration, "orders", "run-7")
    result = engine.run(ORDERS, INPUT, tasks)
    assert (result.status, result.output) == ("SUCCEEDED", {"shipped": 7})


def test_a_definition_alone_becomes_a_test(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each call answers with an empty object; another input goes another way."""
    definition = tmp_path / "orders.asl.json"
    other = changed(ORDERS, "States/Done/Parameters", {})
    other = changed(other, "States/Each/ItemProcessor/States/Label/Parameters", {})
    definition.write_text(json.dumps(other), "utf-8")
    file = tmp_path / "test_orders.py"
    words = (definition, "--to", file, "--definition", definition)
    assert generate(*words, "--input", '{"total": 5, "items": [1]}') == 0
    assert run_pytest(file).returncode == 0
    error = capsys.readouterr().err
    assert "no call was recorded, so each answers {}" in error
    assert "warning" not in error
    assert generate(*words) == 0
    assert "warning: the run ends with States.Runtime" in capsys.readouterr().err
    assert run_pytest(file).returncode == 0


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (("nowhere.json",), 2, "nowhere.json: there is no such file"),
        ((".",), 2, "got a folder"),
        (("HISTORY", "--input", "{}"), 2, "--input: got an execution"),
        (("DEFINITION", "--input", "{"), 2, "--input: got '{', wanted JSON"),
        (("HISTORY", "--definition", "DEFINITION"), 2, "--definition: got no --to"),
        (("HISTORY", "--definition", "x", "--as", "mock-config"), 2, "wanted --as pytest"),
        (("HISTORY", "--definition", "lost", "--to", "t.py"), 2, "lost is no file"),
    ],
)
def test_wrong_use_is_refused(
    words: tuple[str, ...],
    code: int,
    problem: str,
    history: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In one sentence."""
    definition = tmp_path / "orders.asl.json"
    definition.write_text(json.dumps(ORDERS), encoding="utf-8")
    files = {"HISTORY": history, "DEFINITION": definition}
    assert generate(*(files.get(word, word) for word in words)) == code
    assert problem in capsys.readouterr().err
