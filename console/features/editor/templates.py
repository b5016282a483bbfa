"""Example definitions for a new state machine, and the formatting of a stored one."""

from __future__ import annotations

from dataclasses import dataclass

import engine
from console.features.editor.edits.json_tree import format_text
from console.samples import MACHINES


@dataclass(frozen=True, slots=True)
class DefinitionTemplate:
    """An example definition. ``key``: its name in URLs."""

    key: str
    label: str
    text: str


TEMPLATES = tuple(
    DefinitionTemplate(sample.name, sample.description, sample.definition.strip())
    for sample in MACHINES
)


def find_template(key: str) -> DefinitionTemplate | None:
    """Return the example for a key, None for an unknown one."""
    return next((each for each in TEMPLATES if each.key == key), None)


def opened_text(text: str) -> str:
    """Return a definition for the editor: a single line is split and indented.

    Only white space changes, so long numbers and duplicate keys stay.
    """
    if "\n" in text.strip():
        return text
    try:
        engine.loads(text)
    except engine.JsonTextError:
        return text
    return format_text(text)
