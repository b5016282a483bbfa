"""How a registered function is called: what ``functions.json`` says beside the target.

An entry is a text, the target alone, or an object with it and with options. Beside the entries of a
file or of a project, ``"python"`` and ``"process"`` count for all of them.
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
"""Options that may stand beside the entries."""


@dataclass(frozen=True, slots=True)
class FunctionOptions:
    """The options of a function; what is empty or 0 was left to the default.

    ``python``: path or command of the interpreter; ``folder``: the working folder; ``timeout_s``:
    that a call may take, beside the Task's own.
    """

    process: str = ""
    python: str = ""
    folder: str = ""
    timeout_s: float = 0
    memory_mb: int = 0
    environment: tuple[tuple[str, str], ...] = ()


SHARED_PROCESS = FunctionOptions(process=SHARED)


class FoundFunction(NamedTuple):
    """A registered function: an address or ``module:callable``, and where that is said."""

    target: str
    where: str
    options: FunctionOptions = FunctionOptions()


def is_callable_target(target: str) -> bool:
    """Tell whether a text has the form ``module:callable``."""
    return _CALLABLE.fullmatch(target) is not None


def is_function(name: str, entry: object) -> bool:
    """Tell whether a member of a file registers a function, rather than an option or a project."""
    if isinstance(entry, dict):
        return isinstance(entry.get("handler"), str)
    if not isinstance(entry, str):
        return False
    if name not in GENERAL:
        return True
    return is_callable_target(entry) or entry.startswith(("http://", "https://"))


def general_options(section: Mapping[str, Any]) -> dict[str, str]:
    """Return the options that count for all functions of a section."""
    return {
        name: section[name]
        for name in GENERAL
        if isinstance(section.get(name), str) and not is_function(name, section[name])
    }


def read_entry(
    entry: str | Mapping[str, Any], where: str, general: Mapping[str, str], base: Path
) -> FoundFunction:
    """Return a function as its entry and the options around it say.

    ``base``: the folder that relative paths begin in.
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
    """Return an absolute path; links are left as they are, or a virtual environment is lost."""
    return os.path.normpath(base.resolve() / Path(path).expanduser())
