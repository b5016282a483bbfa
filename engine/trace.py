"""What happened to each state?  A history, folded event by event into visits and statuses.

Events are chained: each points back at the event it followed. A ``Scope`` is one line of control on
that chain (the execution, a branch, an iteration), an ``Attempt`` one start of a Parallel or Map, a
``Visit`` one stay in one state. A retry replaces the attempt, so what it left behind no longer
counts; finished iterations are folded into a tally, so cost stays linear.

(Above 300 lines: one fold, whose kinds of event share its state.)
"""

# Above 300 lines: one fold and the three records it folds into, useless apart.

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from engine.graph import TOP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from engine.graph import Graph
RUNNING, SUCCEEDED, CAUGHT = "running", "succeeded", "caught"
FAILED, ABORTED = "failed", "aborted"
TELLING = (RUNNING, FAILED, CAUGHT, ABORTED, SUCCEEDED)
"""Of several concurrent visits the first status of this list that occurs is shown."""


class Event(Protocol):
    """What a trace reads of an event: ``engine.Event``, or a row with the same fields."""

    @property
    def id(self) -> int:
        """Return its number, from 1."""

    @property
    def previous(self) -> int:
        """Return the number of the event it followed."""

    @property
    def at_ms(self) -> int:
        """Return when it happened."""

    @property
    def type(self) -> str:
        """Return its type."""

    @property
    def details(self) -> Mapping[str, Any] | None:
        """Return its fields."""

    @property
    def state(self) -> str:
        """Return the state it belongs to, "" if to none."""


@dataclass(slots=True)
class Visit:
    """One stay in a state. ``iteration``: index in each surrounding Map, outermost first.

    ``tries``: how often its work was started; ``events``: ids of its own events, in order.
    """

    node: str
    entered_ms: int
    iteration: tuple[int, ...] = ()
    status: str = RUNNING
    left_ms: int | None = None
    tries: int = 0
    events: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Attempt:
    """One start of a Parallel or Map. ``total``: how many children it will have, if known."""

    node: str
    home: Scope
    total: int | None = None
    started: int = 0
    done: int = 0
    scopes: dict[int, Scope] = field(default_factory=dict)
    tally: dict[str, Counter[str]] = field(default_factory=dict)
    culprit: Visit | None = None


@dataclass(slots=True, eq=False)
class Scope:
    """One line of control: the execution itself (no attempt), a branch, or an iteration."""

    group: str
    attempt: Attempt | None = None
    index: int = 0
    iteration: tuple[int, ...] = ()
    open: Visit | None = None
    latest: dict[str, Visit] = field(default_factory=dict)
    attempts: dict[str, Attempt] = field(default_factory=dict)


