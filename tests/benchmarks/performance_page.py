"""Write all tables of docs/explanation/performance.md anew.

``python -m tests.benchmarks.performance_page --beside COMMIT [--ministack PYTHON] [--rounds 3]``
runs the commands of the tables one after another: ``compare``, ``start_cost`` beside a checkout of
that commit, and ``list_cost`` among 200,000 executions. Nothing else may run on the machine.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from tests.benchmarks.compare import ROOT


def main() -> None:
    """Run the commands; end with the exit code of the first that fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--beside", metavar="COMMIT", required=True)
    parser.add_argument("--ministack", help="the interpreter of its environment")
    parser.add_argument("--rounds", default="3")
    options = parser.parse_args()
    rival = ["--ministack", options.ministack] if options.ministack else []
    for name, *words in (
        ("compare", "--rounds", options.rounds, *rival),
        ("start_cost", "--rounds", options.rounds, "--beside", options.beside),
        ("list_cost", "--rows", "1000,200000"),
    ):
        command = [sys.executable, "-m", f"tests.benchmarks.{name}", *words, "--write"]
        code = subprocess.run(command, cwd=ROOT, check=False).returncode
        if code:
            sys.exit(code)


if __name__ == "__main__":
    main()
