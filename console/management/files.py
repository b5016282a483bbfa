"""Read the files named on a command line."""

from __future__ import annotations

import sys
from pathlib import Path

from django.core.management.base import CommandError


def read_file(name: str) -> str:
    """Return the text of a file, or of stdin for ``-``; raise CommandError if it cannot be read."""
    try:
        return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{name}: {error}") from None
