"""Build the graph of a state machine: states as nodes, transitions as edges, for pages to draw.

``build_graph(machine)`` computes no positions. Nodes have ids (``n1`` ... ``nk``) in the order of
the definition, and ``engine.paint`` gives each node the status that an execution gave it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, assert_never

from engine.errors import DefinitionError
from engine.language import check, parse_unfinished
from engine.language.model import (
    Choice,
    Fail,
    MachineType,
    Map,
    Parallel,
    Pass,
    Succeed,
    Task,
    TaskKind,
    Wait,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from engine.language.model import Block, Machine, Resource, State

TOP = "b0"
"""The id of the group that is the machine itself."""

_COMPARISONS = {"LessThanEquals": "<=", "GreaterThanEquals": ">=", "LessThan": "<"} | {
    "GreaterThan": ">",
    "Equals": "==",
    "Matches": "matches",
}
_KINDS = {"IsNull": "null", "IsPresent": "present", "IsNumeric": "a number"} | {
    "IsString": "a string",
    "IsBoolean": "a boolean",
    "IsTimestamp": "a timestamp",
}


@dataclass(frozen=True, slots=True)
class Node:
    """A state in the graph.

    ``group``: its group; ``ends``: its line of control may end here.

    ``detail``: its work in a few words (``lambda: ShipItem``, ``20 s``), perhaps "".
    ``text``: its definition as indented JSON. ``distributed``: a Map whose items run in executions
    of their own.
    """

    id: str
    name: str
    type: str
    group: str
    ends: bool
    detail: str
    text: str
    distributed: bool = False


class EdgeKind(StrEnum):
    """The field of a transition. Pages use the values as names of CSS classes."""

    NEXT = "next"  # the state's ``Next``
    CHOICE = "choice"  # a rule of a Choice
    DEFAULT = "default"  # the ``Default`` of a Choice
    CATCH = "catch"  # a Catcher


@dataclass(frozen=True, slots=True)
class Edge:
    """A transition; ``label``: its condition or error."""

    source: str
    target: str
    kind: EdgeKind
    label: str = ""


@dataclass(frozen=True, slots=True)
class StateGroup:
    """A ``StartAt`` and its states: the machine (owner ""), a branch, or a Map's item processor."""

    id: str
    owner: str
    start: str
    index: int = 0


@dataclass(frozen=True, slots=True)
class Graph:
    """The graph of a machine; ``by_name``: state -> node id, ``by_id``: id -> node."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    groups: tuple[StateGroup, ...]
    by_name: Mapping[str, str]
    by_id: Mapping[str, Node]

    def states_within(self) -> dict[str, set[str]]:
        """Return Parallel or Map -> all states within it, at any depth."""
        owners = {group.id: group.owner for group in self.groups}
        inside: dict[str, set[str]] = {}
        for node in self.nodes:
            owner = owners[node.group]
            while owner:
                inside.setdefault(owner, set()).add(node.id)
                owner = owners[self.by_id[owner].group]
        return inside


def build_graph(machine: Machine) -> Graph:
    """Return the graph of a machine with all its states, nested ones included."""
    drawing = _Drawing()
    drawing.block(machine.block, json.loads(machine.text), owner="", index=0)
    nodes = tuple(drawing.nodes)
    return Graph(
        nodes=nodes,
        edges=tuple(drawing.edges),
        groups=tuple(drawing.groups),
        by_name={node.name: node.id for node in nodes},
        by_id={node.id: node for node in nodes},
    )


def draw_unfinished(text: str, type: str = MachineType.STANDARD) -> Graph:  # noqa: A002
    """Return the graph of an unfinished definition, for the editor.

    A transition to a missing state has no edge. Raise ``DefinitionError`` for a state without a
    type, a block without a start, or duplicate states.
    """
    try:
        return build_graph(parse_unfinished(text, type))
    except (AttributeError, LookupError, TypeError, ValueError):
        raise DefinitionError(check(text, type)) from None


class _Drawing:
    """Collects nodes, edges and groups while walking the machine."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.groups: list[StateGroup] = []

    def block(self, block: Block, raw: Mapping[str, Any], *, owner: str, index: int) -> None:
        place = len(self.groups)
        group = f"b{place}"
        self.groups.append(StateGroup(group, owner, "", index))
        ids = {
            name: self.state(block.states[name], state, group)
            for name, state in raw["States"].items()
        }
        self.groups[place] = StateGroup(group, owner, ids[block.start_at], index)
        self.edges += [
            Edge(ids[name], ids[target], kind, label)
            for name, state in block.states.items()
            for target, kind, label in _transitions(state, raw["States"][name])
            if target in ids  # it always is, but in a definition that is being written
        ]

    def state(self, state: State, raw: Mapping[str, Any], group: str) -> str:
        """Add a state and the states inside it; return its id."""
        node = _make_node(f"n{len(self.nodes) + 1}", group, state, raw)
        self.nodes.append(node)
        for place, (inner, inner_raw) in enumerate(_inner_blocks(state, raw)):
            self.block(inner, inner_raw, owner=node.id, index=place)
        return node.id


