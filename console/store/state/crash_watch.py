"""Record computations in progress, for a crash report; the worker sets the recorder."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    Watch = Callable[[int, int], AbstractContextManager[None]]


def _unwatched(_execution_id: int, _task: int) -> AbstractContextManager[None]:
    return contextlib.nullcontext()


_watch: Watch = _unwatched


def set_crash_watch(watch: Watch) -> None:
    """Set who notes the execution, and the task or 0, that the engine computes something for."""
    global _watch  # noqa: PLW0603 - one a process
    _watch = watch


def watch(execution_id: int, task: int = 0) -> AbstractContextManager[None]:
    """Have the body noted: a step of an execution or, with a task, what is a part of that task."""
    return _watch(execution_id, task)
