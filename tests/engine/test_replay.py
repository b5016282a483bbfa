"""A recorded execution, played again: the same, or what is different, where."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

import engine
from tests.engine.runtime.harness import machine, task

RETRY = [{"ErrorEquals": ["Busy"], "IntervalSeconds": 2, "MaxAttempts": 2}]
BIG = {"Variable": "$.sum", "NumericGreaterThan": 100, "Next": "Ask"}
DEFINITION = machine(
    "Pay",
    Pay=task(Retry=RETRY, Next="Big?"),
    **{"Big?": {"Type": "Choice", "Choices": [BIG], "Default": "Done"}},
    Ask={"Type": "Pass", "Next": "Done"},
    Done={"Type": "Pass", "End": True},
)
SCENARIO: dict[str, Any] = {
    "MockedResponses": {
        "Pay": {"0": {"Throw": {"Error": "Busy"}}, "1": {"Return": {"sum": 120, "id": "a"}}}
    },
    "Scenario": {
        "Format": engine.SCENARIO,
        "Type": "STANDARD",
        "Definition": DEFINITION,
        "Input": {"n": 1},
        "Tasks": [{"State": "Pay", "Number": 0}, {"State": "Pay", "Number": 1}],
        "Expected": {
            "Status": "SUCCEEDED",
            "Output": {"sum": 120, "id": "a"},
            "Path": [{"Line": "", "States": ["Pay", "Big?", "Ask", "Done"]}],
        },
    },
}


def told(**changes: Any) -> list[str]:
    """Replay the scenario with parts of it changed; return the differences."""
    changed = copy.deepcopy(SCENARIO)
    changed["Scenario"] |= changes
    return [str(difference) for difference in engine.replay(json.dumps(changed))]


def test_the_same_definition_does_the_same() -> None:
    """A retry, a choice and the output are as they were."""
    assert told() == []


def test_another_way_is_told_by_the_state_where_it_parts() -> None:
    """The first state that differs, and after which one."""
    changed = copy.deepcopy(DEFINITION)
    changed["States"]["Big?"]["Choices"][0]["NumericGreaterThan"] = 200
    assert told(Definition=changed) == ["path, state 3 (after Big?): got Done, wanted Ask"]


def test_an_output_is_told_by_the_place_that_differs() -> None:
    """Value by value; what the scenario says to ignore is not looked at."""
    changed = copy.deepcopy(DEFINITION)
    changed["States"]["Done"] |= {"Result": {"sum": 121, "id": "b", "new one": None}}
    assert told(Definition=changed) == [
        "output $.sum: got 121, wanted 120",
        'output $.id: got "b", wanted "a"',
        "output $['new one']: got null, wanted nothing",
    ]
    ignoring = SCENARIO["Scenario"]["Expected"] | {"Ignore": ["$.id", "$['new one']"]}
    assert told(Definition=changed, Expected=ignoring) == ["output $.sum: got 121, wanted 120"]


def test_a_masked_value_is_not_compared() -> None:
    """The recording of a viewer has no value to compare with, but a missing one is named."""
    end = SCENARIO["Scenario"]["Expected"]
    assert told(Expected=end | {"Output": {"sum": 120, "id": "(masked)"}}) == []
    missing = end | {"Output": {"sum": 120, "id": "a", "key": "(masked)"}}
    assert told(Expected=missing) == ['output $.key: got nothing, wanted "(masked)"']


@pytest.mark.parametrize(
    ("recorded", "got", "is_hidden"),
    [
        ("Card (masked) of (masked).", "Card 4111 of Ann\nLee.", True),
        ("Card (masked) of (masked).", "Card 4111 of Ann", False),
        ("Card (masked) of (masked).", "A card 4111 of Ann.", False),
        ("(masked), (masked) and (masked)", "4111, Ann and Lee", True),
        ("(masked), (masked) and (masked)", "4111 and Ann, Lee", False),
        ("aba(masked)aba", "ababa", False),
        ("Card.(masked)", "Cards 4111", False),
        ("Card (masked)", 4111, False),
        ("Card (masked)", {"card": "4111"}, False),
        ('{"card":"(masked)"}', '{"card":"4111"}', True),
        ('{"card":"(masked)","n":1}', '{"card": 4111, "n": 1}', True),
        ('{"card":"(masked)","n":1}', '{"card": "4111", "n": 2}', False),
        ('{"card":"(masked)"}', '{"card":"4111","name":"Ann"}', False),
        ('{"card":"(masked)"}', "{}", False),
        ('["Card (masked)"]', '["Card 4111"]', True),
        ('{"body":"{\\"card\\":\\"(masked)\\"}"}', '{"body": "{\\"card\\": 4111}"}', True),
        ('{"card":"(masked)"', '{"card":"4111"', True),
    ],
)
def test_masked_parts_of_a_text_are_not_compared(recorded: str, got: Any, is_hidden: bool) -> None:
    """In a sentence or in JSON text, everything around a mask is compared."""
    changed = copy.deepcopy(DEFINITION)
    changed["States"]["Done"] |= {"Result": {"body": got}}
    expected = SCENARIO["Scenario"]["Expected"] | {"Output": {"body": recorded}}
    differences = told(Definition=changed, Expected=expected)
    assert [line.startswith("output $.body: got ") for line in differences] == (
        [] if is_hidden else [True]
    )


def test_masks_in_deep_json_texts() -> None:
    """JSON that is nested too deep to be parsed is compared as text."""
    texts = ["Card (masked)", "Card 4111"]
    for _ in range(4):
        texts = ["[" * 400 + json.dumps(text) + "]" * 400 for text in texts]
    changed = copy.deepcopy(DEFINITION)
    hidden, changed["States"]["Done"]["Result"] = texts
    expected = SCENARIO["Scenario"]["Expected"] | {"Output": hidden}
    assert told(Definition=changed, Expected=expected) == []


def test_masked_parts_of_a_cause_are_not_compared() -> None:
    """As in an output: a cause is a sentence with values of the execution."""
    fails = machine("No", No={"Type": "Fail", "Error": "Bad", "Cause": "Card 4111 is closed"})
    path = [{"Line": "", "States": ["No"]}]
    expected = {"Status": "FAILED", "Error": "Bad", "Path": path}
    hidden = expected | {"Cause": "Card (masked) is closed"}
    assert told(Definition=fails, Tasks=[], Expected=hidden) == []
    other = expected | {"Cause": "Card (masked) is stolen"}
    assert told(Definition=fails, Tasks=[], Expected=other) == [
        'cause: got "Card 4111 is closed", wanted "Card (masked) is stolen"'
    ]
    del fails["States"]["No"]["Cause"]
    assert told(Definition=fails, Tasks=[], Expected=expected | {"Cause": "(masked)"}) == [
        'cause: got nothing, wanted "(masked)"'
    ]


def test_a_call_too_many_has_no_answer() -> None:
    """Nothing is made up: the task stays open, and that is said."""
    changed = copy.deepcopy(DEFINITION)
    changed["States"]["Ask"] = task(Next="Done")
    assert told(Definition=changed) == [
        "task of Ask: got one more call, wanted only those recorded",
        "path, state 4 (after Ask): got the end, wanted Done",
        "status: got RUNNING, waiting for Ask, wanted SUCCEEDED",
    ]


def test_another_end_is_told_with_its_error() -> None:
    """Status and error stand together."""
    changed = copy.deepcopy(DEFINITION)
    changed["States"]["Pay"].pop("Retry")
    differences = told(Definition=changed)
    assert differences[-1] == "status: got FAILED (Busy), wanted SUCCEEDED"


def test_a_definition_with_errors_is_told() -> None:
    """Its problems are the differences."""
    assert "definition: got" in told(Definition={"StartAt": "A", "States": {}})[0]


def test_waits_take_no_time_and_a_stop_comes_when_it_came() -> None:
    """An hour's wait is over at once, unless somebody stopped it before."""
    nap = machine("Nap", Nap={"Type": "Wait", "Seconds": 3600})
    path = {"Line": "", "States": ["Nap"]}
    expected: dict[str, Any] = {"Status": "SUCCEEDED", "Output": {"n": 1}, "Path": [path]}
    assert told(Definition=nap, Tasks=[], Expected=expected) == []
    stop = {"Act": "Stop", "Milliseconds": 60_000, "Error": "No", "Cause": "wrong"}
    expected = {"Status": "ABORTED", "Error": "No", "Cause": "wrong", "Path": [path]}
    assert told(Definition=nap, Tasks=[], Expected=expected, Acts=[stop]) == []
    differences = told(
        Definition=nap, Tasks=[], Expected=expected, Acts=[{**stop, "Error": "Other"}]
    )
    assert differences == ['error: got "Other", wanted "No"']


