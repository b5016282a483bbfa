"""Readiness is looked at by a worker, kept by the minute, and summed up honestly."""

from __future__ import annotations

import http.server
import threading
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from console.db import clock
from console.features.operations import readiness, readiness_probe, views
from console.features.operations.readiness import MINUTE_MS, NOBODY_LOOKED
from console.models import Project, ReadinessMinute
from console.store.state import health
from tests.acceptance.server import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django.fixtures import Settings

T = 1_800_000_000_000 - 1_800_000_000_000 % MINUTE_MS


def put(minute: int, ready: int, looks: int = 4, reason: str = "") -> None:
    """Store what was measured in a minute after T."""
    ReadinessMinute.objects.create(
        minute_ms=T + minute * MINUTE_MS, looks=looks, ready=ready, reason=reason
    )


@pytest.fixture
def web() -> Iterator[tuple[str, list[int]]]:
    """Return the address of a web process, and a list with the status that it answers."""
    statuses = [200]

    class Answering(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path == "/healthz"
            self.send_response(statuses[0])
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.server_port}", statuses
    listener.shutdown()
    listener.server_close()
    thread.join()


def test_looks_of_a_minute_are_one_row(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """With how many there were, how many found it ready, and the last reason."""
    monkeypatch.setattr(clock, "now_ms", lambda: T + 5_000)
    for reason in ("", "no worker is alive", ""):
        readiness.note_look(reason)
    row = ReadinessMinute.objects.get()
    assert (row.minute_ms, row.looks, row.ready, row.reason) == (T, 3, 2, "no worker is alive")
    monkeypatch.setattr(clock, "now_ms", lambda: T + readiness.KEPT_MS + 2 * MINUTE_MS)
    readiness.note_look("x" * 300)
    assert [row.reason for row in ReadinessMinute.objects.all()] == ["x" * 200]
    assert project


@pytest.mark.parametrize(
    ("status", "reason"), [(200, ""), (302, ""), (401, ""), (503, "the web process answers 503")]
)
def test_a_worker_asks_the_web_process(
    project: Project, settings: Settings, web: tuple[str, list[int]], status: int, reason: str
) -> None:
    """Whoever answers but with an error of the server is there."""
    settings.STATEYARD_URL, web[1][0] = web[0], status
    readiness_probe.measure()
    assert ReadinessMinute.objects.get().reason == reason
    assert project


def test_a_certificate_that_is_not_known_is_an_answer(
    project: Project, settings: Settings, web: tuple[str, list[int]]
) -> None:
    """A proxy with a certificate of the company's own is there."""
    settings.STATEYARD_URL = web[0].replace("http:", "https:")
    readiness_probe.measure()
    assert ReadinessMinute.objects.get().reason == ""
    assert project


def test_a_web_process_that_is_gone_is_noted(project: Project, settings: Settings) -> None:
    """Workers alone serve nobody."""
    settings.STATEYARD_URL = f"http://127.0.0.1:{free_port()}"
    readiness_probe.measure()
    assert ReadinessMinute.objects.get().reason == "no web process answers: ConnectionRefusedError"
    assert project


def test_minutes_without_a_look_count_as_lost(project: Project) -> None:
    """Of ten minutes two are lost whole, and of one a half."""
    for minute in (0, 1, 2, 5, 6, 7, 8, 9):
        put(minute, 4)
    ReadinessMinute.objects.filter(minute_ms=T + 7 * MINUTE_MS).update(ready=2, reason="full disk")
    minutes = readiness.measured_minutes(T, T + 10 * MINUTE_MS)
    views = readiness.availability_of(minutes)
    assert (views.minutes, views.lost, views.share) == (10, 2.5, 0.75)
    gaps = list(readiness.interruptions_of(minutes))
    assert [(gap.from_ms - T, gap.lost_ms, gap.reason) for gap in gaps] == [
        (3 * MINUTE_MS, 2 * MINUTE_MS, NOBODY_LOOKED),
        (7 * MINUTE_MS, MINUTE_MS // 2, "full disk"),
    ]
    assert readiness.measured_since() == T
    assert project


def test_nothing_is_ready_before_the_first_start(project: Project) -> None:
    """A server that started at 20 seconds past looked three times in its first minute."""
    put(0, 3, looks=3)
    put(1, 4)
    assert readiness.measured_since() == T + 15_000
    report = views.make_report(T + 2 * MINUTE_MS)
    assert report.steady_since_ms == report.since_ms == T + 15_000
    assert [(figure.span, figure.lost_ms) for figure in report.figures] == [("1 min 45 s", 0)]
    assert project


def test_minutes_beside_a_stop_count_in_part(project: Project) -> None:
    """Stopped from 2:20 to 5:40: the list of interruptions adds up to the figure."""
    for minute, looks in ((0, 4), (1, 3), (2, 1), (5, 1), (6, 4), (7, 5)):
        put(minute, looks, looks=looks)
    report = views.make_report(T + 8 * MINUTE_MS)
    (gap,) = report.interruptions
    assert (gap.from_ms - T, gap.until_ms - T, gap.reason) == (135_000, 345_000, NOBODY_LOOKED)
    assert report.steady_since_ms == gap.until_ms
    assert {figure.lost_ms for figure in report.figures} == {gap.lost_ms} == {210_000}
    assert project


def test_a_stop_within_a_minute_is_seen(project: Project) -> None:
    """Of four looks two are missing, and no minute is without one."""
    for minute, looks in ((0, 4), (1, 2), (2, 4)):
        put(minute, looks, looks=looks)
    report = views.make_report(T + 3 * MINUTE_MS)
    assert [(gap.from_ms - T, gap.lost_ms) for gap in report.interruptions] == [
        (MINUTE_MS, MINUTE_MS // 2)
    ]
    assert report.steady_since_ms == T + 2 * MINUTE_MS
    assert project


def test_a_report_is_never_better_than_the_truth(project: Project) -> None:
    """99.93 % of a day meets the target, 99.86 % misses it; half a minute of 30 days is seen."""
    day = 24 * 60
    ReadinessMinute.objects.bulk_create(
        [
            ReadinessMinute(minute_ms=T + minute * MINUTE_MS, looks=4, ready=4)
            for minute in range(day)
            if minute not in (60, day - 1)
        ]
    )
    report = views.make_report(T + day * MINUTE_MS)
    assert [figure.percent for figure in report.figures] == ["99.861 %"]
    assert {figure.label.word for figure in report.figures} == {"Missed"}
    assert report.steady_since_ms is None
    put(day - 1, 4)
    report = views.make_report(T + day * MINUTE_MS + 30_000)
    assert [figure.percent for figure in report.figures] == ["99.93 %"]
    assert {figure.label.word for figure in report.figures} == {"Met"}
    assert report.steady_since_ms == T + 61 * MINUTE_MS
    assert views.percent_text(0.9999999) == "99.999 %"
    assert views.percent_text(1.0) == "100 %"


def test_a_restart_of_seconds_is_seen(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one process; the first start is none, and a worker of several ends no stop of theirs."""
    monkeypatch.setattr(clock, "now_ms", lambda: T + 30_000)
    monkeypatch.setattr(readiness_probe, "writer", SimpleNamespace(is_embedded=lambda: True))
    readiness_probe.note_start()
    assert not ReadinessMinute.objects.exists()
    put(0, 3, looks=3)
    monkeypatch.setattr(readiness_probe, "writer", SimpleNamespace(is_embedded=lambda: False))
    readiness_probe.note_start()
    assert views.make_report(T + MINUTE_MS).interruptions == ()
    monkeypatch.setattr(readiness_probe, "writer", SimpleNamespace(is_embedded=lambda: True))
    readiness_probe.note_start()
    (gap,) = views.make_report(T + MINUTE_MS).interruptions
    assert (gap.lost_ms, gap.reason) == (15_000, NOBODY_LOOKED)
    assert project


def test_a_worker_that_takes_over_checks_at_once(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that has just started waits: the port of its server may not be open yet."""
    looks: list[str] = []
    monkeypatch.setattr(readiness_probe, "writer", SimpleNamespace(is_embedded=lambda: False))
    monkeypatch.setattr(readiness_probe, "measure", lambda: looks.append("look"))
    for age_s, count in ((0, 0), (2 * readiness_probe.EVERY_S, 1)):
        monkeypatch.setattr(readiness_probe, "_loaded_at", time.monotonic() - age_s)
        readiness_probe.begin()
        assert len(looks) == count
    assert project


def test_nothing_is_reported_before_a_minute_is_over(project: Project) -> None:
    """Neither 0 % nor 100 %."""
    assert views.make_report(T).figures == ()
    put(0, 4)
    assert views.make_report(T + 30_000).figures == ()
    assert project


def test_waiting_work_is_listed_by_kind(project: Project) -> None:
    """With nothing to do, nothing waits."""
    works = health.list_waiting_work(clock.now_ms())
    assert len(works) == 3
    assert {work.age_ms for work in works} == {0}
    assert project
