"""Compute the visits and statuses of states from a history, event by event (``Trace``).

Theory of operation. Events are chained: each names the event it followed (``previous``). The
chain determines the event's line of control, because AWS has no such field:

* A ``ControlLine`` is one line of control: the execution itself, a branch of a Parallel, or an
  iteration of a Map. ``Trace.lines[event]`` is the line of each event taken so far. An event of a
  state in the group (a ``StartAt`` and its states) that its predecessor's line runs in belongs to
  the same line. An event of an outer group belongs to the enclosing line that runs there. An event
  of an inner group begins a branch. Only an iteration announces itself, by MapIterationStarted.
* A ``GroupAttempt`` is one start of a Parallel or Map. A retry replaces the attempt, so the
  visits of the failed attempt no longer count.
* A visit is one stay in one state, named by the number of the event that entered it.

What an event does depends on its type's ``Effect`` and on the state it names. All events of the
same type and state have the same effect, so it is computed once for each such pair and cached in an
``EventKind``. Entries and exits are most of a history; ``take`` handles them in one loop without
calls, because a page folds up to 25,000 events while a reader waits. Finished iterations are folded
into a tally, so that the cost grows with the number of events and not with its square.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

from engine.graph import TOP, EdgeKind
from engine.history.batch import EventBatch, LastEvent, batch_of
from engine.history.event_types import EVENT_TYPES, GROUP_FAMILIES, Effect, Family, Stage
from engine.history.visits import (
    ABORTED,
    CAUGHT,
    FAILED,
    RUNNING,
    SUCCEEDED,
    TIMED_OUT,
    ControlLine,
    GroupAttempt,
    GroupProgress,
    Visit,
    Visits,
    VisitStatus,
    VisitTable,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from engine.graph import Graph
    from engine.history.batch import RecordedEvent

SHOWN_FIRST = (RUNNING, FAILED, TIMED_OUT, CAUGHT, ABORTED, SUCCEEDED)
"""Statuses by priority: a state with several concurrent visits shows the first status of this list.
"""

# Members of an enum are slow to look up in a loop of 25,000 rounds.
_ENTERED, _EXITED = Effect.STATE_ENTERED, Effect.STATE_EXITED
_ITERATION_STARTED, _ITERATION_SUCCEEDED = Effect.ITERATION_STARTED, Effect.ITERATION_SUCCEEDED
_ABORTS = frozenset({Effect.STATE_ABORTED, Effect.ITERATION_ABORTED})


# -- kinds of events -------------------------------------------------------------------------------


class EventKind:
    """Facts shared by all events of one type and one state.

    ``node``: the state in the graph, "" if it is not there; ``group``: the group it stands in;
    ``event_ids``: the events of this kind so far.
    Of entries only: ``taken_from``: the previous node -> the last event that followed an exit from
    that node; ``caught_from``: the nodes from which only a Catch leads to this state.
    """

    __slots__ = (
        "caught_from",
        "effect",
        "event_ids",
        "group",
        "is_failure",
        "node",
        "state",
        "taken_from",
        "type",
    )

    def __init__(self, name: str, state: str, node: str = "", group: str = "") -> None:
        """Look up the meaning of the type; an unknown type has no effect."""
        self.type, self.state, self.node, self.group = name, state, node, group
        event_type = EVENT_TYPES.get(name)
        self.effect = event_type.effect if event_type else Effect.NONE
        self.is_failure = event_type is not None and event_type.is_failure
        if not node and (state or self.effect in _OF_STATES):  # of a state that is not drawn
            self.effect, self.is_failure = Effect.NONE, self.is_failure and not state
        self.event_ids: list[int] = []
        self.taken_from: dict[str, int] = {}
        self.caught_from: frozenset[str] = frozenset()


_OF_STATES = frozenset(
    {
        Effect.STATE_ENTERED,
        Effect.STATE_EXITED,
        Effect.FAIL_ENTERED,
        Effect.ATTEMPT_BEGAN,
        Effect.STATE_ABORTED,
        Effect.ITERATION_STARTED,
        Effect.ITERATION_SUCCEEDED,
        Effect.CHILD_FAILED,
    }
)

START = EventKind("", "")
"""The predecessor of the first event: as if a state named "start" had been exited."""
START.node, START.effect = "start", Effect.STATE_EXITED


class EventKinds(dict[tuple[str, str], EventKind]):
    """(type, state) -> kind, created on first use."""

    def __init__(self, make: Callable[[str, str], EventKind]) -> None:
        """``make``: creates the kind of a type and a state."""
        super().__init__()
        self._make = make

    def __missing__(self, pair: tuple[str, str]) -> EventKind:
        """Make the kind."""
        kind = self[pair] = self._make(*pair)
        return kind


# -- aborts ----------------------------------------------------------------------------------------


class AbortedIteration:
    """The iteration that the next aborts belong to.

    If a line of control fails, all other lines of its Parallel or Map are aborted, and each of
    these events refers to the failure. In a Parallel the event's state determines the branch. In a
    Map it does not determine the iteration:

    1. Iteration 0 fails in event 9: ``MapIterationFailed``, then ``TaskStateAborted`` for its own
       Task.
    2. Iteration 1 is aborted: ``MapIterationAborted`` with its index, then ``TaskStateAborted``,
       which points at event 9 and names the same state.
    """

    def __init__(self) -> None:
        """Begin before any failure."""
        self._failure = 0
        self._line: ControlLine | None = None

    def begin(self, failure: int, home: ControlLine, owner: str, index: int) -> None:
        """Note the abort of an iteration of the Map ``owner`` that runs on a line of control.

        ``failure``: the event that the abort points at.
        """
        attempt = (home.attempts or {}).get(owner)
        self._failure = failure
        self._line = attempt.lines.get(index) if attempt is not None else None

    def line_near(self, failure: int, failing: ControlLine) -> ControlLine:
        """Return the line of control of an abort; ``failing``: the line that failed."""
        return self._line if self._line is not None and failure == self._failure else failing


# -- the fold --------------------------------------------------------------------------------------


class Trace(VisitTable):
    """The visits and statuses of an execution's states, computed from its events."""

    def __init__(self, graph: Graph) -> None:
        """Start before the first event."""
        super().__init__()
        self.graph = graph
        self.visits: dict[str, Visits] = {}
        self._root = ControlLine(TOP)
        self.lines = [self._root]
        self._transitions_taken: dict[str, dict[str, int]] = {}  # node -> EventKind.taken_from
        self._changed: dict[str, int] = {}  # node -> the event that changed it last
        self._begun: dict[int, int] = {}  # visit -> when its work was started last
        self._redrive = 0  # the last ExecutionRedriven
        self._failures: set[int] = set()  # events that a Catch may follow
        self._kinds = EventKinds(self._make_kind)
        self._sequence = [START]  # event -> its kind
        self._numbers: Mapping[int, int] = {}
        self.payloads: dict[int, int] = {}
        """Event -> size of its largest payload, if near the limit (``EventBatch.sizes``)."""
        self.widest: dict[str, int] = {}
        """Inline Map -> the largest number of iterations that an attempt ran at the same time."""
        self._aborted = AbortedIteration()
        self.group_owners = {group.id: group.owner for group in graph.groups}
        self._groups = {owner: group for group, owner in self.group_owners.items()}
        self._inside = graph.states_within()

    def _make_kind(self, name: str, state: str) -> EventKind:
        """Return a kind that has not occurred yet."""
        node = self.graph.by_name.get(state, "")
        kind = EventKind(name, state, node, self.graph.by_id[node].group if node else "")
        if kind.effect in (Effect.STATE_ENTERED, Effect.FAIL_ENTERED):
            self._let_enter(kind)
        return kind

    def _let_enter(self, kind: EventKind) -> None:
        """Register the events of a kind as visits of its state."""
        node = kind.node
        if node in self.visits:
            kind.effect = Effect.NONE
            return
        visits = self.visits[node] = Visits(self, node)
        kind.event_ids = visits.numbers
        kind.taken_from = self._transitions_taken.setdefault(node, {})
        edges = [edge for edge in self.graph.edges if edge.target == node]
        uncaught = {edge.source for edge in edges if edge.kind is not EdgeKind.CATCH}
        kind.caught_from = frozenset({edge.source for edge in edges} - uncaught)

    # -- results -----------------------------------------------------------------------------------

    def statuses(self, counts: dict[str, Counter[str]] | None = None) -> dict[str, VisitStatus]:
        """Return node id -> status of entered states; ``counts``: from ``counts()``, if known."""
        return {
            node: next(status for status in SHOWN_FIRST if counts[status])
            for node, counts in (self.counts() if counts is None else counts).items()
        }

    def counts(self) -> dict[str, Counter[str]]:
        """Return node id -> number of lines of control in each status (latest visits)."""
        result: dict[str, Counter[str]] = {}
        for node, counts in self._tallies(self._root):
            result.setdefault(node, Counter()).update(counts)
        return result

    def progress(self, node: str, iteration: tuple[int, ...] = ()) -> GroupProgress | None:
        """Return the progress of a Parallel's or Map's current visits, None before the first.

        ``iteration``: count only those inside this iteration.
        """
        lines = {self.lines[number] for number in self.visits_of(node).counting_still()}
        inside = (line for line in lines if line.iteration[: len(iteration)] == iteration)
        attempts = ((line.attempts or {}).get(node) for line in inside)
        return GroupProgress.of([attempt for attempt in attempts if attempt])

    @property
    def taken(self) -> dict[tuple[str, str], int]:
        """Return (node, next node) -> last event of this transition; also for "start" and "end"."""
        return {
            (source, target): at
            for target, sources in self._transitions_taken.items()
            for source, at in sources.items()
        }

    @property
    def transitions(self) -> int:
        """Return the number of state transitions: entries and retries, but not of a redrive."""
        return sum(map(len, self.visits.values())) + sum(self.retries.values())

    @property
    def types(self) -> Counter[str]:
        """Return type -> number of events."""
        counts: Counter[str] = Counter()
        for kind in self._kinds.values():
            counts[kind.type] += len(kind.event_ids)
        return counts

    def changes(self, after: int) -> set[str]:
        """Return the nodes with events since event ``after``."""
        return {node for node, event in self._changed.items() if event > after}

    @property
    def culprit(self) -> Visit | None:
        """Return the innermost visit whose failure ended the execution; in a Map the first one."""
        root = self._root
        if not root.open or self.status(root.latest[root.open]) != FAILED:
            return None
        return self.visit(*root.deepest_failure())

    @property
    def last_event(self) -> LastEvent | None:
        """The last event."""
        kind = self._sequence[-1]
        return LastEvent(self.last, self.times[-1], kind.type, kind.state) if self.last else None

    def kind_of(self, event: int) -> tuple[str, str]:
        """Return the type of an event, and its state, "" without one."""
        kind = self._sequence[event]
        return kind.type, kind.state

    def is_within(self, event: int, other: int) -> bool:
        """Return whether ``event``'s line of control is that of ``other``, or inside it."""
        line: ControlLine | None = self.lines[min(event, self.last)]
        while line is not None:
            if line is self.lines[other]:
                return True
            line = line.attempt.home if line.attempt else None
        return False

    def visits_of(self, node: str) -> Visits:
        """Return the visits of a state."""
        return self.visits.get(node) or Visits(self, node)

    def owner_of(self, event: int) -> tuple[str, int]:
        """Return the node and visit of an event; visit 0 if it has none."""
        return self._sequence[event].node, self.owners[event]

    # -- feeding -----------------------------------------------------------------------------------

    def feed(self, events: Iterable[RecordedEvent]) -> None:
        """Add events; only the details in ``EventBatch.numbers`` are read."""
        batch = list(events)
        if batch:
            self.take(batch_of(batch))

    def take(self, batch: EventBatch) -> None:
        """Add events, as columns."""
        self._derived.clear()
        before, self._numbers = self.last, batch.numbers
        self.payloads.update(batch.sizes)
        lines, owners, end_times, ended = self.lines, self.owners, self.end_times, self.ended
        self._sequence.extend(map(self._kinds.__getitem__, batch.kinds))
        self.times.extend(batch.at_ms)
        sequence = self._sequence
        for number, previous, at_ms, kind in zip(
            range(before + 1, len(sequence)),
            batch.previous,
            islice(self.times, before + 1, None),
            islice(sequence, before + 1, None),
            strict=False,
        ):
            origin = previous if previous < number else 0
            near = lines[origin]
            effect = kind.effect
            if effect is _ENTERED:
                kind.event_ids.append(number)
                line = near if near.group == kind.group else self._line_in(near, kind.group)
                lines.append(line)
                owners.append(number)
                line.open = node = kind.node
                line.latest[node] = number
                if line.attempts:
                    self._forget(line, node, number)
                if sequence[origin].effect is _EXITED:
                    self._take_transition(number, origin, kind)
            elif effect is _EXITED:
                kind.event_ids.append(number)
                line = near if near.group == kind.group else self._line_in(near, kind.group)
                lines.append(line)
                visit = line.latest.get(kind.node, 0)
                owners.append(visit)
                if visit:
                    end_times[visit] = at_ms
                    line.open = ""
                    if ended or self._failures:
                        self._note_exit(visit, previous)
            elif effect is _ITERATION_STARTED:
                kind.event_ids.append(number)
                lines.append(self._iteration(near, kind))
                owners.append(0)
            elif effect is _ITERATION_SUCCEEDED:
                kind.event_ids.append(number)
                line = self._iteration_done(near, kind)
                lines.append(line)
                owners.append(line.latest.get(kind.node, 0))
            else:
                kind.event_ids.append(number)
                self._other(number, origin, kind)
        self.last = batch.last
        self._note_changes(before)

    def _note_exit(self, visit: int, previous: int) -> None:
        """Record how a visit ended: by a Catcher, or by success."""
        if visit in self.ended:
            self.revision += 1
        # An exit that follows a failure is the way of a Catcher: with a Retrier the work would have
        # begun again first, and the exit would follow its success.
        if previous in self._failures:
            self.ended[visit] = CAUGHT
        else:
            self.ended.pop(visit, None)

    def _note_changes(self, before: int) -> None:
        """Note which states had events of their own."""
        for kind in self._kinds.values():
            if kind.node and kind.event_ids and kind.event_ids[-1] > before:
                self._change(kind.node, kind.event_ids[-1])

    def _change(self, node: str, number: int) -> None:
        """Note that something happened to a state."""
        if self._changed.get(node, 0) < number:
            self._changed[node] = number

    def _take_transition(self, number: int, previous: int, kind: EventKind) -> None:
        """Record the transition from the exited state, or from the start."""
        source = self._sequence[previous].node
        kind.taken_from[source] = number
        if source in kind.caught_from:
            self.ended[self.owners[previous]] = CAUGHT
            self._change(source, number)

    def _line_in(self, near: ControlLine, group: str) -> ControlLine:
        """Return the line of control in a group: around ``near``, or a branch that begins."""
        return near.enclosing(group) or self._branch(near, group)

    def _branch(self, near: ControlLine, group: str) -> ControlLine:
        """Return the line of a branch, which begins with its first event."""
        owner = self.group_owners[group]
        home = near.enclosing(self.graph.by_id[owner].group) or self._root
        attempt = home.inner.setdefault(owner, GroupAttempt(owner, home))
        index = next(candidate.index for candidate in self.graph.groups if candidate.id == group)
        return attempt.lines.setdefault(index, ControlLine(group, attempt, index, home.iteration))

    def _iteration(self, near: ControlLine, kind: EventKind) -> ControlLine:
        """Return the line of the iteration that begins."""
        node = kind.node
        home = near if near.group == kind.group else near.enclosing(kind.group) or self._root
        attempt = home.inner.get(node)
        if attempt is None:
            attempt = home.inner[node] = GroupAttempt(node, home)
        index = attempt.started
        attempt.started = index + 1
        if index - attempt.done >= self.widest.get(node, 0):
            self.widest[node] = index + 1 - attempt.done
        line = ControlLine(self._groups[node], attempt, index, (*home.iteration, index))
        attempt.lines[index] = line
        return line

    def _iteration_done(self, near: ControlLine, kind: EventKind) -> ControlLine:
        """End an iteration, and return the line of control that its Map is on."""
        line = near.child_of(kind.node)
        if line is not None and line.attempt is not None:
            attempt = line.attempt
            attempt.done += 1
            if attempt.lines.pop(line.index, None) is not None:
                attempt.finished.append(line)
            if attempt.home.group == kind.group:
                return attempt.home
        return self._line_in(near, kind.group)

    # -- what is neither an entry nor an exit ------------------------------------------------------

    def _other(self, number: int, previous: int, kind: EventKind) -> None:
        """Take an event of any other kind."""
        node, effect = kind.node, kind.effect
        near = failing = self.lines[previous]
        if effect in _ABORTS:
            near = self._aborted.line_near(previous, failing)
        group = kind.group or TOP
        line = near if near.group == group else self._line_in(near, group)
        self.lines.append(line)
        if effect is Effect.FAIL_ENTERED:
            self._fail_entered(number, previous, kind, line)
        visit = line.latest.get(node, 0)
        self.owners.append(visit)
        if effect is Effect.ATTEMPT_BEGAN and visit:
            self._attempt_began(number, previous, kind, line, visit)
        elif effect is Effect.STATE_ABORTED and self._is_running(line, node):
            self._close(line, FAILED if failing is line else ABORTED, number)
        elif effect is Effect.ITERATION_ABORTED and number in self._numbers:
            self._aborted.begin(previous, line, node, self._numbers[number])
        elif effect in _HANDLERS:
            _HANDLERS[effect](self, number, previous, line, kind)
        if kind.is_failure:
            self._failures.add(number)

    def _fail_entered(self, number: int, previous: int, kind: EventKind, line: ControlLine) -> None:
        """Enter a Fail: it is never left."""
        line.latest[kind.node] = number
        line.open = kind.node
        self.ended[number], self.end_times[number] = FAILED, self.times[number]
        if self._sequence[previous].effect is _EXITED:
            self._take_transition(number, previous, kind)

    def _attempt_began(
        self, number: int, previous: int, kind: EventKind, line: ControlLine, visit: int
    ) -> None:
        """Note that work began: for the first time, after a failure, or after a redrive."""
        node = kind.node
        attempts = self.attempts[visit] = self.attempts.get(visit, 0) + 1
        # A start after a redrive is no retry: the redrive has interrupted the attempts.
        if attempts > 1 and self._begun[visit] > self._redrive:
            self.retries[visit] = self.retries.get(visit, 0) + 1
            self._note_pause(visit, previous, number)
        self._begun[visit] = number
        self._mark_running(line, node)
        family = EVENT_TYPES[kind.type].family
        if family in GROUP_FAMILIES:
            total = self._numbers.get(number)
            if family is Family.PARALLEL:
                total = sum(owner == node for owner in self.group_owners.values())
            self._forget(line, node, number)
            line.inner[node] = GroupAttempt(node, line, total)

    def _is_running(self, line: ControlLine, node: str) -> bool:
        """Return whether a state is in progress on a line of control."""
        visit = line.latest.get(node)
        return visit is not None and visit not in self.end_times

    def _mark_running(self, line: ControlLine, node: str) -> None:
        """Let the latest visit of a state be in progress, again if need be."""
        visit = line.latest[node]
        self.ended.pop(visit, None)
        if self.end_times.pop(visit, None) is not None:
            self.revision += 1
        line.open = node

    def _forget(self, line: ControlLine, node: str, number: int) -> None:
        """Forget the visits inside a Parallel or Map that starts again."""
        if line.inner.pop(node, None) is None:
            return
        inside = self._inside[node]
        for node_inside in inside:
            self._change(node_inside, number)
        if not line.iteration:
            for sources in self._transitions_taken.values():
                for source in inside & sources.keys():
                    del sources[source]

    def _group_failed(self, number: int, previous: int, line: ControlLine, kind: EventKind) -> None:
        """End the attempt of a Parallel or Map, because a child failed."""
        attempt = line.inner.get(kind.node)
        if attempt is None:
            return
        visit = line.latest.get(kind.node)
        if visit is not None and EVENT_TYPES[kind.type].family in GROUP_FAMILIES:
            self.ended[visit], self.end_times[visit] = FAILED, self.times[number]
        failing = self.lines[previous].child_of(kind.node)
        for child in attempt.lines.values():
            if child is failing and attempt.culprit is None and child.open:
                attempt.culprit = child.deepest_failure()
            self._close(child, FAILED if child is failing else ABORTED, number)

    def _succeeded(self, number: int, previous: int, _: ControlLine, __: EventKind) -> None:
        last = self._sequence[previous]
        if last.effect is _EXITED:
            self._transitions_taken.setdefault("end", {})[last.node] = number

    def _failed(self, number: int, previous: int, line: ControlLine, __: EventKind) -> None:
        """End the execution as failed, in the state of the error unless a group's event says it."""
        inner = self.lines[previous]
        while inner is not line and inner.attempt is not None:
            if inner.open and inner.attempt.culprit is None:
                inner.attempt.culprit = inner.deepest_failure()
            self._close(inner, FAILED, number)
            inner = inner.attempt.home
        self._close(line, FAILED, number)

    def _stopped(self, number: int, _: int, line: ControlLine, kind: EventKind) -> None:
        """End the execution by a stop or a timeout."""
        timed_out = EVENT_TYPES[kind.type].stage is Stage.TIMED_OUT
        self._close(line, TIMED_OUT if timed_out else ABORTED, number)

    def _redriven(self, number: int, _: int, __: ControlLine, ___: EventKind) -> None:
        """Reopen the visits that did not succeed, except Fails, which are entered anew."""
        self._redrive = number
        self._note_gap(number)
        self._reopen(self._root, number)

    def _reopen(self, line: ControlLine, number: int) -> None:
        node = line.open
        if not node or self.graph.by_id[node].type == "Fail":
            return
        self._note_interruption(line.latest[node])
        self._mark_running(line, node)
        self._change(node, number)
        attempt = (line.attempts or {}).get(node)
        if attempt is not None:
            attempt.culprit = None
            for child in attempt.lines.values():
                self._reopen(child, number)

    def _close(self, line: ControlLine, status: VisitStatus, number: int) -> None:
        """End the open visits on this line of control and inside it."""
        node = line.open
        if not node or not self._is_running(line, node):
            return
        visit = line.latest[node]
        self.ended[visit], self.end_times[visit] = status, self.times[number]
        self._change(node, number)
        attempt = (line.attempts or {}).get(node)
        for child in attempt.lines.values() if attempt else ():
            self._close(child, TIMED_OUT if status is TIMED_OUT else ABORTED, number)

    def _tallies(self, line: ControlLine) -> Iterator[tuple[str, Mapping[str, int]]]:
        """Yield node and status -> count, of this line of control and its inner lines."""
        for node, visit in line.latest.items():
            yield node, {self.status(visit): 1}
        yield from self._inner_tallies(line)

    def _inner_tallies(self, line: ControlLine) -> Iterator[tuple[str, Mapping[str, int]]]:
        for attempt in (line.attempts or {}).values():
            self._settle(attempt)
            yield from attempt.tally.items()
            for child in attempt.lines.values():
                yield from self._tallies(child)

    def _settle(self, attempt: GroupAttempt) -> None:
        """Fold the finished iterations into a tally, because they no longer change."""
        tally = attempt.tally
        visits: dict[str, list[int]] = {}
        for line in attempt.finished:
            for node, visit in line.latest.items():
                visits.setdefault(node, []).append(visit)
            if line.attempts:
                for node, counts in self._inner_tallies(line):
                    tally.setdefault(node, Counter()).update(counts)
        for node, numbers in visits.items():
            tally.setdefault(node, Counter()).update(map(self.status, numbers))
        attempt.finished.clear()


_HANDLERS: dict[Effect, Callable[[Trace, int, int, ControlLine, EventKind], None]] = {
    Effect.CHILD_FAILED: Trace._group_failed,  # noqa: SLF001 - the table belongs to the class
    Effect.EXECUTION_SUCCEEDED: Trace._succeeded,  # noqa: SLF001
    Effect.EXECUTION_FAILED: Trace._failed,  # noqa: SLF001
    Effect.EXECUTION_STOPPED: Trace._stopped,  # noqa: SLF001
    Effect.EXECUTION_REDRIVEN: Trace._redriven,  # noqa: SLF001
}


def paint(graph: Graph, events: Iterable[RecordedEvent]) -> dict[str, VisitStatus]:
    """Return node id -> status from *all* events of an execution, in order.

    Statuses: the values of ``VisitStatus``; a state that was not entered is absent. A
    state that runs many times (loop, Map) shows its latest visit; of several concurrent iterations,
    the first of ``SHOWN_FIRST``. ``Trace`` does the same for a history in portions.
    """
    trace = Trace(graph)
    trace.feed(events)
    return trace.statuses()
