"""Compare two definitions line by line; detect a change after the last ``stateyard deploy``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

import engine
from console.models import MachineRevision, Tag
from console.web.graph.definition_text import readable_text

if TYPE_CHECKING:
    from console.models import StateMachine


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
        old, new = states_of(engine.loads(before)), states_of(engine.loads(after))
    except engine.JsonTextError:
        return None
    return StateChanges(
        [name for name in new if name not in old],
        [name for name in old if name not in new],
        [name for name in new if name in old and canonical(new[name]) != canonical(old[name])],
    )


def canonical(value: Any) -> str:
    """Return a JSON value as a text, by which values are compared: ``true`` is not ``1``."""
    return json.dumps(value, sort_keys=True, default=str)  # YAML has dates


def states_of(definition: Any) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Return name -> place and fields of each state, also inside branches and Maps."""
    states: dict[str, tuple[Any, dict[str, Any]]] = {}
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


DEPLOYED = "stateyard:deployed"
"""Key of the tag with the SHA-256 of the text that was deployed last."""
_SOURCE = "stateyard:source"
"""Key of the tag with the ARN that the deployed definition was pulled from."""
_MOST = 20


@dataclass(frozen=True, slots=True)
class Drift:
    """Whether a state machine was changed after its last deployment.

    ``deployed``: the revision with the deployed definition, None if it was not kept; ``later``: at
    most 20 revisions after it, newest first; the newest 20 of all if ``deployed`` is None;
    ``source``: the ARN that the definition was pulled from before it was deployed, "" if it was not
    pulled.
    """

    changed: bool
    deployed: MachineRevision | None
    later: list[MachineRevision]
    source: str = ""


def drift_context(machine: StateMachine) -> dict[str, Drift | None]:
    """Return the drift of a state machine, for the page of its definition."""
    return {"drift": drift_of(machine)}


def drift_of(machine: StateMachine) -> Drift | None:
    """Return the drift of a state machine, None if it was never deployed."""
    tags = Tag.objects.filter(arn=machine.arn, key__in=(DEPLOYED, _SOURCE))
    values = dict(tags.values_list("key", "value"))
    if DEPLOYED not in values:
        return None
    text_hash, source = values[DEPLOYED], values.get(_SOURCE, "")
    rows = MachineRevision.objects.filter(state_machine=machine).select_related("definition")
    deployed = rows.filter(definition_id=text_hash).order_by("-number").first()
    if machine.definition_id == text_hash or _is_same(machine, deployed):
        return Drift(changed=False, deployed=deployed, later=[], source=source)
    after = rows.filter(number__gt=deployed.number) if deployed else rows
    later_saves = list(after.order_by("-number")[:_MOST])
    return Drift(changed=True, deployed=deployed, later=later_saves, source=source)


def _is_same(machine: StateMachine, deployed: MachineRevision | None) -> bool:
    """Whether two texts are the same JSON."""
    if deployed is None:
        return False
    try:
        return bool(json.loads(machine.definition.text) == json.loads(deployed.definition.text))
    except (ValueError, RecursionError):
        return False
