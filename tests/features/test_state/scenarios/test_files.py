"""Recorded executions in files: what a folder has, encodings, and files that are none."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import CommandError, call_command

from console.features.test_state.scenarios.files import (
    RecordingError,
    UnfinishedError,
    list_recordings,
    read_scenario,
)
from console.recordings.printed import read_printed
from console.store.executions import imports
from tests.features.test_state.scenarios.helpers import (
    ANSWERS,
    ORDERS,
    changed,
    printed,
    write_files,
)

if TYPE_CHECKING:
    from pathlib import Path

    from console.models import Project

INPUT = {"total": 120, "items": [1, 2]}


@pytest.fixture
def texts() -> dict[str, str]:
    """Return the three texts of an execution."""
    return printed(ORDERS, INPUT, ANSWERS)


def test_a_folder_has_many(tmp_path: Path, texts: dict[str, str]) -> None:
    """Histories below it with their neighbours, and scenarios; other files are left alone."""
    write_files(tmp_path / "orders", texts, "a")
    write_files(tmp_path / "orders", {**texts, "execution": ""}, "b")
    (tmp_path / "orders" / "b.execution.json").unlink()
    (tmp_path / "orders.asl.json").write_text(json.dumps(ORDERS), encoding="utf-8")
    files = list_recordings(tmp_path)
    assert [file.name for file in files] == ["a.history.json", "b.history.json"]
    scenario = read_scenario(files[0])
    assert {**read_scenario(files[1])["Scenario"]["Expected"]} == scenario["Scenario"]["Expected"]
    (tmp_path / "c.scenario.json").write_text(json.dumps(scenario), encoding="utf-8")
    assert read_scenario(list_recordings(tmp_path)[0]) == scenario


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_powershell_wrote_them(tmp_path: Path, texts: dict[str, str], encoding: str) -> None:
    """A byte order mark and Windows line ends change nothing."""
    history = write_files(tmp_path, texts)
    expected = read_scenario(history)
    for file in tmp_path.iterdir():
        lines = json.dumps(json.loads(file.read_text("utf-8")), indent=2).replace("\n", "\r\n")
        file.write_bytes(lines.encode(encoding))
    assert read_scenario(history) == expected


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"history": "{"}, "run-7.history.json: The history: it is not JSON"),
        ({"history": '{"events": []}'}, "run-7.history.json: The history: it has no “events”"),
        ({"machine": "{}"}, "run-7.history.json: The state machine: it has neither"),
        ({"machine": "[]"}, "run-7.history.json: The state machine is not a JSON object but list"),
    ],
)
def test_a_bad_file_is_named(
    tmp_path: Path, texts: dict[str, str], change: dict[str, str], problem: str
) -> None:
    """In one sentence, with what is wrong."""
    file = write_files(tmp_path, {**texts, **change})
    with pytest.raises(RecordingError, match=r".") as refused:
        read_scenario(file)
    assert problem in str(refused.value)


def test_what_has_no_end_is_refused(tmp_path: Path, texts: dict[str, str]) -> None:
    """So is a payload that the CLI cut, a definition that cannot run, and an empty folder."""
    events = json.loads(texts["history"])["events"]
    cases: list[tuple[dict[str, Any], str]] = [
        ({"history": json.dumps({"events": events[:4]})}, "has not ended"),
        ({"history": texts["history"].replace('"\\"fine\\""', '"\\"fi"')}, "a payload is cut"),
        ({"history": json.dumps(without_data(texts))}, "a payload is cut, left out"),
        ({"machine": json.dumps({"definition": '{"StartAt": "X"}'})}, "cannot be run"),
    ]
    for number, (change, problem) in enumerate(cases):
        file = write_files(tmp_path / str(number), {**texts, **change})
        with pytest.raises((RecordingError, UnfinishedError), match=problem):
            read_scenario(file)
    (tmp_path / "empty").mkdir()
    with pytest.raises(RecordingError, match="got no recorded execution"):
        list_recordings(tmp_path / "empty")


def without_data(texts: dict[str, str]) -> dict[str, Any]:
    """Return a history as ``get-execution-history --no-include-execution-data`` prints it."""
    history: dict[str, Any] = json.loads(texts["history"])
    for event in history["events"]:
        for details in event.values():
            for name in ("input", "output", "parameters") if isinstance(details, dict) else ():
                details.pop(name, None)
    return history


def test_what_still_runs_is_left_out(
    tmp_path: Path, texts: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named and not counted, and the exit code is that of the others."""
    events = json.loads(texts["history"])["events"]
    write_files(tmp_path, texts, "a")
    write_files(tmp_path, {**texts, "history": json.dumps({"events": events[:4]})}, "b")
    assert replay(str(tmp_path), "--format", "table") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].endswith("b.history.json  left out, it has not ended")
    assert lines[-1] == "1 of 2 the same"


