"""What the service refuses is refused with its code, its place and its sentence.

Sources of the sentences: recordings, and published measurements of ValidateStateMachineDefinition
(docs/explanation/fidelity.md). ``NEWER`` holds what earlier releases accepted: a definition that is
stored already keeps running.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import engine

ARN = "arn:aws:lambda:us-east-1:123456789012:function:f"
ACTIVITY = "arn:aws:states:us-east-1:123456789012:activity:a"
SCHEMA = "SCHEMA_VALIDATION_FAILED"
PASS = {"Type": "Pass", "End": True}
INNER = {"StartAt": "Y", "States": {"Y": PASS}}
INLINE = {"Type": "Map", "ItemProcessor": INNER, "End": True}
JSONATA = {"QueryLanguage": "JSONata"}
GET = "arn:aws:states:::s3:getObject"
LIST = "arn:aws:states:::s3:listObjectsV2"
PUT = "arn:aws:states:::s3:putObject"
BUCKET = {"Bucket": "b", "Key": "k"}
IN_JSONPATH = (
    "The QueryLanguage is set to 'JSONPath', but field '{}' is only supported for the 'JSONata' "
    "QueryLanguage"
)
IN_JSONATA = (
    "The QueryLanguage is set to 'JSONata', but field '{}' is only supported for the 'JSONPath' "
    "QueryLanguage"
)


def state(**fields: Any) -> dict[str, Any]:
    """Return a machine of one state X."""
    return {"StartAt": "X", "States": {"X": fields}}


def distributed(**fields: Any) -> dict[str, Any]:
    """Return a machine of one distributed Map X."""
    config = {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    return state(Type="Map", ItemProcessor={"ProcessorConfig": config, **INNER}, End=True, **fields)


def reader(**config: Any) -> dict[str, Any]:
    """Return a distributed Map that reads a file."""
    return distributed(ItemReader={"Resource": GET, "Parameters": BUCKET, "ReaderConfig": config})


def choice(*rules: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a Choice X whose rules lead to a Succeed."""
    definition = state(Type="Choice", Choices=[{**rule, "Next": "Z"} for rule in rules], **fields)
    definition["States"]["Z"] = {"Type": "Succeed"}
    return definition


def found_problems(definition: Any, kind: str = "STANDARD") -> list[tuple[str, str, str]]:
    """Return code, location and message of each error."""
    text = definition if isinstance(definition, str) else json.dumps(definition)
    return [
        (problem.code, problem.location, problem.message)
        for problem in engine.check(text, kind)
        if problem.severity == "ERROR"
    ]


def only(location: str, message: str, code: str = SCHEMA) -> tuple[str, str, str]:
    """Return a problem as ``found_problems`` tells it."""
    return code, location, message


UNSUPPORTED = [
    *(("TimeoutSeconds", kind) for kind in ("Pass", "Wait", "Choice", "Succeed", "Fail")),
    ("TimeoutSeconds", "Map"),
    ("TimeoutSeconds", "Parallel"),
    *(
        (field, kind)
        for field in ("Catch", "Retry")
        for kind in ("Pass", "Wait", "Choice", "Succeed", "Fail")
    ),
]
GOOD: dict[str, dict[str, Any]] = {
    "Pass": PASS,
    "Wait": {"Type": "Wait", "Seconds": 1, "End": True},
    "Choice": {"Type": "Choice", "Choices": [{"Variable": "$", "IsNull": True, "Next": "Z"}]},
    "Succeed": {"Type": "Succeed"},
    "Fail": {"Type": "Fail"},
    "Map": INLINE,
    "Parallel": {"Type": "Parallel", "Branches": [INNER], "End": True},
}


@pytest.mark.parametrize(("field", "kind"), UNSUPPORTED)
def test_a_field_that_a_type_has_not_is_told_at_the_state(field: str, kind: str) -> None:
    """The 17 combinations that were measured on the service."""
    value: Any = 5 if field == "TimeoutSeconds" else []
    definition = state(**GOOD[kind], **{field: value})
    if kind == "Choice":
        definition["States"]["Z"] = {"Type": "Succeed"}
    message = f"Field '{field}' is not supported"
    assert found_problems(definition) == [only("/States/X", message)]


