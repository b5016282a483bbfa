"""List the states of a definition, each with the Parallel and Map states around it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

EXPRESS_S = 300
"""Maximum duration of an Express execution in seconds."""


@dataclass(frozen=True, slots=True)
class TestedState:
    """A state of a definition. ``around``: its Parallel and inline Map states, outermost first.

    ``siblings``: the states of its block. ``limit_s``: the maximum duration of its execution, None
    for a year. A distributed Map starts new executions, so ``around`` ends there; ``child``: the
    state runs in such a child execution.
    """

    name: str
    state: Mapping[str, Any]
    siblings: Mapping[str, Any]
    jsonata: bool
    express: bool
    limit_s: int | None
    around: tuple[TestedState, ...] = ()
    child: bool = False

    @property
    def retriers(self) -> list[Mapping[str, Any]]:
        """Return the entries of Retry."""
        return _entries(self.state, "Retry")

    @property
    def catchers(self) -> list[Mapping[str, Any]]:
        """Return the entries of Catch."""
        return _entries(self.state, "Catch")

    @property
    def resource(self) -> str:
        """Return the Resource of a Task, "" for other states."""
        value = self.state.get("Resource", "") if self.state.get("Type") == "Task" else ""
        return value if isinstance(value, str) else ""

    @property
    def tasks_inside(self) -> list[TestedState]:
        """Return the Task states inside a Parallel or Map, which a retry repeats."""
        return [
            place
            for inside, _ in blocks_of(self.state)
            for place in _places(inside, self)
            if place.resource
        ]


def list_places(definition: Mapping[str, Any], kind: str) -> list[TestedState]:
    """Return all states, in definition order. ``kind``: STANDARD or EXPRESS."""
    express = kind == "EXPRESS"
    limit = definition.get("TimeoutSeconds")
    root = TestedState(
        "",
        {},
        {},
        jsonata=definition.get("QueryLanguage") == "JSONata",
        express=express,
        limit_s=_shorter(limit if isinstance(limit, int) else None, express=express),
    )
    return list(_places(definition, root, top=True))


def blocks_of(state: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """Yield each block of a Parallel or Map, and whether it is a distributed Map's."""
    branches = state.get("Branches")
    for branch in branches if isinstance(branches, list) else []:
        if isinstance(branch, dict):
            yield branch, False
    processor = state.get("ItemProcessor", state.get("Iterator"))
    if isinstance(processor, dict):
        yield processor, is_distributed(state)


def is_distributed(state: Mapping[str, Any]) -> bool:
    """Return whether a state is a distributed Map."""
    processor = state.get("ItemProcessor")
    settings = processor.get("ProcessorConfig") if isinstance(processor, dict) else None
    return isinstance(settings, dict) and settings.get("Mode") == "DISTRIBUTED"


def following(state: Mapping[str, Any], *, caught: bool = True) -> list[str]:
    """Return the possible next states of a state; ``caught``: including Catchers."""
    rules = _entries(state, "Choices")
    entries = [state, *rules, *(_entries(state, "Catch") if caught else [])]
    names = [entry.get("Next") for entry in entries] + [state.get("Default")]
    return [name for name in names if isinstance(name, str)]


def _places(
    block: Mapping[str, Any], outer: TestedState, *, top: bool = False
) -> Iterator[TestedState]:
    states = block.get("States")
    if not isinstance(states, dict):
        return
    for name, state in states.items():
        if not isinstance(state, dict):
            continue
        language = state.get("QueryLanguage")
        place = TestedState(
            name,
            state,
            states,
            jsonata=outer.jsonata if language is None else language == "JSONata",
            express=outer.express,
            limit_s=outer.limit_s,
            around=() if top or is_distributed(outer.state) else (*outer.around, outer),
            child=outer.child,
        )
        yield place
        for inside, distributed in blocks_of(state):
            yield from _places(inside, _child_of(place) if distributed else place)


def _child_of(place: TestedState) -> TestedState:
    """Return a distributed Map from the perspective of its child executions."""
    settings = place.state["ItemProcessor"]["ProcessorConfig"]
    express = settings.get("ExecutionType") == "EXPRESS"
    return TestedState(
        place.name,
        place.state,
        place.siblings,
        jsonata=place.jsonata,
        express=express,
        limit_s=_shorter(None, express=express),
        child=True,
    )


def _shorter(limit: int | None, *, express: bool) -> int | None:
    if not express:
        return limit
    return EXPRESS_S if limit is None else min(limit, EXPRESS_S)


def _entries(state: Mapping[str, Any], field: str) -> list[Mapping[str, Any]]:
    entries = state.get(field)
    return (
        [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    )
