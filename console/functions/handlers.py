"""Import Python handlers that run in the server's process, and reload them after an edit.

Theory of operation. A target is ``module:callable``. Modules are searched on Python's path, then in
the data folder, then in the folder where the server was started: the server's own modules come
first, so that no file of a project replaces one.

``load_handler`` caches handlers. It also keeps the stamps of all imported source files that belong
to neither Python, installed packages nor the server. If one of them has changed, the next call
imports all these modules again, so that a handler sees its changed helpers. Running calls continue
with the old modules. A failed import is not cached.

``find_problem`` finds out why a call would fail without running code: a module that exits when
imported must not end the server.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import sysconfig
import threading
import time
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog
from django.conf import settings

from console.config.functions_file import file_stamp
from console.functions.runner import NOT_FOUND, import_handler, missing_handler
from console.functions.target_check import find_target_problem

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

log = structlog.get_logger(__name__)

_OWN = ("console", "engine")
_LOOK_S = 0.2
"""Files are looked at no more often than this."""
_LIBRARY = tuple(
    sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")
)


class _HandlerCache:
    """Cache of imported handlers, with the source files they came from."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._handlers: dict[str, Callable[[Any, Any], Any]] = {}
        self._files: dict[str, tuple[Path, tuple[int, int, int]]] = {}  # by the module's name
        self._looked = 0.0

    def load(self, target: str) -> Callable[[Any, Any], Any]:
        """Return the callable; raise HandlerError, or the exception of the module's import."""
        self.forget_changed()
        handler = self._handlers.get(target)
        if handler is None:
            with self._lock:
                handler = self._handlers[target] = self._import(target)
        return handler

    def forget_changed(self) -> None:
        """Forget all imported handler modules if one of their files has changed."""
        now = time.monotonic()
        if now - self._looked < _LOOK_S:
            return
        with self._lock:
            self._looked = now
            changed = [
                name for name, (path, stamp) in self._files.items() if file_stamp(path) != stamp
            ]
            if changed:
                log.info("modules of functions are imported again", changed=changed)
                self._forget()

    def _forget(self) -> None:
        for name, (path, _) in self._files.items():
            sys.modules.pop(name, None)
            # Python takes the compiled file for good if the source has the second and the size of
            # before: two edits within a second would be one. A Python that writes no compiled files
            # has no name for them either, and says so by NotImplementedError.
            with suppress(OSError, NotImplementedError):
                Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)
        self._files.clear()
        self._handlers.clear()

    def _import(self, target: str) -> Callable[[Any, Any], Any]:
        add_search_folders()
        importlib.invalidate_caches()
        before = set(sys.modules)
        try:
            return import_handler(target)
        finally:
            self._watch(before)

    def _watch(self, before: set[str]) -> None:
        for name in set(sys.modules) - before:
            path = _own_source(name, sys.modules.get(name))
            if path is not None:
                self._files[name] = path, file_stamp(path)


def _own_source(name: str, module: ModuleType | None) -> Path | None:
    """Return the source file of a project's module; None for Python, packages, server."""
    file = getattr(module, "__file__", None)
    if (
        not isinstance(file, str)
        or not file.endswith(".py")
        or name.split(".", maxsplit=1)[0] in _OWN
    ):
        return None
    path = Path(file)
    installed = "site-packages" in path.parts or file.startswith(_LIBRARY)
    return None if installed else path


_cache = _HandlerCache()


def load_handler(target: str) -> Callable[[Any, Any], Any]:
    """Return the callable of ``module:callable``.

    Raise HandlerError, or whatever the module raises while it is imported.
    """
    return _cache.load(target)


def search_folders() -> tuple[str, str]:
    """Return the folders searched after Python's own path."""
    here = os.getcwd()  # noqa: PTH109 - each call of a function asks, and Path takes longer
    return _resolve_path(settings.STATEYARD_CONFIG or settings.DATA_DIR, here), here


@lru_cache(maxsize=16)
def _resolve_path(folder: Path, here: str) -> str:
    """Return an absolute path without links. ``here``: base of relative paths."""
    return str((here / folder).resolve())


def add_search_folders() -> None:
    """Append the data folder and the current folder to Python's path."""
    sys.path += [folder for folder in search_folders() if folder not in sys.path]


def find_problem(target: str) -> str:
    """Return why ``module:callable`` cannot be called here, "" if no problem is known.

    Nothing is imported or run.
    """
    name, _, attribute = target.partition(":")
    add_search_folders()
    _cache.forget_changed()
    loaded = sys.modules.get(name)
    if loaded is not None:
        exists = hasattr(loaded, attribute.split(".")[0])
        return "" if exists else f"{NOT_FOUND}: {missing_handler(attribute, name)}"
    return find_target_problem(target)[0]