REFUSED: list[tuple[Any, tuple[str, str, str]]] = [
    # fields
    ({**state(**PASS), "Nope": 1}, only("/", "Field 'Nope' is not supported")),
    (
        {**state(**PASS), "Version": "2.0"},
        only("/Version", "Value should be one of the following: [1.0]"),
    ),
    (state(Type="Pass", Output=1, End=True), only("/States/X", IN_JSONPATH.format("Output"))),
    (
        state(Type="Pass", InputPath="$", End=True, **JSONATA),
        only("/States/X", IN_JSONATA.format("InputPath")),
    ),
    (
        state(
            **{
                **INLINE,
                **JSONATA,
                "ItemProcessor": {
                    "StartAt": "Y",
                    "States": {"Y": {"Type": "Pass", "Output": 1, "End": True}},
                },
            }
        ),
        only("/States/X/ItemProcessor/States/Y", IN_JSONPATH.format("Output")),
    ),
    (
        state(Type="Pass", QueryLanguage="jsonpath", End=True),
        only(
            "/States/X/QueryLanguage", "Value should be one of the following: [JSONPath, JSONata]"
        ),
    ),
    (
        state(Type="Pass", Next="X", End=True),
        only("/States/X", "There should only be one of the following fields: [Next, End]"),
    ),
    (
        state(Type="Wait", Seconds=1, Timestamp="2030-01-01T00:00:00Z", End=True),
        only(
            "/States/X",
            "There should only be one of the following fields: [SecondsPath, Seconds, "
            "TimestampPath, Timestamp]",
        ),
    ),
    (
        state(Type="Wait", End=True),
        only(
            "/States/X",
            "This object should have only one of the following fields: [SecondsPath, Seconds, "
            "TimestampPath, Timestamp]",
        ),
    ),
    (
        state(Type="Map", End=True),
        only(
            "/States/X",
            "This object should have only one of the following fields: [ItemProcessor, Iterator]",
        ),
    ),
    # numbers and types
    (
        state(Type="Task", Resource=ARN, TimeoutSeconds=0, End=True),
        only("/States/X/TimeoutSeconds", "Minimum value is 1"),
    ),
    (
        state(Type="Wait", Seconds=100_000_000, End=True),
        only("/States/X/Seconds", "Maximum value is 99999999"),
    ),
    (
        state(**INLINE, MaxConcurrency="$.x"),
        only("/States/X/MaxConcurrency", "Expected value of type Integer"),
    ),
    (
        state(**INLINE, ToleratedFailurePercentage=105),
        only("/States/X/ToleratedFailurePercentage", "Maximum value is 100.0"),
    ),
    (
        distributed(ToleratedFailurePercentage=-1),
        only("/States/X/ToleratedFailurePercentage", "Minimum value is 0.0"),
    ),
    (
        distributed(ToleratedFailureCount=-1),
        only("/States/X/ToleratedFailureCount", "Minimum value is 0"),
    ),
    (
        state(Type="Pass", End="yes"),
        only("/States/X/End", "Expected value of type Boolean"),
    ),
    # paths
    (
        state(Type="Pass", InputPath="a", End=True),
        only("/States/X/InputPath", "Value must be a valid JSONPath."),
    ),
    (
        state(Type="Pass", ResultPath="$.a[*]", End=True),
        only("/States/X/ResultPath", "Value is not a Reference Path"),
    ),
    (
        choice({"Variable": "a", "IsNull": True}),
        only(
            "/States/X/Choices[0]/Variable",
            "Value is not a Reference Path: Reference path didn't start with '$'",
        ),
    ),
    # choices
    (
        choice({"Variable": "$", "IsNull": True, "IsString": True}),
        only(
            "/States/X/Choices[0]",
            "There should only be one of the following fields: [IsNull, IsString]",
        ),
    ),
    (
        choice({"And": [{"Variable": "$", "IsNull": True}], "Variable": "$"}),
        only(
            "/States/X/Choices[0]",
            "The object must have only one of the following fields, [And, Or, Not, Variable, "
            "Condition]",
        ),
    ),
    (
        choice({"Not": {"Variable": "$", "IsNull": True, "Next": "Z"}}),
        only("/States/X/Choices[0]/Not", "Field 'Next' is not supported"),
    ),
    (
        choice({"Condition": True, "Variable": "$", "IsNull": True}, **JSONATA),
        only("/States/X/Choices[0]", IN_JSONATA.format("Variable")),
    ),
    # errors
    (
        state(Type="Task", Resource=ARN, End=True, Retry=[{"ErrorEquals": ["States.ALL", "a"]}]),
        only("/States/X/Retry[0]/ErrorEquals", "States.ALL must appear alone and at end of list"),
    ),
    (
        state(
            Type="Task",
            Resource=ARN,
            End=True,
            Retry=[{"ErrorEquals": ["States.ALL"]}, {"ErrorEquals": ["a"]}],
        ),
        only("/States/X/Retry[0]/ErrorEquals", "States.ALL must appear alone and at end of list"),
    ),
    (
        state(
            Type="Task",
            Resource=ARN,
            End=True,
            Retry=[{"ErrorEquals": ["a"], "JitterStrategy": "HALF"}],
        ),
        only(
            "/States/X/Retry[0]/JitterStrategy",
            "Value should be one of the following: [NONE, FULL]",
        ),
    ),
    (
        state(Type="Task", Resource=ARN, End=True, Retry=[{"ErrorEquals": ["a"], "X": 1}]),
        only("/States/X/Retry[0]", "Field 'X' is not supported"),
    ),
    (
        state(
            Type="Task", Resource=ARN, End=True, Retry=[{"ErrorEquals": ["a"], "BackoffRate": 0.5}]
        ),
        only("/States/X/Retry[0]/BackoffRate", "Minimum value is 1.0"),
    ),
    # variables
    (
        state(Type="Pass", Assign={"states": 1}, End=True),
        only(
            "/States/X/Assign/states",
            "Cannot assign to reserved variable '$states'.",
            "RESERVED_VARIABLE_NAME",
        ),
    ),
    (
        state(Type="Pass", Assign={"a-b": 1}, End=True),
        only(
            "/States/X/Assign/a-b",
            "Invalid variable name 'a-b': the variable name contains invalid characters.",
            "INVALID_VARIABLE_NAME",
        ),
    ),
    # JSONata
    (
        state(Type="Pass", Output={"v": "{% $states.errorOutput.Error %}"}, End=True, **JSONATA),
        only(
            "/States/X/Output/v",
            "Field '$states.errorOutput' does not exist.",
            "UNSUPPORTED_JSONATA_EXPRESSION",
        ),
    ),
    (
        state(Type="Pass", Output={"v": "{% 1 + %}"}, End=True, **JSONATA),
        only("/States/X/Output/v", "Unexpected end of expression", "INVALID_JSONATA_EXPRESSION"),
    ),
    (
        state(Type="Pass", Output="{% 1", End=True, **JSONATA),
        only("/States/X/Output", "JSONata string must start with {% and end with %}"),
    ),
    # names and the graph
    (
        {"StartAt": "n" * 81, "States": {"n" * 81: PASS}},
        only(
            f"/States/{'n' * 81}",
            f"Invalid State name: State '{'n' * 81}' exceeds the 80-character limit allowed by the "
            "service.",
            "INVALID_STATE_NAME",
        ),
    ),
    (
        {"StartAt": "A", "States": {"A": {"Type": "Pass", "Next": "A"}}},
        only("", "Workflow has no terminal state", "MISSING_END_STATE"),
    ),
    (
        distributed(Label="l" * 41),
        only(
            "/States/X/Label",
            f"Invalid Label name: Label '{'l' * 41}' exceeds the 40-character limit allowed by the "
            "service.",
            "INVALID_LABEL_NAME",
        ),
    ),
]
"""What earlier releases refused, too; the words or the place were others."""

