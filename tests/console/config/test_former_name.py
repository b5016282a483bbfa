"""What carries the product's former name, Stepyard, still counts, and one line says so."""

from __future__ import annotations

import configparser
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from console.config import data_folder, environment, former_name
from console.config.client_profile import complete_profile, profile_in
from console.models import Activity, Project, Tag
from console.samples import is_sample
from console.store.machines import activity_limits, machine_options
from tests import initial_database
from tests.console.config.test_settings import OWN, ROOT, run

if TYPE_CHECKING:
    from pathlib import Path

MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:m"
SAID = "Stepyard is called Stateyard now"


@pytest.mark.slow
def test_a_former_variable_is_read_and_one_line_says_so(tmp_path: Path) -> None:
    """Its value counts: a bad region is refused, by today's name of the variable."""
    done = run(tmp_path, "check", STEPYARD_REGION="eu-west-1", STEPYARD_LOG="text")
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stderr.splitlines() if SAID in line]
    assert "STEPYARD_LOG, STEPYARD_REGION" in line
    refused = run(tmp_path, "check", STEPYARD_REGION="nowhere")
    assert refused.returncode != 0
    assert "STATEYARD_REGION: got 'nowhere'" in refused.stderr


def test_a_variable_of_today_wins_over_a_former_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the former one leaves the environment, so no child process reads or reports it."""
    monkeypatch.setenv("STATEYARD_REGION", "eu-west-1")
    monkeypatch.setenv("STEPYARD_REGION", "us-west-2")
    monkeypatch.setattr(former_name, "_uses", [])
    former_name.adopt_variables()
    assert os.environ["STATEYARD_REGION"] == "eu-west-1"
    assert "STEPYARD_REGION" not in os.environ


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "STATEYARD_REGIONS",
            "STATEYARD_REGIONS: got an unknown variable, wanted STATEYARD_R",
        ),
        ("STEPYARD_HTPS", "STATEYARD_HTPS: got an unknown variable, wanted STATEYARD_HTTPS"),
        ("STATEYARD_SOMETHING", "got an unknown variable, wanted one of docs/reference/settings"),
    ],
)
def test_an_unknown_variable_is_refused(tmp_path: Path, name: str, message: str) -> None:
    """A misspelt setting would be ignored in silence."""
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


def test_the_default_data_folder_may_have_the_former_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is used while the new folder does not exist."""
    monkeypatch.setattr(former_name, "_uses", [])
    monkeypatch.delenv("STATEYARD_DATA", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    new = tmp_path / "stateyard"
    assert data_folder.data_folder() == new
    (tmp_path / "stepyard").mkdir()
    assert data_folder.data_folder() == tmp_path / "stepyard"
    (use,) = former_name._uses
    assert use.endswith(f"{tmp_path / 'stepyard'}: stop the server and rename it to {new}")
    new.mkdir()
    assert data_folder.data_folder() == new


@pytest.mark.sqlite_only
def test_a_database_of_the_former_name_is_opened(tmp_path: Path) -> None:
    """A data folder of an earlier version keeps its file; no second database is made beside it."""
    initial_database.copy_to(tmp_path)
    (tmp_path / "stateyard.sqlite3").rename(tmp_path / former_name.DATABASE_FILE)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(OWN)}
    code = "from console.models import Project; Project.objects.create(name='kept')"
    subprocess.run(
        [sys.executable, "manage.py", "shell", "-v", "0", "-c", code],
        cwd=ROOT,
        env={**environment, "STATEYARD_DATA": str(tmp_path)},
        check=True,
    )
    assert not (tmp_path / "stateyard.sqlite3").exists()


def test_the_profile_of_the_former_name_is_copied(tmp_path: Path) -> None:
    """Both names have the same key, region and address, and today's commands find one of them."""
    path = tmp_path / "credentials"
    text = (
        "# mine\n[stepyard]\naws_access_key_id = A\naws_secret_access_key = s%cret\n\n[b]\nx = 1\n"
    )
    path.write_text(text, encoding="utf-8")
    assert profile_in(path) == "stepyard"
    complete_profile(path, address="http://127.0.0.1:1", before="", region="us-east-1")
    complete_profile(path, address="http://127.0.0.1:2", before="http://127.0.0.1:1", region="x")
    profiles = configparser.RawConfigParser()
    profiles.read(path)
    assert profiles.sections() == ["stateyard", "stepyard", "b"]
    assert dict(profiles["stateyard"]) == dict(profiles["stepyard"])
    assert profiles["stateyard"]["aws_secret_access_key"] == "s%cret"
    assert profiles["stateyard"]["endpoint_url"] == "http://127.0.0.1:2"
    assert path.read_text(encoding="utf-8").startswith("# mine\n")
    assert profile_in(path) == "stateyard"


@pytest.mark.django_db
def test_tags_of_the_former_name_are_options_still() -> None:
    """A tag of today's name wins; a value that the option does not have is refused."""
    option = machine_options.CHILD_POLICY
    Tag.objects.create(arn=MACHINE, key="stepyard:childPolicy", value="abandon")
    assert machine_options.of_machine(MACHINE)[option] == "abandon"
    assert machine_options.machines_with(option, "abandon", [MACHINE]) == {MACHINE}
    Tag.objects.create(arn=MACHINE, key=option, value="terminate")
    assert machine_options.of_machine(MACHINE)[option] == "terminate"
    assert machine_options.machines_with(option, "abandon", [MACHINE]) == set()
    with pytest.raises(Exception, match=r"must be one of .*, not 'never'"):
        machine_options.check_tag("stepyard:childPolicy", "never")


@pytest.mark.django_db
def test_an_activity_s_tags_of_the_former_name_are_limits_still(project: Project) -> None:
    """So do the timeouts of tasks."""
    arn = "arn:aws:states:us-east-1:123456789012:activity:a"
    Activity.objects.create(project=project, arn=arn, name="a", created_ms=1)
    Tag.objects.create(arn=arn, key="stepyard:heartbeatTimeout", value="7")
    assert activity_limits.limits_of(MACHINE, [arn])[arn].heartbeat == 7
    assert activity_limits.limit_tags(arn)["stateyard:heartbeatTimeout"] == "7"


def test_samples_of_an_earlier_version_stay_samples() -> None:
    """Their role has the former name."""
    assert is_sample("arn:aws:iam::123456789012:role/stepyard-samples")
    assert not is_sample("arn:aws:iam::123456789012:role/stepyard")
