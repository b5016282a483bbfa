"""Compare two executions state by state, and their inputs and outputs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import engine
from console.web.core import formatting
from console.web.history.traces import open_trace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from console.models import Execution
    from engine import Graph, Trace, Visits, VisitStatus

MOST = 200
"""The maximum number of differences shown per payload."""
_LONGEST = 300
_FOLDED, _BEGINNING, _WHOLE = 160, 110, 4_000
"""Characters: length above which a value is folded; visible part when folded, and unfolded."""
_STACK_TRACES = {"stackTrace", "stack_trace", "trace"}
"""Fields whose lines are one value: two traces differ in many lines."""
_PYTHON_TRACE = "Traceback (most recent call last)"
_DEEPEST = 60
_LAG_MS = 100
"""Durations that differ by less are the same to a reader."""
_SLOW_RATIO, _SLOW_MS = 1.5, 500
"""A state differs in its duration from both on."""


# -- what one execution did ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ComparedState:
    """Result of one state in one execution. ``retries``: repeated attempts."""

    status: formatting.StatusLabel = formatting.STEP[""]
    visits: int = 0
    retries: int = 0
    spent: int | None = None


class PathStep(NamedTuple):
    """One visit on a path. ``visit``: its number within the state, from 1, as in URLs."""

    name: str
    visit: int
    status: VisitStatus


@dataclass(frozen=True, slots=True)
class ExecutionWalk:
    """Trace of one execution. ``paths``: line of control -> visited states.

    ``graph``: the graph of its definition, None if that cannot be drawn.
    """

    cells: Mapping[str, ComparedState]
    paths: Mapping[tuple[int, tuple[int, ...]], Sequence[PathStep]]
    graph: Graph | None


def walk_execution(execution: Execution) -> ExecutionWalk:
    """Read an execution's history; without a valid definition the paths are empty."""
    try:
        with open_trace(execution) as trace:
            return _walk_trace(trace)
    except engine.DefinitionError:
        return ExecutionWalk({}, {}, None)


def _walk_trace(trace: Trace) -> ExecutionWalk:
    statuses = trace.statuses()
    order = {group.id: place for place, group in enumerate(trace.graph.groups)}
    every = [pair for visits in trace.visits.values() for pair in enumerate(visits, 1)]
    paths: dict[tuple[int, tuple[int, ...]], list[PathStep]] = {}
    for place, visit in sorted(every, key=lambda pair: pair[1].number):
        node = trace.graph.by_id[visit.node]
        line = order.get(node.group, 0), visit.iteration
        paths.setdefault(line, []).append(PathStep(node.name, place, visit.status))
    cells = {
        node.name: _compared_state(statuses.get(node.id, ""), trace.visits_of(node.id))
        for node in trace.graph.nodes
    }
    return ExecutionWalk(cells, paths, trace.graph)


def _compared_state(status: str, visits: Visits) -> ComparedState:
    """Return the result of a state; overlapping visits count once, as in the timeline."""
    has_left = any(visit.left_ms is not None for visit in visits)
    return ComparedState(
        formatting.STEP[status],
        len(visits),
        sum(visit.retries for visit in visits),
        visits.covered_ms(visits[-1].entered_ms) if has_left else None,
    )


