"""The resilience report reaches each Retrier and Catcher, and names weaknesses only."""

from __future__ import annotations

import json
import os
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import engine
from console.features.resilience.trials import Report, TrialOutcome, examine, read_rehearsal
from tests.features.resilience.machines import (
    DISTRIBUTED,
    FUNCTION,
    NESTED,
    THROTTLED,
    WEAK,
    WELL_MADE,
    machine,
)

if TYPE_CHECKING:
    from console.features.resilience.trials import ResilienceTrial

FOLDER = Path(os.environ.get("STATEYARD_SHARED", "")) / "definitions"


def report(definition: Any, **options: Any) -> Report:
    """Return the report of a definition."""
    return examine(json.dumps(definition), name="m", **options)


def only_trial(
    definition: Any, tested: str, *, lasting: bool = True, **options: Any
) -> ResilienceTrial:
    """Return the one trial of a place."""
    trials = [
        each
        for each in report(definition, **options).trials
        if (each.tested, each.lasting) == (tested, lasting)
    ]
    assert len(trials) == 1
    return trials[0]


def published() -> dict[str, str]:
    """Return published definitions with a Retry or Catch, by number; {} where there are none."""
    texts: dict[str, str] = {}
    for path in sorted(FOLDER.glob("*.json")) if os.environ.get("STATEYARD_SHARED") else ():
        entries = json.loads(path.read_text()) if path.name != "INDEX.json" else []
        for entry in entries:
            text = entry.get("text") or json.dumps(entry["definition"])
            if '"Retry"' not in text and '"Catch"' not in text:
                continue
            try:
                engine.parse(text)
            except engine.DefinitionError:
                continue
            texts[f"{path.stem}/{entry['id']}"] = text
    return texts


@pytest.mark.parametrize("name", WEAK)
def test_a_weakness_is_named(name: str) -> None:
    """It is the only one of its machine."""
    code, definition = WEAK[name]
    weaknesses = report(definition).weaknesses
    assert [weakness.code for weakness in weaknesses] == [code]
    assert all(weakness.text and weakness.remedy for weakness in weaknesses)


@pytest.mark.parametrize("name", WELL_MADE)
def test_a_well_made_machine_has_no_weakness(name: str) -> None:
    """A report that cries wolf is read once."""
    assert report(WELL_MADE[name]).weaknesses == ()


def assert_all_reached(text: str) -> int:
    """Check that each Retrier and Catcher took an error or is named; return how many there are."""
    examined = examine(text)
    tried = {(each.state, each.tested) for each in examined.trials if each.reached}
    named = {(each.state, each.tested) for each in examined.weaknesses if "unreach" in each.code}
    assert all(each.reached for each in examined.trials)
    places = {place for place in tried | named if place[1].startswith(("Retry[", "Catch["))}
    assert len(places) == examined.retriers + examined.catchers
    assert not tried & named
    return len(tried)


@pytest.mark.parametrize("name", [*WELL_MADE, *WEAK])
def test_each_retrier_and_catcher_is_reached(name: str) -> None:
    """Also in branches, iterations and child executions."""
    definition = WELL_MADE[name] if name in WELL_MADE else WEAK[name][1]
    assert_all_reached(json.dumps(definition))


@pytest.mark.slow
def test_each_retrier_and_catcher_of_published_machines_is_reached() -> None:
    """Of all definitions that people published, where they are at hand."""
    texts = published()
    reached = {name: assert_all_reached(text) for name, text in texts.items()}
    assert not texts or sum(count > 0 for count in reached.values()) >= 30


def test_a_single_error_is_retried_and_lasting_ones_are_caught() -> None:
    """Time, calls and cost are those of the Retrier: 1 + 2 + 4 + 8 + 16 seconds, 5 retries."""
    once = only_trial(machine({}), "Retry[0]", lasting=False)
    assert (once.outcome, once.calls, once.seconds) == (TrialOutcome.RECOVERED, 2, 1)
    always = only_trial(machine({}), "Retry[0]")
    assert (always.outcome, always.calls, always.seconds) == (TrialOutcome.CAUGHT, 6, 31)
    assert (always.taken_by, always.next) == ("Charge/Catch[0]", "Failed")
    assert (always.dollars, always.repeated) == (Decimal("0.000125"), {"Charge": 5})


def test_retries_of_express_executions_cost_no_transition() -> None:
    """AWS charges the time of an Express execution."""
    assert only_trial(machine({}), "Retry[0]", kind="EXPRESS").dollars is None


def test_an_express_execution_ends_after_five_minutes() -> None:
    """Backoff that a Standard execution has time for."""
    slow = machine({"Retry": [{**THROTTLED, "IntervalSeconds": 30}]})
    assert report(slow).weaknesses == ()
    assert [each.code for each in report(slow, kind="EXPRESS").weaknesses] == [
        "backoff-past-timeout"
    ]
    ended = only_trial(slow, "Retry[0]", kind="EXPRESS")
    assert (ended.outcome, ended.seconds) == (TrialOutcome.TIMED_OUT, 300)


def test_a_call_without_an_answer_runs_into_its_time_limit() -> None:
    """TimeoutSeconds passes on the clock of the trial, and the Catcher takes the error."""
    ended = only_trial(machine({}), "TimeoutSeconds")
    assert (ended.outcome, ended.seconds, ended.calls) == (TrialOutcome.CAUGHT, 20, 1)


