"""What happened to each state?  A history, folded event by event into visits and statuses.

Events are chained: each points back at the event it followed. A ``Scope`` is one line of control on
that chain (the execution, a branch, an iteration), an ``Attempt`` one start of a Parallel or Map, a
``Visit`` one stay in one state. A retry replaces the attempt, so what it left behind no longer
counts; finished iterations are folded into a tally, so cost stays linear.

It may be fed 25,000 events at a stroke: so what most of them are, entries and exits, is done in
one loop without calls, and a visit is a number until somebody asks for it (``engine.visits``).

(Above 300 lines: one fold, whose kinds of event share its state.)
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

from engine import kinds
from engine.graph import TOP
from engine.kinds import BEGAN, DONE, ENTERED, EXITED, FAILS, ITERATES, START, STOPPED, Kinds
from engine.portions import Newest, Portion
from engine.visits import ABORTED, CAUGHT, FAILED, RUNNING, SUCCEEDED, Attempt, Scope, Visit, Visits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from engine.graph import Graph
    from engine.kinds import Kind
    from engine.portions import Event
TELLING = (RUNNING, FAILED, CAUGHT, ABORTED, SUCCEEDED)
"""Of several concurrent visits the first status of this list that occurs is shown."""
_FEW = 20


class Trace:
    """The fold. Feed it the events of one execution in order, in as many portions as you like."""

    def __init__(self, graph: Graph) -> None:
        """Start before the first event."""
        self.graph = graph
        self.last = 0
        self.visits: dict[str, Visits] = {}
        self.left: dict[int, int] = {}  # visit -> when it ended
        self.ended: dict[int, str] = {}  # visit -> its status, if it is over and did not succeed
        self.tries: dict[int, int] = {}
        self.ways: dict[str, dict[str, int]] = {}  # node -> node before it -> when last taken
        self._changed: dict[str, int] = {}  # node -> the event that changed it last
        self._root = Scope(TOP)
        self.where: list[Scope] = [self._root]  # event id -> the line of control it belongs to
        self.times = [0]  # event id -> when it happened
        self._owners = [0]  # event id -> the visit it belongs to
        self._views: dict[int, Visit] = {}
        self._events: dict[int, list[int]] = {}  # visit -> its events, as far as _told
        self._told = self._asked = 0
        self._retries = 0
        self._begun: dict[int, int] = {}  # visit -> when its work was started last
        self._redrive = 0  # the last ExecutionRedriven
        self._failing: set[int] = set()
        self._kinds = Kinds(self)
        self._sequence = [START]  # event id -> its kind
        self._lengths: Mapping[int, int] = {}
        self.owners = {group.id: group.owner for group in graph.groups}
        self._groups = {owner: group for group, owner in self.owners.items()}
        self._inside = _insides(graph)

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
        for node, counts in self._tallies(self._root):
            result.setdefault(node, Counter()).update(counts)
        return result

    def progress(self, node: str) -> Attempt | None:
        """Return the last attempt of a Parallel or Map that is not itself inside a Map."""
        return self._root.find(node)

    @property
    def taken(self) -> dict[tuple[str, str], int]:
        """Return (node, node) -> when last taken; the picture goes from "start" to "end"."""
        return {
            (source, target): at
            for target, sources in self.ways.items()
            for source, at in sources.items()
        }

    @property
    def transitions(self) -> int:
        """Return how many states were entered and retried; what a redrive runs again is neither."""
        return sum(map(len, self.visits.values())) + self._retries

    @property
    def types(self) -> Counter[str]:
        """Return type -> how many events there are."""
        counts: Counter[str] = Counter()
        for kind in self._kinds.values():
            counts[kind.type] += len(kind.said)
        return counts

    def changes(self, after: int) -> set[str]:
        """Return the nodes that something happened to since event ``after``."""
        return {node for node, event in self._changed.items() if event > after}

    @property
    def culprit(self) -> Visit | None:
        """The innermost visit whose failure ended the execution, the first one inside a Map."""
        root = self._root
        if not root.open or self.status(root.latest[root.open]) != FAILED:
            return None
        return self.visit(*_deepest(root))

    @property
    def newest(self) -> Newest | None:
        """The last event."""
        kind = self._sequence[-1]
        return Newest(self.last, self.times[-1], kind.type, kind.state) if self.last else None

    def time_of(self, event: int) -> int:
        """Return when an event happened, in epoch milliseconds."""
        return self.times[event]

    def sees(self, event: int, other: int) -> bool:
        """Tell whether ``event``'s line of control is within that of ``other``, or is it."""
        scope: Scope | None = self.where[min(event, self.last)]
        while scope is not None:
            if scope is self.where[other]:
                return True
            scope = scope.attempt.home if scope.attempt else None
        return False

    def visits_of(self, node: str) -> Visits:
        """Return the visits of a state, none if it was not entered."""
        return self.visits.get(node) or Visits(self, node)

    def status(self, visit: int) -> str:
        """Return what has become of a visit."""
        return self.ended.get(visit) or (SUCCEEDED if visit in self.left else RUNNING)

    def visit(self, node: str, number: int) -> Visit:
        """Return the visit of a state that an event began, always the same object."""
        view = self._views.get(number)
        if view is None:
            view = self._views[number] = Visit(self, node, number)
        return view

    def events_of(self, visit: int) -> list[int]:
        """Return the ids of a visit's events, in order."""
        if visit in self._events and self._told == self.last:
            return self._events[visit]
        self._asked += 1
        if self._asked <= _FEW:  # looked for one by one; who wants many gets an index
            return list(_places(self._owners, visit))
        for number in range(self._told + 1, len(self._owners)):
            owner = self._owners[number]
            if owner == number:
                self._events[owner] = [owner]
            elif owner:
                self._events[owner].append(number)
        self._told = self.last
        return self._events[visit]

    def owner_of(self, event: int) -> tuple[str, int]:
        """Return node and visit that an event belongs to; the visit is 0 if it has none."""
        return self._sequence[event].node, self._owners[event]

    def counts_still(self, visit: int) -> bool:
        """Tell whether a visit belongs to the last attempt of each Parallel and Map around it."""
        attempt = self.where[visit].attempt
        while attempt is not None:
            if (attempt.home.attempts or {}).get(attempt.node) is not attempt:
                return False
            attempt = attempt.home.attempt
        return True

    # -- feeding -----------------------------------------------------------------------------------

    def feed(self, events: Iterable[Event]) -> None:
        """Take more events; of ``details`` only ``MapStateStarted``'s length is read."""
        some = list(events)
        if not some:
            return
        maps = [(one.id, one.details or {}) for one in some if one.type == "MapStateStarted"]
        self.take(
            Portion(
                some[-1].id,
                [one.previous for one in some],
                [one.at_ms for one in some],
                [(one.type, one.state) for one in some],
                {number: said["length"] for number, said in maps if "length" in said},
            )
        )

    def take(self, portion: Portion) -> None:
        """Take more events, as columns."""
        before, self._lengths = self.last, portion.lengths
        where, owners, left, ended = self.where, self._owners, self.left, self.ended
        self._sequence.extend(map(self._kinds.__getitem__, portion.kinds))
        self.times.extend(portion.at_ms)
        sequence = self._sequence
        for number, previous, at_ms, kind in zip(
            range(before + 1, len(sequence)),
            portion.previous,
            islice(self.times, before + 1, None),
            islice(sequence, before + 1, None),
            strict=False,
        ):
            known = previous if previous < number else 0
            near = where[known]
            what = kind.what
            if what == ENTERED:
                kind.said.append(number)
                scope = near if near.group == kind.group else self._line(near, kind.group)
                where.append(scope)
                owners.append(number)
                scope.open = node = kind.node
                scope.latest[node] = number
                if scope.attempts:
                    self._forget(scope, node, number)
                if sequence[known].what == EXITED:
                    self._came(number, known, kind)
            elif what == EXITED:
                kind.said.append(number)
                scope = near if near.group == kind.group else self._line(near, kind.group)
                where.append(scope)
                visit = scope.latest.get(kind.node, 0)
                owners.append(visit)
                if visit:
                    left[visit] = at_ms
                    scope.open = ""
                    if ended or self._failing:
                        self._judge(visit, previous)
            elif what == ITERATES:
                kind.said.append(number)
                where.append(self._iteration(near, kind))
                owners.append(0)
            elif what == DONE:
                kind.said.append(number)
                scope = self._iteration_done(near, kind)
                where.append(scope)
                owners.append(scope.latest.get(kind.node, 0))
            else:
                kind.said.append(number)
                self._other(number, known, kind)
        self.last = portion.last
        self._note_changes(before)

    def _judge(self, visit: int, previous: int) -> None:
        """Tell why a visit was left: because of an error that was caught, or all went well."""
        if previous in self._failing:
            self.ended[visit] = CAUGHT
        else:
            self.ended.pop(visit, None)

    def _note_changes(self, before: int) -> None:
        """Note which states had events of their own."""
        for kind in self._kinds.values():
            if kind.node and kind.said and kind.said[-1] > before:
                self._change(kind.node, kind.said[-1])

    def _change(self, node: str, number: int) -> None:
        """Note that something happened to a state."""
        if self._changed.get(node, 0) < number:
            self._changed[node] = number

    def _came(self, number: int, previous: int, kind: Kind) -> None:
        """Take the way from a state that was left, or from the beginning."""
        source = self._sequence[previous].node
        kind.ways[source] = number
        if source in kind.caught:
            self.ended[self._owners[previous]] = CAUGHT
            self._change(source, number)

    def _line(self, near: Scope, group: str) -> Scope:
        """Return the line of control in a group: around ``near``, or a branch that begins."""
        return near.up(group) or self._branch(near, group)

    def _branch(self, near: Scope, group: str) -> Scope:
        """Return the scope of a branch, which begins with its first event."""
        owner = self.owners[group]
        home = near.up(self.graph.by_id[owner].group) or self._root
        attempt = home.inner.setdefault(owner, Attempt(owner, home))
        index = next(one.index for one in self.graph.groups if one.id == group)
        return attempt.scopes.setdefault(index, Scope(group, attempt, index, home.iteration))

    def _iteration(self, near: Scope, kind: Kind) -> Scope:
        """Return the scope of the iteration that begins."""
        node = kind.node
        home = near if near.group == kind.group else near.up(kind.group) or self._root
        attempt = home.inner.get(node)
        if attempt is None:
            attempt = home.inner[node] = Attempt(node, home)
        index = attempt.started
        attempt.started = index + 1
        scope = Scope(self._groups[node], attempt, index, (*home.iteration, index))
        attempt.scopes[index] = scope
        return scope

    def _iteration_done(self, near: Scope, kind: Kind) -> Scope:
        """End an iteration, and return the line of control that its Map is on."""
        scope = near.child(kind.node)
        if scope is not None and scope.attempt is not None:
            attempt = scope.attempt
            attempt.done += 1
            if attempt.scopes.pop(scope.index, None) is not None:
                attempt.finished.append(scope)
            if attempt.home.group == kind.group:
                return attempt.home
        return self._line(near, kind.group)

    # -- what is neither an entry nor an exit ------------------------------------------------------

    def _other(self, number: int, previous: int, kind: Kind) -> None:
        """Take an event of any other kind."""
        node, what = kind.node, kind.what
        near = self.where[previous]
        group = kind.group or TOP
        scope = near if near.group == group else self._line(near, group)
        self.where.append(scope)
        if what == FAILS:
            self._fails(number, previous, kind, scope)
        visit = scope.latest.get(node, 0)
        self._owners.append(visit)
        if what == BEGAN and visit:
            self._began(number, kind, scope, visit)
        elif what == STOPPED and self._runs(scope, node):
            self._close(scope, FAILED if near is scope else ABORTED, number)
        elif what in _HANDLERS:
            _HANDLERS[what](self, number, previous, scope, kind)
        if kind.fails:
            self._failing.add(number)

    def _fails(self, number: int, previous: int, kind: Kind, scope: Scope) -> None:
        """Enter a Fail: it is never left."""
        scope.latest[kind.node] = number
        scope.open = kind.node
        self.ended[number], self.left[number] = FAILED, self.times[number]
        if self._sequence[previous].what == EXITED:
            self._came(number, previous, kind)

    def _began(self, number: int, kind: Kind, scope: Scope, visit: int) -> None:
        """Work starts, for the first time, again after a failure, or again after a redrive."""
        node = kind.node
        tries = self.tries[visit] = self.tries.get(visit, 0) + 1
        self._retries += tries > 1 and self._begun[visit] > self._redrive
        self._begun[visit] = number
        self._reopened(scope, node)
        if kind.type.endswith("StateStarted"):
            total = self._lengths.get(number)
            if kind.type == "ParallelStateStarted":
                total = sum(owner == node for owner in self.owners.values())
            self._forget(scope, node, number)
            scope.inner[node] = Attempt(node, scope, total)

    def _runs(self, scope: Scope, node: str) -> bool:
        """Tell whether a state is in progress on a line of control."""
        visit = scope.latest.get(node)
        return visit is not None and visit not in self.left

    def _reopened(self, scope: Scope, node: str) -> None:
        """Let the latest visit of a state be in progress, again if need be."""
        visit = scope.latest[node]
        self.ended.pop(visit, None)
        self.left.pop(visit, None)
        scope.open = node

    def _forget(self, scope: Scope, node: str, number: int) -> None:
        """A Parallel or Map begins anew: what is inside it has not been entered yet."""
        if scope.inner.pop(node, None) is None:
            return
        inside = self._inside[node]
        for one in inside:
            self._change(one, number)
        if not scope.iteration:
            for sources in self.ways.values():
                for source in inside & sources.keys():
                    del sources[source]

    def _group_failed(self, number: int, previous: int, scope: Scope, kind: Kind) -> None:
        """A child failed: it, and with it the whole attempt, is over."""
        attempt = scope.inner.get(kind.node)
        if attempt is None:
            return
        visit = scope.latest.get(kind.node)
        if visit is not None and kind.type.endswith("StateFailed"):
            self.ended[visit], self.left[visit] = FAILED, self.times[number]
        failing = self.where[previous].child(kind.node)
        for child in attempt.scopes.values():
            if child is failing and attempt.culprit is None and child.open:
                attempt.culprit = _deepest(child)
            self._close(child, FAILED if child is failing else ABORTED, number)

    def _succeeded(self, number: int, previous: int, _: Scope, __: Kind) -> None:
        last = self._sequence[previous]
        if last.what == EXITED:
            self.ways.setdefault("end", {})[last.node] = number

    def _failed(self, number: int, _: int, scope: Scope, __: Kind) -> None:
        self._close(scope, FAILED, number)

    def _aborted(self, number: int, _: int, scope: Scope, __: Kind) -> None:
        self._close(scope, ABORTED, number)

    def _redriven(self, number: int, _: int, __: Scope, ___: Kind) -> None:
        """What did not succeed is in progress again; a Fail will be entered anew."""
        self._redrive = number
        self._reopen(self._root, number)

    def _reopen(self, scope: Scope, number: int) -> None:
        node = scope.open
        if not node or self.graph.by_id[node].type == "Fail":
            return
        self._reopened(scope, node)
        self._change(node, number)
        attempt = (scope.attempts or {}).get(node)
        if attempt is not None:
            attempt.culprit = None
            for child in attempt.scopes.values():
                self._reopen(child, number)

    def _close(self, scope: Scope, status: str, number: int) -> None:
        """End what is still open on this line of control, and inside it."""
        node = scope.open
        if not node or not self._runs(scope, node):
            return
        visit = scope.latest[node]
        self.ended[visit], self.left[visit] = status, self.times[number]
        self._change(node, number)
        attempt = (scope.attempts or {}).get(node)
        for child in attempt.scopes.values() if attempt else ():
            self._close(child, ABORTED, number)

    def _tallies(self, scope: Scope) -> Iterator[tuple[str, Mapping[str, int]]]:
        """Yield node and status -> count of what is on a line of control and inside it."""
        for node, visit in scope.latest.items():
            yield node, {self.status(visit): 1}
        for attempt in (scope.attempts or {}).values():
            self._settle(attempt)
            yield from attempt.tally.items()
            for child in attempt.scopes.values():
                yield from self._tallies(child)

    def _settle(self, attempt: Attempt) -> None:
        """Fold the iterations that have finished into a tally: they change no more."""
        tally = attempt.tally
        visits: dict[str, list[int]] = {}
        for scope in attempt.finished:
            for node, visit in scope.latest.items():
                visits.setdefault(node, []).append(visit)
            if scope.attempts:
                scope.latest = {}
                for node, counts in self._tallies(scope):
                    tally.setdefault(node, Counter()).update(counts)
        for node, numbers in visits.items():
            tally.setdefault(node, Counter()).update(map(self.status, numbers))
        attempt.finished.clear()


_HANDLERS: dict[int, Callable[[Trace, int, int, Scope, Kind], None]] = {
    kinds.BROKE: Trace._group_failed,  # noqa: SLF001 - the table belongs to the class
    kinds.SUCCEEDED: Trace._succeeded,  # noqa: SLF001
    kinds.FAILED: Trace._failed,  # noqa: SLF001
    kinds.ENDED: Trace._aborted,  # noqa: SLF001
    kinds.REDRIVEN: Trace._redriven,  # noqa: SLF001
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


def _places(owners: list[int], visit: int) -> Iterator[int]:
    """Yield the places of a visit among the owners of events."""
    at = visit
    try:
        while True:
            yield at
            at = owners.index(visit, at + 1)
    except ValueError:
        return


def _deepest(scope: Scope) -> tuple[str, int]:
    """Return node and visit of the failure on a line of control: that of a child, if it has one."""
    attempt = (scope.attempts or {}).get(scope.open)
    if attempt is not None and attempt.culprit is not None:
        return attempt.culprit
    return scope.open, scope.latest[scope.open]
