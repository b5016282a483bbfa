"""Faults: errors and latency that a user injects into one execution, to test its error handling.

A ``FaultPlan`` has the faults and is part of the run, so it is stored in the snapshot and survives
a crash. Whether a fault strikes depends only on the seed of the plan and on how many attempts its
state has made. ``FAULT_TYPES`` lists the kinds of faults. ``read_faults`` parses a file or request;
``fault_strikes`` applies the plan.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from engine import jsontext
from engine.errors import TASK_FAILED, JsonTextError
from engine.language.model import IntegrationPattern, Map, Parallel, Task, TaskKind
from engine.runtime.breakpoints import own_states
from engine.runtime.commands import RunTask  # noqa: TC001 - msgspec reads annotations

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from engine.language.model import Block, Machine, Resource, State

MOST_FAULTS = 50
"""The maximum number of faults of an execution."""
_MOST_ATTEMPTS = 1_000
_LARGEST = 1_000_000
_LONGEST_ERROR, _LONGEST_CAUSE = 256, 4_096
_MOST_SECONDS = 86_400
_COMMON = ("state", "type", "attempts", "rate")
NO_GROUP = 0
"""``Frame.group`` of the line of control of an execution itself."""
_SEED_BITS = 48


class FaultError(ValueError):
    """A fault cannot be injected; the text says why."""


class FaultType(StrEnum):
    """The effect of a fault. The values are stored in snapshots and used in files and on pages."""

    FAIL = "fail"
    LATENCY = "latency"
    TIMEOUT = "timeout"
    LOSE_HEARTBEAT = "lose-heartbeat"
    THROTTLE = "throttle"
    FAIL_CHILDREN = "fail-children"
    DELAY_CALLBACK = "delay-callback"
    DUPLICATE_CALLBACK = "duplicate-callback"


class FaultTime(StrEnum):
    """Whether a Task fails before or after its call. Values are stored in snapshots and files."""

    BEFORE = "before"  # the call is not made
    AFTER = "after"  # the call is made, and the error replaces its outcome


@dataclass(frozen=True, slots=True)
class TypeRule:
    """The rule of a fault type: the state types it fits, and its optional fields.

    ``needed``: the required field, "" if there is none.
    """

    meaning: str
    states: tuple[type, ...]
    fields: tuple[str, ...]
    needed: str = ""


FAULT_TYPES: Mapping[FaultType, TypeRule] = {
    FaultType.FAIL: TypeRule(
        "the state fails with an error, before or after its call",
        (Task, Parallel, Map),
        ("error", "cause", "when"),
    ),
    FaultType.LATENCY: TypeRule(
        "the call is made so many seconds later", (Task,), ("seconds",), "seconds"
    ),
    FaultType.TIMEOUT: TypeRule(
        "the task times out with States.Timeout, and the call is not made", (Task,), ("seconds",)
    ),
    FaultType.LOSE_HEARTBEAT: TypeRule(
        "a Task with HeartbeatSeconds times out with States.HeartbeatTimeout, and the call is not"
        " made",
        (Task,),
        ("seconds",),
    ),
    FaultType.THROTTLE: TypeRule(
        "the service refuses the call because there are too many", (Task,), ("error", "cause")
    ),
    FaultType.FAIL_CHILDREN: TypeRule(
        "some iterations of a Map fail in their first state",
        (Map,),
        ("children", "error", "cause"),
        "children",
    ),
    FaultType.DELAY_CALLBACK: TypeRule(
        "the answer of a callback or an activity takes effect so many seconds later",
        (Task,),
        ("seconds",),
        "seconds",
    ),
    FaultType.DUPLICATE_CALLBACK: TypeRule(
        "the answer of a callback or an activity arrives twice, and takes effect once", (Task,), ()
    ),
}
"""All types of faults."""
CALLBACKS = frozenset({FaultType.DELAY_CALLBACK, FaultType.DUPLICATE_CALLBACK})
"""Types that strike the answer of a Task with a task token."""

_THROTTLED = {
    "lambda": "Lambda.TooManyRequestsException",
    "dynamodb": "DynamoDB.ProvisionedThroughputExceededException",
    "sns": "SNS.AmazonSNSException",
    "sqs": "SQS.RequestThrottledException",
    "aws-sdk:lambda": "Lambda.TooManyRequestsException",
    "aws-sdk:dynamodb": "DynamoDb.ProvisionedThroughputExceededException",
    "aws-sdk:sns": "Sns.ThrottledException",
    "aws-sdk:sqs": "Sqs.RequestThrottledException",
}
"""Service of a Task -> its throttling error."""


class Fault(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """A fault at a state.

    ``error``, ``cause``: of the failure; "" for the default of the type. ``seconds``: of latency,
    or until the timeout. ``children``: the number of failing iterations. ``attempts``: the attempts
    of the state that it strikes, from 1, retries included; empty: all. ``rate``: the share of these
    attempts that it strikes, drawn with the seed.
    """

    state: str
    type: FaultType = FaultType.FAIL
    error: str = ""
    cause: str = ""
    when: FaultTime = FaultTime.BEFORE
    seconds: int = 0
    children: int = 0
    attempts: tuple[int, ...] = ()
    rate: float = 1.0

    def strikes(self, draw: str, attempt: int) -> bool:
        """Return whether the fault strikes an attempt. ``draw``: the seed for its rate."""
        if self.attempts and attempt not in self.attempts:
            return False
        # Seeded by a text: the draw is the same in each process and each version of Python.
        return self.rate >= 1 or random.Random(draw).random() < self.rate  # noqa: S311

    def describe(self) -> str:
        """Return the fault in words, without its state: ``fails with E at attempt 1``."""
        words = {
            FaultType.FAIL: f"fails with {self.error or TASK_FAILED} {self.when} its call",
            FaultType.LATENCY: f"is called {self.seconds} s later",
            FaultType.TIMEOUT: "times out" + (f" after {self.seconds} s" if self.seconds else ""),
            FaultType.LOSE_HEARTBEAT: "loses its heartbeat"
            + (f" after {self.seconds} s" if self.seconds else ""),
            FaultType.THROTTLE: "is throttled" + (f" with {self.error}" if self.error else ""),
            FaultType.FAIL_CHILDREN: f"has {self.children} failing iterations",
            FaultType.DELAY_CALLBACK: f"gets its answer {self.seconds} s late",
            FaultType.DUPLICATE_CALLBACK: "gets its answer twice",
        }
        text = words[self.type]
        if self.attempts:
            numbers = ", ".join(str(attempt) for attempt in self.attempts)
            text += (
                f" at attempt {numbers}" if len(self.attempts) == 1 else f" at attempts {numbers}"
            )
        return text if self.rate >= 1 else f"{text}, at a rate of {self.rate:g}"


class DelayedCall(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """A call that a fault delays.

    ``fault``: its index in the plan; ``attempt``: of the state. ``ending``: the fault that then
    fails the Task without a call, -1 for none. ``times_out``: the delay exceeds the Task's
    TimeoutSeconds.
    """

    task: RunTask
    fault: int
    attempt: int
    ending: int = -1
    times_out: bool = False


class FailingChildren(Struct, frozen=True, gc=False, omit_defaults=True):
    """The iterations of an open Map that faults will fail."""

    group: int
    fault: int
    attempt: int
    indices: tuple[int, ...]


class FaultyAnswer(Struct, frozen=True, gc=False, omit_defaults=True):
    """A fault that strikes the answer of a Task, by the frame of the Task.

    For a delayed answer, ``since_ms``: when the clock of the Task's TimeoutSeconds began;
    ``timeout_seconds``, ``heartbeat_seconds``: its limits.
    """

    frame: int
    fault: int
    attempt: int
    since_ms: int = 0
    timeout_seconds: int | None = None
    heartbeat_seconds: int | None = None


class LateAnswer(Struct, frozen=True, gc=False, omit_defaults=True):
    """The answer of a task that a fault holds back; ``output`` is None for a failure.

    ``timed_out``: the error of the limit that passes before the answer takes effect, "" for none.
    """

    task: int
    output: str | None = None
    error: str | None = None
    cause: str | None = None
    timed_out: str = ""


class FaultPlan(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """The faults of an execution, and their effects in progress.

    ``attempts``: state -> number of its attempts. ``delayed``: frame -> its delayed call.
    ``late``: frame -> its delayed answer.
    """

    faults: tuple[Fault, ...] = ()
    seed: int = 0
    by: str = ""
    attempts: dict[str, int] = {}
    delayed: dict[int, DelayedCall] = {}
    answers: tuple[FaultyAnswer, ...] = ()
    children: tuple[FailingChildren, ...] = ()
    late: dict[int, LateAnswer] = {}

    def struck(self, state: str, inner: Collection[str] = ()) -> tuple[FaultPlan, int, list[int]]:
        """Count an attempt; return the plan, the attempt's number, and the striking faults.

        ``inner``: the states of its child executions; a fault of one counts the attempt, too.
        """
        if all(fault.state != state and fault.state not in inner for fault in self.faults):
            return self, 0, []
        attempt = self.attempts.get(state, 0) + 1
        struck = [
            index
            for index, fault in enumerate(self.faults)
            if fault.state == state and fault.strikes(self.draw(index, attempt), attempt)
        ]
        return replace(self, attempts={**self.attempts, state: attempt}), attempt, struck

    def draw(self, fault: int, attempt: int) -> str:
        """Return the seed for a fault's random draws at an attempt."""
        return f"{self.seed}/{fault}/{attempt}"

    def forget(self, frame: int) -> FaultPlan:
        """Return the plan without the effects in progress of a frame."""
        answers = tuple(answer for answer in self.answers if answer.frame != frame)
        if frame not in self.delayed | self.late and len(answers) == len(self.answers):
            return self
        delayed = {number: call for number, call in self.delayed.items() if number != frame}
        late = {number: answer for number, answer in self.late.items() if number != frame}
        return replace(self, answers=answers, delayed=delayed, late=late)

    @property
    def withheld_tasks(self) -> set[int]:
        """Return the tasks whose call or answer is held back."""
        calls = {call.task.task for call in self.delayed.values()}
        return calls | {answer.task for answer in self.late.values()}

    def forget_group(self, group: int) -> FaultPlan:
        """Return the plan without the failing iterations of a group."""
        children = tuple(chosen for chosen in self.children if chosen.group != group)
        same = len(children) == len(self.children)
        return self if same else replace(self, children=children)