NEWER: list[tuple[Any, tuple[str, str, str]]] = [
    (
        state(Type="Task", Resource="${Function}", End=True),
        only("/States/X/Resource", "Value is not a valid resource ARN"),
    ),
    (
        state(Type="Task", Resource="foo:bar", End=True),
        only("/States/X/Resource", "Value is not a valid resource ARN"),
    ),
    *(
        (
            state(Type="Task", Resource=arn, End=True),
            only(
                "/States/X/Resource",
                f"The resource provided {arn} is not recognized. The value is not a valid resource "
                "ARN, or the resource is not available in this region.",
            ),
        )
        for arn in (
            "arn:aws:swf:us-east-1:123456789012:task:X",
            "arn:aws:states:::aws-sdk:nosuchservice:getObject",
            "arn:aws:states:::aws-sdk:s3:getNothing",
        )
    ),
    (
        state(Type="Task", Resource=ACTIVITY, Credentials={"RoleArn": "a"}, End=True),
        only("/States/X/Credentials", "The field 'Credentials' is not supported for activities"),
    ),
    (
        {
            "StartAt": "X",
            "States": {"X": {**INLINE, "Next": "Y", "End": False}, "Y": PASS},
        },
        only("/States/Y", "Duplicate State name: Y", "DUPLICATE_STATE_NAME"),
    ),
    (
        state(**{**INLINE, "ItemProcessor": {**INNER, **JSONATA}}),
        only("/States/X/ItemProcessor", "Field 'QueryLanguage' is not supported"),
    ),
    (
        state(Type="Map", Iterator={**INNER, **JSONATA}, End=True),
        only("/States/X/Iterator", "Field 'QueryLanguage' is not supported"),
    ),
    (
        {
            "StartAt": "A",
            "States": {
                "A": {"Type": "Pass", "Assign": {"v": 1}, "Next": "X"},
                "X": {
                    **INLINE,
                    "ItemProcessor": {
                        "StartAt": "Y",
                        "States": {"Y": {**PASS, "Assign": {"v": 2}}},
                    },
                },
            },
        },
        only(
            "/States/X/ItemProcessor/States/Y/Assign/v",
            "Invalid variable name 'v': the variable is assigned in an outer scope.",
            "INVALID_VARIABLE_NAME",
        ),
    ),
    (
        state(Type="Pass", Parameters={"a.$": "States.StringToJson('\\\"')"}, End=True),
        only(
            "/States/X/Parameters",
            "The value for the field 'a.$' must be a valid JSONPath or a valid intrinsic function "
            "call",
        ),
    ),
    (
        choice({"Variable": "$", "IsNull": True, "Output": 1}),
        only("/States/X/Choices[0]", IN_JSONPATH.format("Output")),
    ),
    # a Map's paths
    *(
        (
            definition,
            only(f"/States/X/{place}", "Value is not a Reference Path"),
        )
        for definition, place in (
            (state(**INLINE, MaxConcurrencyPath="$.x[*]"), "MaxConcurrencyPath"),
            (state(**INLINE, MaxConcurrencyPath="$$.Execution.Input.n"), "MaxConcurrencyPath"),
            (state(**INLINE, ItemsPath="$..x"), "ItemsPath"),
            (distributed(ToleratedFailureCountPath="$.x[*]"), "ToleratedFailureCountPath"),
            (reader(MaxItemsPath="$$.n"), "ItemReader/ReaderConfig/MaxItemsPath"),
        )
    ),
    (
        state(
            Type="Map",
            ItemProcessor={
                **INNER,
                "ProcessorConfig": {"Mode": "INLINE", "ExecutionType": "EXPRESS"},
            },
            End=True,
        ),
        only("/States/X/ItemProcessor/ProcessorConfig", "Field 'ExecutionType' is not supported"),
    ),
    # ItemReader
    (
        distributed(ItemReader={"Resource": PUT, "Parameters": BUCKET}),
        only(
            "/States/X/ItemReader/Resource",
            "The field 'Resource' does not match any of the allowed values",
        ),
    ),
    (
        distributed(ItemReader={"Parameters": BUCKET}),
        only("/States/X/ItemReader", "These fields are required: [Resource]"),
    ),
    (
        distributed(ItemReader={"Resource": LIST}),
        only("/States/X/ItemReader", "These fields are required: [Parameters]"),
    ),
    (
        reader(InputType="XML"),
        only(
            "/States/X/ItemReader/ReaderConfig/InputType",
            "Value should be one of the following: [CSV, JSON, JSONL, PARQUET, MANIFEST]",
        ),
    ),
    (
        reader(InputType="CSV"),
        only("/States/X/ItemReader/ReaderConfig", "The field 'CSVHeaderLocation' is required"),
    ),
    (
        reader(InputType="JSON", CSVHeaderLocation="FIRST_ROW"),
        only("/States/X/ItemReader/ReaderConfig", "Field 'CSVHeaderLocation' is not supported"),
    ),
    (
        reader(InputType="CSV", CSVHeaderLocation="GIVEN"),
        only("/States/X/ItemReader/ReaderConfig", "These fields are required: [CSVHeaders]"),
    ),
    (
        reader(InputType="JSON", MaxItems=1, MaxItemsPath="$.n"),
        only(
            "/States/X/ItemReader/ReaderConfig",
            "There should only be one of the following fields: [MaxItems, MaxItemsPath]",
        ),
    ),
    (
        reader(InputType="JSONL", ItemsPointer="/a"),
        only("/States/X/ItemReader/ReaderConfig", "Field 'ItemsPointer' is not supported"),
    ),
    (
        reader(InputType="JSON", ItemsPointer="a"),
        only("/States/X/ItemReader/ReaderConfig/ItemsPointer", "Value is not a valid JSON Pointer"),
    ),
    (
        reader(InputType="MANIFEST", ManifestType="ATHENA_DATA"),
        only(
            "/States/X/ItemReader/ReaderConfig/InputType",
            "Value should be one of the following: [CSV, JSONL, PARQUET]",
        ),
    ),
    # ItemBatcher
    (
        distributed(ItemBatcher={}),
        only(
            "/States/X/ItemBatcher",
            "This object should have at least one of the following fields: [MaxItemsPerBatch, "
            "MaxInputBytesPerBatch, MaxItemsPerBatchPath, MaxInputBytesPerBatchPath]",
        ),
    ),
    (
        distributed(ItemBatcher={"MaxItemsPerBatch": 1, "MaxItemsPerBatchPath": "$.n"}),
        only(
            "/States/X/ItemBatcher",
            "There should only be one of the following fields: [MaxItemsPerBatch, "
            "MaxItemsPerBatchPath]",
        ),
    ),
    # ResultWriter
    (
        distributed(ResultWriter={}),
        only(
            "/States/X/ResultWriter",
            "This object should have at least one of the following fields: [Resource, "
            "WriterConfig]",
        ),
    ),
    (
        distributed(ResultWriter={"Resource": PUT}),
        only("/States/X/ResultWriter", "These fields are required: [Parameters]"),
    ),
    (
        distributed(ResultWriter={"Parameters": {"Bucket": "b"}}),
        only("/States/X/ResultWriter", "These fields are required: [Resource]"),
    ),
    (
        distributed(ResultWriter={"Resource": GET, "Parameters": {"Bucket": "b"}}),
        only(
            "/States/X/ResultWriter/Resource",
            "The field 'Resource' does not match any of the allowed values",
        ),
    ),
    (
        distributed(ResultWriter={"WriterConfig": {"Transformation": "SQUEEZE"}}),
        only(
            "/States/X/ResultWriter/WriterConfig/Transformation",
            "Value should be one of the following: [NONE, COMPACT, FLATTEN]",
        ),
    ),
]
"""What earlier releases accepted."""


