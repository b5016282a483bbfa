"""Find the differences between a replayed execution and its recording: paths, then results."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from engine import jsontext
from engine.errors import JsonTextError
from engine.graph import TOP
from engine.history.visits import ABORTED

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from engine.graph import Graph
    from engine.history.fold import Trace
    from engine.history.visits import Visit
    from engine.runtime.commands import Finish

MAX_REPORTED = 5
"""Maximum number of reported differences or problems of a replay: there can be thousands."""
_MASKED = "(masked)"
"""A recorded value, or a part of a text, that its reader may not see: it is not compared."""
_EVENT_NUMBER = re.compile(r"#\d+")


@dataclass(frozen=True, slots=True)
class ReplayDifference:
    """One difference. ``where``: its place; ``got``, ``expected``: both values as texts."""

    where: str
    got: str
    expected: str

    def __str__(self) -> str:
        return f"{self.where}: got {self.got}, wanted {self.expected}"


@dataclass(frozen=True, slots=True)
class ControlPath:
    """The path of one line of control through the states.

    ``name``: "" for the execution, ``Each[3]`` for an iteration, ``Both[0].Each[1]`` for an
    iteration inside a branch. ``states``: names of the entered states, in order. ``aborted``: the
    failure of another line stopped it, so the length of ``states`` depends on timing.
    """

    name: str
    states: tuple[str, ...]
    aborted: bool = False


def control_paths(trace: Trace) -> list[ControlPath]:
    """Return the lines of control of an execution, in the order in which they began."""
    names = {group.id: group for group in trace.graph.groups}
    visits_by_line: dict[str, list[Visit]] = {}
    every = (visit for visits in trace.visits.values() for visit in visits)
    for visit in sorted(every, key=lambda visit: visit.number):
        visits_by_line.setdefault(_line_name(trace.graph, names, visit), []).append(visit)
    return [_control_path(trace.graph, name, visits) for name, visits in visits_by_line.items()]


def _control_path(picture: Graph, name: str, visits: list[Visit]) -> ControlPath:
    """Return the path of a line, cut after its first aborted visit."""
    cut = next((n for n, visit in enumerate(visits, 1) if visit.status == ABORTED), None)
    inside = bool(name)  # the scenario repeats a Stop, so the execution's own line is exact
    path_visits = visits[:cut] if inside else visits
    names = tuple(picture.by_id[visit.node].name for visit in path_visits)
    return ControlPath(name, names, aborted=inside and cut is not None)


def _line_name(picture: Graph, groups: Mapping[str, Any], visit: Visit) -> str:
    """Return the name of the line of control of a visit (``ControlPath.name``)."""
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
    """Yield the differences of paths and end between a replay and its recording.

    ``finish``: the end of the replay, None if it still waits. ``waiting``: names of the states that
    it waits in. ``expected``: the recorded end, with the keys ``Path``, ``Status``, ``Output``,
    ``Error``, ``Cause`` and ``Ignore`` of a scenario.
    """
    yield from _compare_paths(control_paths(trace), expected.get("Path", []))
    if finish is None:
        states = ", ".join(sorted(waiting)) or "nothing"
        yield ReplayDifference("status", f"RUNNING, waiting for {states}", str(expected["Status"]))
        return
    yield from _compare_endings(finish, expected)


def compare_requests(
    name: str, got: Mapping[str, Any], expected: Mapping[str, Any], token: str
) -> Iterator[ReplayDifference]:
    """Yield the differences of a call. ``got``, ``expected``: its ``Resource`` and ``Input``.

    ``token``: the task token of the replay; texts with it are not compared.
    """
    if "Resource" in expected and got.get("Resource") != expected["Resource"]:
        texts = (str(request.get("Resource")) for request in (got, expected))
        yield ReplayDifference(f"resource of {name}", *texts)
    if "Input" in expected:
        parts = _compare_values(got.get("Input"), expected["Input"], "$", frozenset())
        without_token = (part for part in parts if token not in str(part[1]))
        yield from _report_parts(f"input of {name}", without_token)


def _compare_endings(finish: Finish, expected: Mapping[str, Any]) -> Iterator[ReplayDifference]:
    if finish.status != expected["Status"]:
        ending = f"{finish.status} ({finish.error})" if finish.error else finish.status
        yield ReplayDifference("status", ending, str(expected["Status"]))
    if "Output" in expected and finish.output is not None:
        ignored = frozenset(expected.get("Ignore", ()))
        parts = _compare_values(jsontext.loads(finish.output), expected["Output"], "$", ignored)
        yield from _report_parts("output", parts)
    if finish.status == expected["Status"]:
        for name, text in (("Error", finish.error), ("Cause", finish.cause)):
            pair = [_NOTHING if part is None else part for part in (text, expected.get(name))]
            got, recorded = map(_without_event_numbers, pair)
            if got != recorded and not _hides(recorded, got):
                texts = [_shorten(part) for part in pair]
                yield ReplayDifference(name.lower(), *texts)


def _without_event_numbers(text: Any) -> Any:
    """Return a text without event numbers, which depend on timing: ``#12`` becomes ``#``."""
    return _EVENT_NUMBER.sub("#", text) if isinstance(text, str) else text


