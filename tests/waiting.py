"""Wait for a condition, so long that a loaded machine has time to fulfil it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE_S = 60.0
"""How long a test waits for what must happen. It is no bar: a bar is measured by a benchmark."""

_Value = TypeVar("_Value")


def wait_until(
    condition: Callable[[], _Value], seconds: float = PATIENCE_S, *, pause_s: float = 0.02
) -> _Value:
    """Return the first true value of ``condition``, which is called again after each pause.

    Raises ``AssertionError`` with its last value after so many seconds.
    """
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"not within {seconds:g} s: {value!r}"
        time.sleep(pause_s)
    return value
