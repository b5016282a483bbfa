"""Write the outcomes of replays as lines, as a table, as JSON, or as JUnit."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from console.features.deploy.junit import JUnitCase, write_junit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from engine import ReplayDifference

SAME, UNFINISHED = "same path, same output", "left out, it has not ended"
_WIDEST = 60
"""Maximum length of a value in a table."""


@dataclass(frozen=True, slots=True)
class ReplayOutcome:
    """The outcome of one replay. ``name``: of the file or the execution.

    ``differences``: from the recording. ``problem``: why it could not be replayed, "" if it was.
    ``unfinished``: it has not ended yet, so there is nothing to compare.
    """

    name: str
    differences: Sequence[ReplayDifference] = ()
    problem: str = ""
    unfinished: bool = False

    @property
    def is_same(self) -> bool:
        """Whether path and output were the same."""
        return not self.differences and not self.problem and not self.unfinished

    @property
    def differs(self) -> bool:
        """Whether an ended execution's replay differs or was impossible."""
        return not self.is_same and not self.unfinished

    @property
    def text(self) -> str:
        """Return the outcome as text, for a replay without differences."""
        return self.problem or (UNFINISHED if self.unfinished else SAME)


def write_lines(outcomes: Sequence[ReplayOutcome]) -> str:
    """Return a line for each difference."""
    lines: list[str] = []
    for outcome in outcomes:
        texts = [*map(str, outcome.differences)] or [outcome.text]
        lines += [f"{outcome.name}: {text}" for text in texts]
    return "\n".join(lines)


def write_table(outcomes: Sequence[ReplayOutcome]) -> str:
    """Return a table with a row for each difference, and a last line with the counts."""
    rows = [("execution", "where", "got", "wanted")]
    for outcome in outcomes:
        if not outcome.differences:
            rows.append((outcome.name, outcome.text, "", ""))
        rows += [
            (outcome.name, each.where, _shorten(each.got), _shorten(each.expected))
            for each in outcome.differences
        ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    same = sum(outcome.is_same for outcome in outcomes)
    return "\n".join([*lines, f"{same} of {len(outcomes)} the same"])


def _shorten(value: str) -> str:
    return value if len(value) <= _WIDEST else f"{value[: _WIDEST - 1]}…"


def write_json(outcomes: Sequence[ReplayOutcome]) -> str:
    """Return a JSON list with an object per execution."""
    entries = [asdict(outcome) | {"same": outcome.is_same} for outcome in outcomes]
    return json.dumps(entries, indent=2, ensure_ascii=False)


def _junit_case(outcome: ReplayOutcome) -> JUnitCase:
    if outcome.unfinished:
        return JUnitCase(outcome.name, "skipped", UNFINISHED)
    if outcome.is_same:
        return JUnitCase(outcome.name)
    lines = [*map(str, outcome.differences)] or [outcome.problem]
    return JUnitCase(outcome.name, "failure", lines[0], "\n".join(lines))


WRITERS: Mapping[str, Callable[[Sequence[ReplayOutcome]], str]] = {
    "text": write_lines,
    "table": write_table,
    "json": write_json,
    "junit": lambda outcomes: write_junit([("replay", [_junit_case(each) for each in outcomes])]),
}
"""Format -> the function that writes it."""
