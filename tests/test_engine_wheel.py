"""The engine as a distribution of its own holds what it needs, and nothing of the server."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
import venv
import zipfile
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
ENGINE = ROOT / "engine"
USE = """
import importlib.util, sys
assert importlib.util.find_spec("django") is None
assert importlib.util.find_spec("console") is None
"""


def project(path: Path) -> dict[str, object]:
    """Return what a pyproject.toml says of its distribution."""
    table: dict[str, object] = tomllib.loads(path.read_text(encoding="utf-8"))["project"]
    return table


def needs() -> list[str]:
    """Return the requirements of the engine alone."""
    listed = project(ENGINE / "pyproject.toml")["dependencies"]
    assert isinstance(listed, list)
    return listed


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel as the documentation says, without an index."""
    folder = tmp_path_factory.mktemp("engine-wheel")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation"]
    subprocess.run(
        [*command, "--no-index", "-w", str(folder), str(ENGINE)], check=True, capture_output=True
    )
    (file,) = folder.glob("stateyard_engine-*.whl")
    return file


def _linked_dependencies(folder: Path) -> None:
    """Put what the engine requires into a folder, and what that requires, and nothing else."""
    todo, seen = needs(), set()
    while todo:
        requirement = Requirement(todo.pop())
        if requirement.name in seen or (requirement.marker and not requirement.marker.evaluate()):
            continue
        seen.add(requirement.name)
        installed = distribution(requirement.name)
        todo += installed.requires or []
        for top in {file.parts[0] for file in installed.files or [] if ".." not in file.parts}:
            place = folder / top
            if top != "__pycache__" and not place.exists():
                place.symlink_to(Path(str(installed.locate_file(top))).resolve())


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Install it into an empty environment; return the Python of that."""
    folder = tmp_path_factory.mktemp("engine-installed")
    venv.create(folder, with_pip=False)
    executable = str(folder / "bin/python")
    command = [sys.executable, "-m", "pip", "--python", executable, "install", "-q", "--no-deps"]
    subprocess.run([*command, "--no-index", str(wheel)], check=True, capture_output=True)
    dependencies = folder / "dependencies"
    dependencies.mkdir()
    _linked_dependencies(dependencies)
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(f"{dependencies}\n", "utf-8")
    return executable


def _run(python: str, code: str, folder: Path) -> None:
    done = subprocess.run(
        [python, "-I", "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_wheel_has_the_engine_and_nothing_else(wheel: Path) -> None:
    """Each module, the license, and no file of the server."""
    names = set(zipfile.ZipFile(wheel).namelist())
    modules = {file.relative_to(ROOT).as_posix() for file in ENGINE.rglob("*.py")}
    assert modules - names == set()
    rest = {name for name in names - modules if ".dist-info/" not in name}
    assert rest == {"engine/LICENSE"}


@pytest.mark.slow
def test_the_readme_of_the_engine_is_true(python: str, tmp_path: Path) -> None:
    """Its example runs where neither Django nor the server is."""
    text = (ENGINE / "README.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    _run(python, USE + example, tmp_path)


@pytest.mark.slow
def test_all_of_the_language_is_there(python: str, tmp_path: Path) -> None:
    """Paths with filters, intrinsic functions, JSONata within a child process, checks."""
    code = """
import engine
path = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True, "Parameters": {
    "big.$": "$.n[?(@ > 1)]", "text.$": "States.Format('{}!', $.n[0])"}}}}
assert engine.run(path, {"n": [1, 2, 3]}).output == {"big": [2, 3], "text": "1!"}
query = {"QueryLanguage": "JSONata", "StartAt": "P", "States": {"P": {"Type": "Pass", "End": True,
    "Output": "{% $reduce([1..$states.input], function($a, $b) {$a + $b}) %}"}}}
assert engine.run(query, 10).output == 55
match = {"QueryLanguage": "JSONata", "StartAt": "P", "States": {"P": {"Type": "Pass", "End": True,
    "Output": "{% $contains($states.input, /b+/) %}"}}}
assert engine.run(match, "abbc").output is True
assert engine.check('{"StartAt": "A", "States": {}}')
"""
    _run(python, USE + code, tmp_path)


def test_version_and_requirements_are_those_of_the_whole() -> None:
    """What the engine imports is what it requires, as the whole distribution does."""
    whole, alone = project(ROOT / "pyproject.toml"), project(ENGINE / "pyproject.toml")
    assert alone["version"] == whole["version"]
    assert alone["requires-python"] == whole["requires-python"]
    listed = whole["dependencies"]
    assert isinstance(listed, list)
    assert set(needs()) <= set(listed)
    imported = {
        name.split(".")[0]
        for path in ENGINE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in _imported_names(node)
    }
    distributions = packages_distributions()
    foreign = imported - set(sys.stdlib_module_names) - {"engine"}
    assert {distributions[name][0] for name in foreign} == {
        Requirement(text).name for text in needs()
    }


def _imported_names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module] if isinstance(node, ast.ImportFrom) and node.module else []


def test_every_extra_is_documented() -> None:
    """With the distribution of the engine beside them."""
    text = (ROOT / "docs/how-to/install.md").read_text(encoding="utf-8")
    extras = project(ROOT / "pyproject.toml")["optional-dependencies"]
    assert isinstance(extras, dict)
    missing = [name for name in extras if f"| `stateyard[{name}]` |" not in text]
    assert missing == []
    assert "stateyard-engine" in text
