"""A process that comes back goes to the call that has waited longest, and nobody starves."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from console.config.function_options import FunctionOptions
from console.functions import lending
from console.functions.process import FunctionKey
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

A, B = (FunctionKey(name, f"work:{name}", FunctionOptions(), ()) for name in ("a", "b"))


class LentProcess:
    """What the lender knows of a process."""

    def __init__(self, key: FunctionKey) -> None:
        self.key = key
        self.idle_since = 0.0


class Lending:
    """A lender whose callers are threads. ``got``: whose calls got which process, in order."""

    def __init__(self, limit: int) -> None:
        self.lock = threading.Lock()
        self.lender: Any = lending.ProcessLender(limit, self.lock)
        self.got: list[tuple[str, Any]] = []
        self.threads: list[threading.Thread] = []

    def call(self, name: str, key: FunctionKey) -> None:
        """Let a caller wait, and return when it does or has been served."""
        before = self.lender._waiting.get(key, ())
        size = len(before)

        def take() -> None:
            process = self.lender.take(key)
            self.got.append((name, process))

        thread = threading.Thread(target=take)
        self.threads.append(thread)
        thread.start()
        wait_until(lambda: not thread.is_alive() or len(self.lender._waiting.get(key, ())) > size)

    def locked(self, act: Callable[..., Any], *arguments: Any) -> Any:
        """Call a method as the pool does."""
        with self.lock:
            return act(*arguments)

    def began(self, key: FunctionKey) -> LentProcess:
        """Start the process that a caller was told to start."""
        self.locked(self.lender.started)
        return LentProcess(key)

    def until_got(self, count: int) -> None:
        """Wait until so many callers were answered."""
        wait_until(lambda: len(self.got) == count)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let callers wait for a busy process as long as it takes."""
    monkeypatch.setattr(lending, "_PATIENCE_S", 600.0)


@pytest.mark.usefixtures("patient")
def test_callers_get_a_process_in_their_order() -> None:
    """The first call of a function starts one at once; the others share it."""
    yard = Lending(4)
    yard.call("first", A)
    yard.until_got(1)
    assert yard.got == [("first", None)]
    process = yard.began(A)
    for name in ("second", "third"):
        yard.call(name, A)
    for count in (2, 3):
        yard.locked(yard.lender.give_back, process)
        yard.until_got(count)
    assert yard.got[1:] == [("second", process), ("third", process)]
    yard.locked(yard.lender.give_back, process)
    assert list(yard.lender.idle()) == [process]


def test_a_caller_that_waits_too_long_starts_a_process() -> None:
    """Long calls do not wait for each other, up to the limit."""
    yard = Lending(2)
    for name in ("first", "second"):
        yard.call(name, A)
        yard.until_got(len(yard.threads))
        yard.began(A)
    assert [process for _, process in yard.got] == [None, None]
    yard.call("third", A)
    wait_until(lambda: yard.lender._for_room)  # its patience is over, and the limit holds
    assert len(yard.got) == 2
    process = LentProcess(A)
    yard.locked(yard.lender.give_back, process)
    yard.until_got(3)
    assert yard.got[2] == ("third", process)


@pytest.mark.usefixtures("patient")
def test_an_end_lets_the_next_caller_start() -> None:
    """Also if the start itself failed: no caller is forgotten."""
    yard = Lending(1)
    for name in ("first", "second", "third"):
        yard.call(name, A)
    yard.until_got(1)
    yard.locked(yard.lender.started)
    yard.locked(yard.lender.forget, A)  # it could not be started
    yard.until_got(2)
    yard.began(A)
    yard.locked(yard.lender.forget, A)  # it crashed
    yard.until_got(3)
    assert yard.got == [("first", None), ("second", None), ("third", None)]


@pytest.mark.usefixtures("patient")
def test_an_idle_process_makes_room_for_another_function() -> None:
    """It is the caller of the lender who ends it."""
    yard = Lending(1)
    yard.call("a", A)
    process = yard.began(A)
    yard.call("b", B)
    assert len(yard.got) == 1
    yard.locked(yard.lender.give_back, process)
    yard.until_got(2)
    assert yard.got[1] == ("b", None)
    assert yard.lender.has_surplus
    assert yard.locked(yard.lender.take_surplus) == [process]
    assert not list(yard.lender.idle())


@pytest.mark.usefixtures("patient")
def test_a_busy_function_leaves_room_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process is never idle, and is ended for the function that has waited for long."""
    yard = Lending(1)
    yard.call("a1", A)
    process = yard.began(A)
    yard.call("b", B)
    yard.call("a2", A)
    yard.locked(yard.lender.give_back, process)
    yard.until_got(2)
    assert yard.got[1] == ("a2", process)  # b has not waited for long
    monkeypatch.setattr(lending, "_LONG_S", 0.0)
    yard.call("a3", A)
    yard.locked(yard.lender.give_back, process)
    yard.until_got(3)
    assert yard.got[2] == ("b", None)
    assert yard.locked(yard.lender.take_surplus) == [process]
    other = yard.began(B)
    yard.locked(yard.lender.give_back, other)
    yard.until_got(4)
    assert yard.got[3] == ("a3", None)
