"""The store's packages import one way, callers use public modules, and a start is short."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from console import store
from console.db import rows, writer
from console.store.events import outbox
from console.store.executions.start import start_execution
from tests.architecture import dotted, survey
from tests.console.store.helpers import WAIT, create
from tests.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.models import Project

ROOT = Path(__file__).parents[3]
STORE = ROOT / "console/store"
MODULES = {
    f"console.store.{package}.{path.stem}"
    for package in store.PACKAGES
    for path in (STORE / package).glob("*.py")
    if path.stem != "__init__"
}
MOST_FILES = 15
"""Of the engine and the console, from the call in the store to the committed rows of a start."""


def imported(path: Path) -> Iterator[str]:
    """Yield the store's modules that a file imports, or takes something from."""
    for node in ast.walk(survey()[dotted(path)].tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            yield from (name for name in names if name in MODULES)


@pytest.mark.parametrize("package", store.PACKAGES)
def test_packages_import_one_way(package: str) -> None:
    """A package imports itself and the packages before it."""
    allowed = store.PACKAGES[: store.PACKAGES.index(package) + 1]
    for path in (STORE / package).glob("*.py"):
        for name in imported(path):
            assert name.split(".")[2] in allowed, f"{path.relative_to(ROOT)} imports {name}"


def test_every_folder_is_a_package() -> None:
    """A new folder has its place in the order, and no module stands beside the packages."""
    folders = {path.name for path in STORE.iterdir() if path.is_dir()} - {"__pycache__"}
    assert folders == set(store.PACKAGES) == set(store.PUBLIC)
    assert [path.name for path in STORE.glob("*.py")] == ["__init__.py"]


def test_other_packages_use_public_modules() -> None:
    """What is not listed may change without a look at the worker, the API and the pages."""
    public = {
        f"console.store.{package}.{name}"
        for package, names in store.PUBLIC.items()
        for name in names
    }
    assert public <= MODULES
    used: set[str] = set()
    for path in (ROOT / "console").rglob("*.py"):
        if not path.is_relative_to(STORE) and "migrations" not in path.parts:
            used |= set(imported(path))
    assert used == public


@pytest.mark.parametrize("name", [None, "named"])
def test_a_start_enters_few_files(
    project: Project, name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who follows a start from the call to the commit opens so many files, and no more."""
    monkeypatch.setattr(rows, "_KEYS_S", PATIENCE_S)  # the first start takes keys for both
    monkeypatch.setattr(outbox, "_KEPT_S", PATIENCE_S)  # the first start asks for the rules
    rows._keys.clear()
    machine = create(project, WAIT)
    start_execution(machine)  # fills the caches, as in a server that has run for a while
    files: set[str] = set()

    def trace(frame: Any, event: str, _: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith((f"{ROOT}/console/", f"{ROOT}/engine/")):
            files.add(path.removeprefix(f"{ROOT}/"))

    def trace_committing(function: Any) -> None:
        if writer.is_embedded():  # there a thread of its own commits
            writer.write(lambda: sys.setprofile(function))

    trace_committing(trace)
    sys.setprofile(trace)
    try:
        start_execution(machine, name=name)
    finally:
        sys.setprofile(None)
        trace_committing(None)
    if not writer.is_embedded():  # there a thread gives its connection back while it waits
        files.discard("console/db/postgres.py")
    assert len(files) <= MOST_FILES, "\n".join(sorted(files))