class Trace:
    """The fold. Feed it the events of one execution in order, in as many portions as you like."""

    def __init__(self, graph: Graph) -> None:
        """Start before the first event."""
        self.graph = graph
        self.last = 0
        self.visits: dict[str, list[Visit]] = {}
        # (node, node) -> when last taken; the picture begins at "start" and ends at "end".
        self.taken: dict[tuple[str, str], int] = {}
        self._changed: dict[str, int] = {}  # node -> the event that changed it last
        self._root = Scope(TOP)
        self._where: list[Scope] = [self._root]  # event id -> the line of control it belongs to
        self.newest: Event | None = None
        self._times = [0]  # event id -> when it happened
        self._failing: set[int] = set()
        self._left: dict[int, Visit] = {}  # ...Exited event -> its visit, until one follows it
        self._owners = {group.id: group.owner for group in graph.groups}
        self._inside = _insides(graph)
        ways = {(edge.source, edge.target) for edge in graph.edges if edge.kind != "catch"}
        caught = {(edge.source, edge.target) for edge in graph.edges if edge.kind == "catch"}
        self._only_caught = caught - ways

    # -- results -----------------------------------------------------------------------------------

    def statuses(self) -> dict[str, str]:
        """Return node id -> status; a node that was not entered is absent."""
        return {
            node: next(status for status in TELLING if counts[status])
            for node, counts in self.counts().items()
        }

    def counts(self) -> dict[str, Counter[str]]:
        """Return node id -> how many lines of control have it in which status (latest visits)."""
        result: dict[str, Counter[str]] = {}
        for node, counts in _tallies(self._root):
            result.setdefault(node, Counter()).update(counts)
        return result

    def progress(self, node: str) -> Attempt | None:
        """Return the last attempt of a Parallel or Map that is not itself inside a Map."""
        return _find(self._root, node)

    @property
    def transitions(self) -> int:
        """Return the number of state transitions as AWS counts them: entries and retries."""
        every = [visit for visits in self.visits.values() for visit in visits]
        return len(every) + sum(max(0, visit.tries - 1) for visit in every)

    def changes(self, after: int) -> set[str]:
        """Return the nodes that something happened to since event ``after``."""
        return {node for node, event in self._changed.items() if event > after}

    @property
    def culprit(self) -> Visit | None:
        """The innermost visit whose failure ended the execution, the first one inside a Map."""
        visit = self._root.open
        if visit is None or visit.status != FAILED:
            return None
        attempt = self._root.attempts.get(visit.node)
        return _deepest(attempt, visit)

    def time_of(self, event: int) -> int:
        """Return when an event happened, in epoch milliseconds."""
        return self._times[event]

    def sees(self, event: int, other: int) -> bool:
        """Tell whether ``event``'s line of control is within that of ``other``, or is it."""
        scope: Scope | None = self._where[min(event, self.last)]
        while scope is not None:
            if scope is self._where[other]:
                return True
            scope = scope.attempt.home if scope.attempt else None
        return False

    # -- feeding -----------------------------------------------------------------------------------

    def feed(self, events: Iterable[Event]) -> None:
        """Take more events; of ``details`` only ``MapStateStarted``'s length is read."""
        for event in events:
            node = self.graph.by_name.get(event.state, "")
            scope = self._scope(event, node)
            self._where.append(scope)
            self._times.append(event.at_ms)
            self.last = event.id
            self.newest = event
            if node:
                self._changed[node] = event.id
            if node or not event.state:  # else: a state this definition does not have
                self._note(event, scope, node)

    def _note(self, event: Event, scope: Scope, node: str) -> None:
        what, fails = _meaning(event.type)
        if what == "entered":
            self._entered(event, scope, node)
        visit = scope.latest.get(node)
        if visit is not None:
            visit.events.append(event.id)
        if what == "exited" and visit is not None:
            self._exited(event, scope, visit)
        elif what == "began":
            self._began(event, scope, node)
        elif what == "stopped" and visit is not None:
            self._stopped(event, scope, visit)
        elif what == "other":
            _HANDLERS[event.type](self, event, scope, node)
        if fails:
            self._failing.add(event.id)

    def _scope(self, event: Event, node: str) -> Scope:
        """Find the event's line of control: up from that of the event it follows."""
        if not node or event.previous >= len(self._where):
            return self._root
        near = self._where[event.previous]
        if event.type == "MapIterationStarted":
            return self._iteration(near, node)
        group = self.graph.by_id[node].group
        scope = _up(near, group)
        return scope or self._branch(near, group)

    def _iteration(self, near: Scope, node: str) -> Scope:
        home = _up(near, self.graph.by_id[node].group) or self._root
        attempt = home.attempts.setdefault(node, Attempt(node, home))
        index = attempt.started
        attempt.started += 1
        group = next(one for one, owner in self._owners.items() if owner == node)
        scope = Scope(group, attempt, index, (*home.iteration, index))
        attempt.scopes[index] = scope
        return scope

    def _branch(self, near: Scope, group: str) -> Scope:
        """Return the scope of a branch, which begins with its first event."""
        owner = self._owners[group]
        home = _up(near, self.graph.by_id[owner].group) or self._root
        attempt = home.attempts.setdefault(owner, Attempt(owner, home))
        index = next(one.index for one in self.graph.groups if one.id == group)
        return attempt.scopes.setdefault(index, Scope(group, attempt, index, home.iteration))

    # -- one kind of event each --------------------------------------------------------------------

    def _entered(self, event: Event, scope: Scope, node: str) -> None:
        visit = Visit(node, event.at_ms, scope.iteration)
        if event.type == "FailStateEntered":
            visit.status, visit.left_ms = FAILED, event.at_ms
        self.visits.setdefault(node, []).append(visit)
        scope.open = scope.latest[node] = visit
        self._forget(scope, node, event)
        source = self._left.pop(event.previous, None)
        if event.previous == 0:
            self.taken["start", node] = event.id
        if source is not None:
            self.taken[source.node, node] = event.id
            if (source.node, node) in self._only_caught:
                source.status = CAUGHT
                self._changed[source.node] = event.id

    def _exited(self, event: Event, scope: Scope, visit: Visit) -> None:
        visit.status = CAUGHT if event.previous in self._failing else SUCCEEDED
        visit.left_ms = event.at_ms
        scope.open = None
        self._left[event.id] = visit

    def _began(self, event: Event, scope: Scope, node: str) -> None:
        """Work starts, for the first time, again after a failure, or again after a redrive."""
        visit = scope.latest.get(node)
        if visit is None:
            return
        visit.tries += 1
        visit.status, visit.left_ms, scope.open = RUNNING, None, visit
        if event.type.endswith("StateStarted"):
            total = (event.details or {}).get("length")
            if event.type == "ParallelStateStarted":
                total = sum(owner == node for owner in self._owners.values())
            self._forget(scope, node, event)
            scope.attempts[node] = Attempt(node, scope, total)

    def _forget(self, scope: Scope, node: str, event: Event) -> None:
        """A Parallel or Map begins anew: what is inside it has not been entered yet."""
        if scope.attempts.pop(node, None) is None:
            return
        inside = self._inside[node]
        self._changed.update(dict.fromkeys(inside, event.id))
        if not scope.iteration:
            self.taken = {way: at for way, at in self.taken.items() if way[0] not in inside}

    def _stopped(self, event: Event, scope: Scope, visit: Visit) -> None:
        if visit.status == RUNNING:
            own = self._where[event.previous] is scope
            self._close(scope, FAILED if own else ABORTED, event)

    def _iteration_done(self, event: Event, _: Scope, node: str) -> None:
        scope = _child(self._where[event.previous], node)
        if scope is None or scope.attempt is None:
            return
        attempt = scope.attempt
        attempt.done += 1
        attempt.scopes.pop(scope.index, None)
        for inner, counts in _tallies(scope):
            attempt.tally.setdefault(inner, Counter()).update(counts)

    def _group_failed(self, event: Event, scope: Scope, node: str) -> None:
        """A child failed: it, and with it the whole attempt, is over."""
        attempt = scope.attempts.get(node)
        if attempt is None:
            return
        visit = scope.latest.get(node)
        if visit is not None and event.type.endswith("StateFailed"):
            visit.status, visit.left_ms = FAILED, event.at_ms
        failing = _child(self._where[event.previous], node)
        for child in attempt.scopes.values():
            if child is failing and attempt.culprit is None and child.open is not None:
                attempt.culprit = _deepest(child.attempts.get(child.open.node), child.open)
            self._close(child, FAILED if child is failing else ABORTED, event)

    def _succeeded(self, event: Event, _: Scope, __: str) -> None:
        last = self._left.get(event.previous)
        if last is not None:
            self.taken[last.node, "end"] = event.id

    def _ended(self, event: Event, scope: Scope, _: str) -> None:
        self._close(scope, FAILED if event.type == "ExecutionFailed" else ABORTED, event)

    def _redriven(self, event: Event, _: Scope, __: str) -> None:
        """What did not succeed is in progress again; a Fail will be entered anew."""
        self._reopen(self._root, event)

    def _reopen(self, scope: Scope, event: Event) -> None:
        visit = scope.open
        if visit is None or self.graph.by_id[visit.node].type == "Fail":
            return
        visit.status, visit.left_ms = RUNNING, None
        self._changed[visit.node] = event.id
        attempt = scope.attempts.get(visit.node)
        if attempt is not None:
            attempt.culprit = None
            for child in attempt.scopes.values():
                self._reopen(child, event)

    def _close(self, scope: Scope, status: str, event: Event) -> None:
        """End what is still open on this line of control, and inside it."""
        visit = scope.open
        if visit is None or visit.status != RUNNING:
            return
        visit.status, visit.left_ms = status, event.at_ms
        self._changed[visit.node] = event.id
        attempt = scope.attempts.get(visit.node)
        for child in attempt.scopes.values() if attempt else ():
            self._close(child, ABORTED, event)


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
_HANDLERS: dict[str, Callable[[Trace, Event, Scope, str], None]] = {
    "MapIterationSucceeded": Trace._iteration_done,  # noqa: SLF001 - the table belongs to the class
    "MapIterationFailed": Trace._group_failed,  # noqa: SLF001
    "MapStateFailed": Trace._group_failed,  # noqa: SLF001
    "ParallelStateFailed": Trace._group_failed,  # noqa: SLF001
    "ExecutionSucceeded": Trace._succeeded,  # noqa: SLF001
    "ExecutionFailed": Trace._ended,  # noqa: SLF001
    "ExecutionAborted": Trace._ended,  # noqa: SLF001
    "ExecutionTimedOut": Trace._ended,  # noqa: SLF001
    "ExecutionRedriven": Trace._redriven,  # noqa: SLF001
}


