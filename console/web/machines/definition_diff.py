"""Compare the texts of two definitions line by line."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import engine
from console.web.graph.definition_text import readable_text

_MOST_LINES = 20_000
_CONTEXT = 3
_MOST_NAMES = 10
_INNER = frozenset({"Branches", "ItemProcessor", "Iterator"})


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One line of a diff. ``sign``: ``+``, ``-``, "" or, for omitted lines, ``…``."""

    sign: str
    before: int | None
    after: int | None
    text: str

    @property
    def kind(self) -> str:
        """Return the CSS class of the row."""
        return {"+": "added", "-": "removed", "…": "gap"}.get(self.sign, "same")


@dataclass(frozen=True, slots=True)
class StateChanges:
    """The names of changed states; a state moved to another branch counts as changed."""

    added: list[str]
    removed: list[str]
    changed: list[str]

    @property
    def words(self) -> str:
        """Return the changes in words: ``Audit added; Price, Both changed``."""
        named = (("added", self.added), ("removed", self.removed), ("changed", self.changed))
        parts = [f"{_first_names(names)} {word}" for word, names in named if names]
        return "; ".join(parts) or "No state changed"


def _first_names(names: list[str]) -> str:
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def state_changes(before: str, after: str) -> StateChanges | None:
    """Compare the states of two definitions by name; None if one is invalid JSON."""
    try:
        old, new = _states(engine.loads(before)), _states(engine.loads(after))
    except engine.JsonTextError:
        return None
    return StateChanges(
        [name for name in new if name not in old],
        [name for name in old if name not in new],
        [name for name in new if name in old and new[name] != old[name]],
    )


def _states(definition: Any) -> dict[str, Any]:
    """Return name -> place and fields of each state, also inside branches and Maps."""
    states: dict[str, Any] = {}
    waiting: list[tuple[Any, Any]] = [((), definition)]
    while waiting:
        place, scope = waiting.pop()
        inside = scope.get("States") if isinstance(scope, dict) else None
        for name, state in inside.items() if isinstance(inside, dict) else ():
            if not isinstance(state, dict):
                continue
            own = {key: value for key, value in state.items() if key not in _INNER}
            states[name] = (place, own)
            branches = state.get("Branches")
            for number, branch in enumerate(branches if isinstance(branches, list) else ()):
                waiting.append(((name, number), branch))
            for key in ("ItemProcessor", "Iterator"):
                if isinstance(processor := state.get(key), dict):
                    own[key] = {k: v for k, v in processor.items() if k != "States"}
                    waiting.append(((name, 0), processor))
    return states


def diff_rows(before: str, after: str) -> list[DiffRow] | None:
    """Return the diff of two texts by line; [] if equal, None if too long."""
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
