"""Read ``functions.json`` or a mock configuration again whenever the file changes.

Each access checks the file with one ``stat``, so an edit applies to the next call without a
restart. If the file becomes invalid, its last valid content stays in use, and ``problem`` has the
error.
"""

from __future__ import annotations

import threading
from collections.abc import ItemsView, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import structlog

from console.config import environment
from console.config.environment import SettingError

if TYPE_CHECKING:
    from pathlib import Path

    from console.config.environment import Shape

log = structlog.get_logger(__name__)


class FunctionsFile(Mapping[str, Any]):
    """A read-only mapping with the file's entries, overridden by those of the environment.

    ``overrides``: entries of the environment. Raise ``SettingError`` if the file is invalid at
    first.
    """

    def __init__(self, path: Path, shape: Shape, overrides: dict[str, Any]) -> None:
        self.path = path
        self.problem = ""
        self._shape = shape
        self._overrides = overrides
        self._lock = threading.Lock()
        self._stamp = file_stamp(path)
        self._entries = environment.read_json_file(path, shape) | overrides

    def __getitem__(self, name: str) -> Any:
        return self.entries()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries())

    def __len__(self) -> int:
        return len(self.entries())

    def items(self) -> ItemsView[str, Any]:
        """Return all entries, with one check of the file."""
        return self.entries().items()

    def entries(self) -> dict[str, Any]:
        """Return the current entries of the file."""
        if file_stamp(self.path) != self._stamp:
            with self._lock:
                self._read_again()
        return self._entries

    def _read_again(self) -> None:
        stamp = file_stamp(self.path)
        if stamp == self._stamp:
            return
        try:
            entries = environment.read_json_file(self.path, self._shape)
        except SettingError as error:
            self.problem = str(error)
            log.warning(
                "a changed file is left as it was before",
                file=self.path.name,
                problem=self.problem,
            )
        else:
            self.problem = ""
            self._entries = entries | self._overrides
            log.info("a file was read again", file=self.path.name, entries=len(self._entries))
        self._stamp = stamp


def file_stamp(path: Path) -> tuple[int, int, int]:
    """Return a value that changes with the file; zeros if it does not exist."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0, 0
    return status.st_mtime_ns, status.st_size, status.st_ino
