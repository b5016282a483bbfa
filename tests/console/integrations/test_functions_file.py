"""What ``functions.json`` may say of a function, and what counts for all of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from console.config import setting_shapes
from console.config.environment import SettingError, read_json_file
from console.integrations import function, targets
from tests.console.integrations.function_calls import ARN

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django.fixtures import Settings

WRONG = [
    ({"f": {"handler": "a:f", "memory": "1"}}, "f: memory: got a text, wanted"),
    ({"f": {"handler": "a:f", "timeout": 901}}, "f: timeout: got a number, wanted"),
    (
        {"f": {"handler": "a:f", "interpreter": "x"}},
        "f: interpreter: got an unknown name, wanted one of:",
    ),
    ({"f": {"python": "x"}}, "f: handler: got an object, wanted"),
    ({"f": {"handler": "http://h", "memory": 64}}, "f: got an object, wanted no options beside"),
    ({"f": {"handler": "a:f", "process": "shared", "memory": 64}}, 'wanted "process": "own" with'),
    ({"f": {"handler": "a:f", "environment": {"A B": "x"}}}, "the name of a variable"),
    ({"process": "sharde"}, 'process: got \'sharde\', wanted "own" or "shared"'),
    ({"python": ""}, "python: got '', wanted a text that is not empty"),
    ({"f": 1}, "f: got a number, wanted a text"),
    ({"projects": {"p": {"f": {"handler": 1}}}}, "projects: p: f: handler: got a number"),
]


@pytest.mark.parametrize(("value", "said"), WRONG)
def test_a_wrong_entry_is_said_with_its_place(tmp_path: Path, value: Any, said: str) -> None:
    """Where, what was got, and what is wanted."""
    path = tmp_path / "functions.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    with pytest.raises(SettingError) as caught:
        read_json_file(path, setting_shapes.FUNCTIONS)
    assert said in str(caught.value)


def test_options_of_the_file_and_functions_of_their_names(
    settings: Settings, tmp_path: Path
) -> None:
    """``python`` and ``process`` count for all; a function may have either name."""
    settings.DATA_DIR = tmp_path
    settings.STATEYARD_FUNCTIONS = {
        "python": "python3.9",
        "process": "shop:process",
        "a": "m:a",
        "b": {"handler": "m:b", "process": "shared"},
        "projects": {"p": {"process": "shared", "c": "m:c", "d": {"handler": "m:d", "memory": 64}}},
    }
    setting_shapes.FUNCTIONS.validate_python(settings.STATEYARD_FUNCTIONS, strict=True)

    def options(name: str, project: str = "") -> Any:
        definition = targets.find_function(name, ARN + name, targets.MachineKey(project))
        assert definition is not None
        return definition.options

    assert options("a").python == "python3.9"
    assert options("process").process == ""
    assert function.shares_process(options("b"))
    assert function.shares_process(options("c", "p"))
    assert not function.shares_process(options("d", "p"))
    assert targets.find_function("python", ARN + "python", targets.NOBODY) is None
    settings.STATEYARD_FUNCTIONS, settings.STATEYARD_FUNCTION_PROCESSES = {}, 0
    assert function.shares_process(targets.read_function("m:a", "", {"python": "m:python"}).options)
