"""A single tested state does what it does in an execution."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import engine
from tests.engine.runtime.harness import machine

if TYPE_CHECKING:
    from collections.abc import Callable

ABOUT = {
    "execution_arn": "arn:aws:states:us-east-1:123456789012:execution:m:e",
    "execution_name": "e",
    "state_machine_arn": "arn:aws:states:us-east-1:123456789012:stateMachine:m",
    "state_machine_name": "m",
    "role_arn": "",
    "input": "{}",
    "start_ms": 0,
}
TASK: dict[str, Any] = {
    "Type": "Task",
    "Resource": "arn:aws:lambda:us-east-1:123456789012:function:f",
    "Next": "After",
    "Retry": [{"ErrorEquals": ["Again"], "IntervalSeconds": 2, "MaxAttempts": 1}],
    "Catch": [{"ErrorEquals": ["Again"], "ResultPath": "$.error", "Next": "Caught"}],
}


def tried(state: dict[str, Any], text: str = "{}", **params: Any) -> engine.Trial:
    """Try one state."""
    machine, name = engine.parse_state(json.dumps(state), None)
    return engine.try_state(machine, name, text, engine.Moment(0, 1), about=ABOUT, **params)


def test_stages_of_a_pass() -> None:
    """The value after each step of the data flow is told."""
    trial = tried(
        {
            "Type": "Pass",
            "InputPath": "$.a",
            "Parameters": {"b.$": "$.n"},
            "ResultPath": "$.r",
            "Next": "After",
        },
        '{"a": {"n": 1}}',
    )
    assert (trial.status, trial.next_state) == ("SUCCEEDED", "After")
    assert json.loads(trial.output or "") == {"a": {"n": 1}, "r": {"b": 1}}
    assert json.loads(trial.stages["afterInputPath"]) == {"n": 1}
    assert json.loads(trial.stages["afterParameters"]) == {"b": 1}


@pytest.mark.parametrize("pattern", [".sync", ".sync:2", ".waitForTaskToken"])
def test_a_job_outside_of_an_execution(pattern: str) -> None:
    """Its Parameters are evaluated without the ARN of an execution, from which tokens are made."""
    state = {
        "Type": "Task",
        "Resource": f"arn:aws:states:::states:startExecution{pattern}",
        "Parameters": {"StateMachineArn": "arn:aws:states:us-east-1:1:stateMachine:m"},
        "End": True,
    }
    machine, name = engine.parse_state(json.dumps(state), None)
    mock = engine.Mock("{}")
    trial = engine.try_state(machine, name, "{}", engine.Moment(0, 1), about={}, mock=mock)
    assert (trial.status, trial.output) == ("SUCCEEDED", "{}")


@pytest.mark.parametrize(
    ("error", "retries", "status", "following"),
    [
        ("Again", 0, "RETRIABLE", None),
        ("Again", 1, "CAUGHT_ERROR", "Caught"),
        ("Other", 0, "FAILED", None),
    ],
)
def test_a_failing_task(error: str, retries: int, status: str, following: str | None) -> None:
    """Retriers first, Catchers when they are used up, failure when neither takes the error."""
    trial = tried(TASK, mock=engine.Mock(error=error, cause="why"), retries=retries)
    assert (trial.status, trial.next_state) == (status, following)
    assert (trial.error, trial.cause) == (error, "why")


def test_a_task_is_called_with_its_arguments() -> None:
    """Without a mock the caller's function does the work."""
    seen: list[str] = []

    def call(command: engine.RunTask) -> engine.TaskSucceeded:
        seen.append(command.input)
        return engine.TaskSucceeded(command.task, '{"n": 2}')

    trial = tried({**TASK, "Parameters": {"n.$": "$.x"}}, '{"x": 1}', call=call)
    assert [json.loads(call) for call in seen] == [{"n": 1}]
    assert (trial.status, trial.output) == ("SUCCEEDED", '{"n": 2}')


def test_a_state_of_many_is_chosen_by_name() -> None:
    """A whole machine may be given; a name that is not in it is refused."""
    text = json.dumps(
        {"StartAt": "A", "States": {"A": {"Type": "Pass", "Next": "B"}, "B": {"Type": "Succeed"}}}
    )
    assert engine.parse_state(text, "B")[1] == "B"
    with pytest.raises(KeyError):
        engine.parse_state(text, "C")


