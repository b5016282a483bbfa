"""The differences between a replay and its recording: first the paths, then the end."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from engine import jsontext
from engine.graph import TOP
from engine.history.visits import ABORTED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from engine.graph import Graph
    from engine.history.fold import Trace
    from engine.history.visits import Visit
    from engine.runtime.commands import Finish

MAX_REPORTED = 5
"""At most this many differences of one kind are returned: a broken replay has thousands."""
_EVENT_NUMBER = re.compile(r"#\d+")


@dataclass(frozen=True, slots=True)
class ReplayDifference:
    """One difference and its place; ``got`` and ``wanted`` are texts for a person."""

    where: str
    got: str
    wanted: str

    def __str__(self) -> str:
        return f"{self.where}: got {self.got}, wanted {self.wanted}"


@dataclass(frozen=True, slots=True)
class ControlPath:
    """The path of one line of control through the states.

    ``name``: "" for the execution, ``Each[3]`` for an iteration, ``Both[0].Each[1]`` inside of a
    branch. ``states``: those entered, in order. ``aborted``: it was stopped by the failure of
    another line; how far it had come by then depends on timing.
    """

    name: str
    states: tuple[str, ...]
    aborted: bool = False


def control_paths(trace: Trace) -> list[ControlPath]:
    """Return the lines of control of an execution, in the order in which they began."""
    names = {group.id: group for group in trace.graph.groups}
    found: dict[str, list[Visit]] = {}
    every = (visit for visits in trace.visits.values() for visit in visits)
    for visit in sorted(every, key=lambda visit: visit.number):
        found.setdefault(_line_name(trace.graph, names, visit), []).append(visit)
    return [_control_path(trace.graph, name, visits) for name, visits in found.items()]


def _control_path(picture: Graph, name: str, visits: list[Visit]) -> ControlPath:
    """Return the path of a line, cut after the first visit that was aborted."""
    cut = next((n for n, visit in enumerate(visits, 1) if visit.status == ABORTED), None)
    inside = bool(name)  # the execution's own line is aborted only by what the scenario repeats
    kept = visits[:cut] if inside else visits
    names = tuple(picture.by_id[visit.node].name for visit in kept)
    return ControlPath(name, names, aborted=inside and cut is not None)


def _line_name(picture: Graph, groups: Mapping[str, Any], visit: Visit) -> str:
    """Return the name of the line of control of a visit, as ``ControlPath`` has it."""
    indexes = list(visit.iteration)
    parts = []
    group = groups[picture.by_id[visit.node].group]
    while group.id != TOP:
        owner = picture.by_id[group.owner]
        index = indexes.pop() if owner.type == "Map" else group.index
        parts.append(f"{owner.name}[{index}]")
        group = groups[owner.group]
    return ".".join(reversed(parts))


def find_differences(
    trace: Trace, finish: Finish | None, waiting: Collection[str], expected: Mapping[str, Any]
) -> Iterator[ReplayDifference]:
    """Yield where the paths and the end differ from the recording.

    ``finish``: None while it waits, in the states ``waiting``. ``expected``: as in a scenario.
    """
    yield from _compare_paths(control_paths(trace), expected.get("Path", []))
    if finish is None:
        states = ", ".join(sorted(waiting)) or "nothing"
        yield ReplayDifference("status", f"RUNNING, waiting for {states}", str(expected["Status"]))
        return
    yield from _compare_endings(finish, expected)


def _compare_endings(finish: Finish, expected: Mapping[str, Any]) -> Iterator[ReplayDifference]:
    if finish.status != expected["Status"]:
        ending = f"{finish.status} ({finish.error})" if finish.error else finish.status
        yield ReplayDifference("status", ending, str(expected["Status"]))
    if "Output" in expected and finish.output is not None:
        ignored = frozenset(expected.get("Ignore", ()))
        found = _compare_values(jsontext.loads(finish.output), expected["Output"], "$", ignored)
        for _, (where, got, wanted) in zip(range(MAX_REPORTED), found, strict=False):
            yield ReplayDifference(f"output {where}", got, wanted)
    if finish.status == expected["Status"]:
        for name, text in (("Error", finish.error), ("Cause", finish.cause)):
            pair = [text, expected.get(name)]
            if len({_without_event_numbers(text) for text in pair}) > 1:
                shown = [_shorten(_NOTHING if text is None else text) for text in pair]
                yield ReplayDifference(name.lower(), *shown)


def _without_event_numbers(text: str | None) -> str | None:
    """Return the text without numbers of events: they depend on which branch was faster."""
    return None if text is None else _EVENT_NUMBER.sub("#", text)


def _compare_paths(
    got: list[ControlPath], expected: list[Mapping[str, Any]]
) -> Iterator[ReplayDifference]:
    """Yield the differences of the paths, each line of control for itself.

    Between lines there is no order: which of two branches was faster depends on timing.
    """
    wanted = {
        path["Line"]: ControlPath(path["Line"], tuple(path["States"]), bool(path.get("Aborted")))
        for path in expected
    }
    found = {path.name: path for path in got}
    for name in dict.fromkeys([*wanted, *found]):
        yield from _compare_path(
            name, found.get(name, ControlPath(name, ())), wanted.get(name, ControlPath(name, ()))
        )


def _compare_path(name: str, got: ControlPath, wanted: ControlPath) -> Iterator[ReplayDifference]:
    if got.aborted or wanted.aborted:
        common = min(len(got.states), len(wanted.states))
        got, wanted = (replace(path, states=path.states[:common]) for path in (got, wanted))
    if got.states == wanted.states:
        return
    pairs = zip((*got.states, None), (*wanted.states, None), strict=False)
    place = next(n for n, (state, wanted_state) in enumerate(pairs) if state != wanted_state)
    where = f"path of {name}" if name else "path"
    before = f" (after {wanted.states[place - 1]})" if place else ""
    ways = (path.states[place] if place < len(path.states) else "the end" for path in (got, wanted))
    yield ReplayDifference(f"{where}, state {place + 1}{before}", *ways)


def _compare_values(
    got: Any, wanted: Any, where: str, ignored: frozenset[str]
) -> Iterator[tuple[str, str, str]]:
    """Yield (path, got, wanted) of each part that differs."""
    if where in ignored:
        return
    if isinstance(got, dict) and isinstance(wanted, dict):
        for key in dict.fromkeys([*wanted, *got]):
            place = f"{where}.{key}" if re.fullmatch(r"\w+", key) else f"{where}['{key}']"
            yield from _compare_values(
                got.get(key, _NOTHING), wanted.get(key, _NOTHING), place, ignored
            )
    elif isinstance(got, list) and isinstance(wanted, list):
        for index in range(max(len(got), len(wanted))):
            left, right = (part[index] if index < len(part) else _NOTHING for part in (got, wanted))
            yield from _compare_values(left, right, f"{where}[{index}]", ignored)
    elif got != wanted or isinstance(got, bool) != isinstance(wanted, bool):
        yield where, _shorten(got), _shorten(wanted)


_NOTHING = object()


def _shorten(value: Any) -> str:
    text = "nothing" if value is _NOTHING else jsontext.dumps(value)
    return text if len(text) <= 200 else text[:199] + "…"  # noqa: PLR2004 - a line of a terminal
