"""Suggest tests: find an input and results of Tasks with which an execution reaches a point.

The search starts with an empty input and Tasks that return ``{}``, and follows a short route of
transitions to the point's state. Where a run leaves the route, the plan is changed: for a Choice,
values that satisfy the rule (``conditions``) are put into the input or an earlier Task's result;
for a Catcher, the Task raises the error; missing data is filled in. The machine runs again after
each change, and only changes that help are kept, so every suggestion is proved by a run.
"""

from __future__ import annotations

import heapq
import json
import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from engine import jsontext
from engine.coverage.conditions import Place, expression_place, read_choice, read_place
from engine.coverage.points import EXECUTION_TIMEOUT, Point, PointKind, size_key
from engine.data.expression import ABSENT
from engine.errors import StatesError
from engine.execution_status import ExecutionStatus
from engine.history.event_types import STATE_ENTRIES
from engine.runtime.memory import NoAnswer, run_some

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from engine.coverage.conditions import ChoiceRules
    from engine.coverage.reading import CoverageReader, Reached
    from engine.graph import Node
    from engine.runtime.memory import Result

EXAMPLE_ERROR = "Example.Error"
_STEPS = 400
_MOST_RUNS, _MOST_EVENTS = 150, 150_000
"""Runs for one point, and events of all runs for a machine."""
_SOLUTIONS, _REPAIRS, _LONGEST_ROUTE = 6, 8, 60
_COSTS = {PointKind.CATCHER: 5, PointKind.CHOICE: 2}
_WILDCARDS = {"States.ALL": EXAMPLE_ERROR, "States.TaskFailed": EXAMPLE_ERROR}
_PATH = re.compile(r"(?<![\w$])\$((?:\.[^\W\d][\w-]*|\[\d+\]|\['[^']*'\])+)")
_STATES_INPUT = re.compile(r"\$states\.(input|result)((?:\.[^\W\d]\w*)+)")
_NUMBERS = ("Seconds", "Concurrency", "States.Math", "Percentage", "Count")


@dataclass(frozen=True, slots=True)
class TaskScript:
    """The behaviour of a Task in a suggestion.

    ``result``: of each call. ``error``: the error that it raises, "" for none; ``times``: how
    often, 0 for always. ``silent``: it never answers.
    """

    result: Any = field(default_factory=dict)
    error: str = ""
    times: int = 0
    silent: bool = False

    def function(self) -> Callable[[Any], Any]:
        """Return the Task as a function for one run of ``engine.run``."""
        calls = 0

        def call(_: Any) -> Any:
            nonlocal calls
            calls += 1
            if self.silent:
                raise NoAnswer
            if self.error and (not self.times or calls <= self.times):
                raise StatesError(self.error, "")
            return self.result

        return call

    def __str__(self) -> str:
        if self.silent:
            return "never answers"
        returns = f"returns {jsontext.dumps(self.result)}"
        if not self.error:
            return returns
        return f"raises {self.error}" + (f" once, then {returns}" if self.times else "")


@dataclass(frozen=True, slots=True)
class Suggestion:
    """An input and Task results with which a run reached a point.

    ``tasks``: state -> behaviour of each called Task. ``ends``: whether the execution ends.
    """

    input: Any
    tasks: Mapping[str, TaskScript] = field(default_factory=dict)
    ends: bool = True

    def __str__(self) -> str:
        parts = [f"input {jsontext.dumps(self.input)}"]
        parts += [f"{name} {script}" for name, script in self.tasks.items()]
        return "; ".join([*parts, *([] if self.ends else ["the execution then goes on for ever"])])

    def as_json(self) -> dict[str, Any]:
        """Return the suggestion as a JSON value."""
        tasks: dict[str, dict[str, Any]] = {}
        for name, script in self.tasks.items():
            tasks[name] = {"silent": True} if script.silent else {"result": script.result}
            if script.error:
                tasks[name] |= {"error": script.error, "times": script.times or None}
        return {"input": self.input, "tasks": tasks, "ends": self.ends}


@dataclass(frozen=True)
class _Trial:
    """A plan and its run. ``inputs``: state -> the inputs of its visits."""

    plan: Suggestion
    result: Result
    reached: Reached
    inputs: Mapping[str, Sequence[Any]]

    @cached_property
    def size(self) -> int:
        """Return the length of the plan, to prefer the shorter of two."""
        return len(str(self.plan))


