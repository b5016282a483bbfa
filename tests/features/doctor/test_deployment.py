"""The doctor checks a deployment, and says what to mend."""

from __future__ import annotations

import io
import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from console.features.doctor import deployment
from console.features.doctor.deployment import Connections, Finding, Questions, Verdict
from console.features.doctor.management.commands import doctor
from console.models import Worker
from console.store.state import health
from console.store.tasks.workers import version_of_workers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.django_db(transaction=True)
FINE = Questions(lambda: "", lambda: Connections(400, 3, 3))


def checked(name: str, questions: Questions = FINE) -> list[Finding]:
    """Return the findings of one check."""
    return [each for each in deployment.list_findings(questions) if each.check == name]


def verdict(name: str, questions: Questions = FINE) -> tuple[Verdict, str]:
    """Return the verdict of a check, and its text."""
    (finding,) = checked(name, questions)
    if finding.verdict in (Verdict.WARNING, Verdict.FAILED):
        assert finding.mend.endswith(".")
        assert finding.text.endswith(".")
    return finding.verdict, finding.text


def said(*args: str) -> tuple[str, int]:
    """Run the command; return what it printed, and its exit code."""
    out = io.StringIO()
    try:
        call_command("doctor", *args, stdout=out)
    except SystemExit as exit_:
        return out.getvalue(), int(str(exit_.code))
    return out.getvalue(), 0


def test_it_reports_lines_or_json(settings: Any) -> None:
    """Both have the same checks; the exit code is that of the worst verdict."""
    settings.STATEYARD_HOSTS = ["yard.example.com"]
    lines, code = said()
    printed, same_code = said("--json")
    report = json.loads(printed)
    assert [line.split()[:2] for line in lines.splitlines()] == [
        [each["verdict"], each["check"]] for each in report["checks"]
    ]
    assert report["verdict"] in {"warning", "failed"}
    assert code == same_code == doctor.EXIT_CODES[Verdict(report["verdict"])]
    assert report["version"].startswith("stateyard")
    assert {"hosts", "https", "disk", "mail", "queue", "workers"} <= {
        each["check"] for each in report["checks"]
    }


def test_the_worst_outcome_counts() -> None:
    """A skipped check is no problem."""
    findings = [Finding("a", each, "") for each in Verdict]
    assert deployment.worst_of(findings) is Verdict.FAILED
    assert deployment.worst_of(findings[:3]) is Verdict.WARNING
    assert deployment.worst_of(findings[:2]) is Verdict.OK
    assert set(doctor.EXIT_CODES) == set(Verdict) - {Verdict.SKIPPED}
    assert not {1, 2} & {*doctor.EXIT_CODES.values()}


@pytest.mark.sqlite_only
def test_the_server_of_one_person_needs_no_proxy(settings: Any) -> None:
    """Until it has a public name: then people use it."""
    settings.SILENCED_SYSTEM_CHECKS = [f"security.W{n:03}" for n in range(30)]
    assert verdict("https")[0] is Verdict.SKIPPED
    assert verdict("database")[0] is Verdict.SKIPPED
    settings.STATEYARD_HOSTS = ["yard.example.com"]
    assert verdict("https")[0] is Verdict.WARNING


def test_hosts(settings: Any) -> None:
    """The server answers at its own address, and not at every name."""
    settings.STATEYARD_HOSTS = ["web", "yard.example.com"]
    settings.ALLOWED_HOSTS = ["localhost", "web", "yard.example.com"]
    settings.STATEYARD_URL = "http://web:8083"
    assert verdict("hosts") == (Verdict.OK, "web, yard.example.com answer.")
    settings.STATEYARD_URL = "http://other:8083"
    assert verdict("hosts")[0] is Verdict.FAILED
    settings.STATEYARD_HOSTS = ["*"]
    assert verdict("hosts")[0] is Verdict.WARNING


def test_a_database_out_of_reach_skips_its_checks() -> None:
    """One finding says why; each check of rows says that it was not made."""
    down = Questions(lambda: "cannot use database 'x': Connection refused", FINE.count)
    findings = list(deployment.list_findings(down))
    assert (
        Finding(
            "database",
            Verdict.FAILED,
            "cannot use database 'x': Connection refused.",
            "Correct STATEYARD_DATABASE_URL, or start the database.",
        )
        in findings
    )
    assert {each.check for each in findings if each.text == "The database cannot be asked."} == {
        *("clock", "connections", "migrations", "queue", "versions", "workers")
    }


@pytest.mark.postgres_too
def test_pending_migrations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Migrations that are not applied yet, and those of a later version, are named."""
    assert verdict("migrations")[0] is Verdict.OK
    recorder = MigrationRecorder(connection)
    recorder.record_applied("console", "9999_of_the_future")
    try:
        assert "9999_of_the_future" in verdict("migrations")[1]
    finally:
        recorder.record_unapplied("console", "9999_of_the_future")
    row = recorder.migration_qs.filter(app="console").latest("name")
    recorder.record_unapplied("console", row.name)
    try:
        assert verdict("migrations") == (
            Verdict.WARNING,
            f"Pending migrations: 1; the first is {row.name}.",
        )
    finally:
        recorder.record_applied("console", row.name)


def test_work_that_waits_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Work that nobody takes is a failure after half a minute."""
    assert verdict("queue") == (Verdict.OK, "No work waits.")
    waiting = [health.WaitingWork("Steps", 31_000, 2), health.WaitingWork("Calls", 5, 1)]
    monkeypatch.setattr(health, "list_waiting_work", lambda _: waiting)
    text = "Waiting work: steps 2, calls 1; the oldest for 31.0 s."
    assert verdict("queue") == (Verdict.FAILED, text)


