"""Every number in a definition is refused, taken, or an error of ASL."""

from __future__ import annotations

import json
from typing import Any

import pytest

import engine
from tests.engine.runtime.harness import Sim, activity, machine, task
from tests.extremes import NUMBERS, TEXTS

_TASK = {"ErrorEquals": ["States.ALL"]}
_INNER = {"StartAt": "I", "States": {"I": {"Type": "Pass", "End": True}}}
_DISTRIBUTED = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}, **_INNER}
_READER = {
    "Resource": "arn:aws:states:::s3:getObject",
    "Parameters": {"Bucket": "b", "Key": "k"},
}
_COMPARED = ("Equals", "LessThan", "GreaterThan", "LessThanEquals", "GreaterThanEquals")


def _one(state: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**machine("S", S={**state, "End": True}), **more}


def _map(**more: Any) -> dict[str, Any]:
    return _one({"Type": "Map", "ItemsPath": "$.items", "ItemProcessor": _DISTRIBUTED, **more})


def _choice(rule: dict[str, Any]) -> dict[str, Any]:
    rules = [{"Variable": "$.n", **rule, "Next": "P"}]
    states = {"S": {"Type": "Choice", "Choices": rules, "Default": "P"}}
    return machine("S", **states, P={"Type": "Pass", "End": True})


LITERAL = {
    "TimeoutSeconds of the machine": lambda n: _one({"Type": "Pass"}, TimeoutSeconds=n),
    "TimeoutSeconds": lambda n: _one(task(TimeoutSeconds=n)),
    "HeartbeatSeconds": lambda n: _one(activity(HeartbeatSeconds=n)),
    "Seconds": lambda n: _one({"Type": "Wait", "Seconds": n}),
    **{
        name: lambda n, name=name: _one(task(Retry=[{**_TASK, name: n}]))
        for name in ("IntervalSeconds", "MaxAttempts", "BackoffRate", "MaxDelaySeconds")
    },
    "MaxConcurrency inline": lambda n: _one(
        {"Type": "Map", "ItemsPath": "$.items", "MaxConcurrency": n, "ItemProcessor": _INNER}
    ),
    **{
        name: lambda n, name=name: _map(**{name: n})
        for name in ("MaxConcurrency", "ToleratedFailureCount", "ToleratedFailurePercentage")
    },
    **{
        name: lambda n, name=name: _map(ItemBatcher={name: n})
        for name in ("MaxItemsPerBatch", "MaxInputBytesPerBatch")
    },
    "MaxItems": lambda n: _map(ItemReader={**_READER, "ReaderConfig": {"MaxItems": n}}),
    **{f"Numeric{how}": lambda n, how=how: _choice({f"Numeric{how}": n}) for how in _COMPARED},
    "a number in a Result": lambda n: _one({"Type": "Pass", "Result": {"n": n}}),
}
"""Field -> the machine that has a number there."""
_TEMPLATE = (
    "States.ArrayRange(0, $.n, 1)",
    "States.ArrayRange($.n, 10, 1)",
    "States.ArrayRange(0, 10, $.n)",
    "States.ArrayPartition($.items, $.n)",
    "States.ArrayGetItem($.items, $.n)",
    "States.ArrayContains($.items, $.n)",
    "States.ArrayUnique(States.Array($.n, $.n))",
    "States.MathAdd($.n, $.n)",
    "States.MathRandom(0, $.n)",
    "States.MathRandom($.n, 5)",
    "States.MathRandom(0, 5, $.n)",
    "States.Format('{}', $.n)",
    "States.JsonToString($.n)",
    "States.Hash($.n, 'MD5')",
    "$.numbers.sum()",
    "$.numbers.avg()",
    "$.numbers.stddev()",
    "$.numbers.max()",
    "$.items[?(@ > $.n)]",
)
PATHS = {
    "TimeoutSecondsPath": lambda: _one(activity(TimeoutSecondsPath="$.n")),
    "HeartbeatSecondsPath": lambda: _one(activity(HeartbeatSecondsPath="$.n")),
    "SecondsPath": lambda: _one({"Type": "Wait", "SecondsPath": "$.n"}),
    "TimestampPath": lambda: _one({"Type": "Wait", "TimestampPath": "$.n"}),
    **{
        name: lambda name=name: _map(**{name: "$.n"})
        for name in (
            "MaxConcurrencyPath",
            "ToleratedFailureCountPath",
            "ToleratedFailurePercentagePath",
        )
    },
    "MaxConcurrencyPath inline": lambda: _one(
        {"Type": "Map", "ItemsPath": "$.items", "MaxConcurrencyPath": "$.n", "Iterator": _INNER}
    ),
    **{
        name: lambda name=name: _map(ItemBatcher={name: "$.n"})
        for name in ("MaxItemsPerBatchPath", "MaxInputBytesPerBatchPath")
    },
    "MaxItemsPath": lambda: _map(ItemReader={**_READER, "ReaderConfig": {"MaxItemsPath": "$.n"}}),
    **{
        f"Numeric{how}Path": lambda how=how: _choice({f"Numeric{how}Path": "$.n"})
        for how in _COMPARED
    },
    **{
        text: lambda text=text: _one({"Type": "Pass", "Parameters": {"x.$": text}})
        for text in _TEMPLATE
    },
}
"""Field with a path, or a function -> the machine that reads ``$.n`` there."""
_CALLS = (
    "$states.input.n + 1",
    "$states.input.n * $states.input.n",
    "-$states.input.n",
    "$states.input.n % 7",
    "$round($states.input.n, 2)",
    "$round(1.5, $states.input.n)",
    "$abs($states.input.n)",
    "$floor($states.input.n)",
    "$sqrt($states.input.n)",
    "$string($states.input.n)",
    "$number($string($states.input.n))",
    "$substring('abc', $states.input.n)",
    "$sum([$states.input.n, $states.input.n])",
    "$average([$states.input.n, $states.input.n])",
    "$max([$states.input.n, 1])",
    "$states.input.items[$states.input.n]",
    "$lookup({'a': 1}, 'a') / $states.input.n",
)


