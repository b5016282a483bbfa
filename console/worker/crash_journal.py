"""A file that outlives its process and shows what the process was computing when it died.

Each thread writes the execution that the engine computes, or the task whose Python callable runs,
into its own place of a mapped file; that costs nothing and survives kill -9. The file of a dead
process names exactly the executions and tasks that may have killed it, and none that only waited.
"""

from __future__ import annotations

import contextlib
import itertools
import mmap
import os
import struct
import threading
from typing import TYPE_CHECKING

from django.conf import settings

from console.store.tasks.workers import host_name, is_running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PLACES = 128
_PAIR = struct.Struct("<qq")


class CrashJournal:
    """Sees what this process steps, and reads what dead ones of this machine stepped last."""

    def __init__(self, folder: Path) -> None:
        """``folder``: where the files of all processes that use this data folder lie."""
        self._folder = folder
        self._prefix = host_name().replace("/", "_") + "-"
        self._local = threading.local()
        self._places = itertools.count()
        self._map: mmap.mmap | None = None

    def begin(self) -> None:
        """Make this process' file."""
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{self._prefix}{os.getpid()}"
        with path.open("w+b") as file:
            file.truncate(_PLACES * _PAIR.size)
            self._map = mmap.mmap(file.fileno(), _PLACES * _PAIR.size)

    def end(self) -> None:
        """Remove it: nothing is under way any more."""
        with contextlib.suppress(PermissionError):  # Windows removes no file that is mapped
            (self._folder / f"{self._prefix}{os.getpid()}").unlink(missing_ok=True)

    @contextlib.contextmanager
    def of(self, execution_id: int, task: int = 0) -> Iterator[None]:
        """Write down what this thread computes: a step of an execution, or one of its tasks."""
        place = self._place()
        self._write(place, execution_id, task)
        try:
            yield
        finally:
            self._write(place, 0, 0)

    def dead(self) -> list[tuple[int, int]]:
        """Return, once, (execution, task or 0) of what processes that are gone were computing."""
        entries: list[tuple[int, int]] = []
        for path in self._folder.glob(f"{self._prefix}*"):
            pid = path.name.removeprefix(self._prefix)
            if pid.isdigit() and not is_running(int(pid)):
                entries += _take(path)
        return entries

    def _place(self) -> int:
        if not hasattr(self._local, "place"):
            self._local.place = next(self._places) % _PLACES
        place: int = self._local.place
        return place

    def _write(self, place: int, execution_id: int, task: int) -> None:
        if self._map is not None:
            _PAIR.pack_into(self._map, place * _PAIR.size, execution_id, task)


def _take(path: Path) -> list[tuple[int, int]]:
    """Read a file and remove it; whoever removes it has it."""
    mine = path.with_name(f"taken-{os.getpid()}-{path.name}")
    try:
        path.rename(mine)
        text = mine.read_bytes()
        mine.unlink()
    except FileNotFoundError:
        return []
    return [(number, task) for number, task in _PAIR.iter_unpack(text) if number]


JOURNAL = CrashJournal(settings.STATEYARD_CRASH_JOURNAL)
"""Of this process; it sees nothing before ``begin``."""
