"""The version of the running server: a wheel's own, or a checkout's distance from the last tag."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from console.config import version
from console.config.version import server_version

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GIT = ("git", "-c", "user.name=Test", "-c", "user.email=test@example.com")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a repository with one commit and without tags, that the server runs from."""
    monkeypatch.setattr(version, "_ROOT", tmp_path)
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "stateyard"\nversion = "0.3.0"\n')
    _git(tmp_path, "init", "--quiet")
    _git(tmp_path, "add", "pyproject.toml")
    _commit(tmp_path)
    monkeypatch.setattr(version, "_installed_version", lambda: "0.2.0")
    return tmp_path


@pytest.fixture(autouse=True)
def _forget_version() -> Iterator[None]:
    """Leave no version of a test's checkout to the next test."""
    server_version.cache_clear()
    yield
    server_version.cache_clear()


def _git(folder: Path, *words: str) -> str:
    command = [*GIT, *words]
    return subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def _commit(folder: Path) -> str:
    _git(folder, "commit", "--quiet", "--allow-empty", "--message", "Change")
    return _git(folder, "rev-parse", "--short=7", "HEAD")


def test_a_clone_without_tags_names_its_commit(checkout: Path) -> None:
    """The number is that of pyproject.toml, not of an editable install that is older."""
    commit = _git(checkout, "rev-parse", "--short=7", "HEAD")
    assert server_version() == f"stateyard 0.3.0+{commit}"


@pytest.mark.parametrize("tag", ["0.3.0", "v0.3.0"])
def test_commits_after_a_tag_are_counted(checkout: Path, tag: str) -> None:
    """Two commits past 0.3.0 are on the way to 0.3.1."""
    _git(checkout, "tag", "--annotate", tag, "--message", tag)
    _commit(checkout)
    commit = _commit(checkout)
    assert server_version() == f"stateyard 0.3.1.dev2+{commit}"


def test_a_tagged_commit_is_the_release(checkout: Path) -> None:
    """A tag that names no release does not count."""
    _git(checkout, "tag", "--annotate", "0.3.0", "--message", "0.3.0")
    _git(checkout, "tag", "--annotate", "nightly", "--message", "nightly")
    assert server_version() == "stateyard 0.3.0"


def test_git_is_asked_once(checkout: Path) -> None:
    """A running server keeps the version that it started with."""
    before = server_version()
    _commit(checkout)
    assert server_version() == before


def test_another_repository_in_the_environment_is_ignored(
    checkout: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A git hook that starts the server sets GIT_DIR to its own repository."""
    commit = _git(checkout, "rev-parse", "--short=7", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(tmp_path_factory.mktemp("other")))
    assert server_version() == f"stateyard 0.3.0+{commit}"


@pytest.mark.usefixtures("checkout")
def test_without_git_the_installed_version_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host need not have git."""
    monkeypatch.setenv("PATH", "")
    assert server_version() == "stateyard 0.2.0"


@pytest.mark.parametrize(
    ("revision", "shown"), [(None, "0.3.0"), ("", "0.3.0"), ("abc1234\n", "0.3.0+abc1234")]
)
def test_an_image_has_the_version_of_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, revision: str | None, shown: str
) -> None:
    """It is neither a checkout nor installed; its builder may name the revision."""
    monkeypatch.setattr(version, "_ROOT", tmp_path)
    monkeypatch.setattr(version, "_installed_version", lambda: "")
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "0.3.0"\n')
    if revision is not None:
        (tmp_path / "revision").write_text(revision)
    assert server_version() == f"stateyard {shown}"


def test_a_damaged_repository_stops_no_server(checkout: Path) -> None:
    """Git fails, and the installed version counts."""
    (checkout / ".git" / "HEAD").unlink()
    assert server_version() == "stateyard 0.2.0"


@pytest.mark.parametrize(
    ("installed", "shown"), [("0.3.0", "stateyard 0.3.0"), ("", "stateyard, not installed")]
)
def test_a_wheel_has_its_own_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, installed: str, shown: str
) -> None:
    """A folder without .git is no checkout, even inside another repository."""
    _git(tmp_path, "init", "--quiet")
    monkeypatch.setattr(version, "_ROOT", tmp_path / "site-packages")
    monkeypatch.setattr(version, "_installed_version", lambda: installed)
    assert server_version() == shown