def _jsonata(state: dict[str, Any]) -> dict[str, Any]:
    return _one(state, QueryLanguage="JSONata")


def _jsonata_map(**more: Any) -> dict[str, Any]:
    state = {"Type": "Map", "Items": "{% $states.input.items %}", "ItemProcessor": _DISTRIBUTED}
    return _jsonata({**state, **more})


_N = "{% $states.input.n %}"
_CALL = {
    "Type": "Task",
    "Resource": "arn:aws:states:us-east-1:123456789012:activity:work",
}
JSONATA = {
    "TimeoutSeconds": lambda: _jsonata({**_CALL, "TimeoutSeconds": _N}),
    "HeartbeatSeconds": lambda: _jsonata({**_CALL, "HeartbeatSeconds": _N}),
    "Seconds": lambda: _jsonata({"Type": "Wait", "Seconds": _N}),
    "Timestamp": lambda: _jsonata({"Type": "Wait", "Timestamp": _N}),
    **{
        name: lambda name=name: _jsonata_map(**{name: _N})
        for name in ("MaxConcurrency", "ToleratedFailureCount", "ToleratedFailurePercentage")
    },
    "MaxItems": lambda: _jsonata_map(
        ItemReader={
            "Resource": _READER["Resource"],
            "Arguments": _READER["Parameters"],
            "ReaderConfig": {"MaxItems": _N},
        }
    ),
    **{
        text: lambda text=text: _jsonata({"Type": "Pass", "Output": "{% " + text + " %}"})
        for text in _CALLS
    },
}
"""Field, or an expression -> the machine that reads ``n`` of its input there."""


