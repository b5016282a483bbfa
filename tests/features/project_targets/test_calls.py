"""The button *Test* calls a target once, and a guarded client connects only where it may."""

from __future__ import annotations

import contextlib
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from botocore.exceptions import BotoCoreError

from console.db import project_settings
from console.features.project_targets import trial
from console.integrations import connections, outbound, targets
from tests.console.web.helpers import text
from tests.silent_host import SilentHost
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.test import Client
    from pytest_django.fixtures import Settings

    from console.models import Project

SECRET = "never-to-be-seen"
KEYS = {"access_key_id": "AKIANEVERSEEN", "secret_access_key": SECRET}
EDIT, TEST = "/settings/targets/edit/", "/settings/targets/test/"
IDENTITY = (
    "<GetCallerIdentityResponse xmlns='https://sts.amazonaws.com/doc/2011-06-15/'>"
    "<GetCallerIdentityResult><Arn>arn:aws:iam::000000000000:user/ana</Arn>"
    "<UserId>A</UserId><Account>000000000000</Account></GetCallerIdentityResult>"
    "</GetCallerIdentityResponse>"
)
REFUSAL = (
    "<ErrorResponse><Error><Type>Sender</Type><Code>InvalidClientTokenId</Code>"
    f"<Message>{SECRET}</Message></Error></ErrorResponse>"
)


class Emulator(BaseHTTPRequestHandler):
    """Answers everything with what the test wants."""

    answer: ClassVar[tuple[int, str]] = (200, IDENTITY)
    heard: ClassVar[list[tuple[str, str, dict[str, str]]]] = []

    def do_POST(self) -> None:
        """Note the request and answer."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.heard.append((self.command, body, dict(self.headers)))
        status, content = self.answer
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(content.encode())

    do_GET = do_POST  # noqa: N815 - the name that the library calls

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def emulator(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the address of an emulator on this machine."""
    monkeypatch.setattr(Emulator, "heard", [])
    monkeypatch.setattr(Emulator, "answer", (200, IDENTITY))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Emulator)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    targets._client.cache_clear()
    outbound.close_idle()


def try_it(owner: Client, kind: str, name: str) -> str:
    """Click *Test* and return the page."""
    return text(owner.post(TEST, {"kind": kind, "name": name}, follow=True))


