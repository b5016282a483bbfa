"""The edits of the graph, such as insert, delete and rename: each changes a ``DefinitionTree``.

A function returns the states to select and a message (``EditDone``), or raises ``EditRefused``; the
caller then discards the tree.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from console.features.editor.edits.definition_tree import (
    LONGEST_NAME,
    EditRefused,
    StateBlock,
    StatePlace,
    in_field_order,
    inner_blocks,
    one_line,
    put_field,
    reachable,
    transitions_of,
    transitions_to,
)
from console.features.editor.edits.edges import (
    END,
    EditDone,
    GraphEdge,
    edge_block,
    lead_edge,
    lead_to,
)
from console.features.editor.edits.json_tree import (
    JsonContainer,
    JsonEntry,
    JsonScalar,
    as_container,
    fresh_value,
    move_indent,
    rename_key,
)
from console.features.editor.edits.palette import (
    EXAMPLE_ACCOUNT,
    EXIT,
    PIECES,
    States,
    branch,
    catcher,
    choice_rule,
    default_retrier,
    of_account,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from console.features.editor.edits.definition_tree import DefinitionTree

JSON_NULL = object()
"""The value for a field that shall be null: None removes a field."""
_RECOVERING = ("Task", "Parallel", "Map")


# -- inserting -------------------------------------------------------------------------------------


def insert_piece(
    tree: DefinitionTree, edge: GraphEdge, key: str, account: str = EXAMPLE_ACCOUNT
) -> EditDone:
    """Insert a piece of the palette in an edge. ``account``: for its ARNs."""
    piece = PIECES.get(key)
    if piece is None:
        raise EditRefused(f"The palette has no “{key}”.")
    text = json.dumps(piece.make(tree.language("")))
    states = json.loads(of_account(text, account))
    first = insert_states(tree, edge, states, piece.label)
    return EditDone(first, f"Inserted {first}.")


def insert_states(tree: DefinitionTree, edge: GraphEdge, states: States, label: str) -> str:
    """Insert states in an edge under unused names; return the name of the first.

    ``states``: the first one is the entry; transitions to ``EXIT`` go to the edge's former target.
    """
    block = edge_block(tree, edge)
    target = edge.target or (block.start if not edge.source else END)
    position = tree.place(edge.source).position + 1 if edge.source else 0
    if not any(_exits(state) for state in states.values()):
        _check_still_reached(block, edge, target, label)
    names = _free_names(tree, _all_names(states))
    renamed: States = renamed_states(states, names)
    first = next(iter(renamed))
    lead_edge(block, edge, target, first)
    exit_to = target
    if target == END and _needs_a_state(renamed):
        exit_to = tree.free_name("Done")
        renamed[exit_to] = {"Type": "Succeed"}
    _insert_states(block, renamed, position, exit_to)
    return first


def _free_names(tree: DefinitionTree, names: Iterable[str]) -> dict[str, str]:
    """Return name -> an unused name, different for each."""
    free: dict[str, str] = {}
    for name in names:
        free[name] = tree.free_name(name, free.values())
    return free


def _exits(state: Mapping[str, Any]) -> bool:
    """Return whether a state has a transition to ``EXIT``."""
    return EXIT in (state.get("Next"), state.get("Default"), *_rule_targets(state))


def _rule_targets(state: Mapping[str, Any]) -> list[Any]:
    rules = [*state.get("Choices", ()), *state.get("Catch", ())]
    return [rule.get("Next") for rule in rules if isinstance(rule, dict)]


def _all_names(states: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:
    for name, state in states.items():
        yield name
        if not isinstance(state, dict):
            continue
        branches = state.get("Branches")
        blocks = [
            *(branches if isinstance(branches, list) else ()),
            state.get("ItemProcessor"),
            state.get("Iterator"),
        ]
        for block in blocks:
            inner = block.get("States") if isinstance(block, dict) else None
            yield from _all_names(inner) if isinstance(inner, dict) else ()


def renamed_states(states: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return states under other names, with all references changed. ``names``: old -> new.

    A field ``Next`` inside the data of a state is left unchanged.
    """
    return {names.get(name, name): _renamed_state(state, names) for name, state in states.items()}