class FailingChild(Struct, frozen=True, gc=False):
    """A fault that fails some child executions of a Map Run. ``draw``: the seed that chooses."""

    fault: Fault
    draw: str


class ChildFaults(Struct, frozen=True, gc=False, omit_defaults=True):
    """The faults for the child executions of a Map Run, each of which gets a plan of its own.

    ``draw``: the seed from which the seed of each child is drawn. ``attempt``: of the Map.
    ``faults``: at the states of the children. ``failing``: faults that fail whole children.
    """

    draw: str
    attempt: int
    by: str = ""
    faults: tuple[Fault, ...] = ()
    failing: tuple[FailingChild, ...] = ()

    def plan_of(self, index: int, total: int) -> FaultPlan | None:
        """Return the faults of a child, None for a child without any. ``total``: of children.

        It depends on nothing else, so that a child that is started again gets the same.
        """
        failing = [
            entry.fault
            for entry in self.failing
            if index in chosen_children(entry.draw, entry.fault.children, total)
        ]
        faults = (*self.faults, *failing)
        if not faults:
            return None
        # A fault strikes the line of control of the child itself as if it were an iteration.
        chosen = tuple(
            FailingChildren(NO_GROUP, number, self.attempt, (0,))
            for number in range(len(self.faults), len(faults))
        )
        seed = random.Random(f"{self.draw}/{index}").getrandbits(_SEED_BITS)  # noqa: S311
        return FaultPlan(faults, seed, self.by, children=chosen)


