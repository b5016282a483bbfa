"""Check whether a function with its own interpreter can be called, by asking that interpreter."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from console.config.functions_file import file_stamp
from console.functions import handlers, target_check
from console.functions.process import (
    BAD_INTERPRETER,
    StartError,
    clean_environment,
    find_interpreter,
)

if TYPE_CHECKING:
    from console.config.function_options import FunctionOptions

_CHECK = str(Path(target_check.__file__).resolve())
_LIMIT_S = 20.0
_KEPT_S = 60.0
"""The time after which changed packages are noticed; a changed module is noticed at once."""
_MOST = 1000


class _Checked(NamedTuple):
    problem: str
    path: Path
    stamp: tuple[int, int, int]
    at: float


_known: dict[tuple[str, FunctionOptions], _Checked] = {}
_lock = threading.Lock()


def find_problem(target: str, options: FunctionOptions) -> str:
    """Return why ``module:callable`` cannot be called, "" if no problem is known."""
    try:
        python = find_interpreter(options)
    except StartError as error:
        return f"{error.name}: {error}"
    if not options.python and not options.folder:
        return handlers.find_problem(target)
    key = target, options
    checked = _known.get(key)
    if (
        checked is None
        or checked.at + _KEPT_S < time.monotonic()
        or file_stamp(checked.path) != checked.stamp
    ):
        problem, file = _ask_interpreter(python, target, options)
        path = Path(file or python)
        checked = _Checked(problem, path, file_stamp(path), time.monotonic())
        with _lock:
            if len(_known) >= _MOST:
                _known.clear()
            _known[key] = checked
    return checked.problem


def _ask_interpreter(python: str, target: str, options: FunctionOptions) -> tuple[str, str]:
    """Run ``target_check`` in an interpreter; return the problem and the module's file."""
    folders = [[options.folder] if options.folder else [], list(handlers.search_folders())]
    try:
        process = subprocess.run(  # noqa: S603 - the operator's interpreter, our own file
            [python, _CHECK, target, *map(json.dumps, folders)],
            env=clean_environment(options) | dict(options.environment),
            cwd=options.folder or None,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LIMIT_S,
            check=True,
        )
        problem, file = json.loads(process.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return f"{BAD_INTERPRETER}: {python} cannot run the check: {error}", ""
    return str(problem), str(file)
