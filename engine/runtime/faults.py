"""Faults that are injected into one execution.

A ``FaultPlan`` is a part of the run, as a ``DebugPlan`` is: it is stored with the snapshot, so that
a process that dies changes nothing. Whether a fault strikes depends on the seed of the plan and on
how often its state has begun its work, and on nothing else. ``FAULT_TYPES`` says what there is.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from engine import jsontext
from engine.errors import TASK_FAILED
from engine.language.model import Map, Parallel, Task, TaskKind
from engine.runtime.breakpoints import own_states
from engine.runtime.commands import RunTask  # noqa: TC001 - msgspec reads annotations

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from engine.language.model import Machine, Resource, State

MOST_FAULTS = 50
"""So many faults an execution may have at most."""
_MOST_ATTEMPTS = 1_000
_LARGEST = 1_000_000
_LONGEST_ERROR, _LONGEST_CAUSE = 256, 4_096
_MOST_SECONDS = 86_400
_COMMON = ("state", "type", "attempts", "rate")


class FaultError(ValueError):
    """A fault cannot be injected; the text says why."""


class FaultType(StrEnum):
    """What a fault does. The values stand in snapshots, in files and on pages."""

    FAIL = "fail"
    LATENCY = "latency"
    TIMEOUT = "timeout"
    THROTTLE = "throttle"
    FAIL_CHILDREN = "fail-children"


class FaultTime(StrEnum):
    """When a Task fails. The values stand in snapshots and in files."""

    BEFORE = "before"  # the call is not made
    AFTER = "after"  # the call is made, and the error replaces its outcome


@dataclass(frozen=True, slots=True)
class TypeRule:
    """The rule of a fault type: its states, and the fields that a fault may have besides.

    ``needed``: the field that must be given, "" if there is none.
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
    FaultType.THROTTLE: TypeRule(
        "the service refuses the call because there are too many", (Task,), ("error", "cause")
    ),
    FaultType.FAIL_CHILDREN: TypeRule(
        "some iterations of an inline Map fail in their first state",
        (Map,),
        ("children", "error", "cause"),
        "children",
    ),
}
"""All types of faults."""

NOT_OFFERED = {
    "lose-heartbeat": "a lost heartbeat",
    "duplicate-callback": "a duplicate callback",
    "delay-callback": "a delayed callback",
}
"""Types that are refused by name: a timeout, or a failure after the call, comes near to them."""

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
"""Service of a Task -> the error with which it refuses a call that is one too many."""


