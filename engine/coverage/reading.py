"""Read a history and return the coverage points (``points``) that the execution reached.

Histories do not number Choice rules or Retriers. A rule is identified by its target or, if two
rules have the same target, by evaluating the rules with the recorded input. A Retrier or Catcher is
identified by the recorded error. If an event has no input or error (``details`` may be missing),
such points are uncertain: neither reached nor missing.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from engine.coverage import points as keys
from engine.coverage.points import EXECUTION_TIMEOUT, PointKind, list_points
from engine.errors import DATA_LIMIT_EXCEEDED, HEARTBEAT_TIMEOUT, TIMEOUT, StatesError, matches
from engine.graph import build_graph
from engine.history.event_types import (
    EVENT_TYPES,
    STATE_ENTRIES,
    STATE_EXITS,
    Effect,
    Family,
    Stage,
)
from engine.history.fold import Trace
from engine.history.visits import CAUGHT, FAILED
from engine.language import parse
from engine.language.references import variable_references
from engine.limits_ahead import LimitAhead, limits_ahead
from engine.runtime.run import Moment
from engine.runtime.trial import TrialStatus, try_state

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.coverage.points import Point
    from engine.graph import Graph
    from engine.history.batch import RecordedEvent
    from engine.language.model import Machine
    from engine.runtime.trial import Trial

_CHANGING = ("$$", "$states.context", "$random", "$shuffle", "$now", "$millis", "$uuid", "$eval")
"""Parts of a condition whose value differs at each evaluation."""
_ALONE = "?"
"""The name of the Choice in a helper definition: its rules lead to states named by their keys."""


@dataclass(frozen=True, slots=True)
class Reached:
    """The keys of reached points. ``uncertain``: keys that may have been reached.

    ``limits``: the AWS limits that the execution came near.
    """

    keys: frozenset[str] = frozenset()
    uncertain: frozenset[str] = frozenset()
    limits: tuple[LimitAhead, ...] = ()


class CoverageReader:
    """Reads histories of one machine: ``read`` returns the reached points."""

    def __init__(self, machine: Machine, graph: Graph | None = None) -> None:
        """``graph``: that of the machine, if it is built."""
        self.machine = machine
        self.graph = graph or build_graph(machine)
        self.points = list_points(machine, self.graph)
        self.states: dict[str, Mapping[str, Any]] = {
            node.name: json.loads(node.text) for node in self.graph.nodes
        }
        self._by_target: dict[tuple[str, str], list[Point]] = {}
        for point in self.points:
            if point.target:
                self._by_target.setdefault((point.state, point.target), []).append(point)
        self._choosers: dict[str, Machine | None] = {}

    @property
    def ambiguous(self) -> frozenset[str]:
        """Return the Choice states with two rules to one target, whose inputs are needed."""
        return frozenset(
            state
            for (state, _), points in self._by_target.items()
            if len(points) > 1 and self.states[state]["Type"] == "Choice"
        )

    def read(self, events: Iterable[RecordedEvent]) -> Reached:
        """Return the points that an execution reached. ``events``: all its events, in order."""
        return self.fold(events)[1]

    def fold(self, events: Iterable[RecordedEvent]) -> tuple[Trace, Reached]:
        """Return the points that an execution reached, and the trace of its history."""
        reading = _Reading(self)
        part: list[RecordedEvent] = []
        for event in events:
            if part and event.type == "ExecutionRedriven":
                reading.take(part)
                part = []
            part.append(event)
        reading.take(part)
        return reading.trace, reading.result()

    def read_trial(self, name: str, trial: Trial) -> Reached:
        """Return the points that a test of one state (TestState) reached."""
        reached = {name}
        uncertain: set[str] = set()
        details = trial.stages.get("errorDetails", {})
        if "retryIndex" in details:
            attempted = trial.status is TrialStatus.RETRIABLE
            key = keys.attempted_key if attempted else keys.exhausted_key
            reached.add(key(name, details["retryIndex"]))
        if "catchIndex" in details:
            reached.add(keys.catcher_key(name, details["catchIndex"]))
        elif trial.status is TrialStatus.SUCCEEDED and trial.next_state:
            ways = self.ways_between(name, trial.next_state, caught=False)
            way = self.chosen_way(ways, trial.stages.get("input"))
            (reached if way else uncertain).update([way] if way else (p.key for p in ways))
        return Reached(frozenset(reached), frozenset(uncertain))

    # -- ways between two states -------------------------------------------------------------------

    def ways_between(self, source: str, target: str, *, caught: bool) -> list[Point]:
        """Return the Catchers, or the other transitions, from one state to another."""
        points = self._by_target.get((source, target), [])
        return [point for point in points if (point.kind is PointKind.CATCHER) is caught]

    def chosen_way(self, ways: Sequence[Point], text: str | None) -> str:
        """Return the key of the transition that a state took with an input, "" if unknown.

        ``ways``: the transitions to the state that followed. ``text``: the input as JSON.
        """
        if len(ways) == 1:
            return ways[0].key
        if not ways or text is None:
            return ""
        name = ways[0].state
        if name not in self._choosers:
            self._choosers[name] = chooser(self.states[name], self.machine)
        machine = self._choosers[name]
        if machine is None:
            return ""
        try:
            trial = try_state(machine, _ALONE, text, Moment(0), about={})
        except (StatesError, LookupError):
            return ""
        key = f"{name}/{trial.next_state}"
        return key if key in {way.key for way in ways} else ""


def chooser(state: Mapping[str, Any], machine: Machine) -> Machine | None:
    """Return a machine with one Choice whose rules lead to states named by their keys.

    Return None if a rule's result may vary between evaluations, or reads a variable, because the
    state's input does not have it.
    """
    conditions = [_without_data(rule) for rule in state["Choices"]]
    if any(word in json.dumps(conditions) for word in _CHANGING):
        return None
    rules = [{**rule, "Next": f"Choices[{index}]"} for index, rule in enumerate(conditions)]
    choice = {**_without_data(state), "Choices": rules, "Default": "Default"}
    ends = [*(rule["Next"] for rule in rules), "Default"]
    definition = {
        "QueryLanguage": machine.language,
        "StartAt": _ALONE,
        "States": {_ALONE: choice, **{end: {"Type": "Succeed"} for end in ends}},
    }
    text = json.dumps(definition)
    return None if variable_references(text) else parse(text)


def _without_data(part: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key not in ("Assign", "Output")}


# -- one history -----------------------------------------------------------------------------------


class _Reading:
    """The reading of one history. A part is the events between two redrives."""

    def __init__(self, reader: CoverageReader) -> None:
        self.reader = reader
        self.trace = Trace(reader.graph)
        self.reached: set[str] = set()
        self.uncertain: set[str] = set()
        self._events: dict[int, RecordedEvent] = {}
        self._failures: dict[int, int] = {}  # visit -> its failure that no retry has followed
        self._begun: set[int] = set()  # visits whose work began in this part

    def result(self) -> Reached:
        """Return the points of all parts."""
        uncertain = frozenset(self.uncertain - self.reached)
        return Reached(frozenset(self.reached), uncertain, tuple(limits_ahead(self.trace)))

    def take(self, part: Sequence[RecordedEvent]) -> None:
        """Add events up to the end of the execution, or up to a redrive."""
        if not part:
            return
        self.trace.feed(part)
        self._begun.clear()
        for event in part:
            self._events[event.id] = event
            self._take_event(event)
        for state, definition in self.reader.states.items():
            if "Retry" in definition:
                self._note_exhausted(self.reader.graph.by_name[state], part[0].id)
        self._failures.clear()

    def _note_exhausted(self, node: str, first: int) -> None:
        """Note the exhausted Retriers of failed visits: no retry followed their last failure.

        An error of the interpreter, such as an unmatched ResultPath, has no event. ``first``: the
        first event of the part.
        """
        for visit in self.trace.visits_of(node).numbers:
            failed = self.trace.status(visit) in (FAILED, CAUGHT)
            if failed and (visit in self._failures or visit >= first):
                self._note_retrier(visit, self._failures.get(visit, 0), exhausted=True)

    def _take_event(self, event: RecordedEvent) -> None:
        kind = EVENT_TYPES.get(event.type)
        visit = self.trace.owners[event.id]
        if kind is None:
            return
        if event.type in STATE_ENTRIES and visit:
            self.reached.add(event.state)
            self._note_transition(event)
        elif kind.effect is Effect.ATTEMPT_BEGAN and visit:
            self._note_attempt(event, visit)
        if kind.is_failure and visit and event.type not in STATE_ENTRIES:
            self._note_failure(event, visit)
        if kind.stage is Stage.TIMED_OUT:
            self._note_timeout(event)
        if event.type in ("ParallelStateFailed", "ExecutionFailed"):
            self._note_branches(event.previous, event.state)
        if event.type == "ExecutionFailed":
            self._failures.setdefault(self.trace.owners[event.previous], event.id)

    def _note_failure(self, event: RecordedEvent, visit: int) -> None:
        if event.type == "EvaluationFailed" and visit in self._failures:  # no attempt had begun
            self._note_retrier(visit, self._failures[visit], exhausted=False)
        self._failures[visit] = event.id

    # -- ways --------------------------------------------------------------------------------------

    def _note_transition(self, event: RecordedEvent) -> None:
        exit_event = self._events.get(event.previous)
        if exit_event is None or exit_event.type not in STATE_EXITS:
            return
        visit = self.trace.owners[exit_event.id]
        caught = self.trace.status(visit) is CAUGHT
        ways = self.reader.ways_between(exit_event.state, event.state, caught=caught)
        way = ways[0].key if len(ways) == 1 else ""
        if not way and caught:
            error = self._error_before(exit_event.previous)
            way = _first_match([(way.key, self._errors_of(way.key)) for way in ways], error)
        elif not way and visit:
            details = self._events[visit].details or {}
            way = self.reader.chosen_way(ways, details.get("input"))
        if way:
            self.reached.add(way)
        else:
            self.uncertain.update(point.key for point in ways)

    def _errors_of(self, key: str) -> Sequence[str]:
        state, _, place = key.rpartition("/")
        index = int(place[place.index("[") + 1 : place.index("]")])
        errors: Sequence[str] = self.reader.states[state]["Catch"][index]["ErrorEquals"]
        return errors

    # -- retries -----------------------------------------------------------------------------------

    def _note_attempt(self, event: RecordedEvent, visit: int) -> None:
        failure = self._failures.pop(visit, 0)
        if failure or visit in self._begun:
            self._note_retrier(visit, failure or event.previous, exhausted=False)
            if EVENT_TYPES[event.type].family is Family.PARALLEL:
                self._note_branches(event.previous, event.state)
        self._begun.add(visit)
        length = (event.details or {}).get("length")
        if event.type == "MapStateStarted" and length is not None:
            self.reached.add(keys.size_key(event.state, keys.size_word(int(length))))

    def _note_retrier(self, visit: int, failure: int, *, exhausted: bool) -> None:
        """Note the Retrier of a failure, which retried the state or was exhausted."""
        state = self._events[visit].state
        retriers = self.reader.states[state].get("Retry") or []
        key = keys.exhausted_key if exhausted else keys.attempted_key
        error = self._error_before(failure)
        entries = [(key(state, i), entry["ErrorEquals"]) for i, entry in enumerate(retriers)]
        if error is None and (exhausted or len(entries) > 1):
            self.uncertain.update(name for name, _ in entries)
        elif error is None:
            self.reached.update(name for name, _ in entries)
        elif retrier := _first_match(entries, error):
            self.reached.add(retrier)

    def _error_before(self, number: int) -> str | None:
        """Return the error of a failure event, or of the inner failure that caused it."""
        while number:
            event = self._events[number]
            if event.type == "FailStateEntered":
                error = self.reader.states[event.state].get("Error")
                return error if isinstance(error, str) and not error.startswith("{%") else None
            kind = EVENT_TYPES.get(event.type)
            if kind is None or kind.stage not in (Stage.FAILED, Stage.TIMED_OUT, Stage.ABORTED):
                return None
            error = (event.details or {}).get("error")
            if kind.stage is Stage.TIMED_OUT:
                limits = self._limits_of(event)
                if len(limits) > 1:
                    return None
                error = HEARTBEAT_TIMEOUT if limits == ["HeartbeatSeconds"] else TIMEOUT
            if error is not None:
                return str(error)
            number = event.previous
        return None

    # -- timeouts and branches ---------------------------------------------------------------------

    def _note_timeout(self, event: RecordedEvent) -> None:
        if event.type == "ExecutionTimedOut":
            self.reached.add(EXECUTION_TIMEOUT)
            return
        limits = self._limits_of(event)
        names = {keys.timeout_key(event.state, name) for name in limits}
        (self.reached if len(limits) == 1 else self.uncertain).update(names)

    def _limits_of(self, event: RecordedEvent) -> list[str]:
        """Return the timeouts that may have ended a task: one, or both if the history is ambiguous.

        Both have the error States.Timeout. A heartbeat is missed before the time is over.
        """
        fields = ("TimeoutSeconds", "HeartbeatSeconds")
        state = self.reader.states.get(event.state, {})
        limits = [name for name in fields if name in state or f"{name}Path" in state]
        begin = self._events.get(event.previous)
        seconds = state.get("TimeoutSeconds")
        if len(limits) > 1 and begin is not None and isinstance(seconds, int):
            limits = [limits[event.at_ms - begin.at_ms < seconds * 1000]]
        return limits

    def _note_branches(self, number: int, name: str) -> None:
        """Note the branch in which a Parallel failed; name "": for all Parallels around."""
        line = self.trace.lines[number]
        while line.attempt is not None:
            node = self.reader.graph.by_id[line.attempt.node]
            if node.type == "Parallel" and name in (node.name, ""):
                self.reached.add(keys.branch_key(node.name, line.index))
            line = line.attempt.home


def _first_match(entries: Iterable[tuple[str, Sequence[str]]], error: str | None) -> str:
    """Return the key of the first Retrier or Catcher for an error, "" if none matches."""
    if error is None:
        return ""
    of_result = error == DATA_LIMIT_EXCEEDED
    matching = (key for key, errors in entries if matches(errors, error, of_result=of_result))
    return next(matching, "")