@pytest.mark.parametrize(("definition", "problem"), REFUSED + NEWER)
def test_code_place_and_sentence(definition: Any, problem: tuple[str, str, str]) -> None:
    """A definition with one problem is refused for that, and for nothing else of the same field."""
    problems = found_problems(definition)
    assert problem in problems
    assert problems.count(problem) == 1


@pytest.mark.parametrize(("definition", "problem"), NEWER)
def test_a_stored_definition_keeps_running(definition: Any, problem: tuple[str, str, str]) -> None:
    """A rule that is newer than a definition does not stop its executions."""
    text = json.dumps(definition)
    with pytest.raises(engine.DefinitionError) as refused:
        engine.parse(text)
    assert problem[2] in str(refused.value)
    machine = engine.parse_stored(text)
    assert machine.text == text


@pytest.mark.parametrize(
    "definition",
    [
        state(**INLINE, MaxConcurrencyPath="$limit"),
        state(**INLINE, ItemsPath="$$.Execution.Input.items"),
        reader(InputType="CSV", CSVHeaderLocation="FIRST_ROW", MaxItemsPath="$maxItems"),
        # pyarrow is in the extra test-full
        pytest.param(reader(InputType="PARQUET"), marks=pytest.mark.slow),
        pytest.param(
            reader(InputType="PARQUET", ManifestType="ATHENA_DATA"), marks=pytest.mark.slow
        ),
        reader(ManifestType="S3_INVENTORY"),
        distributed(ItemReader={"Resource": LIST, "Parameters": BUCKET, "ReaderConfig": {}}),
        distributed(ResultWriter={"WriterConfig": {"Transformation": "NONE"}}),
        distributed(ItemBatcher={"MaxItemsPerBatchPath": "$.n", "MaxInputBytesPerBatch": 262_144}),
        state(Type="Task", Resource="arn:aws-cn:states:::aws-sdk:s3:getObject", End=True),
        # the children of a distributed Map do not see the variables of the outside
        {
            "StartAt": "A",
            "States": {
                "A": {"Type": "Pass", "Assign": {"v": 1}, "Next": "X"},
                "X": {
                    "Type": "Map",
                    "ItemProcessor": {
                        "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
                        "StartAt": "Y",
                        "States": {"Y": {**PASS, "Assign": {"v": 2}}},
                    },
                    "End": True,
                },
            },
        },
    ],
)
def test_what_the_service_takes_is_taken(definition: dict[str, Any]) -> None:
    """The neighbours of what is refused."""
    assert found_problems(definition) == []