def worker(name: str, alive_ms: int, **more: Any) -> None:
    """Add a worker that is alive for so long."""
    now_ms = time.time_ns() // 1_000_000
    columns = {"host": "h", "pid": 1, "version": version_of_workers(), "started_ms": now_ms}
    Worker.objects.create(name=name, lease_until_ms=now_ms + alive_ms, **{**columns, **more})


@pytest.mark.postgres_only
def test_workers_and_versions() -> None:
    """A team needs a worker that is alive; all processes should have one version."""
    assert verdict("workers")[0] is Verdict.FAILED
    worker("a", 60_000)
    assert verdict("workers") == (Verdict.OK, "Living workers: 1.")
    assert verdict("versions")[0] is Verdict.OK
    worker("b", -60_000, version="0.1")
    assert verdict("workers")[0] is Verdict.WARNING
    assert verdict("versions")[0] is Verdict.OK, "it is gone"
    worker("c", 60_000, version="0.1")
    assert "0.1" in verdict("versions")[1]
    Worker.objects.filter(name="a").update(problem="the disk is full")
    assert verdict("workers")[1] == "A worker has a problem: the disk is full."


@pytest.mark.postgres_only
def test_connections_of_all_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three processes at least are counted, each with its pool and two more."""
    monkeypatch.setattr(deployment, "_pool_size", lambda: 12)
    assert verdict("connections")[0] is Verdict.OK
    few = Questions(lambda: "", lambda: Connections(40, 3, 1))
    answer = verdict("connections", few)
    assert answer[0] is Verdict.WARNING
    assert "PostgreSQL allows 40" in answer[1]
    many = Questions(lambda: "", lambda: Connections(400, 3, 50))
    assert verdict("connections", many)[0] is Verdict.WARNING


@pytest.mark.postgres_only
def test_the_database_is_asked_itself() -> None:
    """The command asks a real PostgreSQL, whose socket needs no encryption."""
    report = json.loads(said("--json")[0])
    verdicts = {each["check"]: each["verdict"] for each in report["checks"]}
    assert verdicts["database"] == verdicts["encryption"] == "ok"
    assert verdicts["clock"] == verdicts["migrations"] == "ok"


class _Web(BaseHTTPRequestHandler):
    status = 200

    def do_GET(self) -> None:
        """Answer with the status of the moment."""
        self.send_response(self.status)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Print nothing."""


@pytest.fixture
def web() -> Iterator[str]:
    """Serve on a free port; return the address."""
    server = HTTPServer(("127.0.0.1", 0), _Web)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_the_web_process_is_asked(settings: Any, web: str, monkeypatch: Any) -> None:
    """At STATEYARD_URL; the answer is a success or a failure."""
    settings.STATEYARD_URL = web
    assert verdict("web")[0] is Verdict.OK
    monkeypatch.setattr(_Web, "status", 503)
    assert verdict("web") == (Verdict.FAILED, f"STATEYARD_URL, {web}: the answer is 503.")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
    settings.STATEYARD_URL = f"http://127.0.0.1:{port}"
    assert "ConnectionRefusedError" in verdict("web")[1]


def test_the_public_address(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that cannot be reached is a warning, a wrong certificate a failure."""
    settings.STATEYARD_HTTPS, settings.STATEYARD_HOSTS = True, ["web", "yard.example.com"]
    answers = {
        Verdict.OK: deployment.PageAnswer(True, 80),
        Verdict.WARNING: deployment.PageAnswer(True, 3),
        Verdict.FAILED: deployment.PageAnswer(True, 0, "It is wrong.", "Renew it."),
    }
    for expected, answer in answers.items():
        monkeypatch.setattr(deployment, "open_page", lambda _, answer=answer: answer)
        assert verdict("tls")[0] is expected
    unreachable = deployment.PageAnswer(False, 0, "No answer.", "Check DNS.")
    monkeypatch.setattr(deployment, "open_page", lambda _: unreachable)
    assert verdict("tls")[0] is Verdict.WARNING


def test_a_name_without_a_server() -> None:
    """It is not reached; the answer names the kind of error, and nothing else."""
    answer = deployment.open_page("127.0.0.1:9")
    assert (answer.reached, answer.days) == (False, 0)
    assert "ConnectionRefusedError" in answer.problem


def test_mail_is_tried_without_sending(settings: Any) -> None:
    """A server that refuses is a failure; its password is not printed."""
    settings.STATEYARD_MAIL = "smtp://yard:hush@127.0.0.1:9"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
    settings.EMAIL_HOST_PASSWORD = "hush"
    answer = verdict("mail")
    assert answer == (
        Verdict.FAILED,
        "The mail server 127.0.0.1:9 refuses: ConnectionRefusedError.",
    )


def test_open_secrets_of_the_configuration(settings: Any, tmp_path: Path) -> None:
    """Files with secrets in STATEYARD_CONFIG are private."""
    settings.STATEYARD_CONFIG = tmp_path
    file = tmp_path / "oidc.json"
    file.write_text("{}", encoding="utf-8")
    file.chmod(0o644)
    assert any(str(file) in each.text for each in checked("files"))
    file.chmod(0o600)
    assert not any(str(file) in each.text for each in checked("files"))


@pytest.mark.parametrize(("free", "expected"), [(10, "failed"), (10**9, "warning"), (10**12, "ok")])
def test_free_disk(free: int, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A little is a warning, almost nothing a failure."""
    usage = type("Usage", (), {"free": free})
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage)
    assert verdict("disk")[0] == expected


def test_loopback_addresses() -> None:
    """They need no encryption."""
    hosts = ("127.0.0.1", "::1", "localhost", "10.0.0.1", "db.example.com")
    assert [deployment.is_loopback(host) for host in hosts] == [True, True, True, False, False]
