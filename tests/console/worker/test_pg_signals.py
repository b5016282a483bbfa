"""Signals to workers: each goes to one of them, and those of an execution to the same one."""

from __future__ import annotations

import json
import os
import threading
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from console.db import clock, signals
from console.models import Worker
from console.statuses import DueKind, Topic
from console.store.tasks import workers
from console.worker.pg_signals import (
    CHANNEL,
    NEAR_MS,
    NotifyListener,
    PgTransport,
    _notices,
    own_channel,
)
from console.worker.team import Team
from console.worker.worker_lock import server_parameters
from tests.waiting import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

TASK, CREATED, DUE = (Topic.TASK,), (Topic.CREATED,), (Topic.DUE,)


def test_signals_of_neighbours_share_a_notice() -> None:
    """Executions that are started together go to one worker, which commits them together."""
    added = [(CREATED, (number,)) for number in (8, 9, 15, 16)]
    notices = [(number, json.loads(text)) for number, text in _notices(added, 0)]
    assert [(number, [values for _, values in sent]) for number, sent in notices] == [
        (1, [[8], [9], [15]]),
        (2, [[16]]),
    ]


def test_a_signal_that_is_sent_twice_is_received_once() -> None:
    """A transaction may wake an execution for several messages."""
    ((_, text),) = _notices([(CREATED, (8,)), (CREATED, (8,))], 0)
    assert json.loads(text) == [[["created"], [8]]]


def test_a_timer_goes_to_the_worker_of_its_execution_if_it_is_near() -> None:
    """The sweep finds the others in the rows."""
    added = [(DUE, (due_ms, DueKind.TIMER, 17, 0)) for due_ms in (5_000, 5_001)]
    ((number, text),) = _notices(added, 5_000)
    assert number == 2
    assert json.loads(text) == [[["due"], [5_000, "timer", 17, 0]]]


def test_no_notice_exceeds_the_limit_of_postgresql() -> None:
    """8,000 bytes; what follows is in the next notice for the same worker."""
    due_ms, number = 10**14, 2**62
    added = [(DUE, (due_ms, DueKind.HEARTBEAT, number, task)) for task in range(10**6, 10**6 + 250)]
    notices = _notices(added, due_ms)
    assert {place for place, _ in notices} == {number // 8}
    assert max(len(text) for _, text in notices) < 8_000
    assert sum(len(json.loads(text)) for _, text in notices) == 250


# -- which worker ----------------------------------------------------------------------------------


def add_worker(name: str, pid: int, *, renewed_s_ago: float = 0, problem: str = "") -> None:
    """Add the lease of a worker on this machine."""
    until_ms = clock.now_ms() + workers._ttl_ms() - int(1000 * renewed_s_ago)
    Worker.objects.create(
        name=name,
        host=workers.host_name(),
        pid=pid,
        version="",
        started_ms=0,
        lease_until_ms=until_ms,
        problem=problem,
    )


def channel_of(monkeypatch: pytest.MonkeyPatch, pid: int) -> str:
    """Return the channel of a worker on this machine."""
    with monkeypatch.context() as patch:
        patch.setattr("os.getpid", lambda: pid)
        return own_channel()


@pytest.fixture
def other_session() -> Iterator[psycopg.Connection[Any]]:
    """A connection beside those of Django."""
    with psycopg.connect(**server_parameters(), autocommit=True) as own:
        yield own


@pytest.fixture
def _as_web(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send signals as a web process does."""
    monkeypatch.setattr(signals, "_transport", PgTransport(Topic.TASK, Topic.DUE))


def sent_to_workers(
    own: psycopg.Connection[Any], channels: list[str], numbers: list[int]
) -> list[tuple[int, int]]:
    """Signal a task of each execution; return the place of the channel and the execution."""
    for channel in channels:
        own.execute(f'LISTEN "{channel}"'.encode())
    for number in numbers:
        signals.publish(TASK, number, 5)
    notices = list(own.notifies(timeout=PATIENCE_S, stop_after=len(numbers)))
    return [
        (channels.index(notice.channel), values[0])
        for notice in notices
        for _, values in json.loads(notice.payload)
    ]


@pytest.mark.postgres_only
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_as_web")
def test_each_signal_goes_to_one_worker(
    monkeypatch: pytest.MonkeyPatch, other_session: psycopg.Connection[Any]
) -> None:
    """Executions are spread over the workers; signals of one stay together."""
    for pid in (1, 2, 3):
        add_worker(f"w{pid}", pid)
    channels = [channel_of(monkeypatch, pid) for pid in (1, 2, 3)]
    sent = sent_to_workers(other_session, channels, [0, 7, 8, 16, 24])
    assert sent == [(0, 0), (0, 7), (1, 8), (2, 16), (0, 24)]


@pytest.mark.postgres_only
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_as_web")
def test_a_worker_that_may_be_gone_gets_no_signals(
    monkeypatch: pytest.MonkeyPatch, other_session: psycopg.Connection[Any]
) -> None:
    """It has not renewed its lease twice, or it is about to stop; both leases are valid still."""
    add_worker("a", 1, renewed_s_ago=8)
    add_worker("b", 2, problem=Worker.STOPS)
    add_worker("c", 3)
    channels = [channel_of(monkeypatch, pid) for pid in (1, 2, 3)]
    sent = sent_to_workers(other_session, channels, [0, 8, 16])
    assert sent == [(2, 0), (2, 8), (2, 16)]


@pytest.mark.postgres_only
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_as_web")
def test_a_worker_hears_what_is_sent_to_it() -> None:
    """The sender may be its own process."""
    signals.publish(TASK, 8, 5)  # before there is a worker: the sweep finds the row
    add_worker("me", os.getpid())
    received: list[tuple[int, int]] = []
    heard = threading.Event()

    def hear(*values: int) -> None:
        received.append((values[0], values[1]))
        heard.set()

    end = signals.subscribe(TASK, hear)
    listener = NotifyListener(lambda _: None, works=True)
    listener.start()

    def hears() -> bool:
        signals.publish(DUE, clock.now_ms() + NEAR_MS + 60_000, DueKind.TIMER, 8, 0)
        signals.publish(TASK, 8, 5)
        return heard.wait(0.05)

    try:
        wait_until(hears)
        assert set(received) == {(8, 5)}
    finally:
        listener.stop()
        end()


@pytest.mark.postgres_only
@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("_as_web")
def test_a_worker_listens_before_it_takes_a_lease() -> None:
    """The first signal that is sent to it arrives."""
    add_worker("me", os.getpid())
    heard = threading.Event()
    end = signals.subscribe(TASK, lambda *_: heard.set())
    listener = NotifyListener(lambda _: None, works=True)
    listener.start(PATIENCE_S)
    try:
        signals.publish(TASK, 8, 5)
        assert heard.wait(PATIENCE_S)
    finally:
        listener.stop()
        end()


@pytest.mark.postgres_only
@pytest.mark.django_db(transaction=True)
def test_a_worker_forgets_settings_that_another_process_changes(
    other_session: psycopg.Connection[Any],
) -> None:
    """Calls of executions that are started after the change must see it."""
    forgotten = threading.Event()
    end = signals.subscribe((Topic.RIGHTS,), forgotten.set)
    listener = Team()._listener
    listener.start()

    def forgets() -> bool:
        other_session.execute("SELECT pg_notify(%s, %s)", [CHANNEL, json.dumps([Topic.RIGHTS])])
        return forgotten.wait(0.05)

    try:
        wait_until(forgets)
    finally:
        listener.stop()
        end()
