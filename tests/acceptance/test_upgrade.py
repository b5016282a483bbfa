"""What an earlier commit has stored goes on after the upgrade: people, keys, links, executions.

The product was called Stepyard then. The operator renames the variables; the files keep their
former names.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import httpx
import pytest
from botocore.config import Config

from tests.acceptance.server import ROOT, wait_for_end
from tests.chaos.life import export_revision
from tests.chaos.team_server import TeamServer
from tests.postgres import FAST, Postgres
from tests.waiting import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

REVISION = "05d4f8c6c7776620f5800966b67dd25bb5b270b2"
_ASKED = ["git", "cat-file", "-e", f"{REVISION}^{{commit}}"]
_IS_THERE = subprocess.run(_ASKED, cwd=ROOT, check=False, capture_output=True).returncode == 0
__test__ = _IS_THERE  # nothing is collected in a checkout without the history of the project
pytestmark = [pytest.mark.acceptance, pytest.mark.slow]
PASSWORD = "four words that nobody guesses"
ROLE = "arn:aws:iam::123456789012:role/any"
PREFIX = "arn:aws:states:us-east-1:123456789012:"
APPROVAL = {
    "Type": "Task",
    "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken",
    "Parameters": {"FunctionName": "echo", "Payload": {"token.$": "$$.Task.Token"}},
    "End": True,
}
WORK = {"Type": "Task", "Resource": f"{PREFIX}activity:labor", "End": True}


class Yard:
    """A server of the earlier commit, and later of this one, with what people stored there."""

    def __init__(self, folder: Path, url: str | None) -> None:
        self.server = server = TeamServer(folder, url)
        server.migrated = False
        server.root = export_revision(folder / "earlier", REVISION)
        server.env.pop("DJANGO_SETTINGS_MODULE", None)  # that of this commit
        own = ("SECRET", "FUNCTIONS", "LEASE_S", "DATA", "DATABASE_URL")
        for name in own:
            value = server.env.pop(f"STATEYARD_{name}", None)
            if value is not None:
                server.env[f"STEPYARD_{name}"] = value
        if url is None:
            del server.env["STEPYARD_SECRET"]  # it is in the data folder
        self.address = f"http://127.0.0.1:{server.port}"
        self.key = ("", "")
        self.links: dict[str, str] = {}
        self.person = httpx.Client(follow_redirects=True, timeout=PATIENCE_S)

    def start(self) -> None:
        """Start the processes of the chosen code."""
        self.server.start_web()
        if self.server.url is not None:
            self.server.start_workers(1)

    def upgrade(self) -> None:
        """Stop the server, and start this commit's on the same data."""
        if self.server.url is not None:
            self.server.end_workers()
        self.server.end_web()
        self.server.root = ROOT
        for name in [name for name in self.server.env if name.startswith("STEPYARD_")]:
            self.server.env[name.replace("STEPYARD", "STATEYARD")] = self.server.env.pop(name)
        self.start()

    def stop(self) -> None:
        """End all processes."""
        self.person.close()
        self.server.stop()

    def api(self) -> Any:
        """Return a client with the key that was created before the upgrade."""
        return boto3.client(
            "stepfunctions",
            endpoint_url=self.address,
            region_name="us-east-1",
            aws_access_key_id=self.key[0],
            aws_secret_access_key=self.key[1],
            config=Config(retries={"max_attempts": 0}, inject_host_prefix=False, read_timeout=75),
        )


def send(
    client: httpx.Client, page: str, to: str = "", /, *, status: int = 200, **fields: str
) -> str:
    """Send the form of a page, to another address if there is one; return the page that follows."""
    shown = client.get(page)
    (token, *_) = re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', shown.text)
    answer = client.post(to or page, data={"csrfmiddlewaretoken": token, **fields})
    assert answer.status_code == status, (page, answer.status_code, answer.text)
    return answer.text


def is_signed_in(client: httpx.Client, address: str) -> bool:
    """Return whether a browser has a session."""
    answer = client.get(f"{address}/machines/", follow_redirects=False)
    return answer.status_code == 200


