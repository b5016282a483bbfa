"""Fifty people of six groups share twenty projects on two web processes and two workers."""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import psycopg
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.acceptance.sign_in.conftest import Provider
from tests.acceptance.sign_in.test_sign_in import form_token, person
from tests.chaos.team_server import TeamServer
from tests.postgres import FAST, Postgres
from tests.waiting import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

pytestmark = [pytest.mark.acceptance, pytest.mark.postgres_only, pytest.mark.slow]
WITHIN_S = 60.0
GROUPS = [f"group-{number}" for number in range(6)]
PEOPLE = [f"person{number:02}" for number in range(50)]
PROJECTS = [f"team{number:02}" for number in range(20)]
AT_ONCE = 4
GET_SECRET = "arn:aws:states:::aws-sdk:secretsmanager:getSecretValue"


def group_of(name: str) -> str:
    """Return the group of a person or a project."""
    return GROUPS[int(name[-2:]) % len(GROUPS)]


def projects_of(group: str) -> set[str]:
    """Return the projects that a group owns."""
    return {name for name in PROJECTS if group_of(name) == group}


class Emulator(BaseHTTPRequestHandler):
    """A function that answers its own address, and a service that answers the key of the call."""

    def do_POST(self) -> None:
        """Answer in JSON."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        key = re.search(r"Credential=(\w+)/", self.headers.get("Authorization", ""))
        answer = {"Name": "s", "SecretString": key[1]} if key else {"address": self.path}
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@dataclass(frozen=True)
class Key:
    """An access key of a person in a project."""

    key_id: str
    secret: str

    def send(
        self, address: str, body: Any, target: str = "", scope: str = "states"
    ) -> httpx.Response:
        """Send a signed call."""
        kind = "application/x-amz-json-1.0" if target else "application/json"
        headers = {"Content-Type": kind} | ({"X-Amz-Target": target} if target else {})
        request = AWSRequest("POST", address, data=json.dumps(body).encode(), headers=headers)
        SigV4Auth(Credentials(self.key_id, self.secret), scope, "us-east-1").add_auth(request)
        return httpx.post(
            address, content=request.data, headers=dict(request.headers), timeout=PATIENCE_S
        )

    def call(self, web: str, action: str, **params: Any) -> dict[str, Any]:
        """Return the answer of an action of Step Functions, or its error."""
        answer: dict[str, Any] = self.send(f"{web}/", params, f"AWSStepFunctions.{action}").json()
        return answer


class Yard:
    """Two web processes with their providers, two workers, and what owners register there."""

    def __init__(self, packages: Path, folder: Path) -> None:
        self.postgres = Postgres(folder / "pg", *FAST, migrated=True)
        self.team = TeamServer(folder / "one", self.postgres.url)
        self.other = TeamServer(folder / "two", self.postgres.url)
        self.provider = Provider(packages, "localhost", "corp", self.team.port, self.other.port)
        corp = {
            "name": "Corp SSO",
            "issuer": self.provider.issuer,
            "client_id": "stateyard",
            "client_secret": "a secret of the test",
            "scopes": ["groups"],
            "groups": {"platform": {"default": "owner"}},
            "administrators": ["platform"],
        }
        oidc = {"STATEYARD_OIDC": json.dumps({"corp": corp}), "STATEYARD_FUNCTIONS": "{}"}
        secret = {"STATEYARD_SECRET": self.team.env["STATEYARD_SECRET"]}
        for server in (self.team, self.other):
            server.env |= {**oidc, **secret}
        self.webs = [f"http://127.0.0.1:{server.port}" for server in (self.team, self.other)]
        self.emulator = ThreadingHTTPServer(("127.0.0.1", 0), Emulator)
        threading.Thread(target=self.emulator.serve_forever, daemon=True).start()
        self.visitors: list[httpx.Client] = []

    def costs(self) -> dict[str, float]:
        """Return what the server has taken so far: transactions, and seconds of processor time."""
        with psycopg.connect(self.postgres.url) as connection:
            query = "SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'"
            (count,) = connection.execute(query).fetchone() or (0,)
        webs = [each.web.pid for each in (self.team, self.other) if each.web]
        return {
            "transactions": count,
            "webs": sum(map(processor_s, webs)),
            "workers": sum(map(processor_s, self.team.worker_pids())),
        }

    @classmethod
    def folders(cls, folder: Path) -> Path:
        """Return the folder with one for each host."""
        for name in ("one", "two"):
            (folder / name).mkdir()
        return folder

    def start(self) -> None:
        """Start all processes."""
        self.team.start_web()
        self.other.start_web()
        self.team.start_workers(2)

    def stop(self) -> None:
        """End all processes."""
        for visitor in self.visitors:
            visitor.close()
        self.team.stop()
        self.other.stop()
        self.provider.stop()
        self.emulator.shutdown()
        self.emulator.server_close()
        self.postgres.stop("fast")

    def sign_in(self, name: str) -> httpx.Client:
        """Return the browser of a person who has signed in by one of the web processes."""
        client = httpx.Client(follow_redirects=True, timeout=PATIENCE_S)
        self.visitors.append(client)
        client.cookies.set("who", name, domain="localhost.local")
        answer = client.get(f"{self.web(name)}/sign-in/corp/")
        assert (answer.status_code, answer.url.path) == (200, "/"), (name, answer.text)
        return client

    def web(self, name: str, *, other: bool = False) -> str:
        """Return the address of one of the web processes for a name, or of the other one."""
        return self.webs[(int(name[-2:]) // len(GROUPS) + other) % 2]

    def end_of(self, key: Key, arn: str, web: str) -> dict[str, Any]:
        """Return a finished execution."""

        def ended() -> dict[str, Any] | None:
            answer = key.call(web, "DescribeExecution", executionArn=arn)
            return None if answer["status"] == "RUNNING" else answer

        return wait_until(ended) or {}


@pytest.fixture(scope="module")
def yard(packages: Path) -> Iterator[Yard]:
    """Return an empty team server."""
    folder = Path(tempfile.mkdtemp(prefix="stateyard-fifty-"))
    folder.chmod(0o755)
    yard = Yard(packages, Yard.folders(folder))
    try:
        yard.start()
        yield yard
    finally:
        yard.stop()
        shutil.rmtree(folder, ignore_errors=True)


def processor_s(pid: int) -> float:
    """Return the processor time that a process has taken, in seconds (Linux)."""
    path = Path(f"/proc/{pid}/stat")
    if not path.exists():
        return 0.0
    user, system = path.read_text(encoding="ascii").rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def in_threads(act: Callable[[str], Any], names: Sequence[str]) -> dict[str, Any]:
    """Return name -> what a function returned, with several names at once."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(names, pool.map(act, names), strict=True))