def _make_node(node_id: str, group: str, state: State, raw: Mapping[str, Any]) -> Node:
    return Node(
        id=node_id,
        name=state.name,
        type=type(state).__name__,
        group=group,
        ends=_may_end(state),
        detail=_describe(state, raw),
        text=json.dumps(raw, indent=2, ensure_ascii=False),
        distributed=isinstance(state, Map) and state.distributed is not None,
    )


def _may_end(state: State) -> bool:
    match state:
        case Succeed() | Fail():
            return True
        case Choice():
            return False
        case _:
            return state.next is None


def _inner_blocks(state: State, raw: Mapping[str, Any]) -> list[tuple[Block, Mapping[str, Any]]]:
    match state:
        case Parallel(branches=branches):
            return list(zip(branches, raw["Branches"], strict=True))
        case Map(processor=processor):
            return [(processor, raw.get("ItemProcessor") or raw["Iterator"])]
        case _:
            return []


def _transitions(state: State, raw: Mapping[str, Any]) -> Iterator[tuple[str, EdgeKind, str]]:
    """Yield (target, kind, label) of every transition out of a state."""
    match state:
        case Choice(rules=rules, default=default):
            for rule, text in zip(rules, raw["Choices"], strict=True):
                yield rule.next, EdgeKind.CHOICE, condition_words(text)
            if default is not None:
                yield default, EdgeKind.DEFAULT, "default"
        case Task() | Parallel() | Map():
            if state.next is not None:
                yield state.next, EdgeKind.NEXT, ""
            for catcher in state.recovery.catch:
                yield catcher.next, EdgeKind.CATCH, ", ".join(catcher.error_equals)
        case Pass() | Wait():
            if state.next is not None:
                yield state.next, EdgeKind.NEXT, ""
        case Succeed() | Fail():
            return
        case _:
            assert_never(state)


def _describe(state: State, raw: Mapping[str, Any]) -> str:
    match state:
        case Task(resource=resource):
            return _resource_words(resource)
        case Wait(field=field):
            until = raw.get(field, "…")
            return f"{until} s" if field.startswith("Seconds") else f"until {until}"
        case Parallel(branches=branches):
            return f"{len(branches)} branch{'' if len(branches) == 1 else 'es'}"
        case Map(distributed=distributed):
            return "each item" if distributed is None else "each item, distributed"
        case Fail():
            return str(raw.get("Error", ""))
        case _:
            return ""


def _resource_words(resource: Resource) -> str:
    if resource.kind is TaskKind.SERVICE and not resource.service:
        return resource.arn  # a placeholder, in a definition that is being written
    if resource.kind is TaskKind.SERVICE:
        return f"{resource.service}: {resource.action}{resource.pattern.value}"
    return f"{resource.kind}: {resource.arn.rpartition(':')[2]}"


def condition_words(rule: Mapping[str, Any]) -> str:
    """Return a Choice rule in a short readable form: ``$.total > 100 and $.vip is present``."""
    if "Condition" in rule:
        return str(rule["Condition"]).removeprefix("{%").removesuffix("%}").strip()
    for word in ("And", "Or"):
        if word in rule:
            return f" {word.lower()} ".join(_nested_words(rule) for rule in rule[word])
    if "Not" in rule:
        return f"not {_nested_words(rule['Not'])}"
    operator = next((key for key in rule if key not in _BESIDE), "")
    return _comparison_words(str(rule.get("Variable", "")), operator, rule.get(operator))


_BESIDE = frozenset({"Variable", "Next", "Comment", "Assign", "Output"})


def _nested_words(rule: Mapping[str, Any]) -> str:
    words = condition_words(rule)
    return f"({words})" if "And" in rule or "Or" in rule else words


def _comparison_words(variable: str, operator: str, value: Any) -> str:
    if operator in _KINDS:
        return f"{variable} is {'' if value else 'not '}{_KINDS[operator]}"
    name = operator.removesuffix("Path")
    sign = next((sign for suffix, sign in _COMPARISONS.items() if name.endswith(suffix)), operator)
    operand = value if operator.endswith("Path") else json.dumps(value, ensure_ascii=False)
    return f"{variable} {sign} {operand}"
