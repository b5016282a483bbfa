"""Read JSON and YAML files, with the short tags of CloudFormation."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import yaml

from console.yaml_loader import Loader

if TYPE_CHECKING:
    from pathlib import Path

YAML_ENDS = (".yaml", ".yml")
JSON_ENDS = (".json",)
READ_FILES: dict[Path, int] = {}
"""The files that were read, with the time of their last change then: ``--watch`` looks at them."""


MOST_CHARACTERS = 16_777_216
"""What the functions of a template, or the values of a text's placeholders, may make together.

Definitions have at most a mebibyte.
"""


class SourceError(Exception):
    """A file cannot be deployed. The message is one line: the file, the place, got and wanted."""


def read_text(path: Path) -> str:
    """Return the text of a file; raise ``SourceError`` if there is none."""
    try:
        READ_FILES[path.resolve()] = path.stat().st_mtime_ns
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SourceError(f"{path}: {reason}") from None


def load_document(path: Path) -> Any:
    """Return what a JSON or YAML file says; raise ``SourceError`` if it is neither."""
    return parse_document(read_text(path), str(path))


def parse_document(text: str, place: str) -> Any:
    """Return what a text says. ``place``: the file's name, which tells JSON from YAML."""
    if place.endswith(JSON_ENDS):
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise SourceError(f"{place}: no JSON: {error}") from None
    try:
        return yaml.load(text, Loader)  # noqa: S506 - a safe loader with tags of its own
    except (yaml.YAMLError, RecursionError) as error:
        raise SourceError(f"{place}: no YAML: {' '.join(str(error).split())}") from None


def substitute_placeholders(text: str, values: dict[str, str]) -> str:
    """Replace ``${Name}`` by its value, where there is one.

    Raise ``SourceError`` before a short text becomes one of gigabytes.
    """
    left = MOST_CHARACTERS

    def value_of(match: re.Match[str]) -> str:
        nonlocal left
        value = values.get(match[1], match[0])
        left -= len(value)
        if left < 0:
            raise SourceError(
                f"{match[0]}: got a text that grows, wanted at most {MOST_CHARACTERS} characters"
            )
        return value

    return re.sub(r"\$\{([\w.:]+)\}", value_of, text)


def compose_yaml(text: str) -> yaml.Node | None:
    """Return the nodes of a YAML text, which know their lines; None for an empty one."""
    node: yaml.Node | None = yaml.compose(text, Loader)
    return node
