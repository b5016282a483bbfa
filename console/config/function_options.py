"""Parse entries of ``functions.json``: the target of a registered function, and its call options.

An entry is a target alone (a text), or an object with a target and options. ``"python"`` and
``"process"`` beside the entries of a file or project apply to all of its functions.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_CALLABLE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
OWN, SHARED = "own", "shared"
"""Values of ``"process"``: a process for each function, or the server's."""
GENERAL = ("python", "process")
"""Options that apply to all functions of a section."""


@dataclass(frozen=True, slots=True)
class FunctionOptions:
    """The call options of a function; an empty text or 0 means the default.

    ``python``: path or command of the interpreter; ``folder``: the working folder; ``timeout_s``:
    the time limit of a call, in addition to the Task's own.
    """

    process: str = ""
    python: str = ""
    folder: str = ""
    timeout_s: float = 0
    memory_mb: int = 0
    environment: tuple[tuple[str, str], ...] = ()


SHARED_PROCESS = FunctionOptions(process=SHARED)


class FoundFunction(NamedTuple):
    """A registered function: its URL or ``module:callable``, and the place of its entry."""

    target: str
    where: str
    options: FunctionOptions = FunctionOptions()


def is_callable_target(target: str) -> bool:
    """Return whether a text has the form ``module:callable``."""
    return _CALLABLE.fullmatch(target) is not None


def is_function(name: str, entry: object) -> bool:
    """Return whether a key of a file is a function, rather than an option or a project."""
    if isinstance(entry, dict):
        return isinstance(entry.get("handler"), str)
    if not isinstance(entry, str):
        return False
    if name not in GENERAL:
        return True
    return is_callable_target(entry) or entry.startswith(("http://", "https://"))


def general_options(section: Mapping[str, Any]) -> dict[str, str]:
    """Return the options that apply to all functions of a section."""
    return {
        name: section[name]
        for name in GENERAL
        if isinstance(section.get(name), str) and not is_function(name, section[name])
    }


def read_entry(
    entry: str | Mapping[str, Any], where: str, general: Mapping[str, str], base: Path
) -> FoundFunction:
    """Return the function of an entry, with the section's options as defaults.

    ``base``: the folder for relative paths.
    """
    own: Mapping[str, Any] = {"handler": entry} if isinstance(entry, str) else entry
    python = own.get("python", general.get("python", ""))
    options = FunctionOptions(
        process=own.get("process", OWN if len(own) > 1 else general.get("process", "")),
        python=_path(python, base) if re.search(r"[/\\]", python) else python,
        folder=_path(own["folder"], base) if own.get("folder") else "",
        timeout_s=own.get("timeout", 0),
        memory_mb=own.get("memory", 0),
        environment=tuple(sorted(own.get("environment", {}).items())),
    )
    return FoundFunction(own["handler"], where, options)


def _path(path: str, base: Path) -> str:
    """Return an absolute path without resolving links: they lead out of virtual environments."""
    return os.path.normpath(base.resolve() / Path(path).expanduser())
