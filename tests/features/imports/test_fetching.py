"""The field of the import page that fetches an execution, from another server over HTTP."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from console.config import environment
from console.models import AuditEntry, Execution
from tests.acceptance.server import Server, wait_for_end
from tests.console.web.helpers import text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from django.test import Client
    from pytest_django.fixtures import Settings

    from console.models import Project

ROLE = "arn:aws:iam::123456789012:role/r"
ARN = "arn:aws:states:us-east-1:123456789012:execution:orders:run-7"
FAILS = {
    "StartAt": "P",
    "States": {
        "P": {"Type": "Pass", "Next": "F"},
        "F": {"Type": "Fail", "Error": "CardLost", "Cause": "gone"},
    },
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server that stands for AWS."""
    server = Server(tmp_path_factory.mktemp("aws") / "data", options=("--empty",)).start()
    yield server
    server.stop()


@pytest.fixture
def client(signed_in: Callable[[str], Client]) -> Client:
    """Return a browser in which an editor is signed in."""
    return signed_in("editor")


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Path:
    """Name the profile ``aws`` for every project; return its file: no server answers there."""
    file = tmp_path / "config"
    file.write_text(
        "[profile aws]\nendpoint_url = http://127.0.0.1:9\n"
        "aws_access_key_id = a\naws_secret_access_key = b\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(file))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")  # of the server, not of the fetch
    settings.STATEYARD_FETCH_PROFILES = {"*": "aws"}
    return file


@pytest.mark.slow
@pytest.mark.acceptance
def test_an_execution_is_fetched(
    server: Server, profile: Path, project: Project, client: Client
) -> None:
    """With its definition and its history; the audit names the profile."""
    states = server.client()
    arn = states.create_state_machine(name="orders", definition=json.dumps(FAILS), roleArn=ROLE)
    started = states.start_execution(
        stateMachineArn=arn["stateMachineArn"], name="run-7", input='{"n": 7}'
    )["executionArn"]
    assert wait_for_end(states, started)["status"] == "FAILED"
    key, secret = server.keys()
    profile.write_text(
        f"[profile aws]\nendpoint_url = {states.meta.endpoint_url}\n"
        f"aws_access_key_id = {key}\naws_secret_access_key = {secret}\n",
        encoding="utf-8",
    )
    assert "AWS profile <code>aws</code> of this server." in text(client.get("/import/"))
    answer = client.post("/import/", {"arn": started})
    assert answer.status_code == 302, text(answer, answer.status_code)
    imported = Execution.imports.get(project=project)
    assert (imported.status, imported.error, imported.input) == ("FAILED", "CardLost", '{"n": 7}')
    assert json.loads(imported.definition.text) == FAILS
    assert "CardLost" in text(client.get(answer["Location"]))
    assert AuditEntry.objects.get(action="ImportExecution").reason == (
        "fetched with the profile aws"
    )
    lost = text(client.post("/import/", {"arn": f"{started}-no"}), 422)
    assert "AWS refused DescribeExecution: ExecutionDoesNotExist: " in lost


@pytest.mark.parametrize(
    ("arn", "problem"),
    [
        ("orders", "got no ARN of an execution"),
        (ARN.replace(":execution:", ":express:"), "got an Express execution"),
        (ARN.replace("us-east-1", "evil.example.com#"), "is no region of Step Functions"),
        (ARN.replace("us-east-1", ""), "is no region of Step Functions"),
        (ARN.replace("arn:aws:", "arn:evil:"), "is no region of Step Functions"),
        (ARN, "AWS could not be asked: Could not connect to the endpoint URL"),
    ],
)
def test_what_cannot_be_fetched_is_named(
    profile: Path, project: Project, client: Client, arn: str, problem: str
) -> None:
    """In one sentence, with the ARN in its field; nothing is imported."""
    del profile, project
    answer = client.post("/import/", {"arn": arn})
    assert problem in text(answer, 422)
    assert f'value="{arn}"' in answer.content.decode()
    assert not Execution.imports.exists()


def test_a_missing_profile_is_named(profile: Path, project: Project, client: Client) -> None:
    """The operator named one that the AWS configuration does not have."""
    del project
    profile.write_text("", encoding="utf-8")
    shown = text(client.post("/import/", {"arn": ARN}), 422)
    assert "AWS could not be asked: The config profile (aws) could not be found" in shown


def test_only_editors_fetch(
    profile: Path, project: Project, signed_in: Callable[[str], Client]
) -> None:
    """Operators import files; a viewer does neither."""
    del profile, project
    for role in ("operator", "viewer"):
        browser = signed_in(role)
        assert "Fetch from AWS" not in text(browser.get("/import/"))
        assert browser.post("/import/", {"arn": ARN}).status_code == 403


def test_a_project_without_a_profile_fetches_nothing(
    project: Project, client: Client, settings: Settings
) -> None:
    """The profile of another project is not used."""
    settings.STATEYARD_FETCH_PROFILES = {"another": "aws"}
    assert "Fetch from AWS" not in text(client.get("/import/"))
    shown = text(client.post("/import/", {"arn": ARN}), 422)
    assert "The operator has set no AWS profile for this project." in shown
    assert not Execution.imports.filter(project=project).exists()


def test_profiles_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs by comma; anything else is refused."""
    monkeypatch.setenv("STATEYARD_FETCH_PROFILES", "orders=production, *=staging")
    pairs: dict[str, Any] = {"orders": "production", "*": "staging"}
    assert environment.read_profiles("STATEYARD_FETCH_PROFILES") == pairs
    for wrong in ("production", "a=b,a=c", "=b", "a="):
        monkeypatch.setenv("STATEYARD_FETCH_PROFILES", wrong)
        with pytest.raises(environment.SettingError, match="wanted PROJECT=PROFILE, each project"):
            environment.read_profiles("STATEYARD_FETCH_PROFILES")