def post(client: httpx.Client, page: str, /, **fields: str) -> str:
    """Send the form of a page, which must accept it; return the page that follows."""
    token = form_token(client, page)
    answer = client.post(page, data={"csrfmiddlewaretoken": token, **fields})
    assert answer.status_code == 200, (answer.status_code, answer.text)
    return answer.text


def new_key(client: httpx.Client, web: str) -> Key:
    """Return a new access key of a person in the project that their browser shows."""
    shown = post(client, f"{web}/keys/", description="of a test")
    key = re.search(r"AKIA[A-Z2-7]{16}", shown)
    secret = re.search(r"(?<![\w+/])[A-Za-z0-9+/]{40}(?![\w+/])", shown)
    assert key
    assert secret
    return Key(key[0], secret[0])


def definition() -> str:
    """Return a machine that calls the function and the service of its project."""
    work = {
        "Type": "Task",
        "Resource": "arn:aws:states:::lambda:invoke",
        "Parameters": {"FunctionName": "work", "Payload": {}},
        "ResultSelector": {"address.$": "$.Payload.address"},
        "ResultPath": "$.function",
        "Next": "Read",
    }
    read = {
        "Type": "Task",
        "Resource": GET_SECRET,
        "Parameters": {"SecretId": "s"},
        "ResultSelector": {"key.$": "$.SecretString"},
        "ResultPath": "$.target",
        "End": True,
    }
    return json.dumps({"StartAt": "Work", "States": {"Work": work, "Read": read}})


