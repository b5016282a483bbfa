"""What does an event mean for the states?  All events of one type and state mean the same."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from engine.visits import Visits

if TYPE_CHECKING:
    from engine.trace import Trace
ENTERED, EXITED, FAILS, BEGAN, STOPPED, ITERATES, DONE, BROKE, NOTHING = range(9)
SUCCEEDED, FAILED, ENDED, REDRIVEN = range(9, 13)  # the execution did, or was
_TYPES = {
    "FailStateEntered": FAILS,
    "MapIterationStarted": ITERATES,
    "MapIterationSucceeded": DONE,
    "MapIterationFailed": BROKE,
    "MapStateFailed": BROKE,
    "ParallelStateFailed": BROKE,
    "ExecutionSucceeded": SUCCEEDED,
    "ExecutionFailed": FAILED,
    "ExecutionAborted": ENDED,
    "ExecutionTimedOut": ENDED,
    "ExecutionRedriven": REDRIVEN,
}
_ENDINGS = {
    "StateEntered": ENTERED,
    "StateExited": EXITED,
    "Scheduled": BEGAN,
    "ScheduleFailed": BEGAN,  # an attempt that had no ...Scheduled
    "StateStarted": BEGAN,
    "StateAborted": STOPPED,
}
_FAILINGS = frozenset(
    {
        "ActivityTimedOut",
        "FailStateEntered",
        "LambdaFunctionTimedOut",
        "MapRunAborted",
        "MapStateFailed",
        "ParallelStateFailed",
        "TaskTimedOut",
    }
)


@cache
def _meaning(kind: str) -> tuple[int, bool]:
    """Return what an event type does to a visit, and whether it is a failure."""
    fails = kind in _FAILINGS or (kind.endswith("Failed") and kind not in _TYPES)
    what = _TYPES.get(kind)
    if what is None:
        what = next((one for end, one in _ENDINGS.items() if kind.endswith(end)), NOTHING)
    return what, fails


class Kind:
    """What all events of one type and state have in common. ``said``: their ids.

    Of entries: ``ways``: the state before -> when last left for this one; ``caught``: the states
    that only an error leads from to this one.
    """

    __slots__ = ("caught", "fails", "group", "node", "said", "state", "type", "ways", "what")

    def __init__(self, kind: str, state: str, node: str = "", group: str = "") -> None:
        """Look up what the type means. ``node``: the state in the picture, "" if it is not."""
        self.type, self.state, self.node, self.group = kind, state, node, group
        self.what, self.fails = _meaning(kind)
        if not node and (state or self.what < NOTHING):
            self.what, self.fails = NOTHING, self.fails and not state
        self.said: list[int] = []
        self.ways: dict[str, int] = {}
        self.caught: frozenset[str] = frozenset()

    def enters(self, trace: Trace) -> None:
        """Let its events be the visits of its state; a state is entered by one type only."""
        if self.node in trace.visits:
            self.what = NOTHING
            return
        visits = trace.visits[self.node] = Visits(trace, self.node)
        self.said = visits.numbers
        self.ways = trace.ways.setdefault(self.node, {})
        edges = [edge for edge in trace.graph.edges if edge.target == self.node]
        ways = {edge.source for edge in edges if edge.kind != "catch"}
        self.caught = frozenset({edge.source for edge in edges} - ways)


START = Kind("", "")
"""What comes before the first event: as if a state named "start" were left."""
START.node, START.what = "start", EXITED


class Kinds(dict[tuple[str, str], Kind]):
    """The kinds there were so far, by type and state."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self._trace = trace

    def __missing__(self, pair: tuple[str, str]) -> Kind:
        kind, state = pair
        graph = self._trace.graph
        node = graph.by_name.get(state, "")
        made = self[pair] = Kind(kind, state, node, graph.by_id[node].group if node else "")
        if made.what in (ENTERED, FAILS):
            made.enters(self._trace)
        return made
