"""Read the values that ``--param NAME=VALUE`` gives."""

from __future__ import annotations

from console.cli.documents import SourceError


def parse_parameters(words: list[str]) -> dict[str, str]:
    """Return name -> value; raise ``SourceError`` for a word that has none."""
    for word in words:
        if "=" not in word:
            raise SourceError(f"--param: got {word!r}, wanted NAME=VALUE")
    return dict(word.split("=", 1) for word in words)
