"""Keep what a file of settings said at the start, and tell whether it says so still."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from console.config import environment
from console.config.environment import SettingError

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic import TypeAdapter


class StartupFile:
    """A JSON file as read at startup; changes take effect at the next start.

    ``entries``: that object, {} if there was no file. Raise ``SettingError`` if it is no good.
    """

    def __init__(self, path: Path, shape: TypeAdapter[Any]) -> None:
        self.path = path
        self._shape = shape
        self.entries = environment.read_json_file(path, shape)

    def find_change(self) -> tuple[bool, str]:
        """Return whether the file says something else now, and why a start would refuse it."""
        try:
            return environment.read_json_file(self.path, self._shape) != self.entries, ""
        except SettingError as error:
            return True, str(error).replace(str(self.path), self.path.name)
