"""Definitions in JSON, YAML and projects are checked; placeholders are no mistakes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from console import command_line
from tests.features.deploy import projects

if TYPE_CHECKING:
    from pathlib import Path

WRONG = """
StartAt: A
States:
  A:
    Type: Pass
    Next: Nowhere
"""


def lint(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Run the command; return exit code, stdout and stderr."""
    with pytest.raises(SystemExit) as end:
        command_line.main(["lint", *map(str, words)])
    told = capsys.readouterr()
    return int(end.value.code or 0), told.out, told.err


def test_yaml_has_its_own_lines(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Not those of the JSON that is made of it."""
    path = tmp_path / "wrong.asl.yaml"
    path.write_text(WRONG, "utf-8")
    code, shown, _ = lint(capsys, path, "--format", "github")
    assert code == 1
    assert f"::error file={path},line=6,col=11::" in shown


def test_placeholders_are_known(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """As values, inside of texts, and bare where a number belongs; other mistakes are found."""
    text = """{"StartAt": "A", "States": {
      "A": {"Type": "Task", "Resource": "${Function.Arn}", "TimeoutSeconds": "${T}", "Next": "B"},
      "B": {"Type": "Wait", "Seconds": ${Pause}, "Next": "%s"},
      "C": {"Type": "Succeed"}}}"""
    path = tmp_path / "m.asl.json"
    path.write_text(text % "C", "utf-8")
    assert lint(capsys, path) == (0, f"{path}: 0 errors\n", "")
    path.write_text(text % "Nowhere", "utf-8")
    code, shown, _ = lint(capsys, path, "--format", "json")
    assert code == 1
    first = json.loads(shown)["problems"][0]
    assert (first["code"], first["line"]) == ("MISSING_TRANSITION_TARGET", 3)


def test_projects_and_folders_are_searched(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Each state machine of a template has a report; a folder has those of its files."""
    folder = projects.sam_project(tmp_path / "sam")
    code, shown, _ = lint(capsys, folder, "--param", "TableName=t")
    assert code == 0
    assert "template.yaml: Orders: 0 errors" in shown
    assert "template.yaml: Quick: 0 errors" in shown
    (folder / "template.yaml").unlink()
    (folder / "wrong.asl.yml").write_text(WRONG, "utf-8")
    code, shown, _ = lint(capsys, folder)
    assert code == 1
    assert "orders.asl.yaml: 0 errors" in shown
    assert "wrong.asl.yml: 2 errors" in shown


def test_a_folder_is_never_passed_over(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Templates below a folder are checked, as deploy reads them; a folder without any fails."""
    code, _, told = lint(capsys, tmp_path)
    assert (code, told.startswith(f"stateyard: {tmp_path}: got no definition")) == (2, True)
    folder = projects.sam_project(tmp_path / "infra" / "sam")
    code, shown, _ = lint(capsys, tmp_path, "--param", "TableName=t")
    assert code == 0
    assert f"{folder / 'template.yaml'}: Orders: 0 errors" in shown


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("StartAt: [", "no YAML"),
        ("!!python/object/apply:os.system ['true']", "no YAML"),
    ],
)
def test_what_is_no_yaml_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, expected: str
) -> None:
    """The exit code is that of wrong use, and nothing in a file is run."""
    path = tmp_path / "x.asl.yaml"
    path.write_text(text, "utf-8")
    code, _, told = lint(capsys, path)
    assert code == 2
    assert expected in told
    assert str(path) in told


def test_the_last_of_two_equal_keys_counts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """As SAM has it: the definition is checked, and a warning names the line."""
    path = tmp_path / "x.asl.yaml"
    path.write_text("StartAt: A\nStartAt: B\nStates: {B: {Type: Succeed}}\n", "utf-8")
    code, shown, told = lint(capsys, path)
    assert (code, shown) == (0, f"{path}: 0 errors\n")
    assert told == (
        f"stateyard: warning: {path}: line 2: the key 'StartAt' stands twice; the last one counts\n"
    )


@pytest.mark.parametrize("place", ["definition", "states", "pass", "processor"])
def test_a_retry_outside_its_state_is_explained(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, place: str
) -> None:
    """Beside the states, among them, in a state that cannot fail, in a processor."""
    passes = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
    each = {"Type": "Map", "ItemProcessor": passes, "End": True}
    body = {"StartAt": "M", "States": {"M": each}}
    parents: dict[str, Any] = {
        "definition": body,
        "states": body["States"],
        "pass": passes["States"]["P"],
        "processor": passes,
    }
    parents[place]["Retry"] = [{"ErrorEquals": ["States.ALL"]}]
    path = tmp_path / "m.asl.json"
    path.write_text(json.dumps(body), "utf-8")
    code, shown, _ = lint(capsys, path)
    assert code == 1
    assert "Retry belongs inside the Task, Parallel or Map state that it is for" in shown


def test_a_missing_file_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """In one line."""
    code, _, told = lint(capsys, tmp_path / "none.asl.json")
    assert (code, told) == (2, f"stateyard: {tmp_path}/none.asl.json: No such file or directory\n")
