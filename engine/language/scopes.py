"""Check variable names across scopes: an inner block must not assign a variable of an outer block.

Source: "Variable scope" of the developer guide. Variables of a branch or a Map's iteration end with
it, and names are unique across inner and outer scopes. The children of a distributed Map do not see
outer variables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.language.diagnostics import DiagnosticCode, Problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.data.expression import Json


RESERVED_VARIABLE = "states"
_MAX_VARIABLE = 80  # characters of a variable's name


def variable_problem(name: str) -> str:
    """Return why a variable cannot have a name, "" if it can."""
    if name == RESERVED_VARIABLE:
        return "Cannot assign to reserved variable '$states'."
    wrong = f"Invalid variable name '{name}': the variable name"
    if len(name) > _MAX_VARIABLE:
        return f"{wrong} exceeds the {_MAX_VARIABLE}-character limit."
    return "" if name.isidentifier() else f"{wrong} contains invalid characters."


def assigned_names(states: dict[str, Json]) -> frozenset[str]:
    """Return the variables that the states of a block assign, without inner blocks."""
    return frozenset(_variable(key) for state in states.values() for key, _ in _assignments(state))


def check_scopes(
    states: dict[str, Json], pointer: str, outer: frozenset[str], problems: Problems
) -> None:
    """Report each assignment in a block to a variable of an outer block."""
    for name, state in states.items():
        for key, place in _assignments(state):
            variable = _variable(key)
            if variable not in outer:
                continue
            problems.newer_error(
                f"{pointer}/{name}/{place}",
                f"Invalid variable name '{variable}': the variable is assigned in an outer scope.",
                DiagnosticCode.INVALID_VARIABLE,
            )


def _variable(key: str) -> str:
    return key.removesuffix(".$")


def _assignments(state: Json) -> Iterator[tuple[str, str]]:
    """Yield each key of a state's Assign fields and its place below the state."""
    if not isinstance(state, dict):
        return
    holders = [("", state)]
    for field in ("Choices", "Catch"):
        entries = state.get(field)
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            holders.append((f"{field}[{index}]/", entry))
    for place, holder in holders:
        assign = holder.get("Assign") if isinstance(holder, dict) else None
        for key in assign if isinstance(assign, dict) else ():
            yield key, f"{place}Assign/{key}"