def suggest(reader: CoverageReader, points: Iterable[Point]) -> dict[str, Suggestion]:
    """Return key -> suggestion, for the points for which the search finds one.

    Points inside a distributed Map belong to child executions, which a run in memory does not have.
    """
    search = _PlanSearch(reader)
    plans = ((point.key, search.find(point)) for point in points)
    return {key: plan for key, plan in plans if plan is not None}


class _PlanSearch:
    """The search for inputs that reach the untried points of a machine."""

    def __init__(self, reader: CoverageReader) -> None:
        self.reader = reader
        self.graph = reader.graph
        self.points = {point.key: point for point in reader.points}
        self.groups = {group.id: group for group in self.graph.groups}
        self.workers = [
            node.name for node in self.graph.nodes if node.type == "Task" or node.distributed
        ]
        self.runs = self.events = 0
        self._trials: dict[str, _Trial] = {}
        self._choices: dict[str, ChoiceRules] = {}
        self._read_paths: dict[str, list[tuple[str, Place, Any]]] = {}
        self._ways_of: dict[str, list[tuple[int, Point]]] = {}
        for number, point in enumerate(reader.points):
            if point.target:
                self._ways_of.setdefault(point.state, []).append((number, point))

    def find(self, point: Point) -> Suggestion | None:
        """Return the suggestion for a point, None if none is found."""
        self.runs = 0
        passing = [trial for trial in self._trials.values() if point.key in trial.reached.keys]
        trial = min(passing, key=lambda trial: trial.size) if passing else self._follow(point)
        if trial is None:
            return None
        for repaired in self._repairs(trial):  # so that the execution does not fail afterwards
            trial = repaired if point.key in repaired.reached.keys else trial
        plan = self._without_needless(trial, point.key).plan
        called = dict.fromkeys(call.state for call in self._try(plan).result.calls)
        tasks = {name: plan.tasks.get(name, self._script(name)) for name in called}
        return replace(
            plan, tasks=tasks, ends=self._try(plan).result.status != ExecutionStatus.RUNNING
        )

    def _follow(self, point: Point) -> _Trial | None:
        """Return a trial that follows the route to a point and reaches it."""
        route = self._route(point.state) if point.state else []
        if route is None:
            return None
        goals = [*route, *([self.points[point.state]] if point.state else []), point]
        trial: _Trial | None = self._try(Suggestion({}))
        keys: list[str] = []
        for goal in dict.fromkeys(goals):
            trial = self._reach(trial, goal, keys) if trial is not None else None
            keys.append(goal.key)
        return trial

    # -- the route ---------------------------------------------------------------------------------

    def _route(self, state: str) -> list[Point] | None:
        """Return the points to reach in turn to enter a state.

        None if there is no route, or if it leads into a distributed Map.
        """
        node = self.graph.by_id[self.graph.by_name[state]]
        group = self.groups[node.group]
        inside = self._ways(self.graph.by_id[group.start].name, state)
        if inside is None or not group.owner:
            return inside
        owner = self.graph.by_id[group.owner]
        outside = None if owner.distributed else self._route(owner.name)
        if outside is None:
            return None
        entry = [self.points[owner.name]]
        one_item = self.points.get(size_key(owner.name, "1"))
        return [*outside, *entry, *([one_item] if one_item is not None else []), *inside]

    def _ways(self, start: str, target: str) -> list[Point] | None:
        """Return the cheapest transitions from one state of a group to another."""
        queue: list[tuple[int, int, str, tuple[Point, ...]]] = [(0, 0, start, ())]
        settled: set[str] = set()
        while queue:
            cost, _, state, ways = heapq.heappop(queue)
            if state == target:
                return list(ways)
            if state in settled or len(ways) > _LONGEST_ROUTE:
                continue
            settled.add(state)
            for number, way in self._ways_of.get(state, ()):
                price = cost + _COSTS.get(way.kind, 1)
                heapq.heappush(queue, (price, number, way.target, (*ways, way)))
        return None

    # -- runs --------------------------------------------------------------------------------------

    def _script(self, state: str) -> TaskScript:
        node = self.graph.by_id[self.graph.by_name[state]]
        if node.distributed:
            return TaskScript([])
        resource = self.reader.states[state].get("Resource", "")
        return TaskScript({"Payload": {}} if ":states:::lambda:invoke" in resource else {})

    def _try(self, plan: Suggestion) -> _Trial:
        """Return the run of a plan, from a cache if it ran before."""
        key = str(plan)
        if key not in self._trials:
            self.runs += 1
            tasks = {
                name: plan.tasks.get(name, self._script(name)).function() for name in self.workers
            }
            result = run_some(self.reader.machine, plan.input, tasks, max_steps=_STEPS)
            self.events += len(result.events)
            inputs: dict[str, list[Any]] = {}
            for event in result.events:
                text = (event.details or {}).get("input")
                if event.type in STATE_ENTRIES and text is not None:
                    inputs.setdefault(event.state, []).append(jsontext.loads(text))
            self._trials[key] = _Trial(plan, result, self.reader.read(result.events), inputs)
        return self._trials[key]

    def _reach(self, trial: _Trial, goal: Point, keys: Sequence[str]) -> _Trial | None:
        """Return a trial that reaches a point as well as ``keys``, or None."""
        for candidate in self._candidates(trial, goal):
            if goal.key in candidate.reached.keys and candidate.reached.keys.issuperset(keys):
                return candidate
            if self.runs > _MOST_RUNS or self.events > _MOST_EVENTS:
                return None
        return None

    def _candidates(self, trial: _Trial, goal: Point) -> Iterator[_Trial]:
        yield trial
        for changed in self._changes(trial, goal):
            yield changed
            yield from self._repairs(changed)
        yield from self._repairs(trial)

    def _changes(self, trial: _Trial, goal: Point) -> Iterator[_Trial]:
        """Yield trials with changes that may reach a point of this kind."""
        match goal.kind:
            case PointKind.CHOICE | PointKind.DEFAULT:
                for repaired in (trial, *self._repairs(trial)):
                    yield from self._solved(repaired, goal)
            case PointKind.MAP_SIZE:
                yield from self._sized(trial, goal)
            case PointKind.CATCHER | PointKind.RETRIER | PointKind.BRANCH:
                for tasks in self._failing(goal):
                    yield self._with_tasks(trial, tasks)
            case PointKind.TIMEOUT:
                states = [goal.state] if goal.key != EXECUTION_TIMEOUT else self.workers
                for state in states:
                    yield self._with_tasks(trial, {state: TaskScript(silent=True)})
            case _:
                return

    def _with_tasks(self, trial: _Trial, tasks: Mapping[str, TaskScript]) -> _Trial:
        return self._try(replace(trial.plan, tasks={**trial.plan.tasks, **tasks}))

    def _without_needless(self, trial: _Trial, key: str) -> _Trial:
        """Return a trial without the parts of its plan that the point does not need."""
        plain = replace(trial.plan, tasks={})
        shorter = [plain, *(self._without(trial.plan, name) for name in trial.plan.tasks)]
        shorter += [
            replace(trial.plan, input=_put_value(trial.plan.input, place, ABSENT))
            for place in _leaves(trial.plan.input)
        ]
        for plan in shorter:
            candidate = self._try(plan)
            better = candidate.size < trial.size and key in candidate.reached.keys
            if better and trial.result.status in (
                candidate.result.status,
                ExecutionStatus.RUNNING,
            ):
                return self._without_needless(candidate, key)
        return trial

    @staticmethod
    def _without(plan: Suggestion, name: str) -> Suggestion:
        return replace(plan, tasks={key: s for key, s in plan.tasks.items() if key != name})

    # -- Choice and Map ----------------------------------------------------------------------------

    def _solved(self, trial: _Trial, goal: Point) -> Iterator[_Trial]:
        index = re.search(r"\[(\d+)\]$", goal.key) if goal.kind is PointKind.CHOICE else None
        way = int(index[1]) if index else None
        if goal.state not in self._choices:
            self._choices[goal.state] = read_choice(self.reader.states[goal.state])
        for values in islice(self._choices[goal.state].solve(way), _SOLUTIONS):
            changed: _Trial | None = trial
            for place in sorted(values, key=len):
                if changed is not None:
                    changed = self._with_value(changed, goal.state, place, values[place])
            if changed is not None:
                yield changed

    def _sized(self, trial: _Trial, goal: Point) -> Iterator[_Trial]:
        state = self.reader.states[goal.state]
        place = self._items_place(goal.state)
        length = {"0": 0, "1": 1}.get(goal.key.rsplit(" with ", 1)[1].split(" ")[0], 2)
        if place is not None and not isinstance(state.get("Items"), list):
            changed = self._with_value(trial, goal.state, place, [{}] * length)
            if changed is not None:
                yield changed

    def _items_place(self, name: str) -> Place | None:
        state = self.reader.states[name]
        if "Items" in state:
            return expression_place(state["Items"])
        prefix = read_place(state.get("InputPath", "$")) or ("",)
        return read_place(state.get("ItemsPath", "$"), prefix)

    def _with_value(self, trial: _Trial, state: str, place: Place, value: Any) -> _Trial | None:
        """Return a trial in which a state's input has a value at a place; None if none has.

        The value of a variable cannot be checked there, so its first possible origin is used.
        """
        members = place[1:]
        if not place[0] and _sees(trial, state, members, value):
            return trial
        for where, inside in self._origins(trial, state, members):
            changed = self._changed_at(trial, where, inside, value)
            if place[0] or _sees(changed, state, members, value):
                return changed
        return None

    def _changed_at(self, trial: _Trial, where: str, members: Place, value: Any) -> _Trial:
        """Return a trial with a value changed in the input ("") or in a Task's result."""
        if not where:
            return self._try(
                replace(trial.plan, input=_put_value(trial.plan.input, members, value))
            )
        script = trial.plan.tasks.get(where, self._script(where))
        changed = replace(script, result=_put_value(script.result, members, value))
        return self._with_tasks(trial, {where: changed})

    def _origins(self, trial: _Trial, state: str, members: Place) -> Iterator[tuple[str, Place]]:
        """Yield the possible origins of a value in a state's input: "" or a Task, and members."""
        group = self.groups[self.graph.by_id[self.graph.by_name[state]].group]
        if not group.owner:
            yield "", members
        else:
            owner = self.graph.by_id[group.owner]
            for inside in dict.fromkeys((members, members[1:])):
                yield from self._origins(trial, owner.name, self._outer_members(owner, inside))
            yield "", members
        for call in reversed(trial.result.calls):
            for inside in _result_members(self.reader.states[call.state], members):
                yield call.state, inside

    def _outer_members(self, owner: Node, members: Place) -> Place:
        place = self._items_place(owner.name) if owner.type == "Map" else None
        return members if place is None else (*place[1:], 0, *members)

    # -- errors ------------------------------------------------------------------------------------

    def _failing(self, goal: Point) -> Iterator[dict[str, TaskScript]]:
        """Yield Tasks whose failure may reach a Retrier, a Catcher or a branch."""
        node = self.graph.by_id[self.graph.by_name[goal.state]]
        inside = self.graph.states_within().get(node.id, set())
        states = [name for name in self.workers if self.graph.by_name[name] in inside | {node.id}]
        names = [EXAMPLE_ERROR]
        if goal.kind is not PointKind.BRANCH:
            kind, index = re.search(r"/(Retry|Catch)\[(\d+)\]", goal.key).groups()  # type: ignore[union-attr]
            names = self.reader.states[goal.state][kind][int(index)]["ErrorEquals"]
        for name in names:
            times = int(goal.key.endswith("attempted"))
            for state in states:
                if name.endswith("Timeout"):
                    yield {state: TaskScript(silent=True)}
                yield {state: TaskScript(error=_WILDCARDS.get(name, name), times=times)}

    # -- missing data ------------------------------------------------------------------------------

    def _repairs(self, trial: _Trial) -> Iterator[_Trial]:
        """Yield trials with added data where a failed state found none."""
        for _ in range(_REPAIRS):
            before = trial
            if trial.result.status != ExecutionStatus.FAILED or not (
                trial.result.error or ""
            ).startswith("States"):
                return
            trace, _reached = self.reader.fold(trial.result.events)
            culprit = trace.culprit
            if culprit is None:
                return
            name = self.graph.by_id[culprit.node].name
            if name not in self._read_paths:
                self._read_paths[name] = list(_references(self.reader.states[name]))
            for where, members, value in self._read_paths[name]:
                if where == "result" and name in self.workers:
                    script = trial.plan.tasks.get(name, self._script(name))
                    if _value_at(script.result, members) is ABSENT:
                        trial = self._changed_at(trial, name, members, value)
                elif where == "input" and not _has_value(trial, name, members):
                    trial = self._with_value(trial, name, ("", *members), value) or trial
            if trial is before:
                return
            yield trial


