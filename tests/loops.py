"""An event loop for tests, wherever they run."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from django.db import connection

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

T = TypeVar("T")


def looped(fn: Callable[[], Coroutine[Any, Any, T]], seconds: float = 20) -> T:
    """Run in an event loop of a thread of its own: the browser's driver may have one in this.

    Without Django's permission to read in a loop, which only that driver needs.
    """
    found: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            found.append(asyncio.run(asyncio.wait_for(fn(), seconds)))
        except BaseException as error:  # noqa: BLE001 - it is the test's
            failed.append(error)
        finally:
            connection.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DJANGO_ALLOW_ASYNC_UNSAFE", raising=False)
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    if failed:
        raise failed[0]
    return found[0]
