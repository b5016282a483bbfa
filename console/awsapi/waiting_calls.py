"""Limit the concurrent long polls of one access key.

A long poll holds no thread, but checks for its answer every second: one key with ten thousand polls
would slow down every other project.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

from console.errors import ThrottlingException

if TYPE_CHECKING:
    from collections.abc import Iterator

    from console.config.quotas import Quotas


class WaitingCalls:
    """The long polls of this process, by access key."""

    def __init__(self) -> None:
        self._by_key: Counter[str] = Counter()

    def check(self, key_id: str, quotas: Quotas) -> None:
        """Raise ``ThrottlingException`` if a key has reached its limit of long polls."""
        most = quotas.waiting_calls
        if self._by_key[key_id] >= most:
            raise ThrottlingException(f"Rate exceeded: {most} calls of this key wait already")

    @contextmanager
    def one_more(self, key_id: str) -> Iterator[None]:
        """Count a call during its wait (in the event loop's thread)."""
        self._by_key[key_id] += 1
        try:
            yield
        finally:
            self._by_key[key_id] -= 1
            if not self._by_key[key_id]:
                del self._by_key[key_id]


WAITING_CALLS = WaitingCalls()