def test_a_map_answers_its_mock() -> None:
    """No iteration is run."""
    state = {
        "Type": "Map",
        "ItemProcessor": {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}},
        "End": True,
    }
    trial = tried(state, "[1, 2]", mock=engine.Mock(result="[3]"))
    assert (trial.status, trial.output) == ("SUCCEEDED", "[3]")


def distributed_map(**more: Any) -> dict[str, Any]:
    """Return a distributed Map of one Pass."""
    return {
        "Type": "Map",
        "QueryLanguage": "JSONata",
        "Items": "{% $states.input %}",
        "ItemProcessor": {
            "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
            "StartAt": "P",
            "States": {"P": {"Type": "Pass", "End": True}},
        },
        "End": True,
        **more,
    }


@pytest.mark.parametrize(
    ("more", "failures", "status"),
    [
        ({}, 3, "SUCCEEDED"),
        ({"ToleratedFailureCount": 1}, 1, "SUCCEEDED"),
        ({"ToleratedFailureCount": 1}, 2, "FAILED"),
        ({"ToleratedFailurePercentage": 50}, 2, "SUCCEEDED"),
        ({"ToleratedFailurePercentage": 50}, 3, "FAILED"),
    ],
)
def test_a_map_that_fails_too_often(more: dict[str, Any], failures: int, status: str) -> None:
    """Failures beyond a given threshold outweigh the mocked result; without one they do not."""
    mock = engine.Mock(result="[0, 0, 0, 1]", failures=failures)
    trial = tried(distributed_map(**more), "[1, 2, 3, 4]", mock=mock)
    assert trial.status == status
    exceeded = "States.ExceedToleratedFailureThreshold" if status == "FAILED" else None
    assert trial.error == exceeded
    assert trial.stages["maxConcurrency"] == 0


_READER = {"Resource": "arn:aws:states:::s3:getObject", "Arguments": {"Bucket": "b", "Key": "k"}}


@pytest.mark.parametrize("text", ["-1.5", "'2'", "null"])
@pytest.mark.parametrize(
    ("field", "settings"),
    [
        ("ToleratedFailureCount", lambda e: {"ToleratedFailureCount": e}),
        ("ToleratedFailurePercentage", lambda e: {"ToleratedFailurePercentage": e}),
        ("ItemBatcher/MaxItemsPerBatch", lambda e: {"ItemBatcher": {"MaxItemsPerBatch": e}}),
        (
            "ItemReader/ReaderConfig/MaxItems",
            lambda e: {"ItemReader": {**_READER, "ReaderConfig": {"MaxItems": e}}},
        ),
    ],
)
def test_a_wrong_number_of_an_expression_is_caught(
    field: str, settings: Callable[[str], dict[str, Any]], text: str
) -> None:
    """AWS: a result out of a field's range is a States.QueryEvaluationError, not States.Runtime."""
    catch = [{"ErrorEquals": ["States.QueryEvaluationError"], "Next": "C"}]
    state = distributed_map(Catch=catch, **settings(f"{{% {text} %}}"))
    del state["End"]
    if "ItemReader" in state:
        del state["Items"]
    definition = machine("M", M={**state, "Next": "C"}, C={"Type": "Pass", "End": True})
    result = engine.run(definition, [1])
    assert result.status == "SUCCEEDED"
    assert isinstance(result.output, dict)
    assert result.output["Error"] == "States.QueryEvaluationError"
    assert f"'{text}' specified for the field '{field}' returned" in result.output["Cause"]


@pytest.mark.parametrize("config", [{}, {"ProcessorConfig": {"Mode": "INLINE"}}])
def test_the_input_of_an_iteration_is_limited(config: dict[str, Any]) -> None:
    """An ItemSelector may make no input above the limit, in either kind of Map."""
    selector = {"a": "{% $states.input[0] %}", "b": "{% $states.input[0] %}"}
    state = distributed_map(ItemSelector=selector)
    state["ItemProcessor"] |= config
    result = engine.run(machine("M", M=state), ["x" * 200_000])
    assert (result.status, result.error) == ("FAILED", "States.DataLimitExceeded")


