"""The stream sends each row of the audit in order, and loses none."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from structlog.testing import capture_logs

from console.db import audit, clock
from console.features.audit import chain, retention, sinks, stream, stream_state
from console.features.audit.models import NO_HASH, AuditSeal, AuditStream
from console.features.projects import deletion, store
from console.models import AuditEntry, Project
from tests.features.audit.test_chain import add_rows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DAY_MS = 24 * 3600 * 1000


@pytest.fixture
def file(tmp_path: Path, settings: Any, project: Project) -> Path:
    """Set a file as the sink, for an audit without rows."""
    del project
    AuditEntry.objects.all().delete()
    path = tmp_path / "audit.jsonl"
    settings.STATEYARD_AUDIT_STREAM = path.as_uri()
    return path


def send() -> None:
    """Seal the rows that wait, and send what is sealed."""
    stream._retry_at.clear()
    chain.seal_rows()
    stream.send_rows()


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def positions(path: Path) -> list[int]:
    """Return the positions of the lines of a file."""
    return [line["position"] for line in lines(path)]


def hash_as_documented(line: dict[str, Any]) -> str:
    """Compute the hash of a line as the guide says it, without the product."""
    row = line["row"]
    text = json.dumps(row, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()
    project = "" if row["project"] is None else row["project"]
    parts = (line["previous"], line["position"], row["id"], project, row["at_ms"], digest)
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()


def test_each_row_is_sent_once_and_proves_its_place(project: Project, file: Path) -> None:
    """A reader checks the chain by the lines alone, across batches."""
    add_rows(project, 2, "Änderung")
    add_rows(None, 1)
    send()
    add_rows(project, 1)
    send()
    send()
    sent = lines(file)
    assert [line["position"] for line in sent] == [1, 2, 3, 4]
    previous = NO_HASH
    for line in sent:
        assert line["previous"] == previous
        assert line["hash"] == hash_as_documented(line)
        previous = line["hash"]
    assert [line["project"] for line in sent] == [project.name, project.name, None, project.name]
    assert [line["row"]["action"] for line in sent] == ["Änderung", "Änderung", "Act", "Act"]
    assert sent[0]["time"].endswith("Z")
    assert file.stat().st_mode & 0o777 == 0o600


def test_nothing_is_sent_without_the_setting(project: Project, file: Path, settings: Any) -> None:
    """The rows of that time are sent when it is set."""
    address, settings.STATEYARD_AUDIT_STREAM = settings.STATEYARD_AUDIT_STREAM, ""
    add_rows(project, 2)
    send()
    assert not file.exists()
    assert [*stream_state.check_stream(), *stream_state.measure_stream()] == []
    settings.STATEYARD_AUDIT_STREAM = address
    send()
    assert positions(file) == [1, 2]


def test_a_process_that_dies_before_the_cursor_moves_repeats_lines(
    project: Project, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None is lost, and the order is the same if repeats are ignored."""
    monkeypatch.setattr(stream, "AT_ONCE", 2)
    add_rows(project, 5)
    change = stream._change

    def die(*_args: object, **_values: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(stream, "_change", die)
    with pytest.raises(KeyboardInterrupt):
        send()
    monkeypatch.setattr(stream, "_change", change)
    send()
    assert positions(file) == [1, 2, 1, 2, 3, 4, 5]


@pytest.mark.postgres_too
def test_two_workers_at_once_skip_no_row(project: Project, file: Path) -> None:
    """Each batch may repeat rows, never leave one out."""
    add_rows(project, 60)
    chain.seal_rows()

    def run() -> None:
        stream.send_rows()
        connection.close()

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    highest = 0
    for position in positions(file):
        assert position <= highest + 1
        highest = max(highest, position)
    assert highest == 60
    assert stream_state.sent_position() == 60


def test_a_part_of_a_line_is_followed_by_the_whole_line(project: Project, file: Path) -> None:
    """As a process leaves it that is killed while it writes."""
    file.write_text('{"position": 1, "ro', encoding="utf-8")
    add_rows(project, 1)
    send()
    torn, whole = file.read_text(encoding="utf-8").splitlines()
    assert torn == '{"position": 1, "ro'
    assert json.loads(whole)["position"] == 1


def test_a_file_that_was_rotated_or_removed_is_made_again(project: Project, file: Path) -> None:
    """By its name, with the next rows."""
    add_rows(project, 1)
    send()
    rotated = file.rename(file.with_suffix(".1"))
    add_rows(project, 1)
    send()
    assert (positions(rotated), positions(file)) == ([1], [2])
    file.unlink()
    add_rows(project, 1)
    send()
    assert positions(file) == [3]


def test_a_file_that_is_removed_while_it_is_written_is_written_again(
    project: Project, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines in a file without a name are lost."""
    fsync, turns = os.fsync, itertools.count()

    def remove_first(number: int) -> None:
        fsync(number)
        if next(turns) == 0:
            file.unlink()

    monkeypatch.setattr(os, "fsync", remove_first)
    add_rows(project, 1)
    send()
    assert positions(file) == [1]


def test_what_is_no_file_is_refused(project: Project, file: Path) -> None:
    """A pipe without a reader does not hold up the worker."""
    os.mkfifo(file)
    add_rows(project, 1)
    send()
    assert "audit.jsonl" in AuditStream.objects.get().problem
    file.unlink()
    file.mkdir()
    send()
    assert "directory" in AuditStream.objects.get().problem
    file.rmdir()
    send()
    assert AuditStream.objects.get().problem == ""
    assert positions(file) == [1]


def test_a_sink_that_is_down_is_shown_and_gets_everything_later(
    project: Project, file: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log says it once; the doctor since when; and the worker does not try all the time."""
    folder = file.parent / "mount"
    settings.STATEYARD_AUDIT_STREAM = f"file://{folder}/a.jsonl"
    add_rows(project, 3)
    with capture_logs() as logs:
        send()
        send()
        folder.mkdir()
        stream.send_rows()
        assert not (folder / "a.jsonl").exists(), "not before some seconds have passed"
        now_ms = clock.now_ms()
        monkeypatch.setattr(clock, "now_ms", lambda: now_ms + 300_000)
        ((name, verdict, text, mend),) = stream_state.check_stream()
        gauges = {gauge: value for gauge, _, value in stream_state.measure_stream()}
        send()
    assert (name, verdict) == ("audit", "failed")
    assert "for 5 min" in text
    assert "No such file or directory" in text
    assert "3 rows wait" in text
    assert mend
    assert gauges["stateyard_audit_stream_waiting"] == 3
    assert gauges["stateyard_audit_stream_oldest_seconds"] >= 300
    assert [each["event"] for each in logs if "stream" in each["event"]] == [
        "the audit stream fails: rows are kept and sent later",
        "the audit stream is sent again",
    ]
    assert positions(folder / "a.jsonl") == [1, 2, 3]
    assert [verdict for _, verdict, _, _ in stream_state.check_stream()] == ["ok"]
    assert [value for _, _, value in stream_state.measure_stream()] == [0, 0]


def test_the_doctor_warns_if_no_worker_sends(
    project: Project, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when only the web processes have the setting."""
    del file
    add_rows(project, 1)
    chain.seal_rows()
    now_ms = clock.now_ms()
    monkeypatch.setattr(clock, "now_ms", lambda: now_ms + 90_000)
    ((_, verdict, text, _),) = stream_state.check_stream()
    assert verdict == "warning"
    assert "1 row waits" in text


def test_a_row_that_was_deleted_by_hand_leaves_no_gap(project: Project, file: Path) -> None:
    """Its seal is sent, with which the chain of the lines goes on."""
    add_rows(project, 3)
    chain.seal_rows()
    entry = AuditEntry.objects.order_by("pk")[1]
    AuditEntry.objects.filter(pk=entry.pk).delete()
    send()
    first, second, third = lines(file)
    assert second["row"] is None
    assert second["deleted"] == {"id": entry.pk, "project": project.pk, "at_ms": entry.at_ms}
    assert (second["previous"], third["previous"]) == (first["hash"], second["hash"])


@pytest.mark.postgres_too
def test_retention_keeps_rows_that_were_not_sent(
    project: Project, file: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However old they are; sent rows go."""
    settings.STATEYARD_AUDIT_RETENTION_DAYS = 1
    add_rows(project, 2)
    send()
    add_rows(project, 2, "Unsent")
    chain.seal_rows()
    now_ms = clock.now_ms()
    monkeypatch.setattr(clock, "now_ms", lambda: now_ms + 2 * DAY_MS)
    retention.remove_old_rows()
    actions = list(AuditEntry.objects.order_by("pk").values_list("action", flat=True))
    assert actions == ["Unsent", "Unsent", "PruneAudit"]
    send()
    retention.remove_old_rows()
    send()
    assert not AuditEntry.objects.filter(action="Unsent").exists()
    assert positions(file) == [1, 2, 3, 4, 5, 6]


@pytest.mark.postgres_too
def test_a_deleted_project_disappears_after_its_rows_were_sent(
    project: Project, file: Path, django_user_model: Any
) -> None:
    """While the sink is down, its deletion waits."""
    del project
    django_user_model.objects.create_user("ana")
    actor = audit.Actor("root")
    payments = store.create_project("payments", "222222222222", "ana", actor)
    store.archive_project("payments", actor)
    number = deletion.begin_deletion("payments", "payments", actor).pk
    assert not deletion.work_on_deletion(number)
    chain.seal_rows()
    assert not deletion.work_on_deletion(number)
    assert Project.objects.filter(pk=payments.pk).exists()
    send()
    assert deletion.work_on_deletion(number)
    assert not Project.objects.filter(pk=payments.pk).exists()
    of_project = [line for line in lines(file) if line["project"] == "payments"]
    assert of_project
    assert all(line["row"] for line in of_project)


class Sink(BaseHTTPRequestHandler):
    """Takes posts, and answers with the status of the class."""

    status = 200
    posts: list[tuple[dict[str, str], bytes]] = []

    def do_POST(self) -> None:
        """Keep the post, and answer."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.posts.append((dict(self.headers), body))
        self.send_response(self.status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_args: object) -> None:
        """Say nothing."""


@pytest.fixture
def web_sink(file: Path, settings: Any) -> Iterator[type[Sink]]:
    """Set a web address as the sink."""
    del file
    Sink.posts, Sink.status = [], 200
    server = ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    settings.STATEYARD_AUDIT_STREAM = f"http://127.0.0.1:{server.server_port}/in?key=hush"
    settings.STATEYARD_AUDIT_STREAM_TOKEN = "s3cret"
    yield Sink
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_web_address_gets_lines_with_the_token(
    project: Project, web_sink: type[Sink], settings: Any
) -> None:
    """One post for a batch; a scheme in the token is sent as it is."""
    add_rows(project, 3)
    send()
    settings.STATEYARD_AUDIT_STREAM_TOKEN = "Splunk s3cret"
    add_rows(project, 1)
    send()
    (first, body), (second, _) = web_sink.posts
    assert first["Authorization"] == "Bearer s3cret"
    assert first["Content-Type"] == "application/x-ndjson"
    assert [json.loads(line)["position"] for line in body.splitlines()] == [1, 2, 3]
    assert second["Authorization"] == "Splunk s3cret"


@pytest.mark.parametrize("status", [302, 401, 500])
def test_an_answer_that_is_no_success_moves_nothing(
    project: Project, web_sink: type[Sink], status: int
) -> None:
    """Nor does a redirect; the problem names no secret."""
    web_sink.status = status
    add_rows(project, 1)
    send()
    problem = AuditStream.objects.get().problem
    assert str(status) in problem
    assert stream_state.sent_position() == 0
    web_sink.status = 204
    send()
    assert stream_state.sent_position() == 1
    assert len(web_sink.posts) == 2


def test_an_address_that_does_not_answer_is_a_problem_without_secrets(
    project: Project, file: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that takes the connection and says nothing: it is given up after some seconds."""
    del file
    monkeypatch.setattr(sinks, "LIMIT_S", 0.3)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Sink, bind_and_activate=True)
    port = server.server_port
    settings.STATEYARD_AUDIT_STREAM = f"http://127.0.0.1:{port}/in?key=hush"
    add_rows(project, 1)
    begun = time.monotonic()
    send()
    assert time.monotonic() - begun < 10
    assert "Timeout" in AuditStream.objects.get().problem
    server.server_close()
    send()
    problem = AuditStream.objects.get().problem
    assert "ConnectError" in problem
    assert "hush" not in problem
    assert AuditSeal.objects.count() == 1
