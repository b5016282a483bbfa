"""Print the output of commands: results to stdout, errors to stderr."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def write_line(text: str) -> None:
    """Print a result line and flush, for a reader at the end of a pipe."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def write_error(text: str) -> None:
    """Print errors, one line each."""
    for line in text.splitlines():
        sys.stderr.write(f"stateyard: {line}\n")
    sys.stderr.flush()


def write_file(path: Path, text: str) -> None:
    """Write a file, and make its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def file_problem(error: OSError) -> str:
    """Return the file of an error and the reason, without the number of the error."""
    return f"{error.filename}: {error.strerror}" if error.filename else str(error)
