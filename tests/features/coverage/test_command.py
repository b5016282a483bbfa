"""``stateyard coverage``: sources add up, holes are named, thresholds set the exit code."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

import engine
from console import command_line
from console.features.coverage.measuring import (
    WRITERS,
    Collection,
    CoverageFileError,
    Thresholds,
    make_reports,
)
from tests.acceptance.server import Server, wait_for_end
from tests.engine.test_replay import DEFINITION, SCENARIO
from tests.features.deploy.test_deploy import run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROLE = "arn:aws:iam::123456789012:role/r"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in a folder without a pyproject.toml."""
    monkeypatch.chdir(tmp_path)


def report(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Run the command; return its exit code and what it wrote to stdout and stderr."""
    with pytest.raises(SystemExit) as end:
        command_line.main(["coverage", *map(str, words)])
    written = capsys.readouterr()
    return int(end.value.code or 0), written.out, written.err


def write(path: Path, content: Any) -> Path:
    """Write JSON; return the path."""
    path.write_text(json.dumps(content, indent=2), encoding="utf-8")
    return path


def history(data: Any, pay: Any) -> dict[str, Any]:
    """Return what ``aws stepfunctions get-execution-history`` prints of a run."""
    events = engine.run(DEFINITION, data, {"Pay": pay}).events
    return {"events": [printed(event) for event in events]}


def printed(event: engine.Event) -> dict[str, Any]:
    """Return an event as the AWS CLI prints it."""
    details = engine.DETAILS[event.type]
    return {
        "timestamp": f"2026-01-01T00:00:{event.id:02}+00:00",
        "type": event.type,
        "id": event.id,
        "previousEventId": event.previous,
        **({details: dict(event.details or {})} if details else {}),
    }


def small(_: Any) -> Any:
    """Answer with a small sum."""
    return {"sum": 1}


def busy(_: Any) -> Any:
    """Raise the error of the Retrier."""
    raise engine.StatesError("Busy")


def test_three_sources_add_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A result file of tests, a scenario and a history: each reaches what the others do not."""
    definition = write(tmp_path / "pay.asl.json", DEFINITION)
    collection = Collection()
    tested = collection.machine(json.dumps(DEFINITION))
    tested.add_runs(
        "engine.run", tested.reader.read(engine.run(DEFINITION, 1, {"Pay": small}).events)
    )
    result = tmp_path / "tests.json"
    result.write_text(collection.write_text(), encoding="utf-8")
    scenario = write(tmp_path / "scenario.json", SCENARIO)
    failed = write(tmp_path / "history.json", history({}, busy))
    alone = {}
    for source in (result, scenario, failed):
        code, text, _ = report(capsys, definition, source, "--format", "json")
        (machine,) = json.loads(text)["machines"]
        alone[source] = {point["key"] for point in machine["points"] if point["reached"]}
        assert code == 0
    code, text, _ = report(
        capsys, definition, result, scenario, failed, "--format", "json", "--fail-under", 100
    )
    (machine,) = json.loads(text)["machines"]
    reached = {point["key"] for point in machine["points"] if point["reached"]}
    assert reached == set().union(*alone.values())
    assert "Big?/Default" in alone[result] - alone[scenario] - alone[failed]
    assert "Big?/Choices[0]" in alone[scenario] - alone[result] - alone[failed]
    assert "Pay/Retry[0] exhausted" in alone[failed] - alone[result] - alone[scenario]
    assert machine["runs"] == {"engine.run": 1, "histories": 1, "replays": 1}
    assert (code, machine["percent"]) == (0, 100)


def test_the_sum_is_a_source_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--save writes what --stateyard-coverage does; nothing is counted twice."""
    definition = write(tmp_path / "pay.asl.json", DEFINITION)
    failed = write(tmp_path / "history.json", history({}, busy))
    saved = tmp_path / "sum.json"
    _, first, _ = report(capsys, definition, failed, "--save", saved)
    _, second, _ = report(capsys, definition, saved)
    assert first == second
    assert "1 of histories" in first


def test_a_saved_sum_of_an_earlier_definition_is_ignored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has the same name, but is no second state machine of the report."""
    definition = write(tmp_path / "pay.asl.json", DEFINITION)
    failed = write(tmp_path / "history.json", history({}, busy))
    total = tmp_path / "sum.json"
    assert report(capsys, definition, failed, "--save", total)[0] == 0
    write(definition, {**DEFINITION, "Comment": "changed"})
    code, text, errors = report(capsys, definition, total)
    assert (code, text.count("pay: ")) == (0, 1)
    assert text.startswith("pay: 0.0 %")
    assert "warning: executions of a definition that no named state machine has: 1" in errors


def test_a_graph_that_is_too_large_is_named() -> None:
    """Graphviz would take minutes; the table of the points is complete all the same."""
    states: dict[str, Any] = {
        f"S{number}": {"Type": "Pass", "Next": f"S{number + 1}"} for number in range(300)
    }
    definition = {"StartAt": "S0", "States": {**states, "S300": {"Type": "Succeed"}}}
    collection = Collection()
    collection.declare("long", json.dumps(definition), "STANDARD")
    page = WRITERS["html"](make_reports(collection.resolve(), Thresholds()))
    assert "The graph is not drawn: it has 300 transitions, more than 250." in page
    assert "<svg" not in page
    assert page.count("<td>Transition</td>") == 300


def test_two_state_machines_may_have_one_definition(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each is reported with the runs of the definition, and has its own threshold."""
    first, second = (write(tmp_path / f"{name}.asl.json", DEFINITION) for name in ("pay", "refund"))
    failed = write(tmp_path / "history.json", history({}, busy))
    config = tmp_path / "coverage.toml"
    table = "[tool.stateyard.coverage]\nthresholds = { refund = 40 }\n"
    config.write_text(table, encoding="utf-8")
    code, shown, errors = report(capsys, first, second, failed, "--config", config)
    assert (code, errors) == (1, "stateyard: refund: got 30.0 %, wanted 40 %\n")
    lines = shown.splitlines()
    assert [line for line in lines if line.endswith(" 30.0 %")] == ["pay: 30.0 %", "refund: 30.0 %"]
    assert lines.count("  1 of histories") == 2
    collection = Collection()
    for name in ("pay", "refund", "refund"):
        collection.declare(name, json.dumps(DEFINITION), "STANDARD")
    assert [machine.name for machine in collection.resolve()] == ["pay", "refund"]
    with pytest.raises(CoverageFileError, match="refund: got two definitions"):
        collection.declare("refund", json.dumps({**DEFINITION, "Comment": "c"}), "STANDARD")


@pytest.mark.parametrize(
    ("settings", "words", "code", "said"),
    [
        ("", [], 0, ""),
        ("", ["--fail-under", "80"], 1, "total: got 30.0 %, wanted 80 %"),
        ("", ["--fail-under", "30"], 0, ""),
        ("fail_under = 34", [], 1, "total: got 30.0 %, wanted 34 %"),
        ("fail_under = 34", ["--fail-under", "0"], 0, ""),
        ("thresholds = { pay = 40 }", [], 1, "pay: got 30.0 %, wanted 40 %"),
        ("thresholds = { other = 40 }", [], 2, "thresholds.other: got a state machine that"),
        ("thresholds = { pay = 140 }", [], 2, "thresholds.pay: got 140, wanted a number"),
        ("thresholds = 4", [], 2, "thresholds: got 4, wanted NAME = PERCENT"),
        ("failunder = 4", [], 2, "got 'failunder', wanted one of fail_under, machines, thresholds"),
        ("fail_under = ", [], 2, "Invalid value"),
        ("", ["--fail-under", "101"], 2, "--fail-under: got 101.0, wanted a number from 0 to 100"),
        ("", ["--last", "0"], 2, "--last: got 0, wanted 1 or more"),
        ("", ["--last", "5"], 2, "--last: got no state machine of a server"),
    ],
)
def test_thresholds_set_the_exit_code(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    settings: str,
    words: list[str],
    code: int,
    said: str,
) -> None:
    """Of the total by option or file, and of one machine by file; a wrong one ends with 2."""
    definition = write(tmp_path / "pay.asl.json", DEFINITION)
    failed = write(tmp_path / "history.json", history({}, busy))
    config = tmp_path / "coverage.toml"
    config.write_text(f"[tool.stateyard.coverage]\n{settings}\n", encoding="utf-8")
    got, _, errors = report(capsys, definition, failed, "--config", config, *words)
    assert (got, said in errors) == (code, True), errors
    assert bool(errors) == bool(said)


@pytest.mark.parametrize(
    "settings", ["tool = 5", "[tool]\nstateyard = 5", "[tool.stateyard]\ncoverage = 5"]
)
def test_settings_that_are_no_table_end_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], settings: str
) -> None:
    """In one line, as every invalid setting."""
    definition = write(tmp_path / "pay.asl.json", DEFINITION)
    config = tmp_path / "coverage.toml"
    config.write_text(settings, encoding="utf-8")
    code, _, errors = report(capsys, definition, "--config", config)
    assert (code, "got 5, wanted [tool.stateyard.coverage]" in errors) == (2, True), errors


def test_machines_of_the_settings_are_reported_without_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """pyproject.toml of the current folder names them; 0 % is below every threshold."""
    write(tmp_path / "pay.asl.json", DEFINITION)
    text = '[tool.stateyard.coverage]\nmachines = ["pay.asl.json"]\nfail_under = 1\n'
    (tmp_path / "pyproject.toml").write_text(text.replace("\n", "\r\n"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    code, shown, errors = report(capsys)
    assert (code, errors) == (1, "stateyard: total: got 0.0 %, wanted 1 %\n")
    assert shown.startswith("pay: 0.0 %\n")
    assert "no executions" in shown


@pytest.mark.parametrize(
    "placeholder", ["${Function}", "arn:aws:lambda:${AWS::Region}:123456789012:function:f"]
)
def test_a_placeholder_stands_for_what_a_test_put_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], placeholder: str
) -> None:
    """A file with placeholders is the definition that ran with values; another one is not."""
    changed = copy.deepcopy(DEFINITION)
    changed["States"]["Pay"]["Resource"] = "arn:aws:lambda:us-east-1:123456789012:function:f"
    with_placeholder = copy.deepcopy(DEFINITION)
    with_placeholder["States"]["Pay"]["Resource"] = placeholder
    definition = write(tmp_path / "pay.asl.json", with_placeholder)
    collection = Collection()
    for ran in (changed, {**changed, "Comment": "another definition"}):
        machine = collection.machine(json.dumps(ran))
        machine.add_runs(
            "engine.run", machine.reader.read(engine.run(ran, 1, {"Pay": small}).events)
        )
    result = tmp_path / "tests.json"
    result.write_text(collection.write_text(), encoding="utf-8")
    code, text, errors = report(capsys, definition, result)
    assert (code, "1 of engine.run" in text) == (0, True)
    assert "warning: executions of a definition that no named state machine has: 1" in errors


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"format": "other-1"}, "format: got 'other-1', wanted 'stateyard-coverage-1'"),
        ({"format": "stateyard-coverage-1", "machines": 5}, "machines: got 5, wanted a list"),
        ({"format": "stateyard-coverage-1"}, "machines: got null, wanted a list"),
        ({"events": 5}, "bad.json: events: got 5, wanted a list of events"),
        ({"events": []}, "bad.json: events: got [], wanted a list of events"),
        ({"format": "stateyard-coverage-1", "machines": [{}]}, "machines[0]: got KeyError"),
        ({"format": "stateyard-coverage-1", "machines": [7]}, "machines[0]: got TypeError"),
        ({"events": [{"id": 1}]}, "this is no event (KeyError: 'type')"),
        ({"events": [{"id": 2, "type": "ExecutionStarted", "timestamp": 1}]}, "event 1 is missing"),
        ({"Scenario": {"Format": "x"}}, "Scenario.Format: got"),
    ],
)
def test_a_bad_result_ends_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: Any, said: str
) -> None:
    """One line names the file, the place, and what it should have."""
    definition = write(tmp_path / "pay.asl.json", DEFINITION)
    code, _, errors = report(capsys, definition, write(tmp_path / "bad.json", content))
    assert (code, said in errors) == (2, True), errors


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "got an empty file, wanted a definition"),
        (b" \n", "got an empty file, wanted a definition"),
        (b"{", "got no JSON"),
        ("{}".encode("utf-16"), "got another encoding, wanted UTF-8"),
        (b"{}", "SCHEMA_VALIDATION_FAILED: These fields are required"),
        (b"[]", "SCHEMA_VALIDATION_FAILED: Definition must be a valid JSON object"),
    ],
)
def test_a_bad_definition_ends_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, said: str
) -> None:
    """In a line with the file and the reason."""
    path = tmp_path / "pay.asl.json"
    path.write_bytes(content)
    code, text, errors = report(capsys, path)
    assert (code, text) == (2, "")
    assert errors.startswith(f"stateyard: {path}: {said}")


def test_output_makes_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of the report and of the sum; a file in the place of the folder is named."""
    definition = write(tmp_path / "pay.asl.json", DEFINITION)
    page, results = tmp_path / "a" / "b" / "page.html", tmp_path / "c" / "sum.json"
    words = (definition, "--format", "html", "--output", page, "--save", results)
    assert report(capsys, *words) == (0, "", "")
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert json.loads(results.read_text("utf-8"))["format"]
    code, _, errors = report(capsys, definition, "--output", definition / "page.html")
    assert (code, errors) == (2, f"stateyard: {definition}: File exists\n")


def test_results_of_another_definition_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A point that the definition has not, and a history that fits no machine."""
    entry = {"name": "", "type": "STANDARD", "definition": DEFINITION, "runs": {}, "uncertain": []}
    machines = [{**entry, "reached": ["Nowhere"]}]
    bad = write(tmp_path / "bad.json", {"format": "stateyard-coverage-1", "machines": machines})
    assert "got the point 'Nowhere', wanted one of its definition" in report(capsys, bad)[2]
    failed = write(tmp_path / "history.json", history({}, busy))
    assert "no state machine with the states of this history" in report(capsys, failed)[2]
    assert "got no such file" in report(capsys, tmp_path / "none.json")[2]


def test_a_hole_has_an_input_and_answers_that_reach_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In words, and in JSON for programs; a state without a way has none."""
    machine = copy.deepcopy(DEFINITION)
    machine["States"]["Each"] = {
        "Type": "Map",
        "ItemProcessor": {
            "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
            "StartAt": "Child",
            "States": {"Child": {"Type": "Pass", "End": True}},
        },
        "End": True,
    }
    machine["States"]["Ask"]["Next"] = "Each"
    definition = write(tmp_path / "pay.asl.json", machine)
    _, text, _ = report(capsys, definition)
    assert (
        "  NOT REACHED Choice rule of Big?: $.sum > 100, to Ask\n"
        '    reach it by input {}; Pay returns {"sum":101}; Each returns []\n'
    ) in text
    assert '    reach it by input {}; Pay raises Busy once, then returns {"sum":1}\n' in text
    assert text.endswith("NOT REACHED State of Child\n\ntotal: 0.0 % of 12 points\n")
    _, text, _ = report(capsys, definition, "--format", "json")
    (shown,) = json.loads(text)["machines"]
    (rule,) = (point for point in shown["points"] if point["key"] == "Big?/Choices[0]")
    tasks = {"Pay": {"result": {"sum": 101}}, "Each": {"result": []}}
    assert rule["suggestion"] == {"input": {}, "tasks": tasks, "ends": True}


def test_each_format_names_the_holes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """XML is well-formed with any name of a state, annotations have the line, HTML no script."""
    states = {"A <&\"'>\x07": {"Type": "Pass", "Next": "B"}, "B": {"Type": "Succeed"}}
    machine = {"StartAt": next(iter(states)), "States": states}
    definition = write(tmp_path / "odd.asl.json", machine)
    texts = {name: report(capsys, definition, "--format", name)[1] for name in WRITERS}
    suite = ET.fromstring(texts["junit"]).find("testsuite")  # noqa: S314
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures")) == ("3", "3")
    (shown,) = ET.fromstring(texts["cobertura"]).iter("class")  # noqa: S314
    assert shown.get("filename") == str(definition)
    assert [line.get("number") for line in shown.iter("line")] == ["4", "8"]
    assert [line.get("hits") for line in shown.iter("line")] == ["0", "0"]
    assert texts["github"].count("::warning ") == 3
    assert f"file={definition},line=4," in texts["github"]
    assert "A &lt;&amp;" in texts["html"]
    assert "<script" not in texts["html"]
    assert texts["text"].count("NOT REACHED") == 3
    assert json.loads(texts["json"])["percent"] == 0


def test_values_of_a_template_are_placeholders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tests run with other values than DefinitionSubstitutions and ``--param``, a number too."""
    text = json.dumps(DEFINITION).replace(json.dumps(DEFINITION["States"]["Pay"]["Resource"]), "$")
    (tmp_path / "pay.asl.json").write_text(
        text.replace("$,", '"${Pay}", "TimeoutSeconds": ${Limit},', 1), encoding="utf-8"
    )
    template = {
        "Resources": {
            "Pay": {
                "Type": "AWS::Serverless::StateMachine",
                "Properties": {
                    "DefinitionUri": "pay.asl.json",
                    "DefinitionSubstitutions": {"Pay": "arn:aws:states:::sqs:sendMessage"},
                },
            }
        }
    }
    write(tmp_path / "template.json", template)
    ran = copy.deepcopy(DEFINITION)
    ran["States"]["Pay"]["TimeoutSeconds"] = 7
    collection = Collection()
    tested = collection.machine(json.dumps(ran))
    tested.add_runs("engine.run", tested.reader.read(engine.run(ran, 1, {"Pay": small}).events))
    results = tmp_path / "results.json"
    results.write_text(collection.write_text(), encoding="utf-8")
    for source in ("template.json", "pay.asl.json"):
        words = (source, results, "--param", "Limit=30", "--format", "json")
        _, text, errors = report(capsys, *words)
        (shown,) = json.loads(text)["machines"]
        assert shown["runs"] == {"engine.run": 1}, errors


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server without machines."""
    server = Server(tmp_path_factory.mktemp("yard"), options=("--empty",)).start()
    yield server
    server.stop()


@pytest.mark.slow
@pytest.mark.acceptance
def test_executions_of_a_server_count(server: Server, tmp_path: Path) -> None:
    """With the children of a distributed Map; those of an earlier definition are left out."""
    apart = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}
    leaf = {**apart, "StartAt": "Leaf", "States": {"Leaf": {"Type": "Pass", "End": True}}}
    each = {"Type": "Map", "ItemProcessor": leaf, "End": True}
    inner = {**apart, "StartAt": "Each", "States": {"Each": each}}
    states = {"All": {"Type": "Map", "ItemProcessor": inner, "End": True}}
    before = {"StartAt": "Old", "States": {"Old": {"Type": "Succeed"}}}
    client = server.client()
    arn = client.create_state_machine(name="Many", definition=json.dumps(before), roleArn=ROLE)[
        "stateMachineArn"
    ]
    wait_for_end(client, client.start_execution(stateMachineArn=arn, input="[]")["executionArn"])
    definition = {"StartAt": "All", "States": states}
    client.update_state_machine(stateMachineArn=arn, definition=json.dumps(definition))
    started = client.start_execution(stateMachineArn=arn, input="[[], [1], [1, 2]]")["executionArn"]
    assert wait_for_end(client, started)["status"] == "SUCCEEDED"
    text = run(server, "coverage", "Many")
    assert "7 of the server" in text
    assert "NOT REACHED State" not in text
    path = write(tmp_path / "Many.asl.json", {**definition, "Comment": "not deployed"})
    text = run(server, "coverage", str(path), "Many", "--fail-under", "1", code=1)
    assert "Many: 0.0 %" in text
    assert "StateMachineDoesNotExist" in run(server, "coverage", "Nobody", code=2)


def test_limits_that_executions_came_near_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The nearest value of each; a result file keeps them, and an earlier one has none."""
    states = {"P": {"Type": "Pass", "Result": {}, "End": True}}
    definition = write(tmp_path / "pass.asl.json", {"StartAt": "P", "States": states})
    collection = Collection()
    tested = collection.machine(definition.read_text())
    for size in (220_000, 240_000, 230_000, 10):
        events = engine.run({"StartAt": "P", "States": states}, "s" * size).events
        tested.add_runs("engine.run", tested.reader.read(events))
    result = tmp_path / "tests.json"
    result.write_text(collection.write_text(), encoding="utf-8")
    _, text, _ = report(capsys, definition, result)
    lines = [line for line in text.splitlines() if "NEAR A LIMIT" in line]
    assert lines == [
        "  NEAR A LIMIT Execution input: 234 KiB of 256 KiB",
        "  NEAR A LIMIT Input of P: 234 KiB of 256 KiB",
    ]
    _, text, _ = report(capsys, definition, result, "--format", "json")
    (machine,) = json.loads(text)["machines"]
    assert [(limit["state"], limit["value"]) for limit in machine["limits"][1:]] == [("P", 240_002)]
    document = json.loads(result.read_text())
    for entry in document["machines"]:
        del entry["limits"]
    _, text, _ = report(capsys, definition, write(tmp_path / "earlier.json", document))
    assert "NEAR A LIMIT" not in text
    for limit in ({}, {"kind": "size"}, {"kind": "history", "value": 1, "limit": 0, "unit": ""}):
        document["machines"][0]["limits"] = [limit]
        code, _, problem = report(capsys, definition, write(tmp_path / "bad.json", document))
        assert code == 2
        assert "bad.json: machines[0]: got" in problem


def test_a_name_writes_no_line_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A runner of GitHub would take it for a command, and a terminal for a colour."""
    name = "Pay\n::error::paid\x1b[31m"
    states = {name: {"Type": "Pass", "End": True}}
    path = write(tmp_path / "pay.asl.json", {"StartAt": name, "States": states})
    _, lines, _ = report(capsys, path)
    assert "NOT REACHED State of Pay?::error::paid?[31m" in lines
    assert "\x1b" not in lines
