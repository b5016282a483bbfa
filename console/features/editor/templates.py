"""The definitions that a new machine can begin with, and how a stored one is opened."""

from __future__ import annotations

from dataclasses import dataclass

import engine
from console.features.editor.edits.json_tree import format_text
from console.samples import MACHINES


@dataclass(frozen=True, slots=True)
class DefinitionTemplate:
    """A definition to begin with. ``key``: how the address names it."""

    key: str
    label: str
    text: str


TEMPLATES = tuple(
    DefinitionTemplate(sample.name, sample.description, sample.definition.strip())
    for sample in MACHINES
)


def find_template(key: str) -> DefinitionTemplate | None:
    """Return the template of an address, None if it names none."""
    return next((each for each in TEMPLATES if each.key == key), None)


def opened_text(text: str) -> str:
    """Return a definition as the editor opens it: one in a single line gets lines and indentation.

    White space alone changes, so that long numbers and keys that stand twice are kept.
    """
    if "\n" in text.strip():
        return text
    try:
        engine.loads(text)
    except engine.JsonTextError:
        return text
    return format_text(text)