def _compare_paths(
    got: list[ControlPath], expected: list[Mapping[str, Any]]
) -> Iterator[ReplayDifference]:
    """Yield the differences of the paths, one line of control at a time.

    The order of states across lines is not compared, because it depends on timing.
    """
    expected_paths = {
        path["Line"]: ControlPath(path["Line"], tuple(path["States"]), bool(path.get("Aborted")))
        for path in expected
    }
    got_paths = {path.name: path for path in got}
    for name in dict.fromkeys([*expected_paths, *got_paths]):
        yield from _compare_path(
            name,
            got_paths.get(name, ControlPath(name, ())),
            expected_paths.get(name, ControlPath(name, ())),
        )


def _compare_path(name: str, got: ControlPath, expected: ControlPath) -> Iterator[ReplayDifference]:
    if got.aborted or expected.aborted:
        common = min(len(got.states), len(expected.states))
        got, expected = (replace(path, states=path.states[:common]) for path in (got, expected))
    if got.states == expected.states:
        return
    pairs = zip((*got.states, None), (*expected.states, None), strict=False)
    place = next(n for n, (state, expected_state) in enumerate(pairs) if state != expected_state)
    where = f"path of {name}" if name else "path"
    before = f" (after {expected.states[place - 1]})" if place else ""
    ways = (
        path.states[place] if place < len(path.states) else "the end" for path in (got, expected)
    )
    yield ReplayDifference(f"{where}, state {place + 1}{before}", *ways)


def _report_parts(
    subject: str, parts: Iterable[tuple[str, Any, Any]]
) -> Iterator[ReplayDifference]:
    """Yield the first different parts of a value as differences."""
    for where, got, expected in itertools.islice(parts, MAX_REPORTED):
        yield ReplayDifference(f"{subject} {where}", _shorten(got), _shorten(expected))


def _compare_values(
    got: Any, expected: Any, where: str, ignored: frozenset[str]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield (path, got, expected) of each different part."""
    if where in ignored or _hides(expected, got):
        return
    if isinstance(got, dict) and isinstance(expected, dict):
        for key in dict.fromkeys([*expected, *got]):
            place = f"{where}.{key}" if re.fullmatch(r"\w+", key) else f"{where}['{key}']"
            yield from _compare_values(
                got.get(key, _NOTHING), expected.get(key, _NOTHING), place, ignored
            )
    elif isinstance(got, list) and isinstance(expected, list):
        for index in range(max(len(got), len(expected))):
            got_part, expected_part = (
                part[index] if index < len(part) else _NOTHING for part in (got, expected)
            )
            yield from _compare_values(got_part, expected_part, f"{where}[{index}]", ignored)
    elif got != expected or isinstance(got, bool) != isinstance(expected, bool):
        yield where, got, expected


def _hides(expected: Any, got: Any) -> bool:
    """Return whether two values can differ in masked values only.

    JSON texts are compared as values: masking changes their spaces, and a number to a string.
    """
    if expected == _MASKED:
        return got is not _NOTHING
    if not isinstance(got, str) or not isinstance(expected, str) or _MASKED not in expected:
        return False
    try:
        parsed = jsontext.loads(got), jsontext.loads(expected)
    except JsonTextError:  # no JSON, or nested too deep
        return _fits(got, expected.split(_MASKED))
    return not any(_compare_values(*parsed, "$", frozenset()))


def _fits(text: str, parts: list[str]) -> bool:
    """Return whether a text consists of these parts, in order, with any text between them.

    Many masks in a long text would be slow with a regular expression.
    """
    first, *between, last = parts
    start, end = len(first), len(text) - len(last)
    if start > end or not (text.startswith(first) and text.endswith(last)):
        return False
    for part in between:
        place = text.find(part, start, end)
        if place < 0:
            return False
        start = place + len(part)
    return True


_NOTHING = object()


def _shorten(value: Any) -> str:
    text = "nothing" if value is _NOTHING else jsontext.dumps(value)
    return text if len(text) <= 200 else text[:199] + "…"  # noqa: PLR2004 - a line of a terminal
