"""Write what commands say: results to stdout, what is wrong to stderr."""

from __future__ import annotations

import sys


def write_line(text: str) -> None:
    """Write a line of the result, at once: somebody may read it through a pipe."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def write_error(text: str) -> None:
    """Write what is wrong, a line each."""
    for line in text.splitlines():
        sys.stderr.write(f"stateyard: {line}\n")
    sys.stderr.flush()
