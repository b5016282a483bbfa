"""Pages of a history that are read ahead are the pages that would be read now."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from django.db import OperationalError, connection

from console.awsapi import read_ahead
from console.awsapi.read_ahead import PageKey, PagesAhead, page_key
from console.models import Execution, HistoryEvent
from console.server.threads import Threads
from console.statuses import ExecutionStatus
from console.store.state import history_pages
from tests.console.store.helpers import PASS, create, start
from tests.loops import looped
from tests.waiting import PATIENCE_S, wait_until

if TYPE_CHECKING:
    from console.models import Project

SIZE = 10


@pytest.fixture
def execution(project: Project) -> Execution:
    """Return an execution that has succeeded, with 35 events."""
    execution = start(create(project, PASS))
    for number in range(HistoryEvent.objects.filter(execution=execution).count() + 1, 36):
        add_event(execution, number)
    execution.status, execution.stop_ms = ExecutionStatus.SUCCEEDED, 1_700_000_001_000
    execution.save()
    return execution


def add_event(execution: Execution, number: int) -> None:
    """Append an event."""
    HistoryEvent.objects.create(
        execution=execution,
        event_id=number,
        previous=number - 1,
        at_ms=1_700_000_000_000,
        type="PassStateEntered",
        details=json.dumps({"name": f"S{number}"}),
    )


def numbers(page: Any) -> list[int]:
    """Return the ids of a page's events."""
    return [event["id"] for event in json.loads(page.events)]


def read(ahead: PagesAhead, key: PageKey) -> list[int]:
    """Read a page as an operation does, and let the next one be read ahead."""
    page = ahead.read(key)
    ahead.name_next(key, page)
    ahead.read_named()
    return numbers(page)


class Reads:
    """Counts the pages that are read from the table."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.after: list[int] = []

        def counted(execution_id: int, **more: Any) -> Any:
            self.after.append(more["after"])
            return history_pages.read_page(execution_id, **more)

        monkeypatch.setattr("console.awsapi.read_ahead.read_page", counted)


@pytest.mark.parametrize("reverse", [False, True])
def test_each_page_is_read_once_whoever_reads_on(
    execution: Execution, reverse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next page is there when it is asked for; the events are the same, in their order."""
    reads, ahead = Reads(monkeypatch), PagesAhead()
    whole: list[int] = []
    while len(whole) < 35:
        after = whole[-1] if whole else 0
        page = read(ahead, page_key(execution, after, SIZE, reverse=reverse))
        assert reads.after.count(after) == 1
        whole += page
    assert whole == sorted(range(1, 36), reverse=reverse)
    assert len(reads.after) == 4


def test_the_end_of_what_still_runs_is_read_when_it_is_asked_for(execution: Execution) -> None:
    """Events may follow; a page that others follow is kept."""
    execution.status, execution.stop_ms = ExecutionStatus.RUNNING, None
    ahead = PagesAhead()
    for after in (0, 10, 20):
        read(ahead, page_key(execution, after, SIZE, reverse=False))
    add_event(execution, 36)
    assert read(ahead, page_key(execution, 30, SIZE, reverse=False)) == [*range(31, 37)]


def test_a_redrive_makes_what_was_read_ahead_useless(execution: Execution) -> None:
    """The page that was the last one has more events now."""
    ahead = PagesAhead()
    read(ahead, page_key(execution, 20, SIZE, reverse=False))
    add_event(execution, 36)
    execution.redrive_count, execution.stop_ms = 1, None
    execution.status = ExecutionStatus.RUNNING
    assert read(ahead, page_key(execution, 30, SIZE, reverse=False)) == [*range(31, 37)]


def test_what_was_read_long_ago_is_read_again(
    execution: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Memory is used for what is asked for soon, once, and is bounded."""
    reads, ahead = Reads(monkeypatch), PagesAhead()
    monkeypatch.setattr(read_ahead, "KEPT_S", -1.0)
    read(ahead, page_key(execution, 0, SIZE, reverse=False))
    read(ahead, page_key(execution, 10, SIZE, reverse=False))
    assert reads.after == [0, 10, 10, 20]
    monkeypatch.setattr(read_ahead, "KEPT_S", 60.0)
    for size in range(1, 2 * read_ahead.MOST_PAGES):
        read(ahead, page_key(execution, 0, size, reverse=False))
    assert len(ahead._kept) == read_ahead.MOST_PAGES
    monkeypatch.setattr(read_ahead, "MOST_BYTES", 10)
    before = [*reads.after]
    read(ahead, page_key(execution, 5, SIZE, reverse=False))
    assert reads.after[len(before) :] == [5]


def test_who_asks_while_a_page_is_read_ahead_waits_for_it(
    execution: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not read twice; and if it cannot be read, the reader meets the error itself."""
    ahead = PagesAhead()
    key = page_key(execution, 0, SIZE, reverse=False)
    first = ahead.read(key)
    begun, free = threading.Event(), threading.Event()
    outcome: list[Any] = []

    def slow(key: PageKey) -> Any:
        begun.set()
        free.wait(PATIENCE_S)
        if key.after == 20:
            raise OperationalError("gone")
        return first

    monkeypatch.setattr(read_ahead, "read_key", slow)
    with ThreadPoolExecutor(2) as pool:
        for after in (10, 20):
            begun.clear()
            free.clear()
            ahead.name_next(key, first._replace(last=after))
            reading = pool.submit(ahead.read_named)
            assert begun.wait(PATIENCE_S)
            if after == 20:
                monkeypatch.setattr(read_ahead, "read_key", lambda _: "by itself")
            asked = pool.submit(ahead.read, key._replace(after=after))
            wait_until(lambda: not ahead._kept)
            free.set()
            outcome.append(asked.result(PATIENCE_S))
            reading.result(PATIENCE_S)
    assert outcome == [first, "by itself"]
    connection.close()


def test_nothing_is_read_ahead_while_calls_wait(execution: Execution) -> None:
    """What was named is forgotten; a server with much to do answers first."""
    ahead, busy = PagesAhead(), Threads(1, "busy")
    key = page_key(execution, 0, SIZE, reverse=False)
    page, free = ahead.read(key), threading.Event()

    async def crowd() -> None:
        first, second = busy.run(free.wait, PATIENCE_S), busy.run(int)
        ahead.name_next(key, page)
        ahead.begin(busy)
        assert not ahead._named
        free.set()
        await first
        await second

    looped(crowd)
    assert not ahead._kept


def test_the_start_of_what_still_runs_is_final(
    execution: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Backwards, no event can follow the first one."""
    execution.status, execution.stop_ms = ExecutionStatus.RUNNING, None
    reads, ahead = Reads(monkeypatch), PagesAhead()
    for after in (0, 26, 16, 6):
        read(ahead, page_key(execution, after, SIZE, reverse=True))
    assert reads.after == [0, 26, 16, 6]


def test_a_large_page_is_for_who_waits_for_it_alone(
    execution: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not kept, and nothing is read ahead behind it."""
    ahead = PagesAhead()
    key = page_key(execution, 0, SIZE, reverse=False)
    page = ahead.read(key)
    ahead.name_next(key, page)
    monkeypatch.setattr(read_ahead, "MOST_BYTES", 10)
    ahead.read_named()
    assert not ahead._kept
    ahead.name_next(key, page)
    assert not ahead._named