def _renamed_state(state: Any, names: Mapping[str, str]) -> Any:
    if not isinstance(state, dict):
        return state
    return {key: _renamed_field(key, value, names) for key, value in state.items()}


def _renamed_field(key: str, value: Any, names: Mapping[str, str]) -> Any:
    """Return a field of a state, of a block, or of a rule, with names changed."""
    if key in ("Next", "Default", "StartAt"):
        return names.get(value, value) if isinstance(value, str) else value
    if key in ("Choices", "Catch", "Branches") and isinstance(value, list):
        return [_renamed_state(each, names) for each in value]
    if key in ("ItemProcessor", "Iterator"):
        return _renamed_state(value, names)
    if key == "States" and isinstance(value, dict):
        return renamed_states(value, names)
    return value


def _check_still_reached(block: StateBlock, edge: GraphEdge, target: str, label: str) -> None:
    if target == END:
        return
    others = [each for each in transitions_to(block, target) if each.key != "StartAt"]
    if len(others) <= (1 if edge.source else 0):
        raise EditRefused(
            f"After {label} no state would lead to “{target}”. Insert it in the edge "
            "to End, or where a Choice branches."
        )


def _needs_a_state(states: States) -> bool:
    """Return whether a Choice or Catch leads to the exit: these cannot end a block."""
    return any(EXIT in (state.get("Default"), *_rule_targets(state)) for state in states.values())


def _insert_states(block: StateBlock, states: States, position: int, exit_to: str) -> None:
    for place, (name, state) in enumerate(states.items()):
        resolved = _with_exit(state, exit_to)
        block.states.put(name, resolved, at=position + place)


def _with_exit(state: dict[str, Any], exit_to: str) -> dict[str, Any]:
    """Return a state whose transitions to ``EXIT`` go to the edge's former target, or end."""
    result: dict[str, Any] = {}
    for key, value in state.items():
        if key == "Next" and value == EXIT:
            result |= {"Next": exit_to} if exit_to else {"End": True}
        elif key in ("Choices", "Catch"):
            result[key] = [
                {**rule, "Next": exit_to if rule["Next"] == EXIT else rule["Next"]}
                for rule in value
            ]
        else:
            result[key] = exit_to if value == EXIT else value
    return in_field_order(result)


# -- the menu of a node ----------------------------------------------------------------------------


def delete_state(tree: DefinitionTree, name: str) -> EditDone:
    """Delete a state and connect its predecessors to its successor."""
    place = tree.place(name)
    block = place.block
    after = _follower(place)
    if after is END or block.state(after) is None:
        _end_here(block, place)
    else:
        for transition in transitions_to(block, name):
            transition.lead_to(after)
    before = reachable_with(block, place)
    block.states.remove(place.entry)
    lost = [gone for gone in before - reachable(block) if gone != name and block.state(gone)]
    for gone in lost:
        entry = block.states.find(gone)
        if entry is not None:
            block.states.remove(entry)
    sentence = f" Also deleted {', '.join(sorted(lost))}, now unreachable." if lost else ""
    return EditDone(END, f"Deleted {name}.{sentence}")


def reachable_with(block: StateBlock, place: StatePlace) -> set[str]:
    """Return the reachable states of a block, with those reachable from another state."""
    seen = reachable(block)
    waiting = [each.target for each in transitions_of(place.node)]
    while waiting:
        name = waiting.pop()
        state = block.state(name)
        if name not in seen and state is not None:
            seen.add(name)
            waiting += [each.target for each in transitions_of(state)]
    return seen


def _follower(place: StatePlace) -> str:
    """Return the next state: ``Next``, or the ``Default`` or first rule of a Choice."""
    for key in ("Next", "Default"):
        if place.node.text(key) not in ("", place.name):
            return place.node.text(key)
    rules = [] if place.type != "Choice" else transitions_of(place.node)
    return next((rule.target for rule in rules if rule.target != place.name), END)


