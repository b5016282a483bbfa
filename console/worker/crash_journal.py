"""Crash journal: which execution or task each thread was computing when its process died.

Each thread writes the execution (or the task of a Python callable) into its slot of a memory-mapped
file, which survives kill -9. After a crash the file names only the executions and tasks that may
have killed the process, and no waiting ones.

The blocks of the file are allocated before it is mapped: a write to a hole on a full disk would end
the process by SIGBUS. Without room for the file the process works without a journal, says why
(``problem``) and tries again once a minute. Until then it blames no execution for its death.
"""

from __future__ import annotations

import contextlib
import itertools
import mmap
import os
import struct
import threading
import time
from typing import TYPE_CHECKING

import structlog
from django.conf import settings

from console.store.tasks.workers import host_name, is_running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PLACES = 128
_PAIR = struct.Struct("<qq")
_RETRY_S = 60.0

log = structlog.get_logger(__name__)


class CrashJournal:
    """Records the current step of each thread; reads the records of dead processes."""

    def __init__(self, folder: Path) -> None:
        """``folder``: holds the journal files of all processes of this data folder."""
        self._folder = folder
        self._prefix = host_name().replace("/", "_") + "-"
        self._local = threading.local()
        self._places = itertools.count()
        self._map: mmap.mmap | None = None
        self._tried = 0.0
        self.problem = ""
        """The reason why this process has no journal; "" if it has one, or needs none."""

    def begin(self) -> None:
        """Create this process's file; on failure record the problem and run without a journal."""
        self._tried = time.monotonic()
        path = self._folder / f"{self._prefix}{os.getpid()}"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._map = _map_file(path)
        except OSError as error:
            problem = f"no crash journal in {self._folder}: {error.strerror}"
            if problem != self.problem:
                log.warning("works without a crash journal", why=problem)
            self.problem = problem
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
            return
        if self.problem:
            log.info("the crash journal works again")
        self.problem = ""

    def retry(self) -> None:
        """Try once a minute to create the file if ``begin`` failed."""
        if self.problem and time.monotonic() - self._tried > _RETRY_S:
            self.begin()

    def end(self) -> None:
        """Remove the file at a clean exit."""
        with contextlib.suppress(OSError):  # Windows removes no file that is mapped
            (self._folder / f"{self._prefix}{os.getpid()}").unlink(missing_ok=True)

    @contextlib.contextmanager
    def of(self, execution_id: int, task: int = 0) -> Iterator[None]:
        """Record the work of this thread: a step of an execution, or one of its tasks."""
        place = self._place()
        self._write(place, execution_id, task)
        try:
            yield
        finally:
            self._write(place, 0, 0)

    def dead(self) -> list[tuple[int, int]]:
        """Return, once, the (execution, task or 0) pairs that dead processes were computing."""
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


def _map_file(path: Path) -> mmap.mmap:
    """Return a new file of zeros, mapped; raise OSError if the disk has no room for it."""
    size = _PLACES * _PAIR.size
    with path.open("w+b") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.write(bytes(size))
            file.flush()
            os.fsync(file.fileno())
        return mmap.mmap(file.fileno(), size)


def _take(path: Path) -> list[tuple[int, int]]:
    """Read a file and remove it, unless another process has renamed the file first."""
    mine = path.with_name(f"taken-{os.getpid()}-{path.name}")
    try:
        path.rename(mine)
        text = mine.read_bytes()
        mine.unlink()
    except FileNotFoundError:
        return []
    except OSError as error:
        log.warning("a crash journal cannot be read", file=path.name, why=error.strerror)
        return []
    return [(number, task) for number, task in _PAIR.iter_unpack(text) if number]


JOURNAL = CrashJournal(settings.STATEYARD_CRASH_JOURNAL)
"""The journal of this process; it sees nothing before ``begin``."""
