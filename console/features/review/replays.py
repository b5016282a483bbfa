"""Replay a server's executions with both definitions of a review, and compare the results.

No payload is kept: a review is published, and payloads may contain secrets.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import engine
from console.features.deploy.lint_sources import with_resources
from console.features.metrics.cost import PriceRate, built_in_rates
from console.features.review.comparison import field_changes
from console.features.review.sides import document_of
from console.features.versions.definition_diff import states_of
from engine import event_types

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from decimal import Decimal

    from console.cli.connection import Connection
    from console.features.deploy.sources import MachineSource
    from console.features.review.comparison import MachineReview

_OUTCOMES = engine.event_names(
    event_types.WORK_FAMILIES | {engine.Family.MAP_RUN}, *event_types.OUTCOME_STAGES
)
_ENDS = ("SUCCEEDED", "FAILED")
_MOST_STEPS = 20_000
_MOST_PLACES = 5
_THOUSAND = 1000


@dataclass(frozen=True, slots=True)
class ReplayedMachine:
    """The replays of a state machine. ``number``: of executions with comparable replays.

    ``differing``: (execution, text about the differences); ``unfit``: executions that the former
    definition does not reproduce; ``transitions``: before and after, of all compared executions
    that end with both definitions, whose number is ``ended``.
    """

    number: int
    differing: Sequence[tuple[str, Sequence[str]]]
    unfit: int
    transitions: tuple[int, int]
    ended: int

    def costs(self, rate: PriceRate) -> tuple[Decimal, Decimal] | None:
        """Return dollars per 1,000 executions, before and after; None without a replay."""
        if not self.ended:
            return None
        before, after = (
            rate.dollars * count * _THOUSAND / self.ended for count in self.transitions
        )
        return before, after


class _UnrecordedCall(BaseException):
    """A call without a recorded answer. Not an ``Exception``: those errors belong to the Task."""


@dataclass(frozen=True, slots=True)
class _Recording:
    """A finished execution. ``answers``: state -> the outcomes of its calls, in order."""

    name: str
    status: str
    input: Any
    error: str | None
    answers: Mapping[str, Sequence[Mapping[str, Any]]]


def transition_rate() -> PriceRate:
    """Return the published price of a state transition."""
    return built_in_rates()["standard_transition"]


def replay_machine(
    review: MachineReview, connection: Connection, number: int
) -> ReplayedMachine | None:
    """Replay the latest executions of a changed state machine; None if the server lacks it.

    ``number``: of executions. Raise boto3's errors if the server does not answer.
    """
    if review.before is None or review.after is None:
        return None
    arn = connection.account.arn("states", f"stateMachine:{review.before.name}")
    states = connection.states
    try:
        listed = states.list_executions(stateMachineArn=arn, maxResults=number)["executions"]
    except (
        states.exceptions.StateMachineDoesNotExist,
        states.exceptions.StateMachineTypeNotSupported,  # AWS lists no Express executions
    ):
        return None
    recordings = [
        _read_recording(states, row)
        for row in listed
        if row["status"] in _ENDS and not row.get("redriveCount")
    ]
    return compare_recordings(review.before, review.after, recordings)


def _read_recording(states: Any, row: Mapping[str, Any]) -> _Recording:
    described = states.describe_execution(executionArn=row["executionArn"])
    pages = states.get_paginator("get_execution_history").paginate(executionArn=row["executionArn"])
    answers: dict[str, list[Mapping[str, Any]]] = {}
    state_of: dict[int, str] = {}
    maps: set[str] = set()
    for event in (event for page in pages for event in page["events"]):
        state = state_of.get(event.get("previousEventId", 0), "")
        kind = event["type"]
        if kind in event_types.STATE_ENTRIES:
            state = event["stateEnteredEventDetails"]["name"]
        state_of[event["id"]] = state
        if kind == "MapRunStarted":
            maps.add(state)
        elif kind == "MapStateExited" and state in maps:
            answers.setdefault(state, []).append(event["stateExitedEventDetails"])
        elif kind in _OUTCOMES and kind != "MapRunSucceeded":
            stage = engine.EVENT_TYPES[kind].stage
            details = event.get(engine.DETAILS[kind], {})
            if stage is engine.Stage.TIMED_OUT:
                details = {"error": "States.Timeout", **details}
            failed = stage is not engine.Stage.SUCCEEDED
            answers.setdefault(state, []).append({**details, "failed": failed})
    return _Recording(
        row["name"],
        row["status"],
        engine.loads(described.get("input", "{}")),
        described.get("error"),
        answers,
    )


def compare_recordings(
    before: MachineSource, after: MachineSource, recordings: Sequence[_Recording]
) -> ReplayedMachine:
    """Run each recording with both definitions; compare path, status, error and output."""
    differing: list[tuple[str, Sequence[str]]] = []
    totals: Counter[str] = Counter()
    for recording in recordings:
        former = _run_again(before, recording)
        if (
            isinstance(former, str)
            or former.status != recording.status
            or former.error != recording.error
        ):
            totals["unfit"] += 1
            continue
        totals["number"] += 1
        latter = _run_again(after, recording)
        if isinstance(latter, str):
            differing.append((recording.name, [latter]))
            continue
        again = _run_again(before, recording, seed=1)
        volatile = (
            set()
            if isinstance(again, str)
            else {change.path for change in field_changes(former.output, again.output)}
        )
        words = [*_differences(former, latter, volatile)]
        if words:
            differing.append((recording.name, words))
        totals["ended"] += 1
        totals["before"] += _transitions(before, former)
        totals["after"] += _transitions(after, latter)
    return ReplayedMachine(
        totals["number"],
        differing,
        totals["unfit"],
        (totals["before"], totals["after"]),
        totals["ended"],
    )


def _run_again(source: MachineSource, recording: _Recording, seed: int = 0) -> engine.Result | str:
    """Return the result of a recording with a definition, or a text why there is none."""
    answers = {name: iter(outcomes) for name, outcomes in recording.answers.items()}

    def answer(state: str) -> Any:
        outcome = next(answers.get(state, iter(())), None)
        if outcome is None:
            raise _UnrecordedCall(state)
        if outcome.get("failed"):
            raise engine.StatesError(outcome.get("error"), outcome.get("cause"))
        return engine.loads(outcome.get("output", "null"))

    names = states_of(document_of(source) or {})
    tasks = {name: lambda _input, name=name: answer(name) for name in names}
    try:
        text = with_resources(source.definition)
        return engine.run(text, recording.input, tasks, seed=seed, max_steps=_MOST_STEPS)
    except _UnrecordedCall as error:
        return f"calls {error}, which the recording has no answer for"
    except engine.DefinitionError:
        return "cannot run: the definition has errors"
    except (engine.EngineError, KeyError):
        return "does not end"


def _differences(before: engine.Result, after: engine.Result, volatile: set[str]) -> Iterator[str]:
    """Yield a text for each difference, without values of the execution."""
    if before.path != after.path:
        pairs = enumerate(zip_longest(before.path, after.path, fillvalue="the end"))
        place, (old, new) = next((n, pair) for n, pair in pairs if pair[0] != pair[1])
        where = f"after {before.path[place - 1]}, " if place else ""
        yield f"{where}goes to {new} instead of {old}"
    if before.status != after.status:
        yield f"ends as {after.status} instead of {before.status}"
    if before.error != after.error:
        yield f"has the error {after.error or 'none'} instead of {before.error or 'none'}"
    places = [
        f"${'' if not change.path or change.path.startswith('[') else '.'}{change.path}"
        for change in field_changes(before.output, after.output)
        if change.path not in volatile
    ]
    if places and before.status == after.status:
        more = f" and {len(places) - _MOST_PLACES:,} more" if len(places) > _MOST_PLACES else ""
        yield f"has another output at {', '.join(places[:_MOST_PLACES])}{more}"


def _transitions(source: MachineSource, result: engine.Result) -> int:
    """Return the billed state transitions of an execution."""
    trace = engine.Trace(engine.build_graph(engine.parse(with_resources(source.definition))))
    trace.feed(result.events)
    return trace.transitions + 1
