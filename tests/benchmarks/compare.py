"""Compare Stateyard with MiniStack, an emulator that keeps everything in memory.

``python -m tests.benchmarks.compare [--ministack PYTHON] [--rounds 3] [--only chain,history]
[--write]`` starts Stateyard on SQLite, on PostgreSQL with one web process and two workers, and
MiniStack, one after another, and asks each of them the same (``sfn_scenarios``), in so many
rounds. It prints the medians, and their ratios to MiniStack's: 2.0 x is twice as good in each unit.

``--ministack``: the interpreter of an environment that has it; without, one is made and the newest
release is installed from PyPI. ``--write``: put the table into docs/explanation/performance.md.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import platform
import statistics
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from tests.benchmarks.compared_servers import (
    WORKERS,
    MiniStack,
    RunningServer,
    stateyard_on_postgres,
    stateyard_on_sqlite,
)
from tests.benchmarks.sfn_client import CallFailed
from tests.benchmarks.sfn_scenarios import SCENARIOS, Scenario

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    Starter = Callable[[Path], AbstractContextManager[RunningServer]]

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs/explanation/performance.md"
SQLITE, POSTGRES, MINISTACK = "SQLite", "PostgreSQL", "MiniStack"
COST = "processor time"
_WINDOW_S = 3.0
_IDLE = 0.1
"""The part of a processor that an idle server uses at most."""
Figures = dict[str, dict[str, list[float]]]
"""Name of a server -> name of a scenario -> a figure a round."""


def measure(
    starters: dict[str, Starter], scenarios: Sequence[Scenario], rounds: int, folder: Path
) -> Figures:
    """Return what each server reached in each round; they take turns."""
    figures: Figures = {name: {} for name in starters}
    for number in range(1, rounds + 1):
        for name, start in starters.items():
            own = folder / f"{name}-{number}"
            own.mkdir()
            with start(own) as server, asyncio.Runner() as loop:
                before = _settled(server)
                for scenario in scenarios:
                    figure = loop.run(_figure(server, scenario))
                    if figure is not None:
                        figures[name].setdefault(scenario.name, []).append(figure)
                    print(f"round {number}: {name} {scenario.name} {_text(figure)}", flush=True)
                figures[name].setdefault(COST, []).append(server.cpu_s() - before)
    return figures


def _settled(server: RunningServer) -> float:
    """Wait for the end of what follows a start, such as imports; return the processor time."""
    before = server.cpu_s()
    while True:
        time.sleep(_WINDOW_S)
        now = server.cpu_s()
        if now - before < _IDLE * _WINDOW_S:
            return now
        before = now


async def _figure(server: RunningServer, scenario: Scenario) -> float | None:
    """Return the figure of a scenario; None, and the reason in print, if it failed."""
    try:
        return await scenario.run(server.client)
    except (CallFailed, OSError, asyncio.IncompleteReadError) as error:
        print(f"{scenario.name} failed: {error}", flush=True)
        return None


# -- the table -------------------------------------------------------------------------------------


def table(figures: Figures, scenarios: Sequence[Scenario]) -> str:
    """Return the medians and ratios as a table in Markdown."""
    lines = [
        "| scenario | MiniStack | Stateyard, SQLite | | Stateyard, PostgreSQL | |",
        "|---|---|---|---|---|---|",
    ]
    for scenario in scenarios:
        less = scenario.less_is_better
        lines.append(_row(figures, scenario.name, f"{scenario.title}, {scenario.unit}", less=less))
    lines.append(_row(figures, COST, "processor time of all that, s", less=True))
    return "\n".join(lines)


def _row(figures: Figures, name: str, title: str, *, less: bool) -> str:
    """Return a line of the table. ``less``: a smaller figure is a better one."""
    theirs = _median(figures[MINISTACK], name)
    cells = [title, _text(theirs)]
    for server in (SQLITE, POSTGRES):
        ours = _median(figures[server], name)
        cells += [_text(ours), _ratio(ours, theirs, less=less)]
    return f"| {' | '.join(cells)} |"


def _median(figures: dict[str, list[float]], name: str) -> float | None:
    return statistics.median(figures[name]) if figures.get(name) else None


def _ratio(ours: float | None, theirs: float | None, *, less: bool) -> str:
    """Return how many times as good our figure is."""
    if not ours or not theirs:
        return ""
    return f"{theirs / ours if less else ours / theirs:.1f} x"


def _text(figure: float | None) -> str:
    if figure is None:
        return "failed"
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.3g}"


def circumstances(rounds: int, more: str = "") -> str:
    """Return what the figures belong to: commit, processors, versions. ``more``: versions."""
    page = str(PAGE.relative_to(ROOT))  # an earlier table may have been written there
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", f":!{page}")
    commit = _git("describe", "--always") + ("-dirty" if changed else "")
    processors = len(os.sched_getaffinity(0))
    return (
        f"Commit {commit or 'unknown'}, {processors} processors that also ran the "
        f"client, Python {platform.python_version()}{more}; rounds: {rounds}, medians."
    )


def _git(*words: str) -> str:
    """Return what a command of git prints, "" if it fails."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def write(text: str, mark: str = "compare") -> None:
    """Replace the text between two marks of the page."""
    begin, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.partition(begin)[0], page.partition(end)[2]
    PAGE.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def main() -> None:
    """Measure, print the table, and write it where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ministack", type=Path, help="the interpreter of its environment")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default=",".join(scenario.name for scenario in SCENARIOS))
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.relative_to(ROOT)}")
    options = parser.parse_args()
    gc.freeze()  # else the client's collector goes through all its imports while a server is timed
    scenarios = [scenario for scenario in SCENARIOS if scenario.name in options.only.split(",")]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        rival = (
            MiniStack(options.ministack)
            if options.ministack
            else MiniStack.installed(folder / "venv")
        )
        starters: dict[str, Starter] = {
            SQLITE: stateyard_on_sqlite,
            POSTGRES: stateyard_on_postgres,
            MINISTACK: rival.serving,
        }
        figures = measure(starters, scenarios, options.rounds, folder)
        versions = (
            f", MiniStack {rival.version}, PostgreSQL with 1 web process and {WORKERS} workers"
        )
        text = f"{table(figures, scenarios)}\n\n{circumstances(options.rounds, versions)}"
    print(f"\n{text}")
    if options.write:
        write(text)


if __name__ == "__main__":
    main()