# -- values ----------------------------------------------------------------------------------------


def _references(state: Mapping[str, Any]) -> Iterator[tuple[str, Place, Any]]:
    """Yield the paths that a state reads in its input or result, with a value to put there."""
    own = {key: value for key, value in state.items() if key not in ("Branches", "ItemProcessor")}
    compares_numbers = "Numeric" in f"{own}"
    for key, text in _texts(own, ""):
        number = any(word in f"{key} {text}" for word in _NUMBERS)
        value: Any = 1 if number else "example"
        if key.endswith("Variable") and compares_numbers:
            value = 1
        if key.startswith("ItemsPath"):
            value = [{}]
        if key.startswith("Timestamp"):
            value = "2030-01-01T00:00:00Z"
        where = "result" if key.startswith(("ResultSelector", "OutputPath")) else "input"
        if text.startswith("{%"):
            for match in _STATES_INPUT.finditer(text):
                yield match[1], tuple(match[2][1:].split(".")), value
        elif not key.startswith(("ResultPath", "Catch", "Retry")):
            for match in _PATH.finditer(text):
                place = read_place(match[0])
                if place is not None:
                    yield where, place[1:], value


def _texts(value: Any, key: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, part in value.items():
            yield from _texts(part, f"{key}/{name}" if key else name)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part, key)
    elif isinstance(value, str) and "$" in value:
        yield key, value