def test_what_another_has_cut_off_may_have_come_less_far() -> None:
    """A branch that was aborted is compared as far as both have come."""
    states = machine("A", A={"Type": "Pass", "Next": "B"}, B={"Type": "Wait", "Seconds": 9})
    fails = machine("F", F={"Type": "Fail", "Error": "Bad"})
    both = machine("Both", Both={"Type": "Parallel", "Branches": [states, fails]})
    path: list[dict[str, Any]] = [
        {"Line": "", "States": ["Both"]},
        {"Line": "Both[0]", "States": ["A", "B"], "Aborted": True},
        {"Line": "Both[1]", "States": ["F"]},
    ]
    expected = {"Status": "FAILED", "Error": "Bad", "Path": path}
    assert told(Definition=both, Tasks=[], Expected=expected) == []
    path[1]["States"] = ["A"]
    assert told(Definition=both, Tasks=[], Expected=expected) == []
    path[1]["States"] = ["X"]
    assert told(Definition=both, Tasks=[], Expected=expected) == [
        "path of Both[0], state 1: got A, wanted X"
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{}", "Scenario.Format: got null, wanted 'stateyard-scenario-1'"),
        ('{"Scenario": {"Format": "stateyard-scenario-1"}}', "got no Type, wanted one"),
        ("{", "Unexpected end-of-input"),
    ],
)
def test_what_is_no_scenario_is_refused(text: str, problem: str) -> None:
    """With what is missing."""
    with pytest.raises((ValueError, engine.JsonTextError), match=problem):
        engine.replay(text)


