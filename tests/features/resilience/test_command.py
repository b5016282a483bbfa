"""``stateyard resilience``: of files without a server, and of a server's state machines."""

from __future__ import annotations

import json
import re
from argparse import ArgumentParser
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from console import command_line
from console.cli.branches import call
from console.cli.connection import add_connection_arguments, connect
from console.features.resilience.trials.writing import duration_words
from tests.acceptance.server import Server, wait_for_end
from tests.acceptance.test_branches import signed_in
from tests.features.deploy.test_deploy import run
from tests.features.resilience.machines import FUNCTION, THROTTLED, WEAK, WELL_MADE

if TYPE_CHECKING:
    from pathlib import Path
    from urllib.request import OpenerDirector

ROLE = "arn:aws:iam::123456789012:role/r"


def examine(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Run the command; return its exit code and what it wrote to stdout and stderr."""
    with pytest.raises(SystemExit) as end:
        command_line.main(["resilience", *map(str, words)])
    written = capsys.readouterr()
    return int(end.value.code or 0), written.out, written.err


def write(folder: Path, name: str, definition: Any) -> Path:
    """Write a definition; return its path."""
    path = folder / f"{name}.asl.json"
    path.write_text(json.dumps(definition), encoding="utf-8")
    return path


def test_a_weakness_ends_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The text has the trials, the weakness and its remedy."""
    path = write(tmp_path, "orders", WEAK["MaxAttempts 0"][1])
    code, text, _ = examine(capsys, path)
    assert code == 1
    assert text.startswith("orders: 1 weakness\n  2 Retriers, 1 Catcher, 1 timeout, 7 trials,")
    assert "  Charge Retry[0]: the first call fails with Lambda.TooManyRequestsException\n" in text
    assert "    recovered, after 1 s and 2 calls, retries cost $0.000025\n" in text
    assert "continues at Failed, after 31 s and 6 calls, retries cost $0.000125\n" in text
    assert "  WEAKNESS retry-never: Charge Retry[1]\n    MaxAttempts is 0: " in text


def test_a_well_made_machine_ends_with_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """JSON of it has trials and no weaknesses."""
    path = write(tmp_path, "orders", WELL_MADE["a Task"])
    code, text, _ = examine(capsys, path, "--format", "json")
    (report,) = json.loads(text)
    assert (code, report["machine"], report["weaknesses"]) == (0, "orders", [])
    assert report["trials"][1] == {
        "state": "Charge",
        "field": "Retry[0]",
        "error": "Lambda.TooManyRequestsException",
        "lasting": True,
        "data": "made up",
        "reached": True,
        "outcome": "caught",
        "caughtBy": "Charge/Catch[0]",
        "next": "Failed",
        "endedWith": None,
        "seconds": 31.0,
        "calls": 6,
        "repeatedCalls": {"Charge": 5},
        "retryDollars": "0.000125",
    }


def test_junit_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A suite for each state machine, with the weakness as the failure of its test case."""
    write(tmp_path, "bad", WEAK["MaxAttempts 0"][1])
    write(tmp_path, "good", WELL_MADE["a Task"])
    code, text, _ = examine(capsys, tmp_path, "--format", "junit")
    suites = {suite.get("name"): suite for suite in ET.fromstring(text)}  # noqa: S314
    assert (code, suites["good"].get("failures"), suites["bad"].get("failures")) == (1, "0", "1")
    failed = [case for case in suites["bad"] if case.find("failure") is not None]
    assert [(case.get("classname"), case.get("name")) for case in failed] == [
        ("bad", "Charge Retry[1]")
    ]


def test_placeholders_are_filled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A Resource that a template fills is a function."""
    machine = json.loads(json.dumps(WELL_MADE["a Task"]).replace(FUNCTION, "${Charge}"))
    path = write(tmp_path, "orders", machine)
    assert examine(capsys, path)[0] == 0
    assert examine(capsys, path, "--param", f"Charge={FUNCTION}")[0] == 0


def test_a_bad_definition_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its errors are printed, one a line."""
    path = write(tmp_path, "orders", {"StartAt": "A", "States": {"A": {"Type": "Pass"}}})
    code, text, wrong = examine(capsys, path)
    assert (code, text) == (2, "")
    assert "/States/A" in wrong


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A server with a function that answers."""
    data = tmp_path_factory.mktemp("resilience") / "data"
    data.mkdir()
    (data / "paying.py").write_text("def charge(event, context):\n    return 5\n")
    (data / "functions.json").write_text(json.dumps({"charge": "paying:charge"}))
    server = Server(data, options=("--empty",)).start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def browser(server: Server) -> OpenerDirector:
    """A signed-in browser: the link of a server works once."""
    return signed_in(server)


@pytest.mark.slow
@pytest.mark.acceptance
def test_the_last_success_gives_input_and_answers(server: Server, browser: OpenerDirector) -> None:
    """Before it the states are tried by themselves; after it the whole way is run."""
    client = server.client()
    charge = {
        "Type": "Task",
        "Resource": FUNCTION,
        "Retry": [THROTTLED],
        "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.e", "Next": "Pause"}],
        "Next": "Done",
    }
    states = {
        "Charge": charge,
        "Pause": {"Type": "Wait", "Seconds": 100, "Next": "Lost"},
        "Lost": {"Type": "Fail", "Error": "Lost"},
        "Done": {"Type": "Succeed"},
    }
    arn = client.create_state_machine(
        name="Orders",
        definition=json.dumps({"StartAt": "Charge", "States": states}),
        roleArn=ROLE,
    )["stateMachineArn"]
    text = run(server, "resilience", "Orders")
    assert text.startswith("Orders: 0 weaknesses\n")
    assert "with made-up data" in text
    started = client.start_execution(stateMachineArn=arn, name="good", input='{"id": 1}')
    assert wait_for_end(client, started["executionArn"])["status"] == "SUCCEEDED"
    text = run(server, "resilience", arn)
    assert "with the input and answers of execution good" in text
    assert (
        "Charge Catch[0]: every call fails with Example.Error\n"
        "    caught by Charge/Catch[0], continues at Pause, failed with Lost, after 100 s" in text
    )
    assert_page_is_equal(server, browser, "Orders")


