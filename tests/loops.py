"""Threads for tests: one with an event loop, and one without."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from django.db import connection

from console.db.writer import is_embedded
from console.server.threads import run_in_loop

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")


def looped(fn: Callable[[], Coroutine[Any, Any, T]], seconds: float = 20) -> T:
    """Run in an event loop of a thread of its own: the browser's driver may have one in this.

    On SQLite with Django's permission to read in a loop, as the server has it; on PostgreSQL
    without, so that the tests there find what reads in a loop.
    """
    results: list[T] = []
    failed: list[BaseException] = []

    async def closing() -> T:
        try:
            return await asyncio.wait_for(fn(), seconds)
        finally:
            if is_embedded():
                run_in_loop(connection.close)

    def run() -> None:
        try:
            results.append(asyncio.run(closing()))
        except BaseException as error:  # noqa: BLE001 - it is the test's
            failed.append(error)
        finally:
            connection.close()

    with pytest.MonkeyPatch.context() as patch:
        if is_embedded():
            patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        else:
            patch.delenv("DJANGO_ALLOW_ASYNC_UNSAFE", raising=False)
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    if failed:
        raise failed[0]
    return results[0]


def threaded(fn: Callable[[], T]) -> T:
    """Call in a thread without an event loop: the browser's driver has one in this."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(fn).result()
