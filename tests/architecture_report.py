"""Print the architecture: packages, orders, sizes, names that stand twice, short names, comments.

``python -m tests.architecture_report``
"""

from __future__ import annotations

import sys
from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING

from tests.architecture import (
    FunctionFound,
    ModuleFound,
    classes,
    first_level,
    functions,
    import_cycles,
    imports_of,
    line_counts,
    package_cycles,
    prose_lines,
    survey,
    upward_imports,
)
from tests.test_house import CONSOLE_ORDER, ENGINE_ORDER, SAME_NAME, SHORT_NAME, violations

if TYPE_CHECKING:
    from collections.abc import Iterable

_LONGEST = 5


def main() -> None:
    """Print the whole report."""
    _print_packages()
    _print_order()
    _print_first_level()
    _print_list("Circles of imports", [" ".join(circle) for circle in import_cycles()])
    _print_list("Classes that share a name", _shared_names())
    _print_list("Top-level functions with short names", _short_names())
    _print_list("Longest functions", _longest_functions())
    _print_list("What breaks a rule without a reason", _unexcused())


def _print(line: str = "") -> None:
    sys.stdout.write(f"{line}\n")


def _print_list(title: str, lines: Iterable[str]) -> None:
    lines = list(lines)
    _print(f"\n{title}: {len(lines) or 'none'}")
    for line in lines:
        _print(f"  {line}")


# -- packages --------------------------------------------------------------------------------------


def _print_packages() -> None:
    packages: dict[str, list[ModuleFound]] = defaultdict(list)
    for module in survey().values():
        packages[module.path.parent.as_posix()].append(module)
    by_module: dict[str, list[FunctionFound]] = defaultdict(list)
    for function in functions():
        by_module[function.module].append(function)
    _print(
        f"{'package':34}{'files':>6}{'lines':>8}{'longest':>9}{'functions':>11}{'median':>8}"
        f"{'comments':>10}{'prose':>7}"
    )
    for modules in packages.values():
        _print(
            _package_line(
                modules, [function for module in modules for function in by_module[module.name]]
            )
        )


def _package_line(modules: list[ModuleFound], functions: list[FunctionFound]) -> str:
    """Return the line of a package; prose: the share of comments and docstrings together."""
    sizes = [module.text.count("\n") for module in modules]
    total = sum(sizes) or 1
    comments, docstrings = map(sum, zip(*map(prose_lines, modules), strict=True))
    typical = median(function.lines for function in functions) if functions else 0
    package = modules[0].place.rpartition("/")[0]
    return (
        f"{package:34}{len(modules):6}{total:8,}{max(sizes):9,}{len(functions):11,}{typical:8.0f}"
        f"{comments / total:10.1%}{(comments + docstrings) / total:7.0%}"
    )


def _print_order() -> None:
    _print("\nOrder of the engine, lowest first:")
    for packages in ENGINE_ORDER:
        _print(f"  {', '.join(packages)}")
    _print("\nPackages of the console and their imports:")
    arrows: dict[str, set[str]] = defaultdict(set)
    for module in survey():
        if module.startswith("console."):
            arrows[_package_of(module)] |= {_package_of(name) for name in imports_of(module)}
    for package, others in sorted(arrows.items()):
        _print(f"  {package:30} -> {', '.join(sorted(others - {package})) or 'nothing'}")


def _print_first_level() -> None:
    folders, modules = first_level()
    counts = line_counts()
    _print(f"\nPackages at the first level: {len(folders)}; modules of console/: {len(modules)}")
    _print(f"Lines: {', '.join(f'{part} {lines:,}' for part, lines in counts.items())}")
    _print(f"Lines of the product: {sum(counts.values()):,}")
    _print_list("Circles of packages", [" ".join(circle) for circle in package_cycles()])
    upward = upward_imports(CONSOLE_ORDER)
    _print_list("Imports that point up", [f"{module} -> {name}" for module, name in upward])


def _package_of(module: str) -> str:
    """Return the package of a module, at most three names deep."""
    path = survey()[module].path
    name = module if path.name == "__init__.py" else module.rpartition(".")[0]
    return ".".join(name.split(".")[:3])


# -- names -----------------------------------------------------------------------------------------


def _shared_names() -> Iterable[str]:
    for name, modules in sorted(classes().items()):
        if len(modules) > 1:
            reason = f" ({SAME_NAME[name]})" if name in SAME_NAME else ""
            _, *others = modules
            shown = ", ".join(modules) if len(others) < _LONGEST else f"{len(modules)} modules"
            yield f"{name}: {shown}{reason}"


def _short_names() -> Iterable[str]:
    yield from sorted(violations()["short functions"] - SHORT_NAME.keys())
    for name, reason in SHORT_NAME.items():
        yield f"{name} ({reason})"


def _longest_functions() -> Iterable[str]:
    for function in sorted(functions(), key=lambda function: -function.lines)[:_LONGEST]:
        yield f"{function.lines} lines: {function.module}.{function.name}"


def _unexcused() -> Iterable[str]:
    for rule, entries in violations().items():
        for entry in sorted(entries - SHORT_NAME.keys()):
            yield f"{rule}: {entry}"


if __name__ == "__main__":
    main()