def _end_here(block: StateBlock, place: StatePlace) -> None:
    """End the block at the predecessors of a final state."""
    name = place.name
    if block.start == name:
        others = [entry.key for entry in block.states.entries if entry.key != name]
        if not others:
            raise EditRefused(f"“{name}” is the only state here. Insert another one first.")
        block.node.put("StartAt", others[0])
    for transition in transitions_to(block, name):
        if transition.rules is None:
            if transition.key == "Default":
                transition.holder.drop("Default")
            else:
                lead_to(transition.holder, END)
            continue
        entries = transition.rules.entries
        if len(entries) == 1 and _is_choice_rule(block, transition.rules):
            raise EditRefused(
                f"The only rule of a Choice leads to “{name}”. Delete the Choice, or give the rule "
                "another target first."
            )
        transition.rules.remove(next(each for each in entries if each.value is transition.holder))
    for entry in block.states.entries:
        state = entry.value
        catchers = state.child("Catch") if isinstance(state, JsonContainer) else None
        if isinstance(state, JsonContainer) and catchers is not None and not catchers.entries:
            state.drop("Catch")


def _is_choice_rule(block: StateBlock, rules: JsonContainer) -> bool:
    states = [entry.value for entry in block.states.entries]
    return any(
        isinstance(state, JsonContainer) and state.child("Choices") is rules for state in states
    )


def rename_state(tree: DefinitionTree, name: str, wish: str) -> EditDone:
    """Rename a state, with all references to it."""
    if wish in (name, one_line(name)):
        return EditDone(name, "")
    wish = wish.strip()
    place = tree.place(name)
    if not wish or len(wish) > LONGEST_NAME:
        raise EditRefused(f"A name has 1 to {LONGEST_NAME} characters, not {len(wish)}.")
    if any(other.name == wish for other in tree.places()):
        raise EditRefused(f"There is a state “{wish}” already.")
    for transition in transitions_to(place.block, name):
        transition.lead_to(wish)
    rename_key(place.entry, wish)
    return EditDone(wish, f"Renamed {name} to {wish}.")


def duplicate_state(tree: DefinitionTree, name: str) -> EditDone:
    """Insert a copy of a state behind it."""
    place = tree.place(name)
    if place.type in ("Succeed", "Fail"):
        raise EditRefused(f"Nothing follows “{name}”, so nothing would lead to its copy.")
    value = place.block.states.value(name)
    names = _free_names(tree, _all_names({name: value}))
    copy = names[name]
    fields = dict(renamed_states({name: value}, names)[copy])
    transitions = {"Next": value.get("Next"), "Default": value.get("Default")}
    fields |= {key: target for key, target in transitions.items() if target is not None}
    for key in ("Choices", "Catch"):
        if key in value:
            fields[key] = value[key]
    place.block.states.put(copy, fields, at=place.position + 1)
    if place.type == "Choice":
        put_field(place.node, "Default", copy)
    else:
        lead_to(place.node, copy)
    return EditDone(copy, f"Duplicated {name} as {copy}.")


def wrap_state(tree: DefinitionTree, name: str, wrapper: str) -> EditDone:
    """Put a state into a new Parallel or Map, which takes over its transitions and Catch."""
    place = tree.place(name)
    if place.type == "Choice":
        raise EditRefused(f"“{name}” is a Choice: its targets would be outside of the {wrapper}.")
    outer = tree.free_name(wrapper)
    block = place.block
    following = place.node.text("Next")
    catchers = place.node.value("Catch")
    moved = _inner_copy(place)
    shell: dict[str, Any] = {"Type": wrapper}
    states = {"StartAt": name, "States": {name: {}}}
    if wrapper == "Parallel":
        shell["Branches"] = [states]
    else:
        shell["ItemProcessor"] = {"ProcessorConfig": {"Mode": "INLINE"}, **states}
    shell |= {"Catch": catchers} if catchers else {}
    shell |= {"Next": following} if following else {"End": True}
    for transition in transitions_to(block, name):
        transition.lead_to(outer)
    indent = place.entry.lead.rpartition("\n")[2]
    rename_key(place.entry, outer)
    place.entry.value = node = as_container(fresh_value(shell, indent))
    target = as_container(
        next(entry.value for entry in inner_blocks(node)[0].entries if entry.key == "States")
    ).entries[0]
    target.value = move_indent(moved, indent, target.lead.rpartition("\n")[2])
    return EditDone(outer, f"Wrapped {name} in {outer}.")


def _inner_copy(place: StatePlace) -> JsonContainer:
    moved = place.node
    moved.drop("Catch")
    if place.type not in ("Succeed", "Fail"):
        lead_to(moved, END)
    return moved


