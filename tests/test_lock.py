"""The lock files cover what ``pyproject.toml`` asks for, and name no index and no machine."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
LOCKS = {path.name: path.read_text(encoding="utf-8") for path in ROOT.glob("requirements*.lock")}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
ASKED = {
    "requirements.lock": [
        *PROJECT["dependencies"],
        *(text for extra in EXTRAS.values() for text in extra),
    ],
    "requirements-team.lock": PROJECT["dependencies"],
    "requirements-parquet.lock": EXTRAS["parquet"],
}
_HASH = re.compile(r" *--hash=sha256:[0-9a-f]{64}")


def entries(lock: str) -> list[tuple[Requirement, list[str]]]:
    """Return each requirement of a lock file with its hashes."""
    text = re.sub(r"^#.*\n", "", LOCKS[lock], flags=re.MULTILINE).replace("\\\n", "")
    return [
        (Requirement(line.partition(" --hash")[0]), _HASH.findall(line))
        for line in text.splitlines()
    ]


def locked(lock: str) -> dict[str, list[Requirement]]:
    """Return name -> the requirements of it in a lock file: more than one, if markers differ."""
    requirements: dict[str, list[Requirement]] = {}
    for pinned, _ in entries(lock):
        requirements.setdefault(canonicalize_name(pinned.name), []).append(pinned)
    return requirements


@pytest.mark.parametrize(
    ("lock", "text"), sorted({(lock, text) for lock, texts in ASKED.items() for text in texts})
)
def test_every_dependency_is_locked_in_its_range(lock: str, text: str) -> None:
    """Whoever changes a range renews the locks; CONTRIBUTING.md says how."""
    asked = Requirement(text)
    lines = locked(lock).get(canonicalize_name(asked.name), [])
    assert lines, f"{asked.name} is not in {lock}"
    for line in lines:
        (pin,) = line.specifier
        assert pin.operator == "=="
        assert asked.specifier.contains(pin.version, prereleases=True), str(line)


@pytest.mark.parametrize("lock", sorted(LOCKS))
def test_every_entry_has_hashes(lock: str) -> None:
    """One without would end pip, which then checks all files or none."""
    assert set(LOCKS) == set(ASKED)
    assert not [str(pinned) for pinned, hashes in entries(lock) if not hashes]


@pytest.mark.parametrize("lock", sorted(set(ASKED) - {"requirements.lock"}))
def test_the_smaller_locks_are_parts_of_the_whole_one(lock: str) -> None:
    """The image runs what was tested: the same versions, with the same hashes."""
    whole = {
        (pinned.name, str(pinned.specifier)): hashes
        for pinned, hashes in entries("requirements.lock")
    }
    for pinned, hashes in entries(lock):
        assert whole.get((pinned.name, str(pinned.specifier))) == hashes, str(pinned)


@pytest.mark.parametrize("lock", sorted(LOCKS))
def test_the_lock_names_no_index_and_no_machine(lock: str) -> None:
    """It works with every registry: it has names, versions, markers and hashes, nothing else."""
    assert not re.search(r"https?:|file:|^-|/", LOCKS[lock], re.MULTILINE)


def test_the_image_and_ci_install_with_the_lock() -> None:
    """Hashes that are not required would lock nothing."""
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    required = re.findall(r"pip install --require-hashes .*--requirement (\S+\.lock)", dockerfile)
    assert required == ["requirements-team.lock", "requirements-parquet.lock"]
    workflow = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    whole = "--require-hashes --no-deps -r requirements.lock"
    assert workflow.count(whole) == workflow.count("--no-deps --no-build-isolation -e .") == 2
    assert "[test]" not in workflow
