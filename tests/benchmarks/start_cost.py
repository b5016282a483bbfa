"""Measure the processor time of starts: of commands, of servers, and of the pytest plugin.

``python -m tests.benchmarks.start_cost [--rounds 7] [--beside COMMIT] [--write]`` runs each of them
in this checkout and, in turn, in a checkout of another commit, with the same interpreter. It prints
medians and ratios: 2.0 x is half the time. Figures are processor time of all processes that belong
to it (Linux: ``/proc``). ``--write``: put the table into docs/explanation/performance.md.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

from tests.acceptance.server import free_port
from tests.benchmarks.compare import ROOT, circumstances, write
from tests.benchmarks.compared_servers import process_tree_s

if TYPE_CHECKING:
    from collections.abc import Iterator

Samples = dict[str, list[float]]
"""Row of the table -> seconds, a round each."""
MARK = "start"
CHECK, LINT = "`manage.py check`", "`stateyard lint --help`"
FIRST, AGAIN = "first start until `/readyz`", "start on its folder until `/readyz`"
PLUGIN, RUN = "pytest plugin: start of the server", "pytest plugin: `run_machine` of a Pass"
_RUNS = 100
_PLUGIN = f"""
import json, sys, time
from pathlib import Path
from console.testing.server import StateyardServer
from tests.benchmarks.compared_servers import process_tree_s

def spent():
    return time.process_time() + process_tree_s((server._process.pid,))

machine = {{"StartAt": "P", "States": {{"P": {{"Type": "Pass", "End": True}}}}}}
server, began = StateyardServer(Path(sys.argv[1])), time.process_time()
server.start()
start = spent() - began
for _ in range(10):
    server.run_machine(machine)
time.sleep(2)
before = spent()
for _ in range({_RUNS}):
    server.run_machine(machine)
run = (spent() - before) / {_RUNS}
server.stop()
print(json.dumps([start, run]))
"""
"""Prints the processor time of the tests and of their server."""


def measure(trees: list[Path], rounds: int, folder: Path) -> list[Samples]:
    """Return the samples of each checkout; they take turns."""
    samples: list[Samples] = [{} for _ in trees]
    for number in range(-1, rounds):  # the first round only compiles
        for tree, own in zip(trees, samples, strict=True):
            for row, seconds in _round(tree, folder / f"{tree.name}{number}"):
                print(f"round {number + 1}: {tree.name} {row} {seconds:.3f} s", flush=True)
                if number >= 0:
                    own.setdefault(row, []).append(seconds)
    return samples


def _round(tree: Path, data: Path) -> Iterator[tuple[str, float]]:
    env = {**os.environ, "PYTHONPATH": str(tree), "STATEYARD_DATA": str(data)}
    env["XDG_DATA_HOME"] = str(data)  # of checkouts before 0.3: their variable has another name
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    data.mkdir()
    yield CHECK, _command_s(["manage.py", "check"], tree, env)
    yield LINT, _command_s(["-m", "console.command_line", "lint", "--help"], tree, env)
    for row in (FIRST, AGAIN):
        yield row, _server_s(tree, env)
    # an older checkout may lack a function of these tests, or the server of the plugin
    env["PYTHONPATH"] += f"{os.pathsep}{ROOT}"
    words = [sys.executable, "-c", _PLUGIN, str(data / "plugin")]
    (data / "plugin").mkdir()
    printed = subprocess.run(words, cwd=data, env=env, capture_output=True, text=True, check=False)
    assert printed.returncode == 0 or tree != ROOT, printed.stderr
    if printed.returncode == 0:
        yield from zip((PLUGIN, RUN), json.loads(printed.stdout), strict=True)


def _command_s(words: list[str], tree: Path, env: dict[str, str]) -> float:
    """Return the processor time of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *words], cwd=tree, env=env, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def _server_s(tree: Path, env: dict[str, str]) -> float:
    """Return the processor time of a server until it is ready."""
    port = free_port()
    words = [sys.executable, "manage.py", "up", "--port", str(port)]
    with subprocess.Popen(words, cwd=tree, env=env, stdout=subprocess.DEVNULL) as server:
        try:
            while not _is_ready(port):
                assert server.poll() is None, "the server ended"
                time.sleep(0.01)
            return process_tree_s((server.pid,))
        finally:
            server.terminate()


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=60):
            return True
    except OSError:
        return False


def table(samples: list[Samples], beside: str) -> str:
    """Return the medians, and the ratios to the other checkout, as a table in Markdown."""
    lines = ["| processor time, ms | now |", "|---|---|"]
    if beside:
        lines = [f"| processor time, ms | {beside} | now | |", "|---|---|---|---|"]
    for row, times in samples[0].items():
        now = statistics.median(times)
        cells = [row, f"{now * 1000:,.4g}"]
        if beside and row in samples[1]:
            before = statistics.median(samples[1][row])
            cells = [row, f"{before * 1000:,.4g}", cells[1], f"{before / now:.1f} x"]
        elif beside:
            cells = [row, "not there", cells[1], ""]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, print the table, and write it where that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--beside", metavar="COMMIT", default="")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        trees, git = [ROOT], ["git", "-C", str(ROOT), "worktree"]
        if options.beside:
            trees.append(Path(name) / options.beside)
            added = [*git, "add", "-q", "--detach", str(trees[1]), options.beside]
            subprocess.run(added, check=True)
        try:
            samples = measure(trees, options.rounds, Path(name))
        finally:
            for tree in trees[1:]:
                subprocess.run([*git, "remove", "--force", str(tree)], check=True)
    text = f"{table(samples, options.beside)}\n\n{circumstances(options.rounds)}"
    print(f"\n{text}")
    if options.write:
        write(text, MARK)


if __name__ == "__main__":
    main()
