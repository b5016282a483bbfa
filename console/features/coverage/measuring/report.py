"""Make coverage reports: compare reached points with all points, and with thresholds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import engine

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from console.features.coverage.measuring.collection import MachineCoverage


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Minimum percentages. ``total``: for all together; ``machines``: name -> its minimum."""

    total: float = 0
    machines: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CoverageReport:
    """The coverage report of a state machine.

    ``holes``: unreached points; ``uncertain``: points that histories cannot decide. ``threshold``:
    the minimum percentage, 0 without one. ``definition``: its text; ``place``: its file, "" without
    one; ``text``: the content of that file. ``runs``: source -> number of executions.
    ``suggestions``: key of a hole -> a test that reaches it. ``limits``: AWS limits that executions
    came near, nearest first.
    """

    machine: str
    points: Sequence[engine.Point]
    reached: frozenset[str]
    holes: Sequence[engine.Point]
    uncertain: Sequence[engine.Point]
    definition: str
    kind: str
    place: str = ""
    runs: Mapping[str, int] = field(default_factory=dict)
    threshold: float = 0
    text: str = ""
    suggestions: Mapping[str, engine.Suggestion] = field(default_factory=dict)
    limits: Sequence[engine.LimitAhead] = ()

    @property
    def percent(self) -> float:
        """Return the percentage of reached points."""
        return percent_of([self])

    @property
    def falls_short(self) -> bool:
        """Return whether the percentage is below the state machine's own threshold."""
        return self.percent < self.threshold

    def kinds(self) -> dict[str, tuple[int, int]]:
        """Return kind of point -> (number reached, total)."""
        counts: dict[str, tuple[int, int]] = {}
        for point in self.points:
            reached, total = counts.get(point.kind, (0, 0))
            counts[str(point.kind)] = (reached + (point.key in self.reached), total + 1)
        return counts


def make_reports(
    machines: Iterable[MachineCoverage], thresholds: Thresholds
) -> list[CoverageReport]:
    """Return the report of each machine; raise ``engine.DefinitionError``."""
    return [
        CoverageReport(
            machine=machine.label,
            points=(points := machine.reader.points),
            reached=frozenset(machine.reached),
            holes=[
                point
                for point in points
                if point.key not in machine.reached and point.key not in machine.uncertain
            ],
            uncertain=[
                point
                for point in points
                if point.key in machine.uncertain and point.key not in machine.reached
            ],
            definition=machine.definition,
            kind=machine.kind,
            place=machine.place,
            runs=dict(machine.runs),
            threshold=thresholds.machines.get(machine.label, 0),
            limits=sorted(machine.limits.values(), key=lambda limit: -limit.value / limit.limit),
        )
        for machine in machines
    ]


def with_suggestions(report: CoverageReport) -> CoverageReport:
    """Return a report with a suggested test for each hole, where one is found."""
    reader = engine.CoverageReader(engine.parse_stored(report.definition, report.kind))
    return replace(report, suggestions=engine.suggest(reader, report.holes))


def percent_of(reports: Iterable[CoverageReport]) -> float:
    """Return the percentage of reached points of several state machines, 100 without points."""
    reached = total = 0
    for report in reports:
        total += len(report.points)
        reached += sum(point.key in report.reached for point in report.points)
    return 100 * reached / total if total else 100.0


def shortfalls(reports: Sequence[CoverageReport], thresholds: Thresholds) -> list[str]:
    """Return a line for each threshold that is not reached."""
    lines = [
        f"{report.machine}: got {report.percent:.1f} %, wanted {report.threshold:g} %"
        for report in reports
        if report.falls_short
    ]
    total = percent_of(reports)
    if total < thresholds.total:
        lines.append(f"total: got {total:.1f} %, wanted {thresholds.total:g} %")
    return lines
