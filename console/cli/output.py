"""Print the output of commands: results to stdout, errors to stderr."""

from __future__ import annotations

import sys


def write_line(text: str) -> None:
    """Print a result line and flush, for a reader at the end of a pipe."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def write_error(text: str) -> None:
    """Print errors, one line each."""
    for line in text.splitlines():
        sys.stderr.write(f"stateyard: {line}\n")
    sys.stderr.flush()
