"""Check a block as a graph: transitions have targets, the block ends, every state is reachable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.language.diagnostics import DiagnosticCode, Problems

if TYPE_CHECKING:
    from collections.abc import Iterator

    from engine.data.expression import Json


def check_block(block: dict[str, Json], pointer: str, problems: Problems) -> None:
    """Check the transitions of one ``StartAt``/``States`` object, not of nested objects."""
    states = {name: state for name, state in block["States"].items() if isinstance(state, dict)}
    if not states:
        return
    start = block.get("StartAt")
    if isinstance(start, str) and start not in states:
        # The service's message says 'Next' for StartAt, too [measured].
        _report_missing(start, f"{pointer}/StartAt", "Next", problems)
    for name, state in states.items():
        for target, place in outgoing_transitions(state):
            if target not in states:
                where = f"{pointer}/States/{name}/{place}"
                _report_missing(target, where, place.rpartition("/")[2], problems)
    if not any(_may_end(state) for state in states.values()):
        problems.error(pointer, "Workflow has no terminal state", DiagnosticCode.MISSING_END)
    _check_reachable(start, states, pointer, problems)


def outgoing_transitions(state: dict[str, Json]) -> Iterator[tuple[str, str]]:
    """Yield each target of a state and the pointer of its field."""
    for name in ("Next", "Default"):
        if isinstance(state.get(name), str):
            yield state[name], name
    for name in ("Choices", "Catch"):
        entries = state.get(name)
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, dict) and isinstance(entry.get("Next"), str):
                yield entry["Next"], f"{name}[{index}]/Next"


def _may_end(state: dict[str, Json]) -> bool:
    return state.get("End") is True or state.get("Type") in ("Succeed", "Fail")


def _report_missing(target: str, where: str, field: str, problems: Problems) -> None:
    problems.error(where, f"Missing '{field}' target: {target}", DiagnosticCode.MISSING_TARGET)


def _check_reachable(
    start: Json, states: dict[str, dict[str, Json]], pointer: str, problems: Problems
) -> None:
    if not isinstance(start, str):
        return  # a missing or wrong StartAt was noted before
    # States in a loop are reachable from each other, and perhaps not from StartAt. So the walk
    # begins there, and does not merely ask whether a transition leads to each state.
    reached, waiting = set(), [start]
    while waiting:
        name = waiting.pop()
        if not isinstance(name, str) or name in reached or name not in states:
            continue
        reached.add(name)
        waiting.extend(target for target, _ in outgoing_transitions(states[name]))
    for name in states:
        if name not in reached:
            problems.error(
                f"{pointer}/States/{name}",
                f'State "{name}" is not reachable.',
                DiagnosticCode.MISSING_TARGET,
            )
