"""Any value at any place of a definition is refused, or runs to an end of ASL."""

from __future__ import annotations

import copy
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

import engine
from tests.engine.runtime.harness import Sim

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_TASK = "arn:aws:states:::lambda:invoke"
_INNER = {"StartAt": "I", "States": {"I": {"Type": "Pass", "End": True}}}
_RETRY = [
    {
        "ErrorEquals": ["E"],
        "IntervalSeconds": 1,
        "MaxAttempts": 1,
        "BackoffRate": 2.0,
        "MaxDelaySeconds": 3,
        "JitterStrategy": "FULL",
    }
]
_COMMON = {"Comment": "c", "InputPath": "$", "OutputPath": "$", "Next": "End"}
_PATHS: dict[str, dict[str, Any]] = {
    "Pass": {
        **_COMMON,
        "Parameters": {"a.$": "$.a", "f.$": "States.Format('{}', $.a)", "c.$": "$$.Execution.Id"},
        "Result": {"r": [1]},
        "ResultPath": "$.p",
        "Assign": {"v.$": "$.r", "w": 1},
    },
    "Task": {
        **_COMMON,
        "Resource": _TASK,
        "Parameters": {"FunctionName": "f", "Payload.$": "$"},
        "ResultSelector": {"x.$": "$.Payload"},
        "ResultPath": "$.t",
        "TimeoutSeconds": 60,
        "HeartbeatSeconds": 30,
        "Credentials": {"RoleArn": "arn:aws:iam::123456789012:role/r"},
        "Retry": _RETRY,
        "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.e", "Next": "End"}],
        "Assign": {"t.$": "$.Payload"},
    },
    "Choice": {
        "InputPath": "$",
        "OutputPath": "$",
        "Choices": [
            {"Variable": "$.a", "NumericEquals": 1, "Next": "End", "Assign": {"c": 1}},
            {"And": [{"Variable": "$.s", "StringMatches": "a*"}], "Next": "End"},
            {"Not": {"Variable": "$.a", "IsPresent": True}, "Next": "End"},
            {"Variable": "$.s", "StringEqualsPath": "$.s", "Next": "End"},
            {"Variable": "$.when", "TimestampLessThan": "2026-01-01T00:00:00Z", "Next": "End"},
        ],
        "Default": "End",
    },
    "Wait": {**_COMMON, "TimestampPath": "$.when"},
    "Fail": {"ErrorPath": "$.s", "CausePath": "States.Format('{}', $.s)"},
    "Succeed": {"InputPath": "$", "OutputPath": "$.a"},
    "Parallel": {
        **_COMMON,
        "Branches": [_INNER],
        "Parameters": {"a.$": "$.a"},
        "ResultSelector": {"x.$": "$[0]"},
        "ResultPath": "$.b",
        "Retry": _RETRY,
        "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "End"}],
    },
    "Map": {
        **_COMMON,
        "ItemsPath": "$.items",
        "ItemSelector": {"i.$": "$$.Map.Item.Index", "v.$": "$$.Map.Item.Value"},
        "ItemProcessor": {"ProcessorConfig": {"Mode": "INLINE"}, **_INNER},
        "MaxConcurrencyPath": "$.a",
        "ResultSelector": {"x.$": "$[0]"},
        "ResultPath": "$.m",
    },
}
_APART = {
    "Type": "Map",
    "Label": "apart",
    "ItemReader": {
        "Resource": "arn:aws:states:::s3:getObject",
        "ReaderConfig": {
            "InputType": "CSV",
            "CSVHeaderLocation": "GIVEN",
            "CSVHeaders": ["a"],
            "CSVDelimiter": "COMMA",
            "MaxItems": 3,
        },
        "Parameters": {"Bucket": "b", "Key": "k"},
    },
    "ItemBatcher": {"MaxItemsPerBatch": 2, "MaxInputBytesPerBatch": 10, "BatchInput": {"a": 1}},
    "ItemProcessor": {
        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
        **_INNER,
    },
    "ResultWriter": {
        "Resource": "arn:aws:states:::s3:putObject",
        "Parameters": {"Bucket": "b", "Prefix": "p"},
        "WriterConfig": {"OutputType": "JSON", "Transformation": "NONE"},
    },
    "ToleratedFailureCount": 1,
    "ToleratedFailurePercentage": 5,
    "MaxConcurrency": 2,
    "Next": "End",
}
_JSONATA: dict[str, dict[str, Any]] = {
    "Pass": {
        "Output": {"a": "{% $states.input.a %}"},
        "Assign": {"v": "{% 1 + 1 %}"},
        "Next": "End",
    },
    "Task": {
        "Resource": _TASK,
        "Arguments": {"FunctionName": "f", "Payload": "{% $states.input %}"},
        "Output": "{% $states.result %}",
        "TimeoutSeconds": "{% 60 %}",
        "HeartbeatSeconds": "{% 30 %}",
        "Catch": [
            {
                "ErrorEquals": ["States.ALL"],
                "Output": "{% $states.errorOutput %}",
                "Assign": {"e": "{% $states.errorOutput.Error %}"},
                "Next": "End",
            }
        ],
        "Next": "End",
    },
    "Choice": {
        "Choices": [{"Condition": "{% $states.input.a = 1 %}", "Output": 1, "Next": "End"}],
        "Default": "End",
    },
    "Wait": {"Seconds": "{% $states.input.a %}", "Next": "End"},
    "Fail": {"Error": "{% $states.input.s %}", "Cause": "{% 'c' %}"},
    "Succeed": {"Output": "{% $states.input %}"},
    "Parallel": {
        "Branches": [_INNER],
        "Arguments": {"a": 1},
        "Output": "{% $states.result %}",
        "Next": "End",
    },
    "Map": {
        "Items": "{% $states.input.items %}",
        "ItemSelector": {"i": "{% $states.context.Map.Item.Index %}"},
        "ItemProcessor": _INNER,
        "MaxConcurrency": "{% 1 %}",
        "Output": "{% $states.result %}",
        "Next": "End",
    },
}
HOSTILE: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    -1,
    1.5,
    1e308,
    10**40,
    "",
    " ",
    "\x00",
    "\ud800",
    "\u2028",
    "x" * 2_000,
    [],
    {},
    [[]],
    [{}],
    [None],
    {"": ""},
    {"\x00": 1},
    {"a.$": 1},
    {".$": "$"},
    {"a.$": "$.", "a": 1},
    "$",
    "$$",
    "$.",
    "$..",
    "$.a[",
    "$.a[*]",
    "$[?(@.a)]",
    "$.a[99999999999999999999]",
    "$.items[-9]",
    "$.a.b.c",
    "$v",
    "$v.",
    "$states.input",
    "$$.Task.Token",
    "$['a",
    "$['\\",
    "$" + ".a" * 600,
    "States.Format('{}', $)",
    "States.Format(",
    "States.Array(" * 200,
    "States.UUID()",
    "States.X()",
    "States.MathAdd(1e400, 1)",
    "States.ArrayRange(0, 999999999, 1)",
    "States.StringToJson('[[')",
    "{%%}",
    "{% %}",
    "{% $ %}",
    "{% ( %}",
    "{% 1/0 %}",
    "{% $x %}",
    "{% $states %}",
    "{% function(){1} %}",
    "{% [1..9999999] %}",
    "{% 1e400 %}",
    "{% " + "(" * 300 + " %}",
    "{% $eval('1') %}",
    "{% $error('\x00') %}",
    "{% 'a' ~> /[/ %}",
    "{% {'a': function(){1}} %}",
    "{% $states.context %}",
    "{% null %}",
    "{% undefined %}",
    "2026-99-99T00:00:00Z",
    "0000-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999999999Z",
    "arn:aws:states:::x",
    {"a": {"b": {"c": {"d": [[[[[[]]]]]]}}}},
)
_OF_PYTHON = re.compile(
    r"NoneType|\bNone\b|<class|object at 0x|Traceback|(Type|Value|Key|Index|Recursion|ZeroDivision|"
    r"Attribute|Overflow)Error|'(dict|list|int|str|float|bool)'|positional argument"
)
"""What no text of the service has: it is not written in Python."""
INPUTS: tuple[Any, ...] = (
    {"a": 1, "s": "abc", "when": "2020-01-01T00:00:00Z", "items": [1, None]},
    {"a": "\x00", "s": None, "when": 5, "items": {"k": []}},
    None,
)


