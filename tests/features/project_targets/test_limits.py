"""No owner reaches a host or a file that the operator has not allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from console.features.project_targets import entries, folders

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django.fixtures import Settings


@pytest.mark.parametrize(
    ("allowed", "hosts_of_server", "url", "refused"),
    [
        (["*"], [], "http://127.0.0.1:5000", ""),
        (["*"], ["yard.example.com"], "http://moto:5000", ""),
        (["*"], ["yard.example.com"], "http://127.0.0.1:5000", "the machine of the server itself"),
        (["*"], ["yard.example.com"], "http://LOCALHOST.:5000", "the machine of the server itself"),
        (["*"], ["yard.example.com"], "http://x.localhost", "the machine of the server itself"),
        (["*"], ["yard.example.com"], "http://[::1]:5000", "the machine of the server itself"),
        (["*", "127.0.0.1"], ["yard.example.com"], "http://127.0.0.1:5000", ""),
        ([".example.com"], ["y"], "https://api.example.com", ""),
        ([".example.com"], ["y"], "https://api.example.org", "the operator allows .example.com"),
        (["*"], [], "http://ana:secret@moto", "no user and no password"),
    ],
)
def test_hosts(
    settings: Settings, allowed: list[str], hosts_of_server: list[str], url: str, refused: str
) -> None:
    """Loopback takes the operator's word on a server that others reach."""
    settings.STATEYARD_TARGET_HOSTS, settings.STATEYARD_HOSTS = allowed, hosts_of_server
    refusal = entries.refusal_of_address(url)
    assert refused in refusal
    assert bool(refusal) == bool(refused)
    assert "secret" not in refusal


@pytest.fixture
def root(tmp_path: Path, settings: Settings) -> Path:
    """Return an allowed folder with a module, beside one that is not allowed."""
    root, outside = tmp_path / "allowed", tmp_path / "outside"
    (root / "pack").mkdir(parents=True)
    outside.mkdir()
    source = (
        "import shutil\nfrom shutil import rmtree\n\n\ndef charge(event, _):\n    return event\n"
    )
    for path in (root / "shop.py", root / "pack" / "inner.py", outside / "shop.py"):
        path.write_text(source)
    (root / "json.py").write_text(source)
    (root / "linked.py").symlink_to(outside / "shop.py")
    (root / "link").symlink_to(outside)
    (root / "broken.py").write_text("def charge(:\n")
    settings.STATEYARD_FUNCTION_FOLDERS = [root]
    return root


@pytest.mark.parametrize(
    ("folder", "handler", "refused"),
    [
        ("", "shop:charge", ""),
        ("pack", "inner:charge", ""),
        ("", "pack.inner:charge", ""),
        ("", "linked:charge", "a link out of the folders"),
        ("link", "shop:charge", "not in a folder that the operator allows"),
        ("", "link.shop:charge", "a link out of the folders"),
        ("..", "shop:charge", "not in a folder that the operator allows"),
        ("../outside", "shop:charge", "not in a folder that the operator allows"),
        ("missing", "shop:charge", "There is no folder"),
        ("", "botocore.session:Session", "has no module botocore.session"),
        ("", "shutil:rmtree", "a module of Python itself"),
        ("", "json:charge", "a module of Python itself"),
    ],
)
def test_folders(root: Path, folder: str, handler: str, refused: str) -> None:
    """No link, no ``..`` and no module of elsewhere leads out of the operator's folders."""
    refusal = folders.handler_refusal(str(root / folder), handler)
    assert refused in refusal
    assert bool(refusal) == bool(refused)


@pytest.mark.parametrize(
    ("handler", "refused"),
    [
        ("shop:charge", ""),
        ("shop:rmtree", "shop defines no rmtree"),
        ("shop:shutil.rmtree", "shop defines no shutil"),
        ("broken:charge", "cannot be read as Python"),
        ("gone:charge", "has no module gone"),
    ],
)
def test_definitions(root: Path, handler: str, refused: str) -> None:
    """A name that the module imports is no function of the folder."""
    refusal = folders.definition_refusal(str(root), handler)
    assert refused in refusal
    assert bool(refusal) == bool(refused)


def test_a_relative_folder_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder that the server was started in is none of the owner's."""
    monkeypatch.chdir(root)
    assert "not in a folder" in folders.folder_refusal(".")


def test_a_link_that_changes_later_counts(root: Path) -> None:
    """The file is judged at each use."""
    assert folders.handler_refusal(str(root), "shop:charge") == ""
    (root / "shop.py").unlink()
    (root / "shop.py").symlink_to(root.parent / "outside" / "shop.py")
    assert "a link out of the folders" in folders.handler_refusal(str(root), "shop:charge")
