"""Find states, blocks and transitions in the ``json_tree`` of a definition.

A *block* is a ``StartAt`` with its ``States``: the state machine, a branch, or a Map's processor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import engine
from console.features.editor.edits.json_tree import (
    JsonContainer,
    JsonEntry,
    format_text,
    read_tree,
    write_tree,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

LONGEST_NAME = 80
FIELD_ORDER = (
    *("Type", "Comment", "QueryLanguage", "Resource", "Credentials", "InputPath", "Seconds"),
    *("SecondsPath", "Timestamp", "TimestampPath", "ItemReader", "ItemsPath", "Items"),
    *("ItemSelector", "ItemBatcher", "MaxConcurrency", "MaxConcurrencyPath", "Parameters"),
    *("Arguments", "Result", "Error", "ErrorPath", "Cause", "CausePath", "Branches"),
    *("ItemProcessor", "Iterator", "ResultWriter", "Label", "ToleratedFailureCount"),
    *("ToleratedFailureCountPath", "ToleratedFailurePercentage"),
    *("ToleratedFailurePercentagePath", "TimeoutSeconds", "TimeoutSecondsPath"),
    *("HeartbeatSeconds", "HeartbeatSecondsPath", "ResultSelector", "ResultPath", "Output"),
    *("OutputPath", "Assign", "Choices", "Default", "Retry", "Catch", "Next", "End"),
)
"""The usual order of a state's fields."""


def one_line(text: str) -> str:
    """Return a text as a single-line input submits it, without line breaks."""
    return text.replace("\r", "").replace("\n", "")


class EditRefused(Exception):
    """An impossible edit, with the reason for the user."""


@dataclass(slots=True)
class StateBlock:
    """A ``StartAt`` with its ``States``: the machine, a branch, or the processor of a Map.

    ``owner``: the name of the Parallel or Map it is in, "" at the top; ``index``: of the branch.
    """

    node: JsonContainer
    states: JsonContainer
    owner: str = ""
    index: int = 0

    def state(self, name: str) -> JsonContainer | None:
        """Return a state of this block."""
        return self.states.child(name)

    @property
    def start(self) -> str:
        """Return the name of its first state."""
        return self.node.text("StartAt")


@dataclass(slots=True)
class StatePlace:
    """A state: its block, and its member in ``States``."""

    block: StateBlock
    entry: JsonEntry
    node: JsonContainer

    @property
    def name(self) -> str:
        """Return the name of the state."""
        return self.entry.key

    @property
    def type(self) -> str:
        """Return the type of the state."""
        return self.node.text("Type")

    @property
    def position(self) -> int:
        """Return its index among the states of its block."""
        return next(at for at, entry in enumerate(self.block.states.entries) if entry is self.entry)


@dataclass(slots=True)
class Transition:
    """A field that names a target state.

    ``holder``: the object with the field; ``rules``: the array of a Choice or Catch around it.
    """

    holder: JsonContainer
    key: str
    rules: JsonContainer | None = None

    @property
    def target(self) -> str:
        """Return the name of the target state."""
        return self.holder.text(self.key)

    def lead_to(self, name: str) -> None:
        """Set another target state."""
        self.holder.put(self.key, name)


