"""Keep the object of ``functions.json`` or a mock configuration at hand, as the file says it now.

The file is looked at whenever somebody asks, which costs one ``stat``. So an edit counts for the
next call, and nothing has to be started anew. While the file cannot be used, what it said before
counts, and ``problem`` says why.
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

    from pydantic import TypeAdapter

log = structlog.get_logger(__name__)


class FunctionsFile(Mapping[str, Any]):
    """A read-only view of the file's object, with what the environment says over it.

    ``overrides``: entries of the environment. Raise ``SettingError`` if the file is invalid then.
    """

    def __init__(self, path: Path, shape: TypeAdapter[Any], overrides: dict[str, Any]) -> None:
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
        """Return all entries of one moment, with one look at the file."""
        return self.entries().items()

    def entries(self) -> dict[str, Any]:
        """Return the entries as the file says them now."""
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
    """Return what changes when a file does; zeros if there is none."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0, 0
    return status.st_mtime_ns, status.st_size, status.st_ino
