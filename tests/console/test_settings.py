"""Are the settings that a team's host gets fit for it?"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def check(folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run Django's check for deployment in a process of its own."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("STEPYARD_", "DJANGO_"))
    }
    return subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=ROOT,
        env={**kept, "STEPYARD_DATA": str(folder), **env},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_nothing_is_to_be_said_of_a_team_s_host(tmp_path: Path) -> None:
    """With HTTPS no warning is left, and none is silenced."""
    done = check(tmp_path, STEPYARD_HTTPS="1")
    assert done.returncode == 0, done.stderr
    assert "no issues (0 silenced)" in done.stdout


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        ("SECURE_HSTS_SECONDS = 0", "W004"),
        ("SESSION_COOKIE_SECURE = False", "W012"),
        ("SECRET_KEY = 'short'", "W009"),
    ],
)
def test_a_worse_setting_would_be_told(tmp_path: Path, setting: str, name: str) -> None:
    """The check looks at what is set, so it can fail."""
    (tmp_path / "worse.py").write_text(f"from console.settings import *\n{setting}\n")
    done = check(
        tmp_path,
        STEPYARD_HTTPS="1",
        DJANGO_SETTINGS_MODULE="worse",
        PYTHONPATH=str(tmp_path),
    )
    assert done.returncode != 0
    assert f"security.{name}" in done.stderr


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("STEPYARD_LOG", "xml"),
        ("STEPYARD_RETENTION_DAYS", "soon"),
        ("STEPYARD_RETENTION_DAYS", "0"),
        ("STEPYARD_RETENTION_DAYS", "-1"),
        ("STEPYARD_RETENTION_DAYS", "nan"),
        ("STEPYARD_DATABASE_URL", "mysql://x"),
        ("STEPYARD_SECRET", "guess me"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(tmp_path: Path, name: str, value: str) -> None:
    """The variable, what it was, and what it should be."""
    done = check(tmp_path, **{name: value})
    assert done.returncode != 0
    assert f"ValueError: {name}: got " in done.stderr
    assert ", wanted " in done.stderr


def test_a_proxy_that_is_no_address_is_named(tmp_path: Path) -> None:
    """Nothing starts, and the message says which one and what is wanted."""
    done = check(tmp_path, STEPYARD_PROXIES="127.0.0.1, proxy.example.com")
    assert done.returncode != 0
    wanted = "STEPYARD_PROXIES: got 'proxy.example.com', wanted IP addresses or networks"
    assert wanted in done.stderr
