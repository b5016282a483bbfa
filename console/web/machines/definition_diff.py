"""Compare the texts of two definitions line by line."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher

from console.web.graph.definition_text import readable_text

_MOST_LINES = 20_000
_CONTEXT = 3


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One line of a comparison. ``sign``: ``+``, ``-``, "" or, where lines are left out, ``…``."""

    sign: str
    before: int | None
    after: int | None
    text: str

    @property
    def kind(self) -> str:
        """Return the class of the row."""
        return {"+": "added", "-": "removed", "…": "gap"}.get(self.sign, "same")


def diff_rows(before: str, after: str) -> list[DiffRow] | None:
    """Compare two texts by lines; [] where they are the same, None where they are too long."""
    old, new = readable_text(before).splitlines(), readable_text(after).splitlines()
    if len(old) + len(new) > _MOST_LINES:
        return None
    rows: list[DiffRow] = []
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(_CONTEXT):
        if rows or group[0][1] > 0:
            rows.append(DiffRow("…", None, None, ""))
        for kind, a, a_end, b, b_end in group:
            rows += _rows(kind, old[a:a_end], new[b:b_end], a + 1, b + 1)
    return rows


def _rows(kind: str, old: list[str], new: list[str], a: int, b: int) -> list[DiffRow]:
    if kind == "equal":
        return [DiffRow("", a + place, b + place, text) for place, text in enumerate(old)]
    removed = [DiffRow("-", a + place, None, text) for place, text in enumerate(old)]
    return removed + [DiffRow("+", None, b + place, text) for place, text in enumerate(new)]
