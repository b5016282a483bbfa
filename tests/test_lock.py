"""The lock file covers what ``pyproject.toml`` asks for, and names no index and no machine."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
ASKED = [
    *PROJECT["dependencies"],
    *(text for extra in PROJECT["optional-dependencies"].values() for text in extra),
]


def locked() -> dict[str, list[Requirement]]:
    """Return name -> the lines of the lock file about it: more than one, if markers differ."""
    found: dict[str, list[Requirement]] = {}
    for line in LOCK.splitlines():
        if line and not line.startswith("#"):
            pinned = Requirement(line)
            found.setdefault(canonicalize_name(pinned.name), []).append(pinned)
    return found


@pytest.mark.parametrize("text", sorted(set(ASKED)))
def test_every_dependency_is_locked_in_its_range(text: str) -> None:
    """Whoever changes a range renews the lock; CONTRIBUTING.md says how."""
    asked = Requirement(text)
    lines = locked().get(canonicalize_name(asked.name), [])
    assert lines, f"{asked.name} is not in requirements.lock"
    for line in lines:
        (pin,) = line.specifier
        assert pin.operator == "=="
        assert asked.specifier.contains(pin.version, prereleases=True), str(line)


def test_the_lock_names_no_index_and_no_machine() -> None:
    """It works with every registry: it has names, versions and markers, nothing else."""
    assert not re.search(r"https?:|file:|^-|/", LOCK, re.MULTILINE)


def test_the_image_and_ci_install_with_the_lock() -> None:
    """A constraint that nobody passes on would lock nothing."""
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert "pip install --constraint requirements.lock" in dockerfile
    workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    assert "-c requirements.lock -e '.[test]'" in workflow