def test_the_whole_workflow_has_the_place_null() -> None:
    """A problem without a place is told so in the error of CreateStateMachine."""
    problems = engine.check(
        json.dumps({"StartAt": "A", "States": {"A": {"Type": "Pass", "Next": "A"}}})
    )
    assert str(problems[0]) == "MISSING_END_STATE: Workflow has no terminal state at null"


def test_a_syntax_error_shows_the_beginning_of_the_text_once() -> None:
    """The service's parser shows 500 characters; the linter only says what and where."""
    text = '{"Comment": "' + "x" * 1_000 + '", oops}'
    (problem,) = engine.check(text)
    assert problem.location.startswith('[Source: (String)"{"Comment": "xxx')
    place = f"line: 1, column: {problem.column}]"
    assert problem.location.endswith(f'"[truncated {len(text) - 500} chars]; {place}')
    assert str(problem).count("Source") == 1
    told = engine.LINT_FORMATS["text"]("a.json", [problem])
    assert len(told) < 200
    assert "a.json:1:" in told


def test_a_name_that_stands_twice_in_one_object_is_refused() -> None:
    """JSON lets the last one win: a state would vanish without a word, however deep it stands."""
    inner = '{"StartAt": "B", "States": {"B": {"Type": "Fail"}, "B": {"Type": "Succeed"}}}'
    outer = '{"StartAt": "A", "States": {"A": {"Type": "Parallel", "Branches": [%s], "End": true}}}'
    assert found_problems(outer % inner) == [
        only("/States/A/Branches[0]/States/B", "Duplicate State name: B", "DUPLICATE_STATE_NAME")
    ]
    assert engine.parse_stored(outer % inner).text == outer % inner
    other = '{"Comment": "a", "Comment": "b", "StartAt": "A", "States": {"A": {"Type": "Succeed"}}}'
    assert found_problems(other) == []


