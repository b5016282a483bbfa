"""Walk through a history once, and assign each event to a visit of a state.

Events are chained by their previous event. A *visit* is one stay in a state, named by its
...StateEntered event; its *home* is the event that began its branch or iteration (0: the execution
itself); an *attempt* is one start of a task, a Parallel or a Map.

(Independent of the engine's own fold of a history, in order to find its errors.)
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import engine
from engine import event_types

if TYPE_CHECKING:
    from collections.abc import Sequence

    from console.features.doctor.stored_executions import HistoryLine

ENDS = event_types.EXECUTION_ENDS
REDRIVEN = "ExecutionRedriven"
OUTCOMES = event_types.WORK_OUTCOMES
SCHEDULED = event_types.WORK_SCHEDULED
_HOMES = ("ParallelStateStarted", "MapIterationStarted")
_STARTS = SCHEDULED | event_types.GROUP_STARTED
_GROUP_SUCCEEDED = engine.event_names(event_types.GROUP_FAMILIES, engine.Stage.SUCCEEDED)
_ABORTED = engine.event_names(frozenset(engine.Family), engine.Stage.ABORTED)


class Walk:
    """The visits of a history and their outcomes."""

    def __init__(self, events: Sequence[HistoryLine]) -> None:
        """Walk through the events; a broken chain raises no error here."""
        self.by_id = {event.id: event for event in events}
        self.visit: dict[int, int] = {}  # event -> visit
        self.home: dict[int, int] = {}  # visit -> event
        self.exits: dict[int, list[int]] = {}  # visit -> events
        self.starts: dict[int, list[int]] = {}  # visit -> attempts
        self.joined: dict[int, int] = {}  # attempt of a Parallel or Map -> its ...StateSucceeded
        self.attempt: dict[int, int] = {}  # home -> the attempt it belongs to
        self.outcomes: dict[int, list[int]] = {}  # ...Scheduled event -> events
        self.strays: list[HistoryLine] = []  # outcomes of nothing, exits from nowhere
        self.ends = [event.id for event in events if event.type in ENDS]
        self.redrives = [event.id for event in events if event.type == REDRIVEN]
        self._open: dict[str, int] = {}  # state -> its last visit
        self._entry: dict[tuple[int, str], int] = {}  # (event before, state) -> visit
        for event in events:
            self._take(event)

    def died(self, visit: int) -> bool:
        """Whether a visit is in a branch or iteration whose group never completed."""
        home = self.home.get(visit, 0)
        return home != 0 and self.attempt.get(home, home) not in self.joined

    def next_end(self, event: int) -> str:
        """Return the execution's next end after an event, "" without one."""
        after = next((end for end in self.ends if end > event), None)
        return "" if after is None else ENDS[self.by_id[after].type]

    # -- one event ---------------------------------------------------------------------------------

    def _take(self, event: HistoryLine) -> None:
        kind = event.type
        if kind in event_types.STATE_ENTRIES:
            self._enter(event)
            return
        if not event.state or kind in _ABORTED:  # of a sibling: it points elsewhere
            return
        visit = self.visit[event.id] = self._find(event)
        if kind in event_types.STATE_EXITS:
            self._exit(event, visit)
        elif kind in _STARTS:
            self.starts[visit].append(event.id) if visit else self.strays.append(event)
        elif kind == "MapIterationStarted" and self.starts.get(visit):
            self.attempt[event.id] = self.starts[visit][-1]
        elif kind in _GROUP_SUCCEEDED and self.starts.get(visit):
            self.joined[self.starts[visit][-1]] = event.id
        if kind in SCHEDULED:
            self.outcomes[event.id] = []
        elif kind in OUTCOMES:
            self._outcome(event)

    def _enter(self, event: HistoryLine) -> None:
        number, before = event.id, self.by_id.get(event.previous)
        if before is not None and before.type in _HOMES:
            self.home[number] = before.id
        else:
            self.home[number] = self.home.get(self.visit.get(event.previous, 0), 0)
        self.visit[number] = number
        self.exits[number], self.starts[number] = [], []
        self._open[event.state] = number
        self._entry[event.previous, event.state] = number

    def _exit(self, event: HistoryLine, visit: int) -> None:
        if visit:
            self.exits[visit].append(event.id)
        else:
            self.strays.append(event)

    def _outcome(self, event: HistoryLine) -> None:
        """Go back from an outcome to its scheduling event, past start and submission."""
        before = self.by_id.get(event.previous)
        while before is not None and before.type in event_types.WORK_PROGRESS:
            before = self.by_id.get(before.previous) if before.previous < before.id else None
        if before is None or not _is_outcome_of(event, before):
            self.strays.append(event)
        else:
            self.outcomes.setdefault(before.id, []).append(event.id)

    def _find(self, event: HistoryLine) -> int:
        """Go back along the chain to the visit of the event's state."""
        if event.type == "EvaluationFailed":  # on entry it points before the entry
            entry = self._entry.get((event.previous, event.state))
            if entry is not None:
                return entry
        visit = self.visit.get(event.previous, 0)
        while visit and not _same(self.by_id[visit], event):
            before = self.by_id[visit].previous
            visit = self.visit.get(before, 0) if before < visit else 0
        # a redrive cuts the chain of the execution's own line
        return visit or self._open.get(event.state, 0)


def _is_outcome_of(event: HistoryLine, scheduled: HistoryLine) -> bool:
    """Whether an outcome may belong to a scheduling event, by their families."""
    family = engine.EVENT_TYPES[event.type].family
    return scheduled.type in SCHEDULED and engine.EVENT_TYPES[scheduled.type].family is family


def _same(entered: HistoryLine, event: HistoryLine) -> bool:
    """Whether an event may be of the entered state; names repeat in branches."""
    kind, separator, _ = event.type.partition("State")
    return entered.state == event.state and (not separator or entered.type == f"{kind}StateEntered")


def between(numbers: Sequence[int], cuts: Sequence[int]) -> list[list[int]]:
    """Split numbers into groups: before the first cut, between cuts, after the last."""
    groups: dict[int, list[int]] = defaultdict(list)
    for number in numbers:
        groups[sum(cut < number for cut in cuts)].append(number)
    return list(groups.values())