# -- state by state --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One state of either execution, side by side."""

    name: str
    a: ComparedState
    b: ComparedState

    @property
    def differs(self) -> bool:
        """Whether statuses, visits or retries differ, or durations differ strongly."""
        return self.lasts_differently or (self.a.status, self.a.visits, self.a.retries) != (
            *(self.b.status, self.b.visits),
            self.b.retries,
        )

    @property
    def lasts_differently(self) -> bool:
        """Whether one took at least 1.5 times as long, and 500 ms more."""
        if self.a.spent is None or self.b.spent is None:
            return False
        short, long = sorted((self.a.spent, self.b.spent))
        return long - short >= _SLOW_MS and long >= _SLOW_RATIO * short

    @property
    def lag_ms(self) -> int:
        """Return how much longer it took in B, 0 if insignificant."""
        if self.a.spent is None or self.b.spent is None:
            return 0
        lag = self.b.spent - self.a.spent
        return lag if abs(lag) >= max(_LAG_MS, min(self.a.spent, self.b.spent) // 10) else 0

    @property
    def lag_text(self) -> str:
        """Return the difference as text: ``+1.2 s``, "" if insignificant."""
        sign = "+" if self.lag_ms > 0 else "−"  # noqa: RUF001 - a minus sign
        return f"{sign}{formatting.duration_text(abs(self.lag_ms))}" if self.lag_ms else ""


MOST_ROWS = 1000
"""The maximum number of states shown side by side."""


def shown_rows(every_row: list[ComparedRow], *, differing: bool = False) -> list[ComparedRow]:
    """Return the rows to show: at most a maximum, differing rows first.

    ``differing``: leave out equal rows.
    """
    if differing:
        every_row = [row for row in every_row if row.differs]
    if len(every_row) <= MOST_ROWS:
        return every_row
    return sorted(every_row, key=lambda row: not row.differs)[:MOST_ROWS]


def compared_total(a: Execution, b: Execution) -> ComparedRow:
    """Return a row for whole executions, start to end; None while one is running."""
    spans = (
        None if execution.stop_ms is None else execution.stop_ms - execution.start_ms
        for execution in (a, b)
    )
    return ComparedRow("Execution", *(ComparedState(spent=span) for span in spans))


def compared_rows(a: ExecutionWalk, b: ExecutionWalk) -> list[ComparedRow]:
    """Return all states: in the first definition's order, then the second's others."""
    names = dict.fromkeys((*a.cells, *b.cells))
    return [
        ComparedRow(name, a.cells.get(name, ComparedState()), b.cells.get(name, ComparedState()))
        for name in names
    ]


# -- data ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LongValue:
    """A collapsed value: ``beginning`` is one line, ``whole`` is formatted."""

    beginning: str
    whole: str


@dataclass(frozen=True, slots=True)
class ValueDifference:
    """One difference of two payloads; None: the value is missing.

    ``long_a``, ``long_b``: the values, if one is long or has many lines.
    """

    path: str
    a: str | None
    b: str | None
    long_a: LongValue | None = None
    long_b: LongValue | None = None

    @property
    def kind(self) -> str:
        """Return the kind of difference in words."""
        if self.a is None:
            return "only in B"
        return "only in A" if self.b is None else "changed"


@dataclass(frozen=True, slots=True)
class FieldDiff:
    """The first ``MOST`` differences of one field.

    ``sides``: which of the two have it: ``AB``, ``A`` or ``B``.
    """

    title: str
    differences: tuple[ValueDifference, ...]
    more: bool
    both: bool  # there is something to compare
    sides: str = ""


def diff_field(title: str, a: str | None, b: str | None) -> FieldDiff:
    """Compare two texts: value by value if both are JSON, else as a whole."""
    differences: list[ValueDifference] = []
    for difference in _differences(_parsed_json(a), _parsed_json(b), "", 0):
        differences.append(difference)
        if len(differences) > MOST:
            break
    sides = "".join(side for side, text in (("A", a), ("B", b)) if text is not None)
    return FieldDiff(title, tuple(differences[:MOST]), len(differences) > MOST, bool(sides), sides)


class _Missing:
    """Marks a missing value."""


_MISSING = _Missing()


def _parsed_json(text: str | None) -> Any:
    if text is None:
        return _MISSING
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _differences(a: Any, b: Any, path: str, depth: int) -> Iterator[ValueDifference]:
    if depth < _DEEPEST and isinstance(a, dict) and isinstance(b, dict):
        for key in dict.fromkeys((*a, *b)):
            inner = f"{path}.{key}" if key.isidentifier() else f"{path}[{json.dumps(key)}]"
            yield from _differences(a.get(key, _MISSING), b.get(key, _MISSING), inner, depth + 1)
    elif _are_lines(path, a) and _are_lines(path, b):
        if a != b:
            yield _difference(path, "\n".join(a), "\n".join(b))
    elif depth < _DEEPEST and isinstance(a, list) and isinstance(b, list):
        for place in range(max(len(a), len(b))):
            value, other = (side[place] if place < len(side) else _MISSING for side in (a, b))
            yield from _differences(value, other, f"{path}[{place}]", depth + 1)
    elif isinstance(a, bool) != isinstance(b, bool) or a != b:
        yield _difference(path, a, b)


def _are_lines(path: str, value: Any) -> bool:
    """Whether a value is a stack trace as a list of lines."""
    is_stack_trace = path.rpartition(".")[2] in _STACK_TRACES
    return (
        is_stack_trace and isinstance(value, list) and all(isinstance(line, str) for line in value)
    )


def _difference(path: str, a: Any, b: Any) -> ValueDifference:
    return ValueDifference(
        path.removeprefix(".") or "all of it",
        *(_shortened(a), _shortened(b)),
        *(_long_value(a), _long_value(b)),
    )


def _long_value(value: Any) -> LongValue | None:
    """Return a long value for display, None for a short one. A text's line breaks are kept."""
    if value is _MISSING:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) <= _FOLDED and "\n" not in text.strip():
        return None
    full_text = text if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    return LongValue(
        _shorten_text(_telling_line(value, text), _BEGINNING), _shorten_text(full_text, _WHOLE)
    )


def _telling_line(value: Any, text: str) -> str:
    """Return the most telling line: a function's error, the last line of a trace."""
    if isinstance(value, dict) and isinstance(message := value.get("errorMessage"), str):
        kind = value.get("errorType")
        return f"{kind}: {message}" if isinstance(kind, str) else message
    lines = text.strip().splitlines() or [""]
    return lines[-1] if lines[0].startswith(_PYTHON_TRACE) else lines[0]


def _shorten_text(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


def _shortened(value: Any) -> str | None:
    if value is _MISSING:
        return None
    text = json.dumps(value, ensure_ascii=False)
    return _shorten_text(text, _LONGEST)
