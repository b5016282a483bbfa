"""A survey of the source: modules, imports, classes, functions, and what they are called.

``tests/test_house.py`` holds the rules of the house against it; ``python -m
tests.architecture_report`` prints it. Nothing is imported or run: the files are only parsed.
"""

from __future__ import annotations

import ast
import gc
import io
import tokenize
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).parent.parent
PACKAGES = ("engine", "console")


@dataclass(frozen=True)
class FunctionFound:
    """A function of a module, or a method of one of its classes; ``lines``: its length."""

    module: str
    name: str
    line: int
    lines: int
    top_level: bool


@dataclass(frozen=True)
class ModuleFound:
    """One source file. ``imports``: modules of the project, also those for type checks only."""

    name: str
    path: Path
    tree: ast.Module = field(repr=False)
    text: str = field(repr=False)

    @property
    def place(self) -> str:
        """Return the file's path from the root, with slashes."""
        return self.path.relative_to(ROOT).as_posix()


def dotted(path: Path) -> str:
    """Return a file's module name."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def survey() -> dict[str, ModuleFound]:
    """Return the name and the parsed source of every module of the product, but migrations.

    Collections of garbage would look at its millions of nodes again and again: two thirds of the
    time.
    """
    gc.disable()
    try:
        return _parsed()
    finally:
        gc.freeze()
        gc.enable()


def _parsed() -> dict[str, ModuleFound]:
    modules = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "migrations" in path.parts:
                continue
            name = dotted(path)
            text = path.read_text(encoding="utf-8")
            modules[name] = ModuleFound(name, path, ast.parse(text), text)
    return modules


@cache
def imports_of(module: str) -> frozenset[str]:
    """Return the modules of the project that a module imports, anywhere in its text."""
    modules = survey()
    names: set[str] = set()
    for node in ast.walk(modules[module].tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            full = (f"{node.module}.{alias.name}" for alias in node.names)
            names |= {name if name in modules else node.module for name in full}
    return frozenset(names & modules.keys() - {module})


@cache
def classes() -> dict[str, list[str]]:
    """Return class name -> the modules that define it, without classes inside of classes."""
    places = defaultdict(list)
    for module in survey().values():
        nested = {
            id(inner)
            for outer in ast.walk(module.tree)
            if isinstance(outer, ast.ClassDef)
            for inner in outer.body
        }
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef) and id(node) not in nested:
                places[node.name].append(module.name)
    return dict(places)


@cache
def functions() -> tuple[FunctionFound, ...]:
    """Return every function and method."""
    definitions = []
    for module in survey().values():
        top = {id(node) for node in module.tree.body}
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                top_level = id(node) in top
                definitions.append(
                    FunctionFound(module.name, node.name, node.lineno, lines, top_level)
                )
    return tuple(definitions)


def cycles(graph: Mapping[str, frozenset[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other in a circle (Tarjan's components)."""
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    components: list[list[str]] = []

    def visit(module: str) -> None:
        index[module] = lowest[module] = len(index)
        stack.append(module)
        for other in graph[module]:
            if other not in index:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in stack:
                lowest[module] = min(lowest[module], index[other])
        if lowest[module] == index[module]:
            place = stack.index(module)
            if len(stack) - place > 1:
                components.append(sorted(stack[place:]))
            del stack[place:]

    for module in graph:
        if module not in index:
            visit(module)
    return components


def import_cycles() -> list[list[str]]:
    """Return the circles of imports in the product."""
    return cycles({module: imports_of(module) for module in survey()})


def package_of(module: str) -> str:
    """Return the package of a module: a feature, or what stands first in engine or console."""
    parts = module.split(".")
    return ".".join(parts[: 3 if parts[:2] == ["console", "features"] else 2])


@cache
def package_graph() -> dict[str, dict[str, frozenset[tuple[str, str]]]]:
    """Return package -> the packages that it imports -> (module, imported module)."""
    packages: dict[str, dict[str, set[tuple[str, str]]]] = {}
    for module in survey():
        needs = packages.setdefault(package_of(module), {})
        for name in imports_of(module):
            if package_of(name) != package_of(module):
                needs.setdefault(package_of(name), set()).add((module, name))
    return {
        package: {other: frozenset(pairs) for other, pairs in needs.items()}
        for package, needs in packages.items()
    }


def package_cycles() -> list[list[str]]:
    """Return the circles of imports among packages."""
    return cycles({package: frozenset(needs) for package, needs in package_graph().items()})


def first_level() -> tuple[list[str], list[str]]:
    """Return the folders that stand first in engine and console, and the modules of console."""
    folders = [
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in sorted((ROOT / package).iterdir())
        if (path / "__init__.py").exists()
    ]
    return folders, [path.name for path in sorted((ROOT / "console").glob("*.py"))]


def upward_imports(order: tuple[tuple[str, ...], ...]) -> list[tuple[str, str]]:
    """Return (module, imported module) where a package imports one that stands later in an order.

    Raise ``KeyError`` for a package that is in no line of the order.
    """
    places = {package: place for place, line in enumerate(order) for package in line}
    return sorted(
        pair
        for package, needs in package_graph().items()
        for other, pairs in needs.items()
        if places[other] > places[package]
        for pair in pairs
    )


def line_counts() -> dict[str, int]:
    """Return how many lines engine, core of the console and features have."""
    counts = {"engine": 0, "core": 0, "features": 0}
    for module in survey().values():
        part = "features" if module.name.startswith("console.features.") else "core"
        part = "engine" if module.name.startswith("engine") else part
        counts[part] += module.text.count("\n")
    return counts


def literals(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and value of the texts in a module that are no docstrings."""
    prose = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.lineno, node.value


def prose_lines(module: ModuleFound) -> tuple[int, int]:
    """Return how many lines of a module have a comment, and how many are docstrings."""
    comments = {
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(module.text).readline)
        if token.type == tokenize.COMMENT and not token.string.startswith("# noqa")
    }
    docstrings = sum(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
    return len(comments), docstrings


def layer_of(module: str, order: tuple[tuple[str, ...], ...]) -> int | None:
    """Return the place of a module in an order of packages: that of the longest name it is in."""
    best, place = "", None
    for number, packages in enumerate(order):
        for package in packages:
            inside = module == package or module.startswith(package + ".")
            if inside and len(package) > len(best):
                best, place = package, number
    return place
