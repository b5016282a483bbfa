"""Tell which lines of the text each drawn state has, for text and graph to highlight each other."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from console.web.graph import definition_text

if TYPE_CHECKING:
    from console.web.graph.shapes import Picture


@dataclass(frozen=True, slots=True)
class StateLines:
    """A state: the id of its node, its name, its first and last line, from 1."""

    node: str
    name: str
    first: int
    last: int


def state_places(text: str, picture: Picture) -> list[StateLines]:
    """Return the lines of every state that is drawn."""
    ids = {box.node.name: box.node.id for box in picture.boxes}
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    return [
        StateLines(ids[name], name, bisect_right(starts, start), bisect_right(starts, end - 1))
        for name, start, end in definition_text.state_places(text)
        if name in ids
    ]
