"""The rules for a definition that an earlier release accepted and stored.

A rule may be newer than a definition in a data folder. Such a definition still runs, by the rules
of its time: what only a newer rule refuses is let through while a stored definition is read.
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
    """Read what is compiled inside as a definition that is stored already."""
    token = _reads_stored.set(True)
    try:
        yield
    finally:
        _reads_stored.reset(token)


def reads_stored() -> bool:
    """Tell whether newer rules are off."""
    return _reads_stored.get()