_load_child_faults = msgspec.json.Decoder(ChildFaults).decode


def load_child_faults(text: str) -> ChildFaults:
    """Return the faults for the children of a Map Run, of its task's ``faults`` as JSON text."""
    return _load_child_faults(text)


@lru_cache(maxsize=8)
def chosen_children(draw: str, count: int, total: int) -> frozenset[int]:
    """Return the children or iterations that a fault fails: so many of all, drawn by a seed."""
    drawn = random.Random(draw).sample(range(total), min(count, total))  # noqa: S311
    return frozenset(drawn)


def throttle_error(resource: Resource) -> str:
    """Return the throttling error of a Task's service, "" if unknown."""
    service = "lambda" if resource.kind is TaskKind.LAMBDA else resource.service
    return _THROTTLED.get(service, "")


def has_callback(resource: Resource) -> bool:
    """Return whether somebody answers a Task with its task token."""
    by_token = resource.pattern is IntegrationPattern.WAIT_FOR_TASK_TOKEN
    return by_token or resource.kind is TaskKind.ACTIVITY


# -- reading ---------------------------------------------------------------------------------------


def faulty_states(machine: Machine) -> Iterator[tuple[str, State]]:
    """Yield name and state of each state of a machine, also of child executions."""
    yield from states_in([machine.block])