class DefinitionTree:
    """The tree of a definition in valid JSON; the definition itself may have errors.

    Raises ``EditRefused`` if the text is not a JSON object with ``States``.
    """

    def __init__(self, text: str) -> None:
        try:
            engine.loads(text)
        except engine.JsonTextError as error:
            place = f" at line {error.line}, column {error.column}" if error.line else ""
            raise EditRefused(
                f"The text is not JSON{place}. Correct it, then edit the graph."
            ) from None
        self.start = text[: len(text) - len(text.lstrip())]
        self.end = text[len(text.rstrip()) :]
        readable = text.strip() if "\n" in text.strip() else format_text(text)
        root = read_tree(readable)
        if not isinstance(root, JsonContainer) or root.child("States") is None:
            raise EditRefused("The definition has no States yet.")
        self.root = root

    def text(self) -> str:
        """Return the current text."""
        return f"{self.start}{write_tree(self.root)}{self.end}"

    def blocks(self) -> Iterator[StateBlock]:
        """Yield every block, outer blocks first."""
        waiting = [(self.root, "", 0)]
        while waiting:
            node, owner, index = waiting.pop(0)
            states = node.child("States")
            if states is None or not states.is_object:
                continue
            yield StateBlock(node, states, owner, index)
            for entry in states.entries:
                if isinstance(entry.value, JsonContainer):
                    inner = inner_blocks(entry.value)
                    waiting += [(block, entry.key, at) for at, block in enumerate(inner)]

    def places(self) -> Iterator[StatePlace]:
        """Yield every state."""
        for block in self.blocks():
            for entry in block.states.entries:
                if isinstance(entry.value, JsonContainer) and entry.value.is_object:
                    yield StatePlace(block, entry, entry.value)

    def place(self, name: str) -> StatePlace:
        """Return a state; raise ``EditRefused`` for an unknown name."""
        for place in self.places():
            if place.name == name:
                return place
        raise EditRefused(f"The text has no state “{name}” any more.")

    def block(self, owner: str, index: int = 0) -> StateBlock:
        """Return the block (``StartAt``, ``States``) of the machine, or of a Parallel or Map."""
        for block in self.blocks():
            if (block.owner, block.index) == (owner, index):
                return block
        raise EditRefused(f"“{owner}” has no branch {index + 1} any more.")

    def free_name(self, wish: str, reserved: Iterable[str] = ()) -> str:
        """Return an unused state name: ``wish`` itself, or with a number.

        ``reserved``: names that are taken, too.
        """
        used_names = {place.name for place in self.places()} | set(reserved)
        names = (f"{wish[: LONGEST_NAME - 4]} {number}" for number in range(2, len(used_names) + 3))
        return (
            wish
            if wish not in used_names
            else next(name for name in names if name not in used_names)
        )

    def language(self, name: str) -> str:
        """Return the query language of a state: its own, else the state machine's."""
        default = self.root.text("QueryLanguage") or "JSONPath"
        return (self.place(name).node.text("QueryLanguage") if name else "") or default


def inner_blocks(state: JsonContainer) -> list[JsonContainer]:
    """Return the branches of a Parallel, or the processor of a Map."""
    branches = state.child("Branches")
    if branches is not None:
        return branches.items()
    return [
        block for key in ("ItemProcessor", "Iterator") if (block := state.child(key)) is not None
    ]


def transitions_of(state: JsonContainer) -> list[Transition]:
    """Return the transitions out of a state, in the graph's drawing order."""
    choices, catchers = state.child("Choices"), state.child("Catch")
    transitions = [
        Transition(rule, "Next", choices) for rule in (choices.items() if choices else ())
    ]
    transitions += [Transition(state, key) for key in ("Default", "Next") if state.find(key)]
    rules = catchers.items() if catchers else ()
    return transitions + [Transition(catcher, "Next", catchers) for catcher in rules]


def transitions_to(block: StateBlock, name: str) -> list[Transition]:
    """Return the transitions to a state within its block, ``StartAt`` first."""
    transitions = [Transition(block.node, "StartAt")] if block.start == name else []
    for entry in block.states.entries:
        if isinstance(entry.value, JsonContainer):
            transitions += [each for each in transitions_of(entry.value) if each.target == name]
    return transitions


def put_field(state: JsonContainer, key: str, value: object) -> None:
    """Set a field of a state; a new one is inserted in the usual order."""
    state.put(key, value, at=_field_place(state, key))


def in_field_order(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a state in their usual order."""
    order = {name: at for at, name in enumerate(FIELD_ORDER)}
    return dict(sorted(state.items(), key=lambda field: order.get(field[0], -1)))


def _field_place(state: JsonContainer, key: str) -> int | None:
    order = {name: at for at, name in enumerate(FIELD_ORDER)}
    mine = order.get(key, len(order))
    for at, entry in enumerate(state.entries):
        if order.get(entry.key, -1) > mine:
            return at
    return None


def reachable(block: StateBlock) -> set[str]:
    """Return the names of the states of a block that are reachable from its start."""
    seen: set[str] = set()
    waiting = [block.start]
    while waiting:
        name = waiting.pop()
        state = block.state(name)
        if name in seen or state is None:
            continue
        seen.add(name)
        waiting += [each.target for each in transitions_of(state)]
    return seen
