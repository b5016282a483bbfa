"""Define the shapes of a workflow's picture, and measure the room their words need.

Sizes are pixels. Widths of words are estimates from average characters: nothing here knows a font.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from unicodedata import east_asian_width

if TYPE_CHECKING:
    from engine import Node

Point = tuple[float, float]

# Pixels: line of text, padding, head of a group, way from it to its first state and from its last
# one out, gap of branches.
LINE, PAD, HEAD, ENTRY, EXIT, GAP = 17, 16, 50, 26, 28, 20
MIN_WIDTH, MAX_WORDS, CHAR = 184, 30, 7.4
LABEL_WORDS, LABEL_CHAR, LABEL_HEIGHT = 30, 6.3, 18


@dataclass(frozen=True, slots=True)
class Box:
    """A state's rectangle; ``lines`` is its name, wrapped; ``nested``: it holds other boxes."""

    node: Node
    x: float
    y: float
    width: float
    height: float
    lines: tuple[str, ...]
    nested: bool = False

    @property
    def rows(self) -> list[tuple[float, str]]:
        """Return (baseline, text) of each line of the name, from the top of the box."""
        top = 22 if self.nested else self._middle()
        return [(top + LINE * place, line) for place, line in enumerate(self.lines)]

    def _middle(self) -> float:
        return (self.height - LINE * (len(self.lines) + 1)) / 2 + 13

    @property
    def below(self) -> float:
        """Return the baseline of the small line under the name, from the top of the box."""
        return self.rows[-1][0] + LINE - 1

    @property
    def rule_y(self) -> float:
        """Return where the line under the head of a Parallel or Map is."""
        return self.y + HEAD + LINE * (len(self.lines) - 1)

    @property
    def sign_y(self) -> float:
        """Return the middle of the sign."""
        return self.y + self.rows[0][0] - 4


@dataclass(frozen=True, slots=True)
class EdgeLine:
    """A transition's curve. ``path``: SVG path data; ``at``: where its label stands."""

    source: str
    target: str
    kind: str
    path: str
    label: str = ""
    full_label: str = ""
    at: Point | None = None

    @property
    def key(self) -> str:
        """Return what the page's script finds the line by."""
        return f"{self.source}-{self.target}"

    @property
    def plate(self) -> tuple[float, float, float, float]:
        """Return x, y, width and height of the label's background."""
        x, y = self.at or (0, 0)
        width = label_width(self.label)
        return x - width / 2, y - LABEL_HEIGHT / 2, width, LABEL_HEIGHT


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything to draw; boxes of groups come before what they hold.

    ``notices``: sentences about what is not drawn, or not in the usual way.
    """

    width: float
    height: float
    boxes: tuple[Box, ...]
    lines: tuple[EdgeLine, ...]
    start: Point | None = None
    end: Point | None = None
    notices: tuple[str, ...] = ()

    @property
    def weight(self) -> int:
        """Return how many things are drawn."""
        return len(self.boxes) + len(self.lines)


def text_width(node: Node) -> float:
    """Return how wide a state's box must be for its words."""
    name = max(text_columns(line) for line in wrap_text(node.name)) * CHAR
    detail = min(text_columns(node.detail) + len(node.type) + 3, MAX_WORDS + 8) * LABEL_CHAR
    return max(MIN_WIDTH, name + 52, detail + 52)


def text_columns(text: str) -> float:
    """Return how many average characters wide a text is."""
    return sum(_char_columns(char) for char in text)


def _char_columns(char: str) -> float:
    if char.isascii():
        return 1.35 if char.isupper() or char in "mw@%" else 1
    return 2 if east_asian_width(char) in "WF" else 1.3


def wrap_text(name: str) -> list[str]:
    """Break a name into lines at blanks, or anywhere in a long word; nothing is left out."""
    lines = [""]
    for word in re.findall(r"\S{1,30}\s*", name) or [name]:
        if lines[-1] and text_columns(lines[-1] + word.rstrip()) > MAX_WORDS:
            lines.append("")
        lines[-1] += word
    return [line.rstrip() or " " for line in lines]


def cut_text(label: str) -> str:
    """Shorten the label of a transition; the whole of it is in its tooltip."""
    return label if len(label) <= LABEL_WORDS else label[: LABEL_WORDS - 1] + "…"


def label_width(label: str) -> float:
    """Return how wide the plate behind a label must be."""
    return text_columns(label) * LABEL_CHAR + 10
