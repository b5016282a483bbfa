"""A bad file of any format ends in lines that name file and place, never in a traceback."""

from __future__ import annotations

import copy
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from console import command_line
from console.cli.account import Account
from console.cli.documents import SourceError, parse_document
from console.features.deploy.discovery import read_paths
from console.features.deploy.parameters import Parameters
from tests.features.deploy import projects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def _terraform(folder: Path) -> Path:
    folder.mkdir()
    return projects.terraform_state(folder / "state.json").parent


ODD: tuple[Any, ...] = (None, 7, "text", [{"a": [{}]}])
"""What stands in the place of every part of a file in turn."""
FORMATS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "sam": (projects.sam_project, "template.yaml"),
    "serverless": (projects.serverless_project, "serverless.yml"),
    "cdk template": (projects.cdk_project, "Shop.template.json"),
    "cdk manifest": (projects.cdk_project, "manifest.json"),
    "cdk assets": (projects.cdk_project, "Shop.assets.json"),
    "cdk metadata": (projects.cdk_project, "Shop.metadata.json"),
    "terraform": (_terraform, "state.json"),
}


BOMB = "a0: &a0 [1]\n" + "".join(
    f"a{number}: &a{number} [{', '.join([f'*a{number - 1}'] * 9)}]\n" for number in range(1, 9)
)
"""Aliases of aliases: 43 million values in 400 characters."""


def mutations(document: Any) -> Iterator[Any]:
    """Yield a document with each of its parts replaced by two of the odd values."""
    for number, way in enumerate(list(ways(document))):
        for odd in (ODD[number % len(ODD)], ODD[(number + 1) % len(ODD)]):
            changed = copy.deepcopy(document)
            parent = changed
            for key in way[:-1]:
                parent = parent[key]
            parent[way[-1]] = odd
            yield changed


def ways(document: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the keys that lead to each part of a document."""
    parts: Any = ()
    if isinstance(document, dict):
        parts = document.items()
    elif isinstance(document, list):
        parts = enumerate(document)
    for key, part in parts:
        yield (*before, key)
        yield from ways(part, (*before, key))


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_no_part_of_a_file_can_end_in_a_traceback(tmp_path: Path, name: str) -> None:
    """Each part of a project's file is replaced in turn: it is read, or refused with its file."""
    write, file = FORMATS[name]
    folder = write(tmp_path / "project")
    path = folder / file
    document = parse_document(path.read_text("utf-8"), str(path))
    if name == "sam":  # JSON is read faster
        path.unlink()
        path = folder / "template.json"
    entry = path if name == "terraform" else folder
    refused = 0
    for changed in mutations(document):
        path.write_text(json.dumps(changed), "utf-8")  # which YAML reads, too
        try:
            read_paths([entry], Account(), Parameters({"TableName": "t"}))
        except SourceError as error:
            refused += 1
            for line in str(error).splitlines():
                assert str(folder) in line or line.startswith("--param TableName"), line
    assert refused > 3


@pytest.mark.parametrize(
    "text",
    [
        "a: !!float x",
        "a: !!int ''",
        "a: !!timestamp x",
        "a: !!binary '*'",
        "a: &a [*a]",
        "[1]: 2",
        "? {a: 1}\n: 2",
        "a:\n  " + "- " * 600 + "1",
        BOMB,
        "\x00",
    ],
)
@pytest.mark.parametrize("begin", ["Resources: {A: {Type: 'A::B'}}\n", "StartAt: A\nStates: {}\n"])
def test_odd_yaml_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], begin: str, text: str
) -> None:
    """Values that fit no tag, aliases of themselves, a text that means gigabytes."""
    path = tmp_path / "template.yaml"
    path.write_text(begin + text, "utf-8")
    with pytest.raises(SystemExit) as ended:
        command_line.main(["lint", str(path)])
    told = capsys.readouterr()
    assert ended.value.code in (0, 1, 2)
    assert "Traceback" not in told.err
    if ended.value.code:
        assert str(path) in told.err + told.out


@pytest.mark.parametrize("content", [b"\xff\xfe", b"{", b"[]", b"null", b"7", b'"x"', b""])
@pytest.mark.parametrize(
    "name", ["template.yaml", "template.json", "serverless.yml", "manifest.json", "m.asl.yaml"]
)
def test_a_file_that_is_no_object_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    """Also where a folder is searched for it."""
    path = tmp_path / name
    path.write_bytes(content)
    for entry in (path, tmp_path):
        with pytest.raises(SourceError, match=re.escape(str(tmp_path))):
            read_paths([entry], Account(), Parameters())


def test_events_of_sam_as_a_list_are_named(tmp_path: Path) -> None:
    """SAM has an object there; a list of events was a traceback."""
    machine = {
        "Type": "AWS::Serverless::StateMachine",
        "Properties": {
            "Definition": {"StartAt": "A", "States": {"A": {"Type": "Succeed"}}},
            "Events": [{"Type": "Schedule"}],
        },
    }
    path = tmp_path / "template.yaml"
    path.write_text(yaml.safe_dump({"Resources": {"M": machine}}), "utf-8")
    with pytest.raises(SourceError) as refused:
        read_paths([path], Account(), Parameters())
    assert str(refused.value) == f"{path}: M.Events: got a list, wanted an object"
