"""Skip newer validation rules while a stored definition is read.

An upgrade may add rules that a stored definition breaks. The definition must still run, so its
reader works inside ``stored_definition()``, and newer rules ask ``reads_stored()``.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_reads_stored: ContextVar[bool] = ContextVar("reads_stored", default=False)


@contextmanager
def stored_definition() -> Iterator[None]:
    """Context manager: compile definitions inside without the newer rules."""
    token = _reads_stored.set(True)
    try:
        yield
    finally:
        _reads_stored.reset(token)


def reads_stored() -> bool:
    """Return whether newer rules are skipped."""
    return _reads_stored.get()