def states_in(blocks: Iterable[Block]) -> Iterator[tuple[str, State]]:
    """Yield name and state of each state in blocks, at any depth."""
    rest = [*blocks]
    while rest:
        for name, state in rest.pop().states.items():
            yield name, state
            rest.extend(
                (state.processor,) if isinstance(state, Map) else getattr(state, "branches", ())
            )


def read_faults(
    document: Any, machine: Machine, *, seed: int = 0, place: str = "", in_children: bool = True
) -> FaultPlan:
    """Parse the faults of a document; raise ``FaultError`` for an invalid one.

    ``document``: an array of faults, or an object with ``faults`` and an optional ``seed``, parsed
    from YAML or JSON. ``seed``: used if the document has none. ``place``: the file, for error
    messages. ``in_children``: the caller runs the child executions of distributed Maps.
    """
    where = f"{place}: " if place else ""
    if isinstance(document, dict):
        for name in document:
            if name not in ("faults", "seed"):
                raise FaultError(f"{where}got {_shorten_value(name)}, wanted faults and seed")
        seed = document.get("seed", seed)
        if not _is_whole(seed):
            raise FaultError(f"{where}seed: got {_shorten_value(seed)}, wanted an integer")
        document = document.get("faults")
    if not isinstance(document, list | tuple):
        raise FaultError(f"{where}faults: got {_shorten_value(document)}, wanted an array")
    if len(document) > MOST_FAULTS:
        raise FaultError(f"{where}faults: got {len(document)}, wanted at most {MOST_FAULTS}")
    states = dict(faulty_states(machine) if in_children else own_states(machine))
    faults = tuple(
        _check_fault(
            entry if isinstance(entry, Fault) else _read_entry(entry, f"{where}faults[{index}]"),
            states,
            f"{where}faults[{index}]",
        )
        for index, entry in enumerate(document)
    )
    if not in_children:
        _check_without_children(faults, states, where)
    return FaultPlan(faults, seed)


def _check_without_children(
    faults: Iterable[Fault], states: Mapping[str, State], where: str
) -> None:
    for index, fault in enumerate(faults):
        state = states[fault.state]
        is_distributed = isinstance(state, Map) and state.distributed is not None
        if fault.type is FaultType.FAIL_CHILDREN and is_distributed:
            problem = f"got {fault.state}, a distributed Map, wanted an inline Map"
            raise FaultError(f"{where}faults[{index}].state: {problem}")


def faults_text(plan: FaultPlan) -> str:
    """Return a plan's faults and seed as JSON text for ``read_faults``."""
    return jsontext.dumps({"seed": plan.seed, "faults": [fault_entry(f) for f in plan.faults]})