def store(yard: Yard) -> None:
    """Let a person of the earlier commit use the server."""
    server, address, person = yard.server, yard.address, yard.person
    printed = server.manage("member", "ana", "--role", "owner", "--key")
    words = dict(line.split(" = ") for line in printed.splitlines() if " = " in line)
    yard.key = (words["aws_access_key_id"], words["aws_secret_access_key"])
    link = server.manage("login_url", "--user", "ana", "--address", address).strip()
    send(person, link)
    send(person, f"{address}/password/", new_password1=PASSWORD, new_password2=PASSWORD)
    invited = send(
        person,
        f"{address}/team/",
        f"{address}/team/invite/",
        name="ben",
        role="editor",
        hours="24",
    )
    api = yard.api()
    api.create_activity(name="labor")
    for name, state in (("approval", APPROVAL), ("labor", WORK)):
        text = json.dumps({"StartAt": "A", "States": {"A": state}})
        api.create_state_machine(name=name, definition=text, roleArn=ROLE)
        machine = f"{PREFIX}stateMachine:{name}"
        api.start_execution(stateMachineArn=machine, name="waiting", input='{"n": 7}')
    page = f"{address}/machines/approval/executions/waiting/"
    numbers = wait_until(lambda: re.findall(r"/waiting/tasks/(\d+)/", person.get(page).text))
    task = f"{page}tasks/{numbers[0]}/"
    approval = send(person, task, f"{task}link/", hours="24", note="Ship it?")
    started = send(person, f"{address}/machines/labor/triggers/", name="of a webhook")
    pages = {"invitation": invited, "approval": approval, "start/labor": started}
    for name, text in pages.items():
        (yard.links[name], *_) = re.findall(rf"{address}/{name}/[\w:.-]{{20,}}/?", text)


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres_only)]
)
def yard(request: pytest.FixtureRequest) -> Iterator[Yard]:
    """Return the upgraded server."""
    folder = Path(tempfile.mkdtemp(prefix="stateyard-upgrade-"))
    folder.chmod(0o755)
    postgres = Postgres(folder / "pg", *FAST) if request.param == "postgres" else None
    yard = Yard(folder, postgres.url if postgres else None)
    try:
        yard.start()
        store(yard)
        yard.upgrade()
        yield yard
    finally:
        yard.stop()
        if postgres:
            postgres.stop("fast")
        shutil.rmtree(folder, ignore_errors=True)


def test_people_go_on(yard: Yard) -> None:
    """Who was signed in still is, and signs in with the same password; the owner administers."""
    assert is_signed_in(yard.person, yard.address)
    with httpx.Client(follow_redirects=True, timeout=PATIENCE_S) as other:
        send(other, f"{yard.address}/login/", status=422, username="ana", password="wrong")
        assert not is_signed_in(other, yard.address)
        send(other, f"{yard.address}/login/", username="ana", password=PASSWORD)
        assert is_signed_in(other, yard.address)
        assert "Create invitation" in other.get(f"{yard.address}/members/").text
    with httpx.Client(follow_redirects=True, timeout=PATIENCE_S) as invited:
        page = invited.get(yard.links["invitation"])
        assert (page.status_code, "ben" in page.text) == (200, True)
        words: Any = {"new_password1": f"{PASSWORD} 2", "new_password2": f"{PASSWORD} 2"}
        send(invited, yard.links["invitation"], **words)
        assert is_signed_in(invited, yard.address)


def test_a_key_signs_and_a_waiting_execution_goes_on(yard: Yard) -> None:
    """With the same secret; a worker takes the task that waited, and the execution succeeds."""
    api = yard.api()
    names = {machine["name"] for machine in api.list_state_machines()["stateMachines"]}
    assert {"approval", "labor"} <= names
    execution = f"{PREFIX}execution:labor:waiting"
    assert api.describe_execution(executionArn=execution)["status"] == "RUNNING"
    task = api.get_activity_task(activityArn=f"{PREFIX}activity:labor")
    assert json.loads(task["input"]) == {"n": 7}
    api.send_task_success(taskToken=task["taskToken"], output='"done"')
    answer = wait_for_end(api, execution)
    assert (answer["status"], answer["output"]) == ("SUCCEEDED", '"done"')


def test_links_open(yard: Yard) -> None:
    """An approval link answers its task, and a start link starts its state machine."""
    api = yard.api()
    with httpx.Client(follow_redirects=True, timeout=PATIENCE_S) as approver:
        page = approver.get(yard.links["approval"])
        assert (page.status_code, "Ship it?" in page.text) == (200, True)
        send(approver, yard.links["approval"], act="approve", name="Bea", comment="")
    answer = wait_for_end(api, f"{PREFIX}execution:approval:waiting")
    assert answer["status"] == "SUCCEEDED"
    before = len(api.list_executions(stateMachineArn=f"{PREFIX}stateMachine:labor")["executions"])
    started = httpx.post(yard.links["start/labor"], json={"n": 8}, timeout=PATIENCE_S)
    assert started.status_code in (200, 201, 202), started.text
    after = api.list_executions(stateMachineArn=f"{PREFIX}stateMachine:labor")["executions"]
    assert len(after) == before + 1