def _check(definition: dict[str, Any], value: Any) -> None:
    """Run a machine with a value; it ends as ASL knows, or waits for what a database can keep."""
    sim = Sim(definition, {"n": value, "items": [1, 2], "numbers": [value, value]})
    for _ in range(3):
        for due_ms in sim.timers.values():
            assert 0 < due_ms < 2**63
        for call in sim.tasks.values():
            for seconds in (call.timeout_seconds, call.heartbeat_seconds):
                assert seconds is None or 0 < seconds < 2**31
            json.loads(call.input)
        if sim.finish is not None or not (sim.tasks or sim.timers):
            break
        _go_on(sim)
    if sim.finish is not None and sim.finish.status == "FAILED":
        error, cause = str(sim.finish.error), str(sim.finish.cause)
        assert error.startswith("States."), (error, cause)
        assert not any(word in cause for word in ("OverflowError", "ValueError", "Traceback"))
    json.dumps(sim.run.dumps(), allow_nan=False)


def _go_on(sim: Sim) -> None:
    if sim.tasks:
        number = next(iter(sim.tasks))
        del sim.tasks[number]
        sim.send(engine.TaskFailed(number, "States.TaskFailed", "it broke"))
    else:
        name, due_ms = next(iter(sim.timers.items()))
        del sim.timers[name]
        sim.now_ms = max(sim.now_ms, due_ms)
        sim.send(engine.TimerFired(name))


@pytest.mark.parametrize("field", LITERAL)
def test_a_number_in_a_definition_is_refused_or_taken(field: str) -> None:
    """At create a diagnostic that says what was wanted, or a machine that runs with it."""
    for value in (*NUMBERS, *TEXTS):
        definition = LITERAL[field](value)
        try:
            engine.parse(json.dumps(definition))
        except engine.DefinitionError:
            continue
        _check(definition, 1)


@pytest.mark.parametrize("field", PATHS)
def test_a_number_behind_a_path_is_an_error_of_asl_or_taken(field: str) -> None:
    """At run time a States error with a cause, or a state that works with it."""
    for value in (*NUMBERS, *TEXTS):
        _check(PATHS[field](), value)


@pytest.mark.parametrize("field", JSONATA)
def test_a_number_of_jsonata_is_an_error_of_asl_or_taken(field: str) -> None:
    """As behind a path; no text of the implementation is in the cause."""
    for value in (*NUMBERS, *TEXTS):
        _check(JSONATA[field](), value)


def test_a_number_that_is_not_json_is_refused() -> None:
    """Beyond a double, longer than any integer, or no number: the text is no definition."""
    text = json.dumps(LITERAL["Seconds"](4711))
    for value in ("1e400", "-1e400", "NaN", "Infinity", "9" * 5_000):
        with pytest.raises(engine.DefinitionError):
            engine.parse(text.replace("4711", value))


@pytest.mark.parametrize(
    "pattern", ["(?=a)a", "(?<!b)a", r"(a)\1", "(a{1000}){1000}", "((a{100}){100}){100}", "a{2000}"]
)
def test_a_pattern_that_re2_does_not_take_fails_the_state_that_uses_it(pattern: str) -> None:
    """The machine is taken, as AWS takes it; the cause tells the limits in plain words."""
    text = f"$match($states.input.n, /{pattern}/)"
    sim = Sim(_jsonata({"Type": "Pass", "Output": "{% " + text + " %}"}), {"n": "aaa"})
    assert sim.finish is not None
    assert (sim.finish.status, sim.finish.error) == ("FAILED", "States.QueryEvaluationError")
    cause = str(sim.finish.cause)
    assert f"The regular expression /{pattern}/ is not supported" in cause
    assert "no lookahead, no lookbehind, no backreference" in cause


def test_a_map_run_whose_items_cannot_be_made_never_begins() -> None:
    """An ItemSelector that fails leaves no MapRunStarted behind, whose Map Run nobody made."""
    sim = Sim(_map(ItemSelector={"x.$": "$.nothing"}), {"items": [1]})
    assert sim.finish is not None
    assert (sim.finish.status, sim.finish.error) == ("FAILED", "States.Runtime")
    assert "MapRunStarted" not in sim.types
    assert sim.types[-2:] == ["MapStateStarted", "ExecutionFailed"]