WAIT = json.dumps({"StartAt": "W", "States": {"W": {"Type": "Wait", "Seconds": 3600, "End": True}}})


def serve_oneself(yard: Yard, client: httpx.Client, project: str) -> Key:
    """Let an owner set a target, a function and a quota of a project; each acts at once."""
    here, there = yard.web(project), yard.web(project, other=True)
    base = f"http://127.0.0.1:{yard.emulator.server_port}"
    client.cookies.set("project", project, domain="127.0.0.1")
    edit = f"{here}/settings/targets/edit"
    post(client, f"{edit}/function/", name="work", address=f"{base}/{project}/first")
    post(
        client,
        f"{edit}/service/",
        name="secretsmanager",
        endpoint_url=base,
        region="us-east-1",
        access_key_id=f"AKIA{project}",
        secret_access_key="a secret",
    )
    key = new_key(client, here)
    role = "arn:aws:iam::123456789012:role/any"
    machines = [
        key.call(there, "CreateStateMachine", name=name, definition=text, roleArn=role)
        for name, text in ((f"flow-{project}", definition()), (f"wait-{project}", WAIT))
    ]
    flow, wait = (machine["stateMachineArn"] for machine in machines)

    def output(web: str) -> Any:
        arn = key.call(web, "StartExecution", stateMachineArn=flow)["executionArn"]
        ended = yard.end_of(key, arn, web)
        assert ended["status"] == "SUCCEEDED", ended
        return json.loads(ended["output"])

    expected = {"function": {"address": f"/{project}/first"}, "target": {"key": f"AKIA{project}"}}
    assert output(there) == expected
    form = f"{yard.web(project, other=True)}/settings/targets/edit/function/?name=work"
    (revision,) = re.findall(r'name="revision" value="([^"]*)"', client.get(form).text)
    post(client, form, name="work", address=f"{base}/{project}/second", revision=revision)
    changed = {**expected, "function": {"address": f"/{project}/second"}}
    wait_until(lambda: output(here) == changed)  # other processes learn of it by a signal
    post(client, f"{here}/settings/quotas/", name="open_executions", value="1", revision="")

    def is_refused(web: str) -> bool:
        code = key.call(web, "StartExecution", stateMachineArn=wait).get("__type", "")
        return str(code).rpartition("#")[2] == "ExecutionLimitExceeded"

    assert not is_refused(there)
    for web in (there, here):
        wait_until(lambda web=web: is_refused(web))
    return key


def is_signed_in(client: httpx.Client, web: str) -> bool:
    """Return whether a browser has a session at a web process."""
    answer = client.get(f"{web}/preferences/", follow_redirects=False)
    return "/login/" not in answer.headers.get("Location", "")


def names_shown(client: httpx.Client, web: str, path: str) -> set[str]:
    """Return the projects whose machines or names a page shows."""
    answer = client.get(f"{web}{path}")
    assert answer.status_code == 200, (path, answer.status_code)
    return set(re.findall(r"\b(?:flow-|wait-)?(team\d\d)\b", answer.text))


