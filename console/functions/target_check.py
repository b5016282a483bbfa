"""Check a target ``module:callable`` by reading its source, without importing or running it.

An import could exit the server. So the source is parsed, and its top-level imports are located. The
interpreter of a function also runs this file, because it knows the function's packages: the file
imports the standard library only, of Python 3.9.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import sys
from functools import lru_cache
from importlib.machinery import PathFinder
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.machinery import ModuleSpec

_IMPORT_ERROR = "Runtime.ImportModuleError"
_SYNTAX_ERROR = "Runtime.UserCodeSyntaxError"
_NOT_FOUND = "Runtime.HandlerNotFound"


def find_target_problem(target: str) -> tuple[str, str]:
    """Return why ``module:callable`` cannot be called ("": no problem), and its file."""
    name, _, attribute = target.partition(":")
    importlib.invalidate_caches()
    try:
        spec = _find_module(name)
    except ModuleNotFoundError as error:
        return f"{_IMPORT_ERROR}: Unable to import module '{name}': {error}", ""
    if spec is None or not spec.has_location or not str(spec.origin).endswith(".py"):
        return "", ""
    path = Path(str(spec.origin))
    return _problem_of_source(path, name, attribute.split(".")[0]), str(path)


def _find_module(name: str) -> ModuleSpec | None:
    """Locate a module without importing anything; None if only an import can tell.

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
        spec = importlib.util.find_spec(name)
    except ValueError:  # a module without a spec, as __main__ is
        return None
    if spec is None:
        raise ModuleNotFoundError(f"No module named '{name}'")
    return spec


def _problem_of_source(path: Path, module: str, name: str) -> str:
    bound, imported, problem = _read_source(path, _stamp(path))
    if problem:
        return f"{_SYNTAX_ERROR}: Syntax error in module '{module}': {problem}"
    for other in imported:
        try:
            _find_top(other)
        except ModuleNotFoundError as error:
            return f"{_IMPORT_ERROR}: Unable to import module '{module}': {error}"
    if bound is None or name in bound:
        return ""
    return f"{_NOT_FOUND}: Handler '{name}' missing on module '{module}'"


@lru_cache(maxsize=512)
def _read_source(
    path: Path, stamp: tuple[int, int, int]
) -> tuple[frozenset[str] | None, tuple[str, ...], str]:
    """Return the names a source binds (None: any), its top-level imports, and its error."""
    del stamp  # part of the key: another text is another answer
    try:
        source = path.read_bytes()
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        return None, (), str(error)
    bound = frozenset(_bound(tree))
    open_ended = "*" in bound or "__getattr__" in bound
    # a module may extend sys.path and find more modules than this check
    imported = () if b"sys.path" in source else tuple(_imported_packages(tree))
    return None if open_ended else bound, imported, ""


def _bound(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.alias):
            yield node.asname or node.name.split(".")[0]


def _imported_packages(tree: ast.Module) -> Iterator[str]:
    """Yield the packages that a module always imports, outside of try and if."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def _stamp(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def main() -> None:
    """Print the problem of a target and its file. Arguments: target, folders first and last."""
    target, first, last = sys.argv[1], json.loads(sys.argv[2]), json.loads(sys.argv[3])
    own = Path(__file__).resolve().parent
    others = [folder for folder in sys.path if Path(folder).resolve() != own]
    sys.path[:] = [*first, *others, *last]
    json.dump(find_target_problem(target), sys.stdout)


if __name__ == "__main__":
    main()