class NoPackages:
    """A platform that can call everything and read nothing."""

    def knows_action(self, service: str, action: str) -> bool:
        """Know every action."""
        return bool(service and action)

    def unsupported_fields(self, resource: engine.Resource, template: object) -> tuple[str, ...]:
        """Know every field."""
        del resource, template
        return ()

    def parameter_problem(self, resource: engine.Resource, state: str, parameters: object) -> str:
        """Accept all parameters."""
        del resource, state, parameters
        return ""

    def wrong_values(self, resource: engine.Resource, template: object) -> tuple[str, ...]:
        """Take every value."""
        del resource, template
        return ()

    def missing_reader(self, input_type: str) -> str:
        """Miss the package of each type."""
        return f"{input_type} cannot be read here"


@pytest.mark.slow  # pyarrow is in the extra test-full
def test_a_type_of_file_that_cannot_be_read_is_refused_at_once() -> None:
    """What is missing is said when the machine is made, and a stored machine still parses."""
    definition = json.dumps(reader(InputType="PARQUET"))
    able = engine.language.platform.current_platform()
    engine.use_platform(NoPackages())
    try:
        place = "/States/X/ItemReader/ReaderConfig/InputType"
        assert found_problems(definition) == [only(place, "PARQUET cannot be read here")]
        assert engine.parse_stored(definition).text == definition
    finally:
        engine.use_platform(able)
    assert found_problems(definition) == []
