"""Check that an owner's function comes from a folder the operator allows.

A function runs with the rights of the server. So its module must be a file in one of the folders of
``STATEYARD_FUNCTION_FOLDERS``, with all links followed, and must define the function itself:
imported names such as ``shutil.rmtree`` are refused. The file is checked at each use, because a
link may change after the registration.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from django.conf import settings

SETTING = "STATEYARD_FUNCTION_FOLDERS"
_LARGEST = 2_000_000


def folder_refusal(folder: str) -> str:
    """Return why a folder is not allowed for functions, "" if it is."""
    roots = settings.STATEYARD_FUNCTION_FOLDERS
    if not roots:
        return f"Functions in Python have to be allowed by the operator, in {SETTING}."
    path = Path(folder)
    if not path.is_absolute() or not _is_allowed(path):
        return f"{folder} is not in a folder that the operator allows ({SETTING})."
    return "" if path.is_dir() else f"There is no folder {folder}."


def handler_refusal(folder: str, handler: str) -> str:
    """Return why ``module:callable`` of a folder must not be called, "" if allowed."""
    refused = folder_refusal(folder)
    if refused:
        return refused
    module = handler.partition(":")[0]
    if module.split(".")[0] in sys.stdlib_module_names:
        return f"{module} is a module of Python itself: give yours another name."
    file = _find_module(Path(folder), module)
    if file is None:
        return f"The folder {folder} has no module {module}."
    if not all(map(_is_allowed, (file, *_package_files(Path(folder), module)))):
        return f"The file of {module} is a link out of the folders that the operator allows."
    return ""


def definition_refusal(folder: str, handler: str) -> str:
    """Return why a module does not define a function, "" if it does; runs nothing."""
    module, _, attribute = handler.partition(":")
    file = _find_module(Path(folder), module)
    if file is None:
        return f"The folder {folder} has no module {module}."
    try:
        if file.stat().st_size > _LARGEST:
            return f"The file of {module} is too large."
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return f"The file of {module} cannot be read as Python."
    name = attribute.split(".")[0]
    if name in _defined_names(tree):
        return ""
    return f"{module} defines no {name} at its top level."


def _defined_names(tree: ast.Module) -> set[str]:
    """Return the names that a module's statements define, without imported names."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call | ast.Lambda):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return names


def _find_module(folder: Path, module: str) -> Path | None:
    """Return the file of a module, None if it is not in the folder."""
    path = folder.joinpath(*module.split("."))
    for file in (path / "__init__.py", path.with_name(f"{path.name}.py")):
        if file.is_file():
            return file
    return None


def _package_files(folder: Path, module: str) -> list[Path]:
    """Return the files of the packages around a module, which are imported first."""
    parents = module.split(".")[:-1]
    paths = [folder.joinpath(*parents[: place + 1]) for place in range(len(parents))]
    return [path / "__init__.py" for path in paths if (path / "__init__.py").is_file()]


def _is_allowed(path: Path) -> bool:
    """Whether a path, with links followed, is in an allowed folder."""
    real = path.resolve()
    return any(real.is_relative_to(root.resolve()) for root in settings.STATEYARD_FUNCTION_FOLDERS)