def _recovering(tree: DefinitionTree, name: str, field: str) -> StatePlace:
    place = tree.place(name)
    if place.type not in _RECOVERING:
        raise EditRefused(f"{field} is for Task, Parallel and Map; “{name}” is a {place.type}.")
    return place


def add_retry(tree: DefinitionTree, name: str) -> EditDone:
    """Add a Retrier with backoff, before a Retrier for all errors."""
    place = _recovering(tree, name, "Retry")
    _add_rule(place.node, "Retry", default_retrier())
    return EditDone(name, f"{name} is retried.")


def add_catch(tree: DefinitionTree, name: str, target: str = "") -> EditDone:
    """Add a Catcher of all errors. ``target``: a state of the block; "" creates a Fail."""
    place = _recovering(tree, name, "Catch")
    catchers = place.node.child("Catch")
    if any("States.ALL" in (each.value("ErrorEquals") or ()) for each in _items(catchers)):
        raise EditRefused(f"“{name}” catches every error already.")
    if target and place.block.state(target) is None:
        raise EditRefused(f"“{target}” does not stand beside “{name}”.")
    goal = target or tree.free_name(f"{name} failed"[:LONGEST_NAME])
    _add_rule(place.node, "Catch", catcher(tree.language(name), goal))
    if not target:
        fail = {"Type": "Fail", "Error": "Failed", "Cause": f"{name} failed"}
        place.block.states.put(goal, fail, at=place.position + 1)
    return EditDone(goal if not target else name, f"Errors of {name} lead to {goal}.")


def _items(array: JsonContainer | None) -> list[JsonContainer]:
    return array.items() if array is not None else []


def _add_rule(state: JsonContainer, field: str, rule: dict[str, Any]) -> None:
    rules = state.child(field)
    if rules is None or not rules.entries:
        put_field(state, field, [rule])
        return
    last = rules.items()[-1] if rules.items() else None
    if last is not None and "States.ALL" in (last.value("ErrorEquals") or ()):
        entry = JsonEntry(JsonScalar("null"))
        rules.insert(entry, len(rules.entries) - 1)
        entry.value = fresh_value(rule, entry.lead.rpartition("\n")[2])
    else:
        rules.append(rule)


def add_branch(tree: DefinitionTree, name: str) -> EditDone:
    """Add a branch with one state to a Parallel."""
    place = tree.place(name)
    branches = place.node.child("Branches")
    if place.type != "Parallel" or branches is None:
        raise EditRefused(f"Only a Parallel has branches; “{name}” is a {place.type}.")
    wish = f"Branch {chr(ord('A') + len(branches.entries) % 26)}"
    first = tree.free_name(wish)
    branches.append(branch(first), place.node.indent)
    return EditDone(first, f"Added a branch to {name}.")


def add_rule(tree: DefinitionTree, name: str) -> EditDone:
    """Add a rule with a new state to a Choice."""
    place = tree.place(name)
    if place.type != "Choice":
        raise EditRefused(f"Only a Choice has rules; “{name}” is a {place.type}.")
    exits = transitions_of(place.node)
    rule = choice_rule(tree.language(name))
    goal = tree.free_name("Pass")
    after = exits[-1].target if exits else END
    step = {"Type": "Pass", "Next": after} if after else {"Type": "Pass", "End": True}
    rules = place.node.child("Choices")
    if rules is None:
        put_field(place.node, "Choices", [{**rule, "Next": goal}])
    else:
        rules.append({**rule, "Next": goal}, place.node.indent)
    place.block.states.put(goal, step, at=place.position + 1)
    return EditDone(name, f"Added a rule to {name}, which leads to {goal}.")


# -- the form of a state ---------------------------------------------------------------------------


def put_fields(tree: DefinitionTree, name: str, fields: Mapping[str, Any]) -> EditDone:
    """Set fields of a state; None removes one, ``JSON_NULL`` is null; ``Next`` "": End."""
    place = tree.place(name)
    for key, value in fields.items():
        if key == "Next":
            lead_to(place.node, value or END)
        elif value is None:
            place.node.drop(key)
        else:
            put_field(place.node, key, None if value is JSON_NULL else value)
    return EditDone(name, f"Changed {name}.")
