"""Print the architecture: rooms, orders, sizes, names that stand twice, short names, comments.

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
    _print_rooms()
    _print_order()
    _print_packages()
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


# -- rooms -----------------------------------------------------------------------------------------


def _print_rooms() -> None:
    rooms: dict[str, list[ModuleFound]] = defaultdict(list)
    for module in survey().values():
        rooms[module.path.parent.as_posix()].append(module)
    by_module: dict[str, list[FunctionFound]] = defaultdict(list)
    for found in functions():
        by_module[found.module].append(found)
    _print(
        f"{'room':34}{'files':>6}{'lines':>8}{'longest':>9}{'functions':>11}{'median':>8}"
        f"{'comments':>10}{'prose':>7}"
    )
    for modules in rooms.values():
        _print(
            _room_line(
                modules, [function for found in modules for function in by_module[found.name]]
            )
        )


def _room_line(modules: list[ModuleFound], found: list[FunctionFound]) -> str:
    """Return a room in a line; prose: the share of comments and docstrings together."""
    sizes = [module.text.count("\n") for module in modules]
    total = sum(sizes) or 1
    comments, docstrings = map(sum, zip(*map(prose_lines, modules), strict=True))
    typical = median(function.lines for function in found) if found else 0
    room = modules[0].place.rpartition("/")[0]
    return (
        f"{room:34}{len(modules):6}{total:8,}{max(sizes):9,}{len(found):11,}{typical:8.0f}"
        f"{comments / total:10.1%}{(comments + docstrings) / total:7.0%}"
    )


def _print_order() -> None:
    _print("\nOrder of the engine, lowest first:")
    for rooms in ENGINE_ORDER:
        _print(f"  {', '.join(rooms)}")
    _print("\nRooms of the console, and those that they import:")
    arrows: dict[str, set[str]] = defaultdict(set)
    for module in survey():
        if module.startswith("console."):
            arrows[_room(module)] |= {_room(name) for name in imports_of(module)}
    for room, others in sorted(arrows.items()):
        _print(f"  {room:30} -> {', '.join(sorted(others - {room})) or 'nothing'}")


def _print_packages() -> None:
    folders, modules = first_level()
    counts = line_counts()
    _print(f"\nPackages at the first level: {len(folders)}; modules of console/: {len(modules)}")
    _print(f"Lines: {', '.join(f'{part} {lines:,}' for part, lines in counts.items())}")
    _print(f"Lines of the product: {sum(counts.values()):,}")
    _print_list("Circles of packages", [" ".join(circle) for circle in package_cycles()])
    upward = upward_imports(CONSOLE_ORDER)
    _print_list("Imports that point up", [f"{module} -> {name}" for module, name in upward])


def _room(module: str) -> str:
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
    for found in sorted(functions(), key=lambda function: -function.lines)[:_LONGEST]:
        yield f"{found.lines} lines: {found.module}.{found.name}"


def _unexcused() -> Iterable[str]:
    for rule, entries in violations().items():
        for entry in sorted(entries - SHORT_NAME.keys()):
            yield f"{rule}: {entry}"


if __name__ == "__main__":
    main()