def assert_page_is_equal(
    server: Server, browser: OpenerDirector, name: str, input_name: str = ""
) -> None:
    """Compare the trials of the page with those of the command, row by row."""
    words = ("--input-name", input_name) if input_name else ()
    (report,) = json.loads(run(server, "resilience", name, *words, "--format", "json"))
    query = f"?input={input_name}" if input_name else ""
    address = f"{server.url}/machines/{name}/resilience/{query}"
    page = browser.open(address).read().decode()
    rows = page[page.index('id="trials"') :].partition("<tbody>")[2].split("<tr>")[1:]
    cells = [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in rows]
    assert len(cells) == len(report["trials"])
    for cell, trial in zip(cells, report["trials"], strict=True):
        named = (trial["state"], trial["field"], trial["error"], trial["caughtBy"], trial["next"])
        for word in (*named, trial["endedWith"]):
            assert not word or word in cell, (word, cell)
        calls = f" {trial['calls']} "
        assert calls in f"{cell} "
        seconds = trial["seconds"]
        assert seconds is None or duration_words(seconds) in cell
    assert f">{report['execution']}</a>" in page


@pytest.mark.slow
@pytest.mark.acceptance
def test_a_named_input_takes_the_place_of_the_last_one(
    server: Server, browser: OpenerDirector
) -> None:
    """With the answers of the last success; an input that leads elsewhere is refused."""
    client = server.client()
    rule = {"Variable": "$.id", "NumericEquals": 2, "Next": "Charge"}
    states = {
        "Which": {"Type": "Choice", "Choices": [rule], "Default": "Bad"},
        "Charge": {"Type": "Task", "Resource": FUNCTION, "Retry": [THROTTLED], "Next": "Done"},
        "Done": {"Type": "Succeed"},
        "Bad": {"Type": "Fail"},
    }
    arn = client.create_state_machine(
        name="Named",
        definition=json.dumps({"StartAt": "Which", "States": states}),
        roleArn=ROLE,
    )["stateMachineArn"]
    parser = ArgumentParser()
    add_connection_arguments(parser)
    connection = connect(parser.parse_args(["--data", str(server.data)]))
    for name, text in (("two", '{"id": 2}'), ("three", '{"id": 3}')):
        call(connection, "POST", "/api/inputs", {"machine": "Named", "name": name, "input": text})
    words = ("resilience", "Named", "--input-name")
    assert "no execution has succeeded" in run(server, *words, "two", code=2)
    started = client.start_execution(stateMachineArn=arn, name="good", input='{"id": 2, "n": 1}')
    assert wait_for_end(client, started["executionArn"])["status"] == "SUCCEEDED"
    text = run(server, *words, "two")
    assert "with the named input two and the answers of execution good" in text
    (report,) = json.loads(run(server, *words, "two", "--format", "json"))
    assert (report["execution"], report["inputName"]) == ("good", "two")
    assert_page_is_equal(server, browser, "Named", "two")
    assert "got 'three', wanted an input with which" in run(server, *words, "three", code=2)
    assert "four" in run(server, *words, "four", code=2)


@pytest.mark.slow
@pytest.mark.acceptance
def test_an_unknown_name_ends_with_2(server: Server) -> None:
    """It is neither a file nor a state machine."""
    assert "StateMachineDoesNotExist" in run(server, "resilience", "Nobody", code=2)
    for name in ("flows/orders.asl.json", "orders.yaml"):
        assert f"{name}: got no such file" in run(server, "resilience", name, code=2)
        assert f"{name}: got no such file" in run(server, "role", name, code=2)


@pytest.mark.slow
@pytest.mark.acceptance
def test_options_of_a_file_are_refused(server: Server) -> None:
    """The server knows the type."""
    text = run(server, "resilience", "Orders", "--type", "EXPRESS", code=2)
    assert "--type: got the name of a state machine, wanted a file" in text