def _whole(kind: str, state: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "StartAt": "S",
        "States": {"S": {"Type": kind, **state}, "End": {"Type": "Succeed"}},
        **more,
    }


CASES = {
    **{f"JSONPath {kind}": _whole(kind, state) for kind, state in _PATHS.items()},
    **{
        f"JSONata {kind}": _whole(kind, state, QueryLanguage="JSONata", TimeoutSeconds=9)
        for kind, state in _JSONATA.items()
    },
    "distributed": {"StartAt": "S", "States": {"S": _APART, "End": {"Type": "Succeed"}}},
}


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(part, (*path, key))


def _changed(definition: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    variant = copy.deepcopy(definition)
    here: Any = variant
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = value
    return variant


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_value_at_any_place_is_refused_or_runs(case: str) -> None:
    """What is refused names its places; what is taken ends, whatever its input is."""
    for path in _places(CASES[case]):
        for value in HOSTILE:
            definition = _changed(CASES[case], path, value)
            try:
                diagnostics = _try_definition(definition)
            except Exception as error:
                raise AssertionError(f"{case} {path}: {str(value)[:60]!r}") from error
            assert all(str(diagnostic) for diagnostic in diagnostics)


def _try_definition(definition: dict[str, Any]) -> Sequence[object]:
    """Run a definition with each input until nothing is left to do; calls fail and answer in turn.

    Return why it is refused, if it is.
    """
    try:
        engine.parse(json.dumps(definition))
    except engine.DefinitionError as refused:
        return refused.diagnostics
    for value in INPUTS:
        sim = Sim(definition, value)
        for turn in range(6):
            if sim.finish is not None:
                break
            if sim.tasks:
                name = next(iter(sim.tasks.values())).state
                sim.succeed(name, [None]) if turn % 2 else sim.fail(name, "E", "c\x00")
            elif sim.timers:
                sim.fire()
        cause = sim.finish.cause if sim.finish is not None else ""
        assert not _OF_PYTHON.search(cause or ""), cause
    return ()


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "\x00", "null", "1", '"x"', "[]", "[" * 100_000, '{"a":' * 100_000, "\ufeff{}"),
        '{"StartAt": "\ud800", "States": {}}',
        '{"StartAt": "A", "StartAt": "B", "States": {"A": {"Type": "Succeed", "Type": "Fail"}}}',
        '{"StartAt": "A", "States": {"A": {"Type": "Wait", "Seconds": 1e400, "End": true}}}',
        '{"StartAt": "A", "States": {"A": {"Type": "Wait", "Seconds": NaN, "End": true}}}',
        '{"StartAt": "A", "States": {"' + "x" * 200_000 + '": {"Type": "Succeed"}}}',
        '{"StartAt": "A", "States": {"A": ' + '{"Type": "Parallel", "Branches": [{"StartAt": "A", '
        '"States": {"A": ' * 90 + '{"Type": "Succeed"}' + "}}]}" * 90 + "}}",
    ],
)
def test_a_text_that_is_no_definition_is_refused(text: str) -> None:
    """With a diagnostic, however deep, long or half it is."""
    with pytest.raises(engine.DefinitionError) as refused:
        engine.parse(text)
    assert refused.value.diagnostics