def fault_entry(fault: Fault) -> dict[str, Any]:
    """Return a fault as an entry of a file, without default values."""
    entry: dict[str, Any] = {"state": fault.state, "type": str(fault.type)}
    for name in ("error", "cause", "seconds", "children"):
        if getattr(fault, name):
            entry[name] = getattr(fault, name)
    if fault.when is not FaultTime.BEFORE:
        entry["when"] = str(fault.when)
    if fault.attempts:
        entry["attempts"] = list(fault.attempts)
    if fault.rate < 1:
        entry["rate"] = fault.rate
    return entry


def _read_entry(entry: Any, where: str) -> Fault:
    if not isinstance(entry, dict):
        raise FaultError(f"{where}: got {_shorten_value(entry)}, wanted an object")
    name = entry.get("type", "fail")
    if name not in tuple(FaultType):
        raise FaultError(f"{where}.type: got {_shorten_value(name)}, wanted {', '.join(FaultType)}")
    kind = FaultType(name)
    rule = FAULT_TYPES[kind]
    allowed = (*_COMMON, *rule.fields)
    for field in entry:
        if field not in allowed:
            problem = (
                f"got {_shorten_value(field)}, wanted {', '.join(allowed)} for the type {kind}"
            )
            raise FaultError(f"{where}: {problem}")
    for field in ("state", "error", "cause"):
        if not isinstance(entry.get(field, "" if field != "state" else None), str):
            raise FaultError(
                f"{where}.{field}: got {_shorten_value(entry.get(field))}, wanted a text"
            )
    if entry.get("when", "before") not in tuple(FaultTime):
        raise FaultError(
            f"{where}.when: got {_shorten_value(entry['when'])}, wanted before or after"
        )
    fields = {name: entry[name] for name in allowed if name in entry}
    fields["type"], fields["when"] = kind, FaultTime(entry.get("when", "before"))
    attempts = entry.get("attempts", [])
    if not isinstance(attempts, list | tuple):
        raise FaultError(
            f"{where}.attempts: got {_shorten_value(attempts)}, wanted an array of integers"
        )
    if not attempts and "attempts" in entry:  # "at no attempt" would strike at each
        raise FaultError(f"{where}.attempts: got none, wanted at least one number")
    return Fault(**{**fields, "attempts": tuple(attempts)})


def _check_fault(fault: Fault, states: Mapping[str, State], where: str) -> Fault:
    """Return the fault; raise ``FaultError`` if it can never strike."""
    state = states.get(fault.state)
    if state is None:
        own = ", ".join(sorted(states))
        problem = (
            f"got the state {_shorten_value(fault.state)}, wanted one of the state machine's own"
        )
        raise FaultError(f"{where}.state: {problem}: {own}")
    _check_state(fault, state, where)
    _check_numbers(fault, where)
    _check_texts(fault, where)
    return fault


def _check_texts(fault: Fault, where: str) -> None:
    for field, longest in (("error", _LONGEST_ERROR), ("cause", _LONGEST_CAUSE)):
        length = len(getattr(fault, field))
        if length > longest:
            problem = f"got {length:,} characters, wanted at most {longest:,}"
            raise FaultError(f"{where}.{field}: {problem}")


def _check_state(fault: Fault, state: State, where: str) -> None:
    rule = FAULT_TYPES[fault.type]
    kind = type(state).__name__
    if not isinstance(state, rule.states):
        kinds = " or ".join(each.__name__ for each in rule.states)
        problem = f"got {fault.state}, a {kind}, wanted a {kinds} for the type {fault.type}"
        raise FaultError(f"{where}.state: {problem}")
    if fault.when is FaultTime.AFTER and not isinstance(state, Task):
        raise FaultError(f"{where}.when: got after, wanted before: a {kind} makes no call")
    is_unknown = isinstance(state, Task) and not throttle_error(state.resource)
    if fault.type is FaultType.THROTTLE and not fault.error and is_unknown:
        problem = f"got none, wanted a name: none is known for throttling by {fault.state}"
        raise FaultError(f"{where}.error: {problem}")
    is_silent = isinstance(state, Task) and state.heartbeat_seconds is None
    if fault.type is FaultType.LOSE_HEARTBEAT and is_silent:
        raise FaultError(f"{where}.state: got {fault.state}, wanted a Task with HeartbeatSeconds")
    if fault.type in CALLBACKS and isinstance(state, Task) and not has_callback(state.resource):
        problem = f"got {fault.state}, wanted a Task with .waitForTaskToken or an activity"
        raise FaultError(f"{where}.state: {problem} for the type {fault.type}")


