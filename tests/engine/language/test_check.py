"""Every problem of a definition is reported with its code and place, in AWS's words."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

import engine
from engine.language.choice import matches_glob

PASS = {"Type": "Pass", "End": True}


def errors(definition: Any, kind: str = "STANDARD") -> list[str]:
    """Return the errors of a definition as InvalidDefinition lists them."""
    text = definition if isinstance(definition, str) else json.dumps(definition)
    return [str(problem) for problem in engine.check(text, kind) if problem.severity == "ERROR"]


def state(**fields: Any) -> dict[str, Any]:
    """Return a machine of one state X."""
    return {"StartAt": "X", "States": {"X": fields}}


PROCESSOR = {"ItemProcessor": {"StartAt": "Y", "States": {"Y": PASS}}}
READER = {
    "Resource": "arn:aws:states:::s3:getObject",
    "Parameters": {"Bucket": "b", "Key": "k"},
}
SCHEMA = "SCHEMA_VALIDATION_FAILED: "
ARN = "arn:aws:lambda:us-east-1:123456789012:function:f"


@pytest.mark.parametrize(
    ("definition", "told"),
    [
        (" ", SCHEMA + "Definition must be a valid JSON object"),
        ("[]", SCHEMA + "Definition must be a valid JSON object"),
        ({}, SCHEMA + "These fields are required: [States, StartAt] at /"),
        (
            state(Type="Nope"),
            SCHEMA + "The field 'Type' should have one of these values: "
            "[Task, Wait, Pass, Succeed, Fail, Choice, Parallel, Map] at /States/X/Type",
        ),
        (
            {"StartAt": "A", "States": {"X": PASS}},
            "MISSING_TRANSITION_TARGET: Missing 'Next' target: A at /StartAt",
        ),
        (
            state(Type="Pass", Next="Y"),
            "MISSING_TRANSITION_TARGET: Missing 'Next' target: Y at /States/X/Next",
        ),
        (
            {"StartAt": "X", "States": {"X": PASS, "Y": PASS}},
            'MISSING_TRANSITION_TARGET: State "Y" is not reachable. at /States/Y',
        ),
        (
            state(Type="Parallel", Branches=[], End=True),
            SCHEMA + "Value cannot be empty at /States/X/Branches",
        ),
        (
            state(Type="Wait", Timestamp="2016-12-05 21:29:29Z", End=True),
            SCHEMA + "String does not match RFC3339 timestamp at /States/X/Timestamp",
        ),
        (
            state(Type="Task", Resource="arn:aws:states:::dynamodb:query", End=True),
            SCHEMA + "The resource provided arn:aws:states:::dynamodb:query is not recognized. The "
            "value is not a valid resource ARN, or the resource is not available in this region. "
            "at /States/X/Resource",
        ),
        (
            state(Type="Pass", Parameters={"a.$": "nonsense"}, End=True),
            SCHEMA + "The value for the field 'a.$' must be a valid JSONPath or a valid intrinsic "
            "function call at /States/X/Parameters",
        ),
        (
            state(Type="Task", Resource=ARN, Credentials={}, End=True),
            SCHEMA + "The field 'RoleArn' is required but was missing at /States/X/Credentials",
        ),
        (
            {"QueryLanguage": "JSONata"} | state(Type="Pass", QueryLanguage="JSONPath", End=True),
            SCHEMA + "'QueryLanguage' can not be 'JSONPath' if set to 'JSONata' for whole state "
            "machine at /States/X",
        ),
        (
            state(Type="Pass", End=True, Nope=1),
            SCHEMA + "Field 'Nope' is not supported at /States/X",
        ),
        (
            state(Type="Pass"),
            SCHEMA + "This object should have only one of the following fields: [Next, End] at "
            "/States/X",
        ),
    ],
)
def test_recorded_words(definition: Any, told: str) -> None:
    """What the service refuses is refused with the same reason."""
    assert told in errors(definition)


@pytest.mark.parametrize(
    "fields",
    [
        {"Type": "Pass", "End": True, "Next": "X"},
        {"Type": "Pass", "End": True, "InputPath": "x"},
        {"Type": "Pass", "End": True, "ResultPath": "$.a[*]"},
        {"Type": "Pass", "End": True, "Output": "x"},
        {"Type": "Task", "End": True},
        {"Type": "Task", "Resource": ARN, "End": True, "TimeoutSeconds": 0},
        {"Type": "Task", "Resource": ARN, "End": True, "TimeoutSeconds": 5, "HeartbeatSeconds": 6},
        {"Type": "Task", "Resource": ARN, "End": True, "Retry": [{"ErrorEquals": []}]},
        {
            "Type": "Task",
            "Resource": ARN,
            "End": True,
            "Retry": [{"ErrorEquals": ["A"], "MaxAttempts": -1}],
        },
        {
            "Type": "Task",
            "Resource": ARN,
            "End": True,
            "Retry": [{"ErrorEquals": ["A"], "BackoffRate": 0.5}],
        },
        {
            "Type": "Task",
            "Resource": ARN,
            "End": True,
            "Retry": [{"ErrorEquals": ["A"], "JitterStrategy": "x"}],
        },
        {
            "Type": "Task",
            "Resource": ARN,
            "End": True,
            "Retry": [{"ErrorEquals": ["States.ALL", "A"]}],
        },
        {
            "Type": "Task",
            "Resource": ARN,
            "End": True,
            "Retry": [{"ErrorEquals": ["States.ALL"]}, {"ErrorEquals": ["A"]}],
        },
        {"Type": "Task", "Resource": ARN, "End": True, "Catch": [{"ErrorEquals": ["A"]}]},
        {"Type": "Wait", "End": True},
        {"Type": "Wait", "End": True, "Seconds": -1},
        {"Type": "Wait", "End": True, "Seconds": 1, "SecondsPath": "$.a"},
        {"Type": "Fail", "Cause": "x", "CausePath": "$.x"},
        {"Type": "Fail", "ResultPath": "$.x"},
        {"Type": "Succeed", "End": True},
        {"Type": "Choice", "Choices": []},
        {"Type": "Choice", "Choices": [{"Variable": "$.a", "Next": "X"}]},
        {"Type": "Choice", "Choices": [{"Variable": "$.a", "NumericEquals": "1", "Next": "X"}]},
        {"Type": "Choice", "Choices": [{"NumericEquals": 1, "Next": "X"}]},
        {"Type": "Choice", "Choices": [{"And": [], "Next": "X"}]},
        {"Type": "Map", "End": True},
        {"Type": "Pass", "End": True, "Assign": {"states": 1}},
        {"Type": "Pass", "End": True, "Assign": {"a": 1, "a.$": "$.a"}},
        {"Type": "Pass", "End": True, "Parameters": {"a.$": "States.MathAdd(1, '-1')"}},
        {"Type": "Pass", "End": True, "Parameters": {"a.$": " States.UUID()"}},
        {"Type": "Map", "End": True, "Label": "l", "ItemProcessor": {"StartAt": "Y", "States": {}}},
        {
            "Type": "Pass",
            "End": True,
            "QueryLanguage": "JSONata",
            "Output": "{% $states.result %}",
        },
        {
            "Type": "Task",
            "Resource": ARN,
            "End": True,
            "QueryLanguage": "JSONata",
            "Arguments": "{% $states.result.x %}",
        },
        {
            "Type": "Task",
            "Resource": ARN,
            "End": True,
            "QueryLanguage": "JSONata",
            "Catch": [{"ErrorEquals": ["A"], "Next": "X", "Output": "{% $states.result %}"}],
        },
        {"Type": "Pass", "End": True, "Parameters": {"in": [{"a": 1, "a.$": "$.a"}]}},
        {"Type": "Pass", "End": True, "QueryLanguage": "JSONata", "Output": "{% 1 + %}"},
        {"Type": "Pass", "End": True, "QueryLanguage": "JSONata", "Output": "{% 1"},
        {"Type": "Pass", "End": True, "QueryLanguage": "JSONata", "InputPath": "$.a"},
    ],
)
def test_what_must_be_refused_is_refused_with_its_place(fields: dict[str, Any]) -> None:
    """Each breaks one rule; the message names the state."""
    told = errors(state(**fields))
    assert told
    assert any("/States/X" in problem for problem in told)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"Type": "Map", "ToleratedFailureCount": 1, **PROCESSOR}, "IGNORED_IN_INLINE_MAP"),
        ({"Type": "Map", "ItemReader": READER, **PROCESSOR}, "UNSUPPORTED_IN_INLINE_MAP"),
        (
            {"Type": "Map", "ItemBatcher": {"MaxItemsPerBatch": 2}, **PROCESSOR},
            "UNSUPPORTED_IN_INLINE_MAP",
        ),
        (
            {"Type": "Map", "ResultWriter": {"WriterConfig": {"OutputType": "JSON"}}, **PROCESSOR},
            "UNSUPPORTED_IN_INLINE_MAP",
        ),
        ({"Type": "Task", "Resource": ARN, "TimeoutSeconds": 5, "HeartbeatSeconds": 5}, None),
        (
            {
                "Type": "Task",
                "Resource": ARN,
                "QueryLanguage": "JSONata",
                "Output": "{% $states.result & '$states.errorOutput' %}",
            },
            None,
        ),
    ],
)
def test_what_linters_accept_is_accepted(fields: dict[str, Any], code: str | None) -> None:
    """With a warning where the service would hardly do what the author meant."""
    problems = engine.check(json.dumps(state(End=True, **fields)))
    assert [(problem.severity, problem.code) for problem in problems] == (
        [("WARNING", code)] if code else []
    )


def test_all_problems_are_told_at_once_with_line_and_column() -> None:
    """A text with three problems lists three, errors before warnings, each at its place."""
    text = """{
  "StartAt": "A",
  "States": {
    "A": {"Type": "Pass", "Next": "Nope", "Foo": 1},
    "B": {"Type": "Pass", "Parameters": {"x": "$.y"}, "End": true}
  }
}"""
    problems = engine.check(text)
    places = {(problem.code, problem.line) for problem in problems}
    assert {("MISSING_TRANSITION_TARGET", 4), ("SCHEMA_VALIDATION_FAILED", 4)} <= places
    assert ("NO_DOLLAR", 5) in places
    target = next(problem for problem in problems if problem.location == "/States/A/Next")
    assert (target.line, target.column) == (4, 35)
    assert [problem.severity for problem in problems] == sorted(
        problem.severity for problem in problems
    )


@pytest.mark.parametrize(
    ("resource", "words"),
    [
        ("arn:aws:states:us-east-1:123456789012:activity:a", "Activity ARN"),
        ("arn:aws:states:::sqs:sendMessage.waitForTaskToken", "'.waitForTaskToken'"),
        ("arn:aws:states:::states:startExecution.sync", "'.sync'"),
    ],
)
def test_express_supports_less(resource: str, words: str) -> None:
    """What an Express machine may not call is fine in a Standard one."""
    definition = state(Type="Task", Resource=resource, End=True)
    assert not errors(definition)
    assert any(
        f"Express state machine does not support {words}" in error
        for error in errors(definition, "EXPRESS")
    )


@pytest.mark.parametrize("inner", [True, False])
@pytest.mark.parametrize(
    ("resource", "words"),
    [
        ("arn:aws:states:us-east-1:123456789012:activity:a", "Activity ARN"),
        ("arn:aws:states:::sqs:sendMessage.waitForTaskToken", "'.waitForTaskToken'"),
        ("arn:aws:states:::states:startExecution.sync:2", "'.sync'"),
    ],
)
def test_express_children_support_less(resource: str, words: str, *, inner: bool) -> None:
    """They are Express executions; a stored definition keeps running, and so do its neighbours."""
    task = {"Type": "Task", "Resource": resource, "End": True}
    block = {"StartAt": "T", "States": {"T": task}}
    if inner:
        parallel = {"Type": "Parallel", "Branches": [block], "End": True}
        block = {"StartAt": "P", "States": {"P": parallel}}

    def children(kind: str) -> dict[str, Any]:
        config = {"Mode": "DISTRIBUTED", "ExecutionType": kind}
        return state(Type="Map", ItemProcessor={**block, "ProcessorConfig": config}, End=True)

    assert not errors(children("STANDARD"))
    problems = errors(children("EXPRESS"))
    assert len(problems) == 1
    assert f"Express state machine does not support {words}" in problems[0]
    assert engine.parse_stored(json.dumps(children("EXPRESS")))


def test_express_children_have_no_distributed_map() -> None:
    """An Express execution starts no Map Run."""
    task = {"StartAt": "T", "States": {"T": {"Type": "Pass", "End": True}}}
    config = {"Mode": "DISTRIBUTED", "ExecutionType": "EXPRESS"}
    deep = {"Type": "Map", "ItemProcessor": {**task, "ProcessorConfig": config}, "End": True}
    block = {"StartAt": "M", "States": {"M": deep}, "ProcessorConfig": config}
    problems = errors(state(Type="Map", ItemProcessor=block, End=True))
    assert len(problems) == 1
    assert "Express state machine does not support Distributed Map" in problems[0]


def test_not_json_is_told_as_the_service_parser_does() -> None:
    """Token, line and column stand in the message."""
    problem = engine.check("not a definition")[0]
    assert problem.code == "INVALID_JSON_DESCRIPTION"
    assert problem.location == '[Source: (String)"not a definition"; line: 1, column: 4]'
    assert problem.message.startswith(
        "Unrecognized token 'not': was expecting (JSON String, Number"
    )


def test_large_and_deep_definitions_answer_quickly() -> None:
    """10,000 states take seconds of the processor; too deep a nesting is refused, not a crash."""
    states = {f"S{n}": {"Type": "Pass", "Next": f"S{n + 1}"} for n in range(9_999)}
    states["S9999"] = {"Type": "Succeed"}
    begun = time.process_time()
    assert not errors({"StartAt": "S0", "States": states})
    assert time.process_time() - begun < 3
    deep: dict[str, Any] = state(**PASS)
    for level in range(70):
        deep = {
            "StartAt": f"P{level}",
            "States": {f"P{level}": {"Type": "Parallel", "Branches": [deep], "End": True}},
        }
    assert any("TOO_DEEPLY_NESTED" in error for error in errors(deep))


@pytest.mark.parametrize(
    ("value", "pattern", "holds"),
    [
        ("log-2026.txt", "log-*.txt", True),
        ("log-2026.txt", "log-*.tx", False),
        ("abc", "*", True),
        ("", "*", True),
        ("a*c", "a\\*c", True),
        ("abc", "a\\*c", False),
        ("a\\c", "a\\\\c", True),
        ("[a]", "[a]", True),
        ("a", "[a]", False),
        ("aXbXc", "a*b*c", True),
        ("abab", "*ab", True),
    ],
)
def test_string_matches(value: str, pattern: str, holds: bool) -> None:
    """Only the star is special, and a backslash before it or before itself."""
    assert matches_glob(value, pattern) is holds


def test_string_matches_is_linear() -> None:
    """A pattern that makes backtracking matchers explode is answered at once."""
    begun = time.process_time()
    assert not matches_glob("a" * 60, "*a" * 14 + "*b")
    assert time.process_time() - begun < 0.5


def test_variables_of_each_state() -> None:
    """What DescribeStateMachine lists: names by state, sorted, locals left out."""
    definition = state(
        Type="Pass", Parameters={"a.$": "$x", "b.$": "States.Format('$no', $y.z)"}, End=True
    )
    assert engine.variable_references(json.dumps(definition)) == {"X": ["x", "y"]}
    jsonata = state(
        Type="Pass", QueryLanguage="JSONata", Output="{% ($l := $v; $l + $sum($w)) %}", End=True
    )
    assert engine.variable_references(json.dumps(jsonata)) == {"X": ["v", "w"]}
