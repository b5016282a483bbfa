"""The features of ``docs/reference/console-features.md``, and the tests that prove each.

``python -m tests.rows`` prints the table: row, what it asks for, its tests. A test proves the row
its name begins with (``test_E11_...``) and those of its mark ``row("X5", "X18")``.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent
BROWSER = "acceptance/browser/"
# row -> priority (0: without it the comparison is lost, 1: first release, 2: soon after), words
ROWS = {
    "E1": (0, "the execution's page: summary first"),
    "E2": (0, "the whole definition drawn, coloured from all events"),
    "E3": (0, "status by colour, sign and word"),
    "E4": (0, "one selection for graph, table, timeline and panel"),
    "E5": (0, "the step panel and its tabs"),
    "E6": (1, "the data flow, stage by stage"),
    "E7": (0, "the error banner and its way to the failing step"),
    "E8": (0, "the iteration picker"),
    "E9": (1, "the states as a tree: sorted, filtered, chosen columns"),
    "E10": (1, "timeline bars that tell attempts apart without colour"),
    "E11": (0, "the event table: pages, filters, totals"),
    "E12": (0, "event details: several open, deep links"),
    "E13": (0, "start: editor with checks, remembered inputs"),
    "E14": (0, "stop with error and cause"),
    "E15": (0, "redrive with eligibility and reason"),
    "E16": (0, "the machine's pages"),
    "E17": (0, "the list of executions: filters, stable paging"),
    "E18": (1, "the Map Run's page"),
    "E19": (1, "the definition editor with live graph and diagnostics"),
    "E20": (1, "trying a state from the page"),
    "E21": (0, "metrics"),
    "E22": (1, "export, copy ARN, copy as CLI"),
    "E23": (0, "sign-in and roles"),
    "E24": (1, "light and dark, UTC and local"),
    "X1": (0, "two executions compared"),
    "X2": (0, "what is waited for, and a form to answer"),
    "X3": (0, "search by what is inside"),
    "X4": (0, "bulk actions with a dry run"),
    "X5": (0, "nothing is lost on refresh"),
    "X6": (1, "the time machine"),
    "X7": (1, "runs by states"),
    "X8": (1, "failures grouped"),
    "X9": (1, "the cause opened up"),
    "X10": (1, "a time axis aware of gaps and attempts"),
    "X11": (1, "export as test"),
    "X12": (1, "a chart's bar is a list"),
    "X13": (0, "audit in the page"),
    "X14": (1, "masked by default"),
    "X15": (2, "notes and hand-over"),
    "X16": (1, "shared views on the server"),
    "X17": (2, "the graph as a picture or as words"),
    "X18": (0, "reads without JavaScript, by keyboard, WCAG 2.2 AA"),
    "X19": (1, "definition drift"),
    "X20": (2, "replay from a state with edited input"),
}
_NAMED = re.compile(r"test_([ex]\d+)_", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Proof:
    """A test that proves a row. ``file``: below ``tests``."""

    row: str
    name: str
    file: str

    @property
    def in_browser(self) -> bool:
        """Return whether it drives a real browser."""
        return self.file.startswith(BROWSER)


@cache
def proofs() -> tuple[Proof, ...]:
    """Return every proof, in the order of the files."""
    paths = sorted(ROOT.rglob("test_*.py"))
    return tuple(proof for path in paths for proof in _proofs(path))


def _proofs(path: Path) -> Iterator[Proof]:
    file = path.relative_to(ROOT).as_posix()
    source = path.read_text(encoding="utf-8")
    if not _NAMED.search(source) and "pytest.mark.row" not in source:
        return  # parsing takes most of the time
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            for row in dict.fromkeys([*_of_name(node.name), *_of_marks(node)]):
                yield Proof(row, node.name, file)


def _of_name(name: str) -> list[str]:
    match = _NAMED.match(name)
    return [match[1].upper()] if match else []


def _of_marks(node: ast.FunctionDef) -> Iterator[str]:
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.row":
            yield from (str(ast.literal_eval(argument)) for argument in decorator.args)


def table() -> str:
    """Return the table as Markdown."""
    every_proof = proofs()
    lines = ["| row | P | what | browser tests | other tests |", "|---|---|---|---|---|"]
    for row, (priority, words) in ROWS.items():
        own = [proof for proof in every_proof if proof.row == row]
        cells = (
            "<br>".join(
                f"`{proof.name}` ({proof.file})" for proof in own if proof.in_browser is browser
            )
            for browser in (True, False)
        )
        lines.append(f"| {row} | P{priority} | {words} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())  # noqa: T201 - a command