def _result_members(state: Mapping[str, Any], members: Place) -> Iterator[Place]:
    """Yield the places in a Task's result that may become a value of a later input."""
    prefix = (read_place(state.get("ResultPath") or "$") or ("",))[1:]
    rest = members[len(prefix) :] if members[: len(prefix)] == prefix else members
    for inside in dict.fromkeys((rest, rest[1:], rest[-1:])):
        yield inside
        yield ("Payload", *inside)


def _sees(trial: _Trial, state: str, members: Place, value: Any) -> bool:
    values = [_value_at(each, members) for each in trial.inputs.get(state, ())]
    return any(_equal(each, value) for each in values)


def _has_value(trial: _Trial, state: str, members: Place) -> bool:
    inputs = trial.inputs.get(state, ())
    return any(_value_at(each, members) is not ABSENT for each in inputs)


def _equal(first: Any, second: Any) -> bool:
    if ABSENT in (first, second) or first is ABSENT:
        return first is second
    return json.dumps(first) == json.dumps(second)


def _value_at(value: Any, members: Iterable[str | int]) -> Any:
    for member in members:
        try:
            value = value[member]
        except (KeyError, IndexError, TypeError):
            return ABSENT
    return value


def _put_value(value: Any, members: Place, part: Any) -> Any:
    """Return a value with a part set at a path, or removed if the part is ABSENT."""
    if not members:
        return {} if part is ABSENT else part
    member, rest = members[0], members[1:]
    if isinstance(member, int):
        items = list(value) if isinstance(value, list) else []
        items += [{}] * (member + 1 - len(items))
        items[member] = _put_value(items[member], rest, part)
        return items
    members_of = dict(value) if isinstance(value, dict) else {}
    if part is ABSENT and not rest:
        members_of.pop(member, None)
        return members_of
    return {**members_of, member: _put_value(members_of.get(member, {}), rest, part)}


def _leaves(value: Any, place: Place = ()) -> Iterator[Place]:
    """Yield the members of objects, the outer ones first."""
    pairs: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, list):
        pairs = enumerate(value)
    for key, part in pairs:
        if isinstance(key, str):
            yield (*place, key)
        yield from _leaves(part, (*place, key))
