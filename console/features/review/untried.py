"""Find the new points of state machines that no test has reached, from coverage results."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import engine
from console.cli.documents import SourceError, read_text
from console.features.coverage.measuring import (
    Collection,
    CoverageFileError,
    Thresholds,
    make_reports,
)
from console.features.deploy.lint_sources import quoted_placeholders, with_resources

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from console.features.deploy.sources import MachineSource
    from console.features.review.comparison import MachineReview


def untried_points(
    machines: Iterable[MachineReview], files: Sequence[Path]
) -> dict[str, Sequence[engine.Point] | None]:
    """Return state machine -> new unreached points, None if its definition is invalid.

    ``files``: results of ``pytest --stateyard-coverage=FILE``; {} without any. A point is new if
    the former definition lacks it with the same condition and target. Raise ``SourceError`` for a
    file without results.
    """
    collection = Collection()
    untried: dict[str, Sequence[engine.Point] | None] = {}
    for review in machines if files else ():
        source = review.after
        if source is not None:
            untried[review.name] = None
            if _points_of(source):
                text = with_resources(source.definition)
                pattern = quoted_placeholders(source.pattern or source.definition)
                collection.declare(review.name, text, source.type, source=pattern)
    declared = {machine.definition for machine in collection.machines}
    for file in files:
        try:
            collection.read_document(json.loads(read_text(file)), str(file))
        except (CoverageFileError, ValueError) as error:
            raise SourceError(f"{file}: {error}") from None
    former = {review.name: _points_of(review.before) for review in machines}
    for report in make_reports(collection.resolve(), Thresholds()):
        if report.machine in untried and report.definition in declared:
            old = former[report.machine]
            untried[report.machine] = [point for point in report.holes if point not in old]
    return untried


def _points_of(source: MachineSource | None) -> set[engine.Point]:
    """Return the points of a definition; none if missing or invalid."""
    if source is None:
        return set()
    try:
        machine = engine.parse_stored(with_resources(source.definition), source.type)
    except engine.EngineError:
        return set()
    return set(engine.CoverageReader(machine).points)
