"""Unknown variables are refused; data of the former name, Stepyard, are still read."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from console.config import data_folder, environment
from console.samples import is_sample
from tests import initial_database
from tests.console.config.test_settings import OWN, ROOT, run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "STATEYARD_REGIONS",
            "STATEYARD_REGIONS: got an unknown variable, wanted STATEYARD_R",
        ),
        (
            "STEPYARD_REGION",
            "STEPYARD_REGION: got an unknown variable, wanted STATEYARD_REGION, or one",
        ),
        ("STATEYARD_SOMETHING", "got an unknown variable, wanted one of docs/reference/settings"),
    ],
)
def test_an_unknown_variable_is_refused(tmp_path: Path, name: str, message: str) -> None:
    """A misspelt setting, or one of the former name, would be ignored in silence."""
    done = run(tmp_path, "check", **{name: "1"})
    assert done.returncode != 0
    assert message in done.stderr


def test_the_variables_of_a_kubernetes_service_are_no_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Kubernetes sets them in each pod of a namespace with a service named ``stateyard``."""
    for name in ("SERVICE_HOST", "SERVICE_PORT", "SERVICE_PORT_HTTP", "PORT", "PORT_8083_TCP_ADDR"):
        monkeypatch.setenv(f"STATEYARD_{name}", "x")
        monkeypatch.setenv(f"STATEYARD_WEB_{name}", "x")
    environment.refuse_unknown_variables()


@pytest.mark.sqlite_only
def test_a_database_of_the_former_name_is_opened(tmp_path: Path) -> None:
    """A data folder of an earlier version keeps its file; no second database is made beside it."""
    initial_database.copy_to(tmp_path)
    (tmp_path / "stateyard.sqlite3").rename(tmp_path / data_folder.FORMER_DATABASE_FILE)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(OWN)}
    code = "from console.models import Project; Project.objects.create(name='kept')"
    subprocess.run(
        [sys.executable, "manage.py", "shell", "-v", "0", "-c", code],
        cwd=ROOT,
        env={**environment, "STATEYARD_DATA": str(tmp_path)},
        check=True,
    )
    assert not (tmp_path / "stateyard.sqlite3").exists()


def test_a_data_folder_of_the_former_name_is_no_empty_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upgrade from 0.2.0 would else begin without the team's executions."""
    monkeypatch.delenv("STATEYARD_DATA", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    current, former = tmp_path / "stateyard", tmp_path / "stepyard"
    assert data_folder.data_folder() == current
    former.mkdir()
    with pytest.raises(environment.SettingError) as refused:
        data_folder.data_folder()
    assert str(refused.value) == (
        f"{former}: got the data folder of 0.2.0 or before,"
        f" wanted its present name, {current}: stop the server, rename it"
    )
    former.rename(current)
    assert data_folder.data_folder() == current


def test_samples_of_an_earlier_version_stay_samples() -> None:
    """Their role has the former name."""
    assert is_sample("arn:aws:iam::123456789012:role/stepyard-samples")
    assert not is_sample("arn:aws:iam::123456789012:role/stepyard")
