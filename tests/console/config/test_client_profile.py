"""The profile of an earlier start gets what it lacks, and nothing else changes."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.config import Config

from console.config.client_profile import UnreadableProfileError, complete_profile, profile_text

if TYPE_CHECKING:
    from pathlib import Path

NOW, BEFORE = "http://127.0.0.1:8083", "http://127.0.0.1:9000"
ADDED = f"region = us-east-1\nendpoint_url = {NOW}\ndisable_host_prefix_injection = true\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of a credentials file."""
    return tmp_path / "credentials"


def completed(path: Path, text: str) -> str:
    """Return what a file says after a start."""
    path.write_text(text, encoding="utf-8")
    complete_profile(path, address=NOW, before=BEFORE, region="us-east-1")
    return path.read_text(encoding="utf-8")


def test_a_new_profile_has_nothing_to_complete(path: Path) -> None:
    """What the first start writes is whole."""
    text = profile_text("AKIA", "s%cret", address=NOW, region="us-east-1")
    assert completed(path, text) == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "[stateyard]\naws_secret_access_key = s\n\n# theirs\n[b]\nregion = x\n",
            f"[stateyard]\naws_secret_access_key = s\n{ADDED}\n# theirs\n[b]\nregion = x\n",
        ),
        ("[stateyard]\nrole_arn = r\n", None),
        (
            f"[stateyard]\nREGION: x\ndisable_host_prefix_injection=0\nendpoint_url={BEFORE}\n",
            f"[stateyard]\nREGION: x\ndisable_host_prefix_injection=0\nendpoint_url = {NOW}\n",
        ),
        ("[stateyard]\nendpoint_url = https://yard.example.com\n", None),
        ("[default]\nregion = eu-west-1\n", "[default]\nregion = eu-west-1\n"),
        ("", ""),
    ],
)
def test_only_what_is_missing_is_added(path: Path, before: str, after: str | None) -> None:
    """Everything else keeps its place and its spelling; the address of the last start moves."""
    profile = completed(path, before)
    if after is not None:
        assert profile == after
    else:
        assert set(before.splitlines()) <= set(profile.splitlines())
    assert completed(path, profile) == profile


def test_a_link_stays_a_link(path: Path) -> None:
    """A file that is kept elsewhere is completed there, for its owner alone."""
    elsewhere = path.with_name("elsewhere")
    elsewhere.write_text("[stateyard]\n", encoding="utf-8")
    path.symlink_to(elsewhere)
    complete_profile(path, address=NOW, before="", region="us-east-1")
    assert path.is_symlink()
    assert NOW in elsewhere.read_text(encoding="utf-8")
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"\xff\xfe", b"region = x\n", b"[a]\nx=1\nx=2\n"])
def test_what_cannot_be_read_is_said_and_kept(path: Path, content: bytes) -> None:
    """No start fails for it."""
    path.write_bytes(content)
    with pytest.raises(UnreadableProfileError) as caught:
        complete_profile(path, address=NOW, before="", region="us-east-1")
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == content


def test_boto3_reads_all_of_it_from_the_credentials_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Key, region, address and the switch: no config file is there."""
    path.write_text(profile_text("AKIA", "s%cret=", address=NOW, region="eu-west-1"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(path))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(path.with_name("none")))
    client = boto3.Session(profile_name="stateyard").client("stepfunctions", config=Config())
    assert (client.meta.endpoint_url, client.meta.region_name) == (NOW, "eu-west-1")
    assert client.meta.config.inject_host_prefix is False
    assert client._get_credentials().secret_key == "s%cret="