def test_task_tokens_are_not_compared() -> None:
    """Each run has other tokens, also behind a text that a difference would cut."""
    letter = "Please approve the order. " * 20
    asking = task(
        Resource="arn:aws:states:::sqs:sendMessage.waitForTaskToken",
        Parameters={
            "QueueUrl": "https://sqs.us-east-1.amazonaws.com/123456789012/asks",
            "MessageBody.$": f"States.Format('{letter}{{}}', $$.Task.Token)",
            "MessageGroupId.$": "$.group",
        },
        End=True,
    )
    request = {
        "QueueUrl": "https://sqs.us-east-1.amazonaws.com/123456789012/asks",
        "MessageBody": f"{letter}the recorded token",
        "MessageGroupId": "a",
    }
    changed = copy.deepcopy(SCENARIO)
    changed["MockedResponses"] = {"Ask": {"0": {"Return": "yes"}}}
    changed["Scenario"] |= {
        "Definition": machine("Ask", Ask=asking),
        "Input": {"group": "b"},
        "Tasks": [{"State": "Ask", "Number": 0, "Input": request}],
        "Expected": {"Status": "SUCCEEDED", "Path": [{"Line": "", "States": ["Ask"]}]},
    }
    assert [str(each) for each in engine.replay(json.dumps(changed))] == [
        'input of Ask $.MessageGroupId: got "b", wanted "a"'
    ]
