"""Check I9: the results of Maps and Parallels are in the order of their inputs.

Told where the state passes its result on as it is; what a selector makes of it nobody can tell.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from console.features.doctor.found import states_of
from console.models import Execution

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from console.features.doctor.found import FoundExecution
    from console.features.doctor.walk import Walk

_SHAPING = ("ResultSelector", "ResultPath", "OutputPath", "Output", "ResultWriter")


def in_order(record: FoundExecution, walk: Walk) -> Iterator[tuple[str, str]]:
    """I9: result i is that of item i, or of branch i, whatever finished first."""
    groups = [visit for visit in walk.exits if _is_group(walk, visit)]
    states = states_of(record.definition) if groups else {}
    for visit in groups:
        state = states.get(walk.by_id[visit].state)
        if state is None or any(key in state for key in _SHAPING):
            continue
        left = _left(walk, visit)
        if left is not None:
            yield from _compare(record, walk, state, visit, left)


def _is_group(walk: Walk, visit: int) -> bool:
    return walk.by_id[visit].type in ("MapStateEntered", "ParallelStateEntered")


def _left(walk: Walk, visit: int) -> int | None:
    """Return the event with the result of a visit, None if it has none or an error was caught."""
    if not walk.exits[visit] or not walk.starts[visit]:
        return None
    joined = walk.joined.get(walk.starts[visit][-1])
    left = walk.exits[visit][0]
    if joined is None:
        return None
    before = walk.by_id[joined].previous
    plain = walk.by_id[left].previous in (before, joined) or _of_map_run(walk, before)
    return left if plain else None


def _of_map_run(walk: Walk, event: int) -> bool:
    return event in walk.by_id and walk.by_id[event].type == "MapRunSucceeded"


def _compare(
    record: FoundExecution, walk: Walk, state: Mapping[str, Any], visit: int, left: int
) -> Iterator[tuple[str, str]]:
    attempt = walk.starts[visit][-1]
    if state["Type"] == "Parallel":
        lines = dict(enumerate(_branches(walk, state, attempt)))
    elif _of_map_run(walk, walk.by_id[walk.joined[attempt]].previous):
        yield from _children(record, walk, visit, left)
        return
    else:
        lines = _iterations(record, walk, attempt)
    details = record.details([left, *lines.values()])
    outputs = [json.loads(details[lines[index]]["output"]) for index in sorted(lines)]
    if json.loads(details[left]["output"]) != outputs:
        yield "I9", f"event {left}: the result is not that of the {len(lines)} lines, in order"


def _iterations(record: FoundExecution, walk: Walk, attempt: int) -> dict[int, int]:
    """Return index -> the event with the output of that iteration."""
    ended = [
        event.id
        for event in record.events
        if event.type == "MapIterationSucceeded"
        and walk.visit.get(event.id) == walk.visit[attempt]
        and event.id > attempt
    ]
    details = record.details(ended)
    return {details[event_id]["index"]: walk.by_id[event_id].previous for event_id in ended}


def _branches(walk: Walk, state: Mapping[str, Any], attempt: int) -> Iterator[int]:
    """Yield the event with the output of each branch: the last that left one of its states."""
    inside = [visit for visit, home in walk.home.items() if home == attempt]
    for branch in state["Branches"]:
        branch_visits = [visit for visit in inside if walk.by_id[visit].state in branch["States"]]
        yield max(event for visit in branch_visits for event in walk.exits[visit])


def _children(
    record: FoundExecution, walk: Walk, visit: int, left: int
) -> Iterator[tuple[str, str]]:
    """Compare the result of a Map Run with its children's."""
    run = max(
        (run for task, run in record.map_runs.items() if walk.visit.get(task) == visit),
        key=lambda run: run.task,
    )
    rows = Execution.objects.filter(map_run=run, status="SUCCEEDED").order_by("item_index")
    outputs = [json.loads(text or "null") for text in rows.values_list("output", flat=True)]
    if json.loads(record.details([left])[left]["output"]) != outputs:
        yield "I9", f"event {left}: the result is not that of the Map Run's children, in order"