def look_around(yard: Yard, client: httpx.Client, name: str) -> None:
    """Let a person read, on both web processes: they see the projects of their group alone."""
    own = projects_of(group_of(name))
    web, there = yard.web(name), yard.web(name, other=True)
    project = sorted(own)[int(name[-2:]) // len(GROUPS) % len(own)]
    client.cookies.set("project", project, domain="127.0.0.1")
    shown = names_shown(client, there, "/machines/")
    assert project in shown
    for path in ("/executions/", "/projects/", "/palette/?q=flow", "/audit/"):
        shown |= names_shown(client, web, path)
    assert shown == own
    foreign = next(project for project in PROJECTS if project not in own)
    client.cookies.set("project", foreign, domain="127.0.0.1")
    assert names_shown(client, web, "/machines/") <= own
    missing = client.get(f"{web}/machines/flow-{foreign}/")
    assert missing.status_code == 404


def test_fifty_people_share_twenty_projects(
    yard: Yard, record_property: Callable[[str, object], None]
) -> None:
    """They sign in, serve themselves, see nothing of others, and are out within a minute."""
    clock = itertools.count()
    times: dict[str, Any] = {}
    began = time.monotonic()

    def lap(what: str) -> None:
        nonlocal began
        times[f"{next(clock)} {what}"] = round(time.monotonic() - began, 1), yard.costs()
        began = time.monotonic()

    yard.provider.control(
        root00=person("root00", "platform"),
        **{name: person(name, group_of(name)) for name in PEOPLE},
    )
    root = yard.sign_in("root00")
    root_key = new_key(root, yard.webs[0])
    for project in PROJECTS:
        created = root_key.send(
            f"{yard.webs[0]}/api/projects", {"name": project}, scope="stateyard"
        )
        assert created.status_code == 201, created.text
    for project in PROJECTS:
        post(
            root,
            f"{yard.webs[1]}/sign-in/",
            provider="corp",
            group=group_of(project),
            project=project,
            role="owner",
        )
    lap("20 projects and their groups")
    browsers = in_threads(yard.sign_in, PEOPLE)
    lap("50 people sign in")
    owners = dict(zip(PROJECTS, PEOPLE, strict=False))  # whose group has the project
    keys = in_threads(lambda each: serve_oneself(yard, browsers[owners[each]], each), PROJECTS)
    lap("20 owners serve themselves")
    in_threads(lambda name: look_around(yard, browsers[name], name), PEOPLE)
    for project, key in keys.items():
        listed = key.call(yard.web(project, other=True), "ListStateMachines")["stateMachines"]
        assert {each["name"] for each in listed} == {f"flow-{project}", f"wait-{project}"}
    lap("50 people look around")

    # one loses the group, one has another group, one has no account any more
    outcast, mover, gone = owners["team00"], owners["team01"], owners["team02"]
    yard.provider.control(**{outcast: person(outcast), mover: person(mover, GROUPS[5]), gone: None})

    def is_out(name: str, project: str) -> bool:
        web = yard.webs[int(name[-2:]) % 2]
        code = keys[project].call(web, "ListStateMachines").get("__type", "")
        return str(code).endswith("UnrecognizedClientException")

    def out() -> bool:
        ended = [browsers[name] for name in (outcast, gone)]
        return not any(is_signed_in(client, web) for client in ended for web in yard.webs) and all(
            map(is_out, (outcast, mover, gone), ("team00", "team01", "team02"))
        )

    wait_until(out, WITHIN_S, pause_s=0.5)
    lap("three people are out")
    for name in (outcast, gone):
        for web in yard.webs:
            poll = browsers[name].get(f"{web}/_overview", headers={"HX-Request": "true"})
            assert poll.status_code == 401
    browsers[mover].cookies.set("project", "team01", domain="127.0.0.1")
    for web in yard.webs:
        assert names_shown(browsers[mover], web, "/projects/") == projects_of(GROUPS[5])
        assert browsers[mover].get(f"{web}/machines/flow-team01/").status_code == 404
    assert is_signed_in(browsers[owners["team03"]], yard.webs[0])
    assert "stateMachines" in keys["team03"].call(yard.webs[1], "ListStateMachines")
    record_property("times", times)
