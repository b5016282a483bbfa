"""A message that moves nothing wakes a worker a moment later, unless a step came by then."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from django.db import connection

from console.db import signals
from console.statuses import Topic
from console.worker.delayed_wakeups import DelayedWakeups
from console.worker.pg_signals import CHANNEL, NotifyListener, PgTransport
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def woken() -> Iterator[list[int]]:
    """The executions that were woken, in their order."""
    numbers: list[int] = []
    end = signals.subscribe((Topic.RUNNABLE,), numbers.append)
    delayed = DelayedWakeups()
    delayed.start()
    yield numbers
    delayed.stop()
    end()


def heard(topic: Topic) -> threading.Event:
    """Return what is set by the next signal of a topic."""
    event = threading.Event()

    def hear(*_: object) -> None:
        event.set()
        end()

    end = signals.subscribe((topic,), hear)
    return event


@pytest.mark.usefixtures("project")
def test_only_what_was_not_stepped_is_woken(woken: list[int]) -> None:
    """Once, however often it was said."""
    after = heard(Topic.RUNNABLE)
    for number in (1, 2, 2, 3):
        signals.deliver((Topic.SOON,), number)
    signals.deliver((Topic.EXECUTION, 1))
    signals.deliver((Topic.EXECUTION, 3))
    assert after.wait(20)
    signals.deliver((Topic.SOON,), 4)
    assert heard(Topic.RUNNABLE).wait(20)
    assert woken == [2, 4]
    assert not any(signals.subscribers((Topic.EXECUTION, number)) for number in range(1, 5))


def notify_by_another() -> None:
    """Notify as a session does of which this process does not know."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, %s)", [CHANNEL, '["activity", "theirs"]'])


@pytest.mark.postgres_only
@pytest.mark.usefixtures("project")
def test_a_process_does_not_hear_its_own_notice_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or each task of an activity would wake two of its workers, one of them in vain."""
    heard_of: list[str] = []
    last = threading.Event()
    ends = [
        signals.subscribe((Topic.ACTIVITY, "own"), lambda: heard_of.append("own")),
        signals.subscribe((Topic.ACTIVITY, "theirs"), last.set),
    ]
    monkeypatch.setattr(signals, "_transport", PgTransport())
    listener = NotifyListener()
    listener.start()

    def listens() -> bool:
        notify_by_another()
        return last.wait(0.05)

    try:
        wait_until(listens)
        last.clear()
        signals.publish((Topic.ACTIVITY, "own"))
        connection.close()  # what another session notifies is another process'
        notify_by_another()
        assert last.wait(20)
        assert heard_of == ["own"]
    finally:
        listener.stop()
        for end in ends:
            end()
