"""The pool has a thread for every job, also when other jobs hang."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

import pytest

from console.worker import Embedded, call_pool, embedded
from console.worker.call_pool import CallPool
from console.worker.fair_pool import FairPool
from console.worker.fair_shares import FairShare
from tests.console.store.helpers import create, ended, function, one, start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.models import Project

let_go = threading.Event()


def hang(event: object, context: object) -> None:
    """A function that hangs until the test ends."""
    del event, context
    let_go.wait(60)


def none(waited: object) -> None:
    """Return nothing, as a job does."""
    del waited


def double(event: int, context: object) -> int:
    """A function of the tests."""
    del context
    return event * 2


@pytest.fixture(autouse=True)
def functions(settings: Any) -> Iterator[None]:
    """Register the functions above; nothing hangs after the test."""
    here = "tests.console.worker.test_pool"
    settings.STATEYARD_FUNCTIONS = {name: f"{here}:{name}" for name in ("hang", "double")}
    let_go.clear()
    yield
    let_go.set()


class Slow(deque[Any]):
    """A queue whose reader is held up just after it took a job out."""

    def popleft(self) -> Any:
        """Take a job."""
        job = super().popleft()
        time.sleep(0.2)
        return job


def test_a_job_that_comes_as_another_is_taken_has_a_thread() -> None:
    """The thread that is just taking the first job is not counted on for the second."""
    jobs = CallPool(2, "test")
    jobs.submit(lambda: None)
    while not jobs._idle:
        time.sleep(0.001)
    jobs._jobs = Slow()
    both = threading.Barrier(3)
    jobs.submit(lambda: none(both.wait(5)))
    time.sleep(0.05)
    jobs.submit(lambda: none(both.wait(5)))
    both.wait(5)
    jobs.stop(0)


class _NoThreads:
    """Lets the system start no thread of a pool for so many times."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
        self.left = times
        self._start = threading.Thread.start
        monkeypatch.setattr(
            threading.Thread, "start", lambda thread: _NoThreads.start(self, thread)
        )

    def start(self, thread: threading.Thread) -> None:
        """Start a thread, or refuse as CPython does at the limit of the system."""
        if self.left:
            self.left -= 1
            raise RuntimeError("can't start new thread")
        self._start(thread)


def test_a_job_waits_until_the_system_starts_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is neither lost nor does it take the place of others."""
    system = _NoThreads(monkeypatch, 3)
    jobs, done = CallPool(1, "test"), threading.Event()
    jobs.submit(done.set)
    assert done.wait(30)
    assert system.left == 0
    jobs.stop(0)


def test_a_job_without_a_thread_of_its_own_is_done_by_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The place of the thread that did not start is still there for the next job."""
    jobs, go_on, done = CallPool(2, "test"), threading.Event(), threading.Event()
    jobs.submit(lambda: none(go_on.wait(30)))
    system = _NoThreads(monkeypatch, 1)
    jobs.submit(done.set)
    assert system.left == 0
    go_on.set()
    assert done.wait(30)
    go_on.clear()
    both = threading.Barrier(3)
    jobs.submit(lambda: none(both.wait(30)))
    jobs.submit(lambda: none(both.wait(30)))
    both.wait(30)
    jobs.stop(0)


def test_a_fair_pool_sorts_on_after_a_time_without_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its sorter and its places are as before, so that what is queued begins."""
    _NoThreads(monkeypatch, 5)
    pool = FairPool(1, "test", lambda abouts: dict.fromkeys(abouts, FairShare(1, "")))
    done = [threading.Event() for _ in range(4)]
    for number, event in enumerate(done):
        pool.submit(event.set, about=number)
    assert all(event.wait(30) for event in done)
    pool.stop(0)


def test_hanging_jobs_are_replaced_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each once; a replaced thread ends with its job and makes room again."""
    monkeypatch.setattr(call_pool, "MAX_HUNG", 1)
    jobs = CallPool(1, "test")
    for number in (1, 2):
        jobs.submit(lambda: none(let_go.wait(60)), key=number)
    deadline = time.monotonic() + 5
    while jobs.lasting(0) != [1]:
        assert time.monotonic() < deadline
    assert jobs.replace(1)
    assert not jobs.replace(1)
    while jobs.lasting(0) != [2]:
        assert time.monotonic() < deadline
    assert not jobs.replace(2)
    let_go.set()
    while jobs._hung:
        assert time.monotonic() < deadline
    jobs.stop(1)


@pytest.mark.slow
def test_calls_that_hang_keep_nobody_waiting(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their task times out; other calls get the thread, Map Runs have their own."""
    monkeypatch.setattr(embedded, "TASK_THREADS", 1)
    monkeypatch.setattr(embedded, "HUNG_AFTER_S", 0.5)
    worker = Embedded()
    worker.start()
    try:
        hanging = start(create(project, one("T", **function("hang", TimeoutSeconds=2)), "hangs"))
        calling = start(create(project, one("T", **function("double")), "calls"), 2)
        inner = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}
        inner |= one("P", Type="Pass")
        mapping = start(create(project, one("M", Type="Map", ItemProcessor=inner), "maps"), [1])
        assert ended(mapping, 1.5).output == "[1]"
        assert ended(hanging).error == "States.Timeout"
        assert ended(calling).output == "4"
    finally:
        let_go.set()
        worker.stop()