def test_what_a_map_would_run_over() -> None:
    """The inputs after ItemSelector and ItemBatcher are told, and no result."""
    state = distributed_map(
        MaxConcurrency=2,
        ItemSelector={"n": "{% $states.context.Map.Item.Value %}"},
        ItemBatcher={"MaxItemsPerBatch": 2},
    )
    stages = tried(state, "[1, 2, 3]", mock=engine.Mock(result="[]")).stages
    assert json.loads(stages["afterItemSelector"]) == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert [len(batch["Items"]) for batch in json.loads(stages["afterItemBatcher"])] == [2, 1]
    assert stages["maxConcurrency"] == 2
    assert "result" not in stages


@pytest.mark.parametrize("batch_input", [{}, {"BatchInput": {"k": 1}}])
def test_a_batch_has_at_most_its_bytes(batch_input: dict[str, Any]) -> None:
    """The limit is one of the child's whole input: with BatchInput, brackets and commas."""
    state = distributed_map(ItemBatcher={"MaxInputBytesPerBatch": 50, **batch_input})
    stages = tried(state, json.dumps([*range(10, 40)]), mock=engine.Mock(result="[]")).stages
    batches = json.loads(stages["afterItemBatcher"])
    lengths = [len(json.dumps(batch, separators=(",", ":"))) for batch in batches]
    assert [item for batch in batches for item in batch["Items"]] == [*range(10, 40)]
    assert all(50 - len(",10") < length <= 50 for length in lengths[:-1])


def test_an_inline_map_with_a_field_of_a_distributed_one() -> None:
    """It fails as in an execution, whatever the mock says."""
    state = {
        "Type": "Map",
        "ItemBatcher": {"MaxItemsPerBatch": 2},
        "ItemProcessor": machine("P", P={"Type": "Pass"}),
        "End": True,
    }
    trial = tried(state, "[1]", mock=engine.Mock(result="[0]"))
    assert (trial.status, trial.error) == ("FAILED", "States.Runtime")
    assert "are not supported for INLINE maps" in str(trial.cause)


@pytest.mark.parametrize(
    ("more", "limit"),
    [
        ({}, 0),
        ({"MaxConcurrency": 2}, 2),
        ({"MaxConcurrency": "{% $x := 1 %}"}, 1),
        ({"QueryLanguage": "JSONPath", "MaxConcurrencyPath": "$[0]"}, 1),
    ],
)
@pytest.mark.parametrize("failing", [False, True])
def test_the_concurrency_of_an_inline_map(
    more: dict[str, Any], limit: int, *, failing: bool
) -> None:
    """It is told as that of a distributed one; an inline Map tolerates no failures."""
    state: dict[str, Any] = {
        "Type": "Map",
        "QueryLanguage": "JSONata",
        "ItemProcessor": machine("P", P={"Type": "Pass"}),
        "End": True,
        **more,
    }
    if state["QueryLanguage"] == "JSONata":
        state["Items"] = "{% $states.input %}"
    mock = engine.Mock(error="E", cause="c") if failing else engine.Mock(result="[0]")
    stages = tried(state, "[1, 2, 3]", mock=mock).stages
    assert stages["maxConcurrency"] == limit
    assert "toleratedFailureCount" not in stages


def test_the_items_of_a_reader_may_be_given() -> None:
    """What the ItemReader would have read is selected as its items."""
    state = distributed_map(
        ItemReader={"Resource": "arn:aws:states:::s3:getObject", "Arguments": {"Bucket": "b"}},
        ItemSelector={"n": "{% $states.context.Map.Item.Value.a %}"},
    )
    del state["Items"]
    mock = engine.Mock(result="[]", items=[{"a": 1}, {"a": 2}])
    assert json.loads(tried(state, "{}", mock=mock).stages["afterItemSelector"]) == [
        {"n": 1},
        {"n": 2},
    ]


def test_a_retrier_that_is_used_up_is_named() -> None:
    """The error's details name the Retrier though it gives no pause."""
    trial = tried(TASK, mock=engine.Mock(error="Again"), retries=1)
    assert trial.stages["errorDetails"] == {"retryIndex": 0, "catchIndex": 0}
