"""Bound how many calls of one access key wait for their answers at a time.

A call that waits holds no thread, but it looks for its answer every second, so that one key with
ten thousand polls would slow down every other project.
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
    """The calls of this process that wait, by their access keys."""

    def __init__(self) -> None:
        self._by_key: Counter[str] = Counter()

    def check(self, key_id: str, quotas: Quotas) -> None:
        """Raise ``ThrottlingException`` if as many calls of a key wait as may."""
        most = quotas.waiting_calls
        if self._by_key[key_id] >= most:
            raise ThrottlingException(f"Rate exceeded: {most} calls of this key wait already")

    @contextmanager
    def one_more(self, key_id: str) -> Iterator[None]:
        """Count a call while it waits (in the thread of the event loop)."""
        self._by_key[key_id] += 1
        try:
            yield
        finally:
            self._by_key[key_id] -= 1
            if not self._by_key[key_id]:
                del self._by_key[key_id]


WAITING_CALLS = WaitingCalls()