@cache
def _meaning(kind: str) -> tuple[str, bool]:
    """Return what an event type does to a visit, and whether it is a failure."""
    fails = kind in _FAILINGS or (kind.endswith("Failed") and kind not in _HANDLERS)
    if kind in _HANDLERS:
        return "other", fails
    return next((what for ending, what in _ENDINGS.items() if kind.endswith(ending)), ""), fails


_ENDINGS = {
    "StateEntered": "entered",
    "StateExited": "exited",
    "Scheduled": "began",
    "ScheduleFailed": "began",  # an attempt that had no ...Scheduled
    "StateStarted": "began",
    "StateAborted": "stopped",
}


def _insides(graph: Graph) -> dict[str, set[str]]:
    """Return Parallel or Map -> all states within it, at any depth."""
    owners = {group.id: group.owner for group in graph.groups}
    inside: dict[str, set[str]] = {}
    for node in graph.nodes:
        owner = owners[node.group]
        while owner:
            inside.setdefault(owner, set()).add(node.id)
            owner = owners[graph.by_id[owner].group]
    return inside


def _up(scope: Scope, group: str) -> Scope | None:
    """Go outwards until the line of control that runs in ``group``."""
    while scope.group != group:
        if scope.attempt is None:
            return None
        scope = scope.attempt.home
    return scope


def _child(scope: Scope, node: str) -> Scope | None:
    """Go outwards until the branch or iteration of the Parallel or Map ``node``."""
    while scope.attempt is not None:
        if scope.attempt.node == node:
            return scope
        scope = scope.attempt.home
    return None


def _deepest(attempt: Attempt | None, visit: Visit) -> Visit:
    return attempt.culprit if attempt is not None and attempt.culprit is not None else visit


def _find(scope: Scope, node: str) -> Attempt | None:
    for owner, attempt in scope.attempts.items():
        if owner == node:
            return attempt
        for child in attempt.scopes.values():
            found = _find(child, node)
            if found is not None:
                return found
    return None


def _tallies(scope: Scope) -> Iterator[tuple[str, Mapping[str, int]]]:
    for node, visit in scope.latest.items():
        yield node, {visit.status: 1}
    for attempt in scope.attempts.values():
        yield from attempt.tally.items()
        for child in attempt.scopes.values():
            yield from _tallies(child)