def test_timeouts_are_retried() -> None:
    """Each attempt takes its TimeoutSeconds."""
    retriers = [{"ErrorEquals": ["States.Timeout"], "MaxAttempts": 1}, THROTTLED]
    ended = only_trial(machine({"Retry": retriers}), "TimeoutSeconds")
    assert (ended.seconds, ended.calls) == (20 + 1 + 20, 2)


def test_a_callback_without_a_time_limit_is_stuck() -> None:
    """Nothing ends it, so there is no time."""
    ended = only_trial(WEAK["a callback without a time limit"][1], "No time limit")
    assert (ended.outcome, ended.seconds) == (TrialOutcome.STUCK, None)


def test_an_error_goes_up_to_the_retry_of_the_enclosing_states() -> None:
    """Left retries 3 times, then the Catcher of the Parallel around it takes Busy."""
    ended = next(
        each
        for each in report(NESTED).trials
        if (each.state, each.tested, each.lasting) == ("Left", "Retry[1]", True)
    )
    assert ended.error == "States.Timeout"
    assert (ended.outcome, ended.taken_by) == (TrialOutcome.CAUGHT, "Each/Catch[0]")


def test_a_retry_of_a_map_runs_its_tasks_again() -> None:
    """They are counted by name."""
    ended = next(
        each
        for each in report(NESTED).trials
        if (each.state, each.tested, each.lasting) == ("Each", "Retry[0]", True)
    )
    assert (ended.calls, ended.repeated) == (3, {"Left": 2})


def test_the_error_of_a_child_execution_ends_there() -> None:
    """The Catchers of a distributed Map take the failed Map Run, not the error of a child."""
    inside = [each for each in report(DISTRIBUTED).trials if each.state == "Left" and each.lasting]
    assert {each.outcome for each in inside} == {TrialOutcome.FAILED}


def test_a_bad_definition_has_no_report() -> None:
    """Its errors are those of lint."""
    with pytest.raises(engine.DefinitionError, match="Next"):
        report({"StartAt": "A", "States": {"A": {"Type": "Pass"}}})


# -- with a recorded execution ---------------------------------------------------------------------

WAY = {
    "StartAt": "Ask",
    "States": {
        "Ask": {
            "Type": "Task",
            "Resource": FUNCTION,
            "ResultPath": "$.answer",
            "Retry": [THROTTLED],
            "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.error", "Next": "Sorry"}],
            "Next": "Choose",
        },
        "Choose": {
            "Type": "Choice",
            "Choices": [{"Variable": "$.answer", "NumericGreaterThan": 3, "Next": "Big"}],
            "Default": "Small",
        },
        "Big": {"Type": "Task", "Resource": FUNCTION, "Retry": [THROTTLED], "End": True},
        "Small": {"Type": "Task", "Resource": FUNCTION, "Retry": [THROTTLED], "End": True},
        "Sorry": {"Type": "Wait", "Seconds": 100, "Next": "Over"},
        "Over": {"Type": "Succeed"},
    },
}


def events(*visits: tuple[str, Any]) -> list[dict[str, Any]]:
    """Return a history of states and what their calls answered."""
    history: list[dict[str, Any]] = [{"id": 1, "type": "ExecutionStarted", "previousEventId": 0}]
    for state, output in visits:
        number = len(history) + 1
        entered = {"stateEnteredEventDetails": {"name": state}}
        ended = {"lambdaFunctionSucceededEventDetails": {"output": json.dumps(output)}}
        history += [
            {"id": number, "type": "TaskStateEntered", "previousEventId": number - 1, **entered},
            {
                "id": number + 1,
                "type": "LambdaFunctionSucceeded",
                "previousEventId": number,
                **ended,
            },
        ]
    return history


def test_the_last_success_is_run_whole_with_an_error() -> None:
    """The time has the Wait behind the Catcher. A state off the recorded way is run alone."""
    rehearsal = read_rehearsal("good", "{}", events(("Ask", 5), ("Big", "ok")))
    examined = report(WAY, rehearsal=rehearsal)
    assert examined.rehearsal == "good"
    whole = {(each.state, each.tested, each.lasting): each for each in examined.trials}
    caught = whole["Ask", "Catch[0]", True]
    assert (caught.whole, caught.outcome, caught.seconds) == (True, TrialOutcome.CAUGHT, 100)
    once = whole["Big", "Retry[0]", False]
    assert (once.whole, once.outcome, once.repeated) == (True, TrialOutcome.RECOVERED, {"Big": 1})
    assert whole["Small", "Retry[0]", False].whole is False
    assert examined.weaknesses == ()


def test_weaknesses_are_named_in_the_whole_way_too() -> None:
    """The Catcher hides the throttled call: the execution succeeds, and yet went another way."""
    way = json.loads(json.dumps(WAY))
    del way["States"]["Ask"]["Retry"]
    rehearsal = read_rehearsal("good", "{}", events(("Ask", 5), ("Big", "ok")))
    examined = report(way, rehearsal=rehearsal)
    assert [(each.code, each.state) for each in examined.weaknesses] == [
        ("no-retry-on-throttling", "Ask")
    ]
    assert "goes to Sorry" in examined.weaknesses[0].text


def test_a_recording_that_no_longer_fits_is_left_out() -> None:
    """The definition calls a state that the execution never had."""
    rehearsal = read_rehearsal("old", "{}", events(("Ask", 2), ("Big", "ok")))
    examined = report(WAY, rehearsal=rehearsal)
    assert examined.rehearsal == ""
    assert not any(each.whole for each in examined.trials)
