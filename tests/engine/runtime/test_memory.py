"""``engine.run`` finds functions by their names, and tells which way the execution went."""

from __future__ import annotations

from typing import Any

import pytest

import engine

INVOKE = "arn:aws:states:::lambda:invoke"
ARN = "arn:aws:lambda:us-east-1:123456789012:function:price"


def invoking(name: str, resource: str = INVOKE, **more: Any) -> dict[str, Any]:
    """Return a machine that invokes a function with its input."""
    parameters = {"FunctionName": name, "Payload.$": "$", **more}
    state = {"Type": "Task", "Resource": resource, "Parameters": parameters, "End": True}
    return {"StartAt": "Ask", "States": {"Ask": state}}


@pytest.mark.parametrize("name", ["price", "price:live", ARN, f"{ARN}:3"])
def test_a_function_behind_invoke_is_found_by_its_name(name: str) -> None:
    """It gets the payload, and its answer is wrapped as the service wraps it."""
    result = engine.run(invoking(name), {"n": 2}, {"price": lambda event: event["n"] * 10})
    assert result.output == {"ExecutedVersion": "$LATEST", "Payload": 20, "StatusCode": 200}
    assert result.calls == (engine.FunctionCall("Ask", "price", {"n": 2}, 20),)


def test_a_function_that_answers_with_the_token() -> None:
    """What it returns is what is sent back with the token: nothing is wrapped."""
    machine = invoking("price", f"{INVOKE}.waitForTaskToken")
    machine["States"]["Ask"]["Parameters"]["Payload"] = {"token.$": "$$.Task.Token"}
    del machine["States"]["Ask"]["Parameters"]["Payload.$"]
    result = engine.run(machine, {}, {"price": lambda event: len(event["token"]) > 10})
    assert result.output is True


def test_the_name_of_a_state_comes_first_and_gets_the_whole_request() -> None:
    """As before there were names of functions."""
    result = engine.run(invoking("price"), {"n": 1}, {"Ask": sorted, "price": len})
    assert result.output == ["FunctionName", "Payload"]


def test_a_function_without_a_payload_gets_an_empty_object() -> None:
    """As Lambda hands it on."""
    machine = invoking("price")
    del machine["States"]["Ask"]["Parameters"]["Payload.$"]
    assert engine.run(machine, {"n": 1}, {"price": lambda event: event}).output["Payload"] == {}


def test_a_version_in_the_resource_is_no_part_of_the_name() -> None:
    """A function's ARN may end with a version or an alias."""
    machine = invoking("", f"{ARN}:live")
    del machine["States"]["Ask"]["Parameters"]
    assert engine.run(machine, {}, {"price": lambda _: 1}).output == 1


def test_a_name_that_is_not_there_is_told() -> None:
    """The message has the function's name, not that of the integration."""
    with pytest.raises(KeyError, match="task price of state Ask: not among"):
        engine.run(invoking("price"), {}, {"cost": len})


def test_path_and_calls_tell_which_way_it_went() -> None:
    """Every entering of a state, also in branches, and each attempt of a call."""

    def fail(_: Any) -> Any:
        raise engine.StatesError("Busy", "try later")

    retry = [{"ErrorEquals": ["Busy"], "MaxAttempts": 1}]
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "Both"}]
    task = {"Type": "Task", "Resource": ARN, "Retry": retry, "Catch": catch, "Next": "Both"}
    branch = {"StartAt": "In", "States": {"In": {"Type": "Pass", "End": True}}}
    both = {"Type": "Parallel", "Branches": [branch], "End": True}
    machine = {"StartAt": "Ask", "States": {"Ask": task, "Both": both}}
    result = engine.run(machine, {"n": 1}, {"price": fail})
    assert result.path == ("Ask", "Both", "In")
    call = engine.FunctionCall("Ask", "price", {"n": 1}, error="Busy")
    assert result.calls == (call, call)


def silent(_event: Any) -> Any:
    """Never answer, as a worker that was lost."""
    raise engine.NoAnswer


@pytest.mark.parametrize(
    ("limits", "error", "seconds"),
    [
        ({"TimeoutSeconds": 40}, "States.Timeout", 40),
        ({"TimeoutSeconds": 40, "HeartbeatSeconds": 5}, "States.Timeout", 5),
    ],
)
def test_a_task_without_an_answer_times_out(
    limits: dict[str, int], error: str, seconds: int
) -> None:
    """The clock moves to the deadline of each attempt, and over the pause before the retry."""
    machine = invoking("price")
    machine["States"]["Ask"] |= limits
    machine["States"]["Ask"]["Retry"] = [{"ErrorEquals": ["States.Timeout"], "MaxAttempts": 1}]
    result = engine.run(machine, {}, {"price": silent})
    assert (result.status, result.error) == ("FAILED", error)
    assert (result.slept, len(result.calls)) == (2 * seconds + 1, 2)


def test_a_heartbeat_that_is_lost_has_its_own_name() -> None:
    """A Retrier of States.HeartbeatTimeout takes it; the second call answers."""
    machine = invoking("price")
    retrier = {"ErrorEquals": ["States.HeartbeatTimeout"], "MaxAttempts": 1}
    machine["States"]["Ask"] |= {"HeartbeatSeconds": 5, "Retry": [retrier]}
    answers = iter([silent, lambda _event: 7])

    def price(event: Any) -> Any:
        return next(answers)(event)

    result = engine.run(machine, {}, {"price": price})
    assert (result.status, result.output["Payload"], result.slept) == ("SUCCEEDED", 7, 6)


def test_a_task_without_an_answer_and_without_a_limit_never_ends() -> None:
    """The runner says so instead of waiting."""
    with pytest.raises(engine.EngineBug, match="waits for nothing"):
        engine.run(invoking("price"), {}, {"price": silent})


def test_the_time_limit_of_the_execution_ends_a_task_without_an_answer() -> None:
    """The deadline of the task is later."""
    machine = {**invoking("price"), "TimeoutSeconds": 30}
    machine["States"]["Ask"]["TimeoutSeconds"] = 40
    result = engine.run(machine, {}, {"price": silent})
    assert (result.status, result.slept) == ("TIMED_OUT", 30)
