"""Mark the computation in progress, so that a crash report names its execution."""

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
    """Set the recorder of computations: it gets the execution, and the task or 0."""
    global _watch  # noqa: PLW0603 - one a process
    _watch = watch


def watch(execution_id: int, task: int = 0) -> AbstractContextManager[None]:
    """Return a context manager that marks a step of an execution, or work on a task."""
    return _watch(execution_id, task)