def _check_numbers(fault: Fault, where: str) -> None:
    rule = FAULT_TYPES[fault.type]
    for field, most in (("seconds", _MOST_SECONDS), ("children", _LARGEST)):
        least = 1 if rule.needed == field else 0
        _check_whole(getattr(fault, field), least, most, f"{where}.{field}")
    if len(fault.attempts) > _MOST_ATTEMPTS:
        problem = f"got {len(fault.attempts)} numbers, wanted at most {_MOST_ATTEMPTS}"
        raise FaultError(f"{where}.attempts: {problem}")
    for index, attempt in enumerate(fault.attempts):
        _check_whole(attempt, 1, _LARGEST, f"{where}.attempts[{index}]")
    rate = fault.rate
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate <= 1:
        raise FaultError(
            f"{where}.rate: got {_shorten_value(rate)}, wanted a number above 0, at most 1"
        )


def _check_whole(value: Any, least: int, most: int, where: str) -> None:
    if not _is_whole(value) or not least <= value <= most:
        raise FaultError(
            f"{where}: got {_shorten_value(value)}, wanted an integer, {least} to {most:,}"
        )


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _shorten_value(value: Any) -> str:
    """Return a value of a file, shortened for an error message."""
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 80 else f"{text[:80]}…"  # noqa: PLR2004


def describe_faults(faults: Iterable[Fault]) -> Sequence[str]:
    """Return a sentence for each fault, without the full stop."""
    return [f"{fault.state} {fault.describe()}" for fault in faults]


def describe_stored(document: Mapping[str, Any]) -> Sequence[str]:
    """Return a sentence for each fault in a text written by ``faults_text``."""
    return describe_faults(_read_entry(entry, "faults") for entry in document["faults"])


def read_recorded_faults(document: Any) -> FaultPlan:
    """Return the plan in an export; raise ``FaultError`` for another document.

    The state machine is not asked: its definition may have changed, or be a version of the future.
    """
    if not isinstance(document, dict) or not isinstance(document.get("faults"), list):
        raise FaultError("faults: wanted an object with faults and seed")
    if not _is_whole(document.get("seed")) or len(document["faults"]) > MOST_FAULTS:
        raise FaultError(f"faults: wanted an integer seed and at most {MOST_FAULTS} faults")
    faults = [_read_entry(entry, f"faults[{n}]") for n, entry in enumerate(document["faults"])]
    for number, fault in enumerate(faults):
        _check_texts(fault, f"faults[{number}]")
        _check_numbers(fault, f"faults[{number}]")
    return FaultPlan(tuple(faults), document["seed"])


def describe_strike(state: str, text: str) -> tuple[int, str]:
    """Return the attempt and a sentence of the note of a strike; raise ``FaultError`` for others.

    ``text``: ``NoteEdit.after``.
    """
    try:
        entry = jsontext.loads(text)
    except JsonTextError:
        entry = None
    if not isinstance(entry, dict) or not _is_whole(entry.get("attempt")):
        raise FaultError(f"the fault at {_shorten_value(state)}: wanted an object with attempt")
    fault = {name: value for name, value in entry.items() if name != "attempt"}
    plan = read_recorded_faults({"seed": 0, "faults": [{**fault, "state": state}]})
    struck = plan.faults[0]
    if struck.type is FaultType.FAIL_CHILDREN:  # the note names the first state of the iteration
        text = f"{state} fails with its iteration, one of {struck.children}"
        return entry["attempt"], text
    return entry["attempt"], describe_faults(plan.faults)[0]