class Fault(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """A fault at a state.

    ``error``, ``cause``: with which it fails; "" for the default of the type. ``seconds``: of
    latency, or until a timeout. ``children``: how many iterations fail. ``attempts``: those of the
    state at which it strikes, from 1, retries counted; none: each. ``rate``: at which share of
    them, drawn by the seed.
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
        """Tell whether it strikes at an attempt; ``draw``: seeds the draw of its rate."""
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
            FaultType.THROTTLE: "is throttled" + (f" with {self.error}" if self.error else ""),
            FaultType.FAIL_CHILDREN: f"has {self.children} failing iterations",
        }
        text = words[self.type]
        if self.attempts:
            numbers = ", ".join(str(attempt) for attempt in self.attempts)
            text += (
                f" at attempt {numbers}" if len(self.attempts) == 1 else f" at attempts {numbers}"
            )
        return text if self.rate >= 1 else f"{text}, at a rate of {self.rate:g}"


class DelayedCall(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """A call that a fault holds back.

    ``fault``: its number in the plan; ``attempt``: of the state. ``ending``: the fault that ends it
    in place of the call, -1 for none. ``times_out``: the latency reaches the TimeoutSeconds of the
    Task.
    """

    task: RunTask
    fault: int
    attempt: int
    ending: int = -1
    times_out: bool = False


class FailingChildren(Struct, frozen=True, gc=False, omit_defaults=True):
    """The iterations of an open Map that will fail."""

    group: int
    fault: int
    attempt: int
    indices: tuple[int, ...]


class FaultyAnswer(Struct, frozen=True, gc=False):
    """The frame of a Task whose outcome an error replaces."""

    frame: int
    fault: int
    attempt: int


class FaultPlan(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """The faults of an execution, and what is under way of them.

    ``attempts``: how often each of their states has begun its work. ``delayed``: by frame.
    """

    faults: tuple[Fault, ...] = ()
    seed: int = 0
    by: str = ""
    attempts: dict[str, int] = {}
    delayed: dict[int, DelayedCall] = {}
    answers: tuple[FaultyAnswer, ...] = ()
    children: tuple[FailingChildren, ...] = ()

    def struck(self, state: str) -> tuple[FaultPlan, int, list[int]]:
        """Count an attempt; return the plan, its number, and the numbers of faults that strike."""
        if all(fault.state != state for fault in self.faults):
            return self, 0, []
        attempt = self.attempts.get(state, 0) + 1
        struck = [
            index
            for index, fault in enumerate(self.faults)
            if fault.state == state and fault.strikes(self.draw(index, attempt), attempt)
        ]
        return replace(self, attempts={**self.attempts, state: attempt}), attempt, struck

    def draw(self, fault: int, attempt: int) -> str:
        """Return what seeds the draws of a fault at an attempt."""
        return f"{self.seed}/{fault}/{attempt}"

    def forget(self, frame: int) -> FaultPlan:
        """Return the plan without what is under way in a frame."""
        answers = tuple(answer for answer in self.answers if answer.frame != frame)
        if frame not in self.delayed and len(answers) == len(self.answers):
            return self
        delayed = {number: call for number, call in self.delayed.items() if number != frame}
        return replace(self, answers=answers, delayed=delayed)

    def forget_group(self, group: int) -> FaultPlan:
        """Return the plan without the iterations of a group that should fail."""
        children = tuple(chosen for chosen in self.children if chosen.group != group)
        same = len(children) == len(self.children)
        return self if same else replace(self, children=children)


def throttle_error(resource: Resource) -> str:
    """Return the error of a service that is called too often, "" if none is known."""
    service = "lambda" if resource.kind is TaskKind.LAMBDA else resource.service
    return _THROTTLED.get(service, "")


# -- reading ---------------------------------------------------------------------------------------


def read_faults(document: Any, machine: Machine, *, seed: int = 0, place: str = "") -> FaultPlan:
    """Return the plan of a document; raise ``FaultError`` for one that is none.

    ``document``: an array of faults, or an object with ``faults`` and perhaps a ``seed``, as a file
    in YAML or JSON has it. ``seed``: if it has none. ``place``: the file, for errors.
    """
    where = f"{place}: " if place else ""
    if isinstance(document, dict):
        for name in document:
            if name not in ("faults", "seed"):
                raise FaultError(f"{where}got {_shown(name)}, wanted faults and seed")
        seed = document.get("seed", seed)
        if not _is_whole(seed):
            raise FaultError(f"{where}seed: got {_shown(seed)}, wanted an integer")
        document = document.get("faults")
    if not isinstance(document, list | tuple):
        raise FaultError(f"{where}faults: got {_shown(document)}, wanted an array")
    if len(document) > MOST_FAULTS:
        raise FaultError(f"{where}faults: got {len(document)}, wanted at most {MOST_FAULTS}")
    states = dict(own_states(machine))
    faults = tuple(
        _checked(
            entry if isinstance(entry, Fault) else _read_entry(entry, f"{where}faults[{index}]"),
            states,
            f"{where}faults[{index}]",
        )
        for index, entry in enumerate(document)
    )
    return FaultPlan(faults, seed)


def faults_text(plan: FaultPlan) -> str:
    """Return the JSON text of a plan's faults and seed, which ``read_faults`` reads."""
    return jsontext.dumps({"seed": plan.seed, "faults": [fault_entry(f) for f in plan.faults]})


def fault_entry(fault: Fault) -> dict[str, Any]:
    """Return a fault as a file has it: the fields of its type that are no defaults."""
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
        raise FaultError(f"{where}: got {_shown(entry)}, wanted an object")
    name = entry.get("type", "fail")
    if name in NOT_OFFERED:
        problem = f"got {name}, but {NOT_OFFERED[name]} cannot be injected yet"
        raise FaultError(f"{where}.type: {problem}; wanted {', '.join(FaultType)}")
    if name not in tuple(FaultType):
        raise FaultError(f"{where}.type: got {_shown(name)}, wanted {', '.join(FaultType)}")
    kind = FaultType(name)
    rule = FAULT_TYPES[kind]
    allowed = (*_COMMON, *rule.fields)
    for field in entry:
        if field not in allowed:
            problem = f"got {_shown(field)}, wanted {', '.join(allowed)} for the type {kind}"
            raise FaultError(f"{where}: {problem}")
    for field in ("state", "error", "cause"):
        if not isinstance(entry.get(field, "" if field != "state" else None), str):
            raise FaultError(f"{where}.{field}: got {_shown(entry.get(field))}, wanted a text")
    if entry.get("when", "before") not in tuple(FaultTime):
        raise FaultError(f"{where}.when: got {_shown(entry['when'])}, wanted before or after")
    fields = {name: entry[name] for name in allowed if name in entry}
    fields["type"], fields["when"] = kind, FaultTime(entry.get("when", "before"))
    attempts = entry.get("attempts", [])
    if not isinstance(attempts, list | tuple):
        raise FaultError(f"{where}.attempts: got {_shown(attempts)}, wanted an array of integers")
    return Fault(**{**fields, "attempts": tuple(attempts)})


def _checked(fault: Fault, states: Mapping[str, State], where: str) -> Fault:
    """Return the fault; raise ``FaultError`` if it can never strike so."""
    state = states.get(fault.state)
    if state is None:
        own = ", ".join(sorted(states))
        problem = f"got the state {_shown(fault.state)}, wanted one of the state machine's own"
        raise FaultError(f"{where}.state: {problem}: {own}")
    _check_state(fault, state, where)
    _check_numbers(fault, where)
    for field, longest in (("error", _LONGEST_ERROR), ("cause", _LONGEST_CAUSE)):
        length = len(getattr(fault, field))
        if length > longest:
            problem = f"got {length:,} characters, wanted at most {longest:,}"
            raise FaultError(f"{where}.{field}: {problem}")
    return fault


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
    if fault.type is FaultType.FAIL_CHILDREN and isinstance(state, Map) and state.distributed:
        problem = f"got {fault.state}, a distributed Map, wanted an inline Map"
        raise FaultError(f"{where}.state: {problem}")


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
        raise FaultError(f"{where}.rate: got {_shown(rate)}, wanted a number above 0, at most 1")


def _check_whole(value: Any, least: int, most: int, where: str) -> None:
    if not _is_whole(value) or not least <= value <= most:
        raise FaultError(f"{where}: got {_shown(value)}, wanted an integer, {least} to {most:,}")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _shown(value: Any) -> str:
    """Return a value of a file for an error, cut."""
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 80 else f"{text[:80]}…"  # noqa: PLR2004


def describe_faults(faults: Iterable[Fault]) -> Sequence[str]:
    """Return a sentence for each fault, without its last dot."""
    return [f"{fault.state} {fault.describe()}" for fault in faults]


def describe_stored(document: Mapping[str, Any]) -> Sequence[str]:
    """Return a sentence for each fault of a text that ``faults_text`` made."""
    return describe_faults(_read_entry(entry, "faults") for entry in document["faults"])
