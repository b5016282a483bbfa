"""Import the callables that ``functions.json`` names, and import them again when they change.

Theory of operation. A target is ``module:callable``. Modules are searched where Python searches
them, then in the data folder, then in the folder the server was started in: what is the server's
own is found first, so that no file of a project takes its place.

``load_handler`` keeps what it has found. It also keeps the stamps of all source files that came in
with an import and belong to neither Python, installed packages nor the server. If one of them has
changed, all these modules are forgotten and imported anew by the next call: a handler sees the new
text of its helpers, too. Calls that are under way go on with the old ones. A failed import is not
kept.

``find_problem`` tells without running anything why a call would fail: a module that ends the
process when it is imported must not end the server while that starts.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import sys
import sysconfig
import threading
import time
from contextlib import suppress
from functools import lru_cache, reduce
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import structlog
from django.conf import settings

from console.functions_file import file_stamp
from console.lambda_runtime import IMPORT_ERROR, NOT_FOUND, SYNTAX_ERROR, HandlerError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from importlib.machinery import ModuleSpec
    from types import ModuleType

log = structlog.get_logger(__name__)

_OWN = ("console", "engine")
_LOOK_S = 0.2
"""Files are looked at no more often than this."""
_LIBRARY = tuple(
    sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")
)


class _HandlerCache:
    """The callables found so far, and the source files that they came from."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._handlers: dict[str, Callable[[Any, Any], Any]] = {}
        self._files: dict[str, tuple[Path, tuple[int, int, int]]] = {}  # by the module's name
        self._looked = 0.0

    def load(self, target: str) -> Callable[[Any, Any], Any]:
        """Return the callable; raise HandlerError, or what the module raises at its import."""
        self.forget_changed()
        found = self._handlers.get(target)
        if found is None:
            with self._lock:
                found = self._handlers[target] = self._import(target)
        return found

    def forget_changed(self) -> None:
        """Forget all modules that were imported for handlers, if the file of one has changed."""
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
            # before: two edits within a second would be one.
            with suppress(OSError, NotImplementedError):
                Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)
        self._files.clear()
        self._handlers.clear()

    def _import(self, target: str) -> Callable[[Any, Any], Any]:
        name, _, attribute = target.partition(":")
        add_search_folders()
        importlib.invalidate_caches()
        before = set(sys.modules)
        try:
            module = _import_module(name)
        finally:
            self._watch(before)
        try:
            found: Any = reduce(getattr, attribute.split("."), cast("Any", module))
        except AttributeError:
            raise HandlerError(NOT_FOUND, _missing(attribute, name)) from None
        return cast("Callable[[Any, Any], Any]", found)

    def _watch(self, before: set[str]) -> None:
        for name in set(sys.modules) - before:
            path = _own_source(name, sys.modules.get(name))
            if path is not None:
                self._files[name] = path, file_stamp(path)


def _import_module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise HandlerError(IMPORT_ERROR, f"Unable to import module '{name}': {error}") from error
    except SyntaxError as error:
        raise HandlerError(SYNTAX_ERROR, f"Syntax error in module '{name}': {error}") from error


def _own_source(name: str, module: ModuleType | None) -> Path | None:
    """Return the source file of a module that somebody edits, None for all others."""
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
    """Return where modules are searched beside Python's own path."""
    return str(settings.DATA_DIR.resolve()), str(Path.cwd())


def add_search_folders() -> None:
    """Let Python find modules in the data folder and in the current one, behind all others."""
    sys.path += [folder for folder in search_folders() if folder not in sys.path]


# -- without running anything ----------------------------------------------------------------------


def find_problem(target: str) -> str:
    """Return why ``module:callable`` could not be called, "" if nothing is known against it."""
    name, _, attribute = target.partition(":")
    add_search_folders()
    _cache.forget_changed()
    loaded = sys.modules.get(name)
    if loaded is not None:
        known = hasattr(loaded, attribute.split(".")[0])
        return "" if known else _said(NOT_FOUND, _missing(attribute, name))
    importlib.invalidate_caches()
    try:
        spec = _find_module(name)
    except ModuleNotFoundError as error:
        return _said(IMPORT_ERROR, f"Unable to import module '{name}': {error}")
    if spec is None or not spec.has_location or not str(spec.origin).endswith(".py"):
        return ""
    return _problem_of_source(Path(str(spec.origin)), name, attribute.split(".")[0])


def _find_module(name: str) -> ModuleSpec | None:
    """Return where a module is, None if only its import can tell; import none.

    Raise ModuleNotFoundError.
    """
    parts = name.split(".")
    spec = _find_top(parts[0])
    for end in range(2, len(parts) + 1):
        prefix = ".".join(parts[:end])
        try:
            folders = None if spec is None else spec.submodule_search_locations
            spec = PathFinder.find_spec(prefix, None if folders is None else list(folders))
        except KeyError:  # a namespace package within another is found by importing that
            return None
        if folders is None or spec is None:
            raise ModuleNotFoundError(f"No module named '{prefix}'")
    return spec


def _find_top(name: str) -> ModuleSpec | None:
    try:
        found = importlib.util.find_spec(name)
    except ValueError:  # a module without a spec, as __main__ is
        return None
    if found is None:
        raise ModuleNotFoundError(f"No module named '{name}'")
    return found


def _problem_of_source(path: Path, module: str, name: str) -> str:
    bound, wanted, problem = _read_source(path, file_stamp(path))
    if problem:
        return _said(SYNTAX_ERROR, f"Syntax error in module '{module}': {problem}")
    for other in wanted:
        try:
            _find_top(other)
        except ModuleNotFoundError as error:
            return _said(IMPORT_ERROR, f"Unable to import module '{module}': {error}")
    if bound is None or name in bound:
        return ""
    return _said(NOT_FOUND, _missing(name, module))


@lru_cache(maxsize=512)
def _read_source(
    path: Path, stamp: tuple[int, int, int]
) -> tuple[frozenset[str] | None, tuple[str, ...], str]:
    """Return the names a source binds (None: any), what it imports at once, and its error."""
    del stamp  # part of the key: another text is another answer
    try:
        source = path.read_bytes()
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        return None, (), str(error)
    bound = frozenset(_bound(tree))
    open_ended = "*" in bound or "__getattr__" in bound
    # a module that changes the path may find what is not found here
    imported = () if b"sys.path" in source else tuple(_imported(tree))
    return None if open_ended else bound, imported, ""


def _bound(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Name(ctx=ast.Store()):
                yield node.id
            case ast.alias():
                yield node.asname or node.name.split(".")[0]


def _imported(tree: ast.Module) -> Iterator[str]:
    """Yield the packages that a module imports in any case, whatever it tries and tests."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def _missing(attribute: str, module: str) -> str:
    return f"Handler '{attribute}' missing on module '{module}'"


def _said(name: str, message: str) -> str:
    return f"{name}: {message}"
