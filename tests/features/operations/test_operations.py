"""The page of operations tells everybody the state of the server, and only owners its hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from console.db import clock, signals
from console.models import InboxMessage, ReadinessMinute, Worker
from console.store.state import health
from console.web.core import formatting
from tests.console.store.helpers import WAIT, create, drain, start
from tests.console.web.helpers import text

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

MINUTE = 60_000


def test_a_fresh_server_has_no_figures_yet(client: Client) -> None:
    """And says when they come."""
    shown = text(client.get("/operations/"))
    assert "appear after one minute" in shown
    assert "One process serves pages and the API and runs workflows" in shown
    assert 'href="/operations/"' in text(client.get("/"))


def test_availability_and_its_interruptions(client: Client) -> None:
    """A figure against the target, an hour a cell, and why it was not ready."""
    now = clock.now_ms() // MINUTE * MINUTE
    ReadinessMinute.objects.bulk_create(
        [
            ReadinessMinute(
                minute_ms=now - number * MINUTE,
                looks=4,
                ready=0 if number == 30 else 4,
                reason="<b>no worker</b>" if number == 30 else "",
            )
            for number in range(1, 101)
        ]
    )
    shown = client.get("/operations/").content.decode()
    assert shown.count("99 %") >= 1
    assert shown.count("Missed") == 1
    assert "&lt;b&gt;no worker&lt;/b&gt;" in shown
    assert "<b>no worker" not in shown


def test_a_young_server_has_no_figure_of_30_days(client: Client) -> None:
    """It has one of what is measured, and then one of each span that is measured as a whole."""
    now = clock.now_ms() // MINUTE * MINUTE

    def measured(from_minute: int, to_minute: int) -> list[tuple[str, bool, str]]:
        ReadinessMinute.objects.bulk_create(
            ReadinessMinute(minute_ms=now - number * MINUTE, looks=4, ready=4)
            for number in range(from_minute, to_minute)
        )
        figures = client.get("/operations/").context["report"].figures
        return [(figure.span, figure.whole, figure.label.word) for figure in figures]

    assert measured(1, 9) == [("8 min 00 s", False, "Met so far")]
    shown = text(client.get("/operations/"))
    assert "measured so far" in shown
    assert "30 days</td>" not in shown
    day = 24 * 60
    two_days = [("24 hours", True, "Met"), ("2 d 00 h", False, "Met so far")]
    assert measured(9, 2 * day + 1) == two_days
    assert "measured so far" in text(client.get("/operations/"))


def test_one_process_is_not_ready_before_it_began(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The minute of its start, which shows the stop, may not be over yet."""
    now = clock.now_ms() // MINUTE * MINUTE
    began = now - 2 * MINUTE + 8_000
    monkeypatch.setattr(health, "PROCESS_STARTED_MS", began)
    ReadinessMinute.objects.bulk_create(
        [
            ReadinessMinute(minute_ms=now - number * MINUTE, looks=4, ready=4)
            for number in range(1, 10)
        ]
    )
    fact = text(client.get("/operations/")).partition("Continuously ready since")[2]
    assert formatting.iso_text(began) in fact.partition("</dd>")[0]
    ReadinessMinute.objects.filter(minute_ms=now - MINUTE).update(ready=3, reason="restarted")
    monkeypatch.setattr(health, "PROCESS_STARTED_MS", now - 1_000)
    fact = text(client.get("/operations/")).partition("Continuously ready since")[2]
    assert formatting.iso_text(now - 1_000) in fact.partition("</dd>")[0]
    monkeypatch.setattr(signals, "get_transport", object)
    fact = text(client.get("/operations/")).partition("Continuously ready since")[2]
    assert "not ready a minute ago" in fact.partition("</dd>")[0]
    ReadinessMinute.objects.update(ready=4)
    fact = text(client.get("/operations/")).partition("Continuously ready since")[2]
    assert formatting.iso_text(now - 9 * MINUTE) in fact.partition("</dd>")[0]


def test_work_that_waits_is_shown(client: Client, project: Project) -> None:
    """A message that nobody has taken for a minute makes the server not ready."""
    execution = start(create(project, WAIT))
    drain(execution)
    late = clock.now_ms() - MINUTE
    InboxMessage.objects.create(execution=execution, kind="Stop", body="{}", created_ms=late)
    shown = text(client.get("/operations/"))
    assert "Not ready" in shown
    assert "work has been waiting for" in shown
    assert "1 min 0" in shown.partition("Queued steps")[2].partition("</dd>")[0]


@pytest.mark.postgres_too
def test_hosts_are_for_owners(
    signed_in: Callable[[str], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others see how many workers there are, and how they are."""
    now = clock.now_ms()
    for name, lease in (("first", now + 60_000), ("second", now - 1)):
        Worker.objects.create(
            name=name, host="db-7.internal", pid=4711, version="0.1",
            started_ms=now, lease_until_ms=lease,
        )  # fmt: skip
    monkeypatch.setattr(signals, "get_transport", object)
    for role in ("viewer", "editor"):
        shown = text(signed_in(role).get("/operations/"))
        assert "db-7.internal" not in shown
        assert "4711" not in shown
        assert ("Alive" in shown, "Lease ended" in shown) == (True, True)
    assert "db-7.internal" in text(signed_in("owner").get("/operations/"))


def test_waiting_work_is_counted(client: Client, project: Project) -> None:
    """How many executions have something due, not how many messages; the future does not count."""
    machine = create(project, WAIT)
    late = clock.now_ms() - 1_000
    for name in ("a", "b", "c"):
        execution = drain(start(machine, name=name))
        for _ in range(0 if name == "c" else 2):
            InboxMessage.objects.create(
                execution=execution, kind="Stop", body="{}", created_ms=late
            )
    works = {work.kind: work for work in health.list_waiting_work(clock.now_ms())}
    assert works["Steps"].count == 2
    assert works["Steps"].age_ms >= 1_000
    assert (works["Calls"].count, works["Deliveries"].count) == (0, 0)
    shown = text(client.get("/operations/")).partition("Queued steps")[2].partition("</dd>")[0]
    assert "2" in shown
    assert "oldest for 1" in shown
