"""List the points of a definition that its tests can reach, such as states and Catchers.

``reading`` returns keys of these points; the coverage report compares the two.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from engine.graph import condition_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.graph import Graph, Node
    from engine.language.model import Machine

MAP_SIZES = ("0", "1", "many")
"""The sizes of a Map that count as different, in the words of a key."""
EXECUTION_TIMEOUT = "/TimeoutSeconds"
"""The key of the timeout of the whole execution."""
_MAX_ATTEMPTS = 3  # ASL's default


class PointKind(StrEnum):
    """The kind of a point, in the words of a page."""

    STATE = "State"
    TRANSITION = "Transition"
    CHOICE = "Choice rule"
    DEFAULT = "Default"
    RETRIER = "Retrier"
    CATCHER = "Catcher"
    MAP_SIZE = "Map size"
    BRANCH = "Branch failure"
    TIMEOUT = "Timeout"


@dataclass(frozen=True, slots=True)
class Point:
    """A point. ``key``: its unique name in the machine, such as ``Charge/Catch[0]``.

    ``state``: its state, "" for the machine; ``detail``: the condition, the errors or the size;
    ``target``: the next state of a transition, else "".
    """

    key: str
    kind: PointKind
    state: str
    detail: str = ""
    target: str = ""


def list_points(machine: Machine, graph: Graph) -> tuple[Point, ...]:
    """Return all points of a machine, in the order of the definition. ``graph``: its graph."""
    points = [point for node in graph.nodes for point in _points_of(graph, node)]
    if machine.timeout_seconds is not None:
        detail = f"execution, {machine.timeout_seconds} s"
        points.append(Point(EXECUTION_TIMEOUT, PointKind.TIMEOUT, "", detail))
    return tuple(points)


def _points_of(graph: Graph, node: Node) -> Iterator[Point]:
    name, state = node.name, json.loads(node.text)
    yield Point(name, PointKind.STATE, name)
    if node.type == "Choice":
        yield from _ways_of_choice(name, state)
        return
    if isinstance(state.get("Next"), str):
        target = state["Next"]
        yield Point(f"{name}/Next", PointKind.TRANSITION, name, f"to {target}", target)
    if node.type == "Parallel":
        yield from _branches(graph, node)
    if node.type == "Map":
        yield from _sizes(node, state)
    if node.type == "Task":
        yield from _timeouts(name, state)
    yield from _recovery(name, state)


def _ways_of_choice(name: str, state: Mapping[str, Any]) -> Iterator[Point]:
    for index, rule in enumerate(state["Choices"]):
        key, words = f"{name}/Choices[{index}]", condition_words(rule)
        yield Point(key, PointKind.CHOICE, name, words, rule["Next"])
    if "Default" in state:
        yield Point(f"{name}/Default", PointKind.DEFAULT, name, "default", state["Default"])


def _recovery(name: str, state: Mapping[str, Any]) -> Iterator[Point]:
    for index, retrier in enumerate(state.get("Retry") or ()):
        errors = ", ".join(retrier["ErrorEquals"])
        if retrier.get("MaxAttempts", _MAX_ATTEMPTS):
            yield Point(attempted_key(name, index), PointKind.RETRIER, name, f"{errors}, attempted")
        yield Point(exhausted_key(name, index), PointKind.RETRIER, name, f"{errors}, exhausted")
    for index, catcher in enumerate(state.get("Catch") or ()):
        errors = ", ".join(catcher["ErrorEquals"])
        yield Point(catcher_key(name, index), PointKind.CATCHER, name, errors, catcher["Next"])


def _branches(graph: Graph, node: Node) -> Iterator[Point]:
    """Yield the branches that can fail first: a branch without work cannot fail."""
    inside = graph.states_within().get(node.id, set())
    groups = {group.id: group for group in graph.groups}
    failing: set[int] = set()
    for state in (graph.by_id[name] for name in inside):
        group = groups[state.group]
        while group.owner != node.id:
            group = groups[graph.by_id[group.owner].group]
        if state.type in ("Task", "Fail"):
            failing.add(group.index)
    for index in sorted(failing):
        detail = f"branch {index} fails first"
        yield Point(branch_key(node.name, index), PointKind.BRANCH, node.name, detail)


def _sizes(node: Node, state: Mapping[str, Any]) -> Iterator[Point]:
    """Yield the size points of an inline Map; histories do not show a distributed Map's size."""
    if node.distributed:
        return
    items = state.get("Items")
    sizes = (size_word(len(items)),) if isinstance(items, list) else MAP_SIZES
    for size in sizes:
        words = "1 item" if size == "1" else f"{size} items"
        yield Point(size_key(node.name, size), PointKind.MAP_SIZE, node.name, words)


def _timeouts(name: str, state: Mapping[str, Any]) -> Iterator[Point]:
    for field in ("TimeoutSeconds", "HeartbeatSeconds"):
        value = state.get(field, state.get(f"{field}Path"))
        if value is not None:
            detail = f"{field} {value}"
            yield Point(timeout_key(name, field), PointKind.TIMEOUT, name, detail)


# -- keys ------------------------------------------------------------------------------------------


def attempted_key(name: str, index: int) -> str:
    """Return the key of the point "this Retrier retried the state"."""
    return f"{name}/Retry[{index}] attempted"


def exhausted_key(name: str, index: int) -> str:
    """Return the key of the point "this Retrier's attempts were exhausted"."""
    return f"{name}/Retry[{index}] exhausted"


def catcher_key(name: str, index: int) -> str:
    """Return the key of the point "this Catcher caught an error"."""
    return f"{name}/Catch[{index}]"


def branch_key(name: str, index: int) -> str:
    """Return the key of the point "this branch failed first in its Parallel"."""
    return f"{name}/Branches[{index}] fails first"


def size_key(name: str, size: str) -> str:
    """Return the key of the point "the Map had a size", a word of ``MAP_SIZES``."""
    return f"{name} with {size} items"


def size_word(length: int) -> str:
    """Return the word of ``MAP_SIZES`` for a number of items."""
    return MAP_SIZES[min(length, 2)]


def timeout_key(name: str, field: str) -> str:
    """Return the key of a timeout's point. ``field``: TimeoutSeconds or HeartbeatSeconds."""
    return f"{name}/{field}"