def replay(*words: str) -> int:
    """Run the command; return its exit code."""
    try:
        call_command("replay", *words)
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_a_table_of_a_folder(
    tmp_path: Path, texts: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """A row for each difference, the count, and exit code 1; 0 if all are the same."""
    write_files(tmp_path / "all", texts)
    assert replay(str(tmp_path / "all"), "--format", "table") == 0
    assert capsys.readouterr().out.endswith("same path, same output\n1 of 1 the same\n")
    definition = tmp_path / "new.json"
    definition.write_text(json.dumps(changed(ORDERS, "States/Approve/Next", "Ship")), "utf-8")
    words = (str(tmp_path / "all"), "--definition", str(definition))
    assert replay(*words, "--format", "table") == 1
    table = capsys.readouterr().out.splitlines()
    assert table[0].split() == ["execution", "where", "got", "wanted"]
    rows = [re.split(" {2,}", row)[1:] for row in table[1:-1]]
    assert rows[:2] == [
        ["input of Ship $.boxes", "nothing", '[{"box":1},{"box":2}]'],
        ["path, state 4 (after Approve)", "Ship", "Each"],
    ]
    assert table[-1] == "0 of 1 the same"
    assert {line.find("  ") for line in table[1:-1]} == {table[0].index("where") - 2}
    assert replay(*words, "--format", "json", "--no-inputs") == 1
    (entry,) = json.loads(capsys.readouterr().out)
    assert entry["same"] is False
    assert replay(*words, "--format", "junit", "--no-inputs") == 1
    written = capsys.readouterr().out
    assert '<testsuite name="replay" tests="1" failures="1" skipped="0">' in written
    assert '<failure message="path, state 4 (after Approve): got ' in written
    assert [each["where"] for each in entry["differences"]] == [
        "path, state 4 (after Approve)",
        "path of Each[0], state 1",
        "path of Each[1], state 1",
    ]


def test_the_last_imports_are_replayed(
    project: Project, tmp_path: Path, texts: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """The newest first, of one state machine, with what the project hides, which is not shown."""
    project.masked = "$.by"
    project.save()
    for name in ("one", "two", "three"):
        described = json.dumps({**json.loads(texts["execution"]), "name": name})
        imports.import_execution(
            project, read_printed(texts["history"], texts["machine"], described)
        )
    assert replay("--imports", "2", "--machine", "orders") == 0
    assert capsys.readouterr().out.splitlines() == [
        f"orders/{name}: same path, same output" for name in ("three", "two")
    ]
    definition = tmp_path / "new.json"
    other = changed(ORDERS, "States/Approve/ResultPath", "$.who")
    definition.write_text(json.dumps(other), encoding="utf-8")
    assert replay("--imports", "1", "--definition", str(definition)) == 1
    written = capsys.readouterr().out
    assert "input of Ship $.by: got nothing, wanted" in written
    assert "ada" not in written


def test_a_long_hidden_value_is_not_shown_in_part(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A difference has the first 200 characters only, in which no hidden value is found."""
    project.masked = "$.by"
    project.save()
    secret = "a line of a key\n" * 20
    texts = printed(ORDERS, INPUT, {**ANSWERS, "Approve": lambda _: secret})
    imports.import_execution(project, read_printed(*texts.values()))
    definition = tmp_path / "new.json"
    other = changed(ORDERS, "States/Approve/ResultPath", "$.who")
    definition.write_text(json.dumps(other), encoding="utf-8")
    assert replay("--imports", "1", "--definition", str(definition)) == 1
    written = capsys.readouterr().out
    assert "input of Ship $.by: got nothing, wanted (masked)" in written
    assert "a line" not in written


@pytest.mark.parametrize("secret", ["7", "yes"])
def test_a_short_hidden_value_is_not_shown(
    project: Project, tmp_path: Path, capsys: pytest.CaptureFixture[str], secret: str
) -> None:
    """Neither at its place nor under another name, nor a new value at its place."""
    project.masked = "$.by"
    project.save()
    texts = printed(ORDERS, INPUT, {**ANSWERS, "Approve": lambda _: secret})
    imports.import_execution(project, read_printed(*texts.values()))
    definition = tmp_path / "new.json"
    by = {"Type": "Pass", "Result": "8", "ResultPath": "$.by", "Next": "Ship"}
    other = changed(ORDERS, "States/Approve/ResultPath", "$.who")
    other = changed(changed(other, "States/By", by), "States/Each/Next", "By")
    definition.write_text(json.dumps(other), encoding="utf-8")
    assert replay("--imports", "1", "--definition", str(definition)) == 1
    written = capsys.readouterr().out
    assert "input of Ship $.by: got (masked), wanted (masked)" in written
    assert "input of Ship $.who: got (masked), wanted nothing" in written
    assert not {f'"{secret}"', '"8"'} & {*re.findall(r'"\w+"', written)}


def test_placeholders_of_a_definition_are_filled(
    tmp_path: Path, texts: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """From ``--param``; a value that is missing or that nothing asks for is refused."""
    history = write_files(tmp_path / "saved", texts)
    definition = tmp_path / "new.asl.json"
    resource = ORDERS["States"]["Check"]["Resource"]
    other = changed(ORDERS, "States/Check/Resource", "${Check}")
    definition.write_text(json.dumps(other), encoding="utf-8")
    words = str(history), "--definition", str(definition)
    assert replay(*words, "--param", f"Check={resource}") == 0
    assert "same path, same output" in capsys.readouterr().out
    for more, problem in (
        ((), "wanted --param Check=VALUE"),
        (("--param", f"Check={resource}", "--param", "Other=1"), "no file asks for"),
    ):
        with pytest.raises(CommandError, match=problem) as refusal:
            call_command("replay", *words, *more)
        assert refusal.value.returncode == 2


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((), "wanted files or --imports N"),
        (("x.json", "--imports", "1"), "wanted files or --imports N"),
        (("--imports", "-1"), "wanted files or --imports N"),
        (("x.json", "--machine", "m"), "wanted --imports N"),
        (("--imports", "1", "--machine", "nobody"), "got no matching import"),
        (("nowhere.json",), "nowhere.json"),
        (("x.json", "--param", "A=1"), "wanted the file with the parameter"),
    ],
)
def test_wrong_words_are_refused(project: Project, words: tuple[str, ...], problem: str) -> None:
    """In one sentence."""
    del project
    with pytest.raises(CommandError, match=problem) as refusal:
        call_command("replay", *words)
    assert refusal.value.returncode == 2
    assert "Errno" not in str(refusal.value)