def test_the_identity_of_a_key(
    owner: Client, emulator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The outcome is the caller's ARN, why the key is refused, or what else the address serves."""
    owner.post(f"{EDIT}service/", {"name": "sqs", "endpoint_url": emulator, **KEYS})
    shown = try_it(owner, "service", "sqs")
    assert f"sqs: {emulator} answered sts:GetCallerIdentity in " in shown
    assert "arn:aws:iam::000000000000:user/ana." in shown
    ((_, body, headers),) = Emulator.heard
    assert "Action=GetCallerIdentity" in body
    assert "AKIANEVERSEEN" in headers["Authorization"]
    monkeypatch.setattr(Emulator, "answer", (403, REFUSAL))
    shown = try_it(owner, "service", "sqs")
    assert f"{emulator} refuses sts:GetCallerIdentity: InvalidClientTokenId." in shown
    for answer in ((404, "none"), (200, "{}"), (200, "<html/>"), (404, "<a/>")):
        monkeypatch.setattr(Emulator, "answer", answer)
        shown = try_it(owner, "service", "sqs")
        assert f"{emulator} answers, but not to sts:GetCallerIdentity" in shown
    assert SECRET not in shown


def test_an_address(owner: Client, emulator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any answer will do; a function is asked with GET, which does not invoke it."""
    monkeypatch.setattr(Emulator, "answer", (405, ""))
    owner.post(f"{EDIT}address/", {"name": emulator})
    assert f"{emulator} answered in " in try_it(owner, "address", emulator)
    owner.post(f"{EDIT}function/", {"name": "add", "address": f"{emulator}/invocations"})
    assert "with status 405." in try_it(owner, "function", "add")
    assert {command for command, _, _ in Emulator.heard} == {"GET"}


def test_nobody_answers(owner: Client, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name without an address, and a port that nothing listens on."""
    owner.post(f"{EDIT}address/", {"name": "http://127.0.0.1:9"})
    assert "http://127.0.0.1:9 cannot be called: " in try_it(owner, "address", "http://127.0.0.1:9")
    owner.post(f"{EDIT}service/", {"name": "sqs", "endpoint_url": "http://127.0.0.1:9", **KEYS})
    assert "http://127.0.0.1:9 cannot be called: " in try_it(owner, "service", "sqs")
    targets._client.cache_clear()
    outbound.close_idle()


def test_a_setting_that_is_not_allowed_any_more(owner: Client, settings: Settings) -> None:
    """It is not called, and the page says why."""
    owner.post(f"{EDIT}service/", {"name": "sqs", "endpoint_url": "http://moto:5000", **KEYS})
    settings.STATEYARD_TARGET_HOSTS = ["other"]
    assert "moto is not allowed as a target" in try_it(owner, "service", "sqs")
    assert targets.find_entry("sqs", targets.MachineKey("default")) is None
    settings.STATEYARD_TARGET_HOSTS, settings.STATEYARD_SEAL_KEY = ["*"], bytes(32)
    assert "Its secrets cannot be decrypted" in try_it(owner, "service", "sqs")
    assert targets.find_entry("sqs", targets.MachineKey("default")) is None


@pytest.mark.parametrize("address", ["169.254.169.254", "fd00:ec2::254", "127.0.0.1"])
def test_a_name_that_leads_to_a_forbidden_address(
    monkeypatch: pytest.MonkeyPatch, emulator: str, address: str
) -> None:
    """The client of an owner's target does not connect; the operator's does."""
    port = emulator.rpartition(":")[2]
    monkeypatch.setattr(outbound, "_resolve_host", lambda *_: [address])
    entry = {"endpoint_url": f"http://inside.example.com:{port}", **KEYS}
    client = targets.make_client("sts", {**entry, targets.OF_PAGE: "yes"}, limit_s=2)
    with pytest.raises(BotoCoreError) as refused:
        client.get_caller_identity()
    assert "inside.example.com" in str(refused.value)
    assert not Emulator.heard


def test_a_guarded_client_connects_by_name(monkeypatch: pytest.MonkeyPatch, emulator: str) -> None:
    """The request has the name of the host, whatever address it was sent to."""
    port = emulator.rpartition(":")[2]
    monkeypatch.setattr(outbound, "_resolve_host", lambda *_: ["127.0.0.1"])
    monkeypatch.setattr(outbound, "check_address", lambda *_: None)
    entry = {"endpoint_url": f"http://moto.example.com:{port}", **KEYS, targets.OF_PAGE: "yes"}
    client = targets.make_client("sts", entry, limit_s=5)
    assert client.get_caller_identity()["Account"] == "000000000000"
    ((_, _, headers),) = Emulator.heard
    assert headers["Host"] == f"moto.example.com:{port}"


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Return the address of a host that accepts connections and says nothing."""
    monkeypatch.setattr(trial, "LIMIT_S", 0.3)
    host = SilentHost()
    yield host.url
    host.close()
    wait_until(lambda: not trial._running)
    outbound.close_idle()


SILENT: list[tuple[str, dict[str, str]]] = [
    ("service", {"name": "sqs", **KEYS}),
    ("function", {"name": "add"}),
    ("connection", {"name": "crm", "type": "OAUTH_CLIENT_CREDENTIALS"}),
    ("address", {}),
]


@pytest.mark.parametrize(("kind", "sent"), SILENT)
def test_a_silent_endpoint(owner: Client, silent: str, kind: str, sent: dict[str, str]) -> None:
    """The page answers at the limit, whatever the call itself waits for."""
    of_connection = {"authorization_endpoint": silent, "client_id": "yard", "secret": SECRET}
    fields = {"name": silent, "endpoint_url": silent, "address": silent, **of_connection, **sent}
    answer = owner.post(f"{EDIT}{kind}/", fields)
    assert answer.status_code == 302, text(answer)
    begun = time.monotonic()
    shown = try_it(owner, kind, fields["name"])
    assert "did not answer within 0.3 seconds." in shown
    assert time.monotonic() - begun < connections._TOKEN_LIMIT_S


def test_an_answer_that_never_ends(
    owner: Client, emulator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A byte now and then does not make the limit longer, for the page and for the call."""
    monkeypatch.setattr(trial, "LIMIT_S", 0.3)
    enough = threading.Event()

    def drip(self: Emulator) -> None:
        self.send_response(200)
        self.end_headers()
        with contextlib.suppress(OSError):
            while not enough.wait(0.02):
                self.wfile.write(b" ")

    monkeypatch.setattr(Emulator, "do_POST", drip)
    owner.post(f"{EDIT}service/", {"name": "sqs", "endpoint_url": emulator, **KEYS})
    assert f"{emulator} did not answer within 0.3 seconds." in try_it(owner, "service", "sqs")
    wait_until(lambda: not trial._running)
    enough.set()


@pytest.mark.postgres_too
def test_few_tests_run_at_once(
    owner: Client, silent: str, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A further one is refused at once, and possible again when one has ended."""
    monkeypatch.setattr(trial, "LIMIT_S", 60.0)
    owner.post(f"{EDIT}address/", {"name": silent})
    row = project_settings.find_setting(project, "address", silent)
    assert row is not None
    other = replace(row, project_id=0)
    rows = [row] * trial.AT_ONCE_OF_PROJECT
    begun = [threading.Thread(target=trial.try_target, args=(each,), daemon=True) for each in rows]
    for thread in begun:
        thread.start()
    wait_until(lambda: trial._running[row.project_id] == trial.AT_ONCE_OF_PROJECT)
    assert "2 tests of this project are running: try again" in try_it(owner, "address", silent)
    monkeypatch.setattr(trial, "AT_ONCE", trial.AT_ONCE_OF_PROJECT)
    assert trial.try_target(other) == (
        False,
        "2 tests are running on this server: try again in a moment.",
    )


def test_a_test_that_has_ended_makes_room(owner: Client, emulator: str) -> None:
    """Also one that failed."""
    owner.post(f"{EDIT}address/", {"name": emulator})
    for _ in range(trial.AT_ONCE_OF_PROJECT + 1):
        assert "answered in" in try_it(owner, "address", emulator)
        wait_until(lambda: not trial._running)
