"""What was a process stepping when it died?  A few numbers in a file that outlives it.

Each stepping thread writes the execution it steps into its own place of a mapped file; that costs
nothing and survives kill -9. Whoever finds the file of a process that is gone knows exactly which
executions may have killed it: not those that only waited.
"""

from __future__ import annotations

import contextlib
import itertools
import mmap
import os
import struct
import threading
from typing import TYPE_CHECKING

from console.store.workers import host, runs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PLACES = 16
_NUMBER = struct.Struct("<q")


class Witness:
    """Sees what this process steps, and reads what dead ones of this machine stepped last."""

    def __init__(self, folder: Path) -> None:
        """``folder``: where the files of all processes that use this data folder lie."""
        self._folder = folder
        self._prefix = host().replace("/", "_") + "-"
        self._local = threading.local()
        self._places = itertools.count()
        self._map: mmap.mmap | None = None

    def begin(self) -> None:
        """Make this process' file."""
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{self._prefix}{os.getpid()}"
        with path.open("w+b") as file:
            file.truncate(_PLACES * _NUMBER.size)
            self._map = mmap.mmap(file.fileno(), _PLACES * _NUMBER.size)

    def end(self) -> None:
        """Remove it: nothing is under way any more."""
        (self._folder / f"{self._prefix}{os.getpid()}").unlink(missing_ok=True)

    @contextlib.contextmanager
    def of(self, number: int) -> Iterator[None]:
        """Write down that this thread steps an execution."""
        place = self._place()
        self._write(place, number)
        try:
            yield
        finally:
            self._write(place, 0)

    def dead(self) -> list[int]:
        """Return what processes that are gone were stepping; each death is told once."""
        found: list[int] = []
        for path in self._folder.glob(f"{self._prefix}*"):
            pid = path.name.removeprefix(self._prefix)
            if pid.isdigit() and not runs(int(pid)):
                found += _take(path)
        return found

    def _place(self) -> int:
        if not hasattr(self._local, "place"):
            self._local.place = next(self._places) % _PLACES
        place: int = self._local.place
        return place

    def _write(self, place: int, number: int) -> None:
        if self._map is not None:
            _NUMBER.pack_into(self._map, place * _NUMBER.size, number)


def _take(path: Path) -> list[int]:
    """Read a file and remove it; whoever removes it has it."""
    mine = path.with_name(f"taken-{os.getpid()}-{path.name}")
    try:
        path.rename(mine)
        text = mine.read_bytes()
        mine.unlink()
    except FileNotFoundError:
        return []
    return [number for (number,) in _NUMBER.iter_unpack(text) if number]
