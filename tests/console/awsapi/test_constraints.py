"""Every member of every action is held to its constraints, in the words of the service.

The table is made of botocore's model: required members, lengths, values, patterns, enums and types.
Sources of the words: recordings (docs/explanation/fidelity.md), and answers of the service that
users published: ``wolfeidau/buildkite-serverless-agent`` issue 37 for the length of a name, the
tests of ``aws_api_step_functions`` by Fujitsu for a sensitive member that is missing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from console.awsapi import services, shapes
from console.errors import ErrorCode, ProtocolError, ServiceError, ValidationException
from tests.refusals import raises_code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from botocore.model import Shape

MODEL = shapes.service_model()
ARN = "arn:aws:states:us-east-1:123456789012:stateMachine:x"
SAMPLES = {"CharacterRestrictedName": "live", "ClientToken": "t", "LogGroupArn": "arn:x:*"}
"""Shape -> a value that its pattern takes."""
WRONG_TYPE: dict[str, Any] = {
    "string": 5,
    "boolean": "true",
    "integer": "5",
    "long": 1.5,
    "float": "1",
    "list": {},
    "structure": [],
}


class Member(NamedTuple):
    """A member of a request: where it is, how the service names that place, and its shape."""

    action: str
    path: tuple[str | int, ...]
    place: str
    shape: Shape
    required: bool


def members(action: str, shape: Shape, path: tuple[Any, ...], place: str) -> Iterator[Member]:
    """Yield every member of a structure, those of nested ones and of lists, too."""
    for name, inner in shape.members.items():
        here, there = (*path, name), f"{place}{name}"
        yield Member(action, here, there, inner, name in shape.required_members)
        if inner.type_name == "structure":
            yield from members(action, inner, here, f"{there}.")
        elif inner.type_name == "list":
            element, spot = inner.member, f"{there}.1.member"
            yield Member(action, (*here, 0), spot, element, required=False)
            if element.type_name == "structure":
                yield from members(action, element, (*here, 0), f"{spot}.")


EVERY = [
    member
    for action in sorted(MODEL.operation_names)
    for member in members(action, MODEL.operation_model(action).input_shape, (), "")
]


def sample(shape: Shape) -> Any:
    """Return a value that a shape takes, with what it requires."""
    kind, limits = shape.type_name, shape.metadata
    if kind == "structure":
        return {name: sample(shape.members[name]) for name in shape.required_members}
    if kind == "list":
        return [sample(shape.member)]
    if kind == "string":
        value: str = SAMPLES.get(shape.name) or limits.get("enum", ["x"])[0]
        return value
    return True if kind == "boolean" else limits.get("min", 1)


def request_with(member: Member, value: Any) -> dict[str, Any]:
    """Return a request of the member's action in which only that member may be wrong."""
    shape: Any = MODEL.operation_model(member.action).input_shape
    request: Any = sample(shape)
    inside = request
    for step, following in zip(member.path, (*member.path[1:], None), strict=True):
        shape = shape.member if isinstance(step, int) else shape.members[step]
        if following is None:
            inside[step] = value
        elif isinstance(inside, dict) and step not in inside:
            inside[step] = sample(shape)
        inside = inside[step]
    return request  # type: ignore[no-any-return]


def refusal(member: Member, value: Any) -> str:
    """Return the message of the ValidationException for a value of a member."""
    with pytest.raises(ValidationException) as caught:
        shapes.check_params(MODEL.operation_model(member.action), request_with(member, value))
    return caught.value.message


def expected(member: Member, shown: str, constraint: str) -> str:
    """Return the service's words: a sensitive value is left out."""
    value = "Value" if member.shape.metadata.get("sensitive") else f"Value {shown}"
    return (
        f"1 validation error detected: {value} at '{member.place}' failed to satisfy constraint: "
        f"Member must {constraint}"
    )


def cases(limit: str, *kinds: str) -> list[Any]:
    """Return the members that have a limit, as parameters of a test."""
    members = [
        member
        for member in EVERY
        if (not limit or member.shape.metadata.get(limit))
        and (not kinds or member.shape.type_name in kinds)
    ]
    return [pytest.param(member, id=f"{member.action}-{member.place}") for member in members]


def test_the_table_has_every_action() -> None:
    """37 actions, each with its members."""
    without = {"ListStateMachines", "ListActivities"} - {member.action for member in EVERY}
    assert len(MODEL.operation_names) == 37
    assert not without
    assert {member.action for member in EVERY} == set(MODEL.operation_names)


@pytest.mark.parametrize("member", cases("", *WRONG_TYPE))
def test_a_good_value_is_taken_and_another_type_is_not(member: Member) -> None:
    """A value of another type cannot be read; null is as good as nothing, and is not stored."""
    model = MODEL.operation_model(member.action)
    shapes.check_params(model, request_with(member, sample(member.shape)))
    with raises_code(ErrorCode.SerializationException):
        shapes.check_params(model, request_with(member, WRONG_TYPE[member.shape.type_name]))
    if not member.required and isinstance(member.path[-1], str):
        params = request_with(member, None)
        shapes.check_params(model, params)
        assert "null" not in json.dumps(params)


@pytest.mark.parametrize(
    "member",
    [case for case in cases("") if case.values[0].required],
)
def test_a_required_member_must_be_there(member: Member) -> None:
    """Null and nothing are the same."""
    message = expected(member, "null", "not be null")
    assert refusal(member, None) == message


@pytest.mark.parametrize(
    "member",
    [case for case in cases("max", "string") if case.values[0].shape.name != "TaskToken"],
)
def test_a_text_is_not_too_long(member: Member) -> None:
    """Payloads are counted in bytes of UTF-8, everything else in characters."""
    most = member.shape.metadata["max"]
    if member.shape.name == "SensitiveData":
        size = f"have size less than or equal to {most} bytes in UTF-8 encoding"
        assert refusal(member, "é" * (most // 2 + 1)) == expected(member, "", size)
        return
    text = "x" * (most + 1)
    length = f"have length less than or equal to {most}"
    assert refusal(member, text).startswith(expected(member, f"'{text}'", length))


@pytest.mark.parametrize("action", ["SendTaskSuccess", "SendTaskFailure", "SendTaskHeartbeat"])
def test_a_task_token_that_is_too_long_is_for_the_action_to_refuse(action: str) -> None:
    """It answers InvalidToken, as for every text that was never a token."""
    model = MODEL.operation_model(action)
    params = sample(model.input_shape) | {"taskToken": "x" * 2049}
    shapes.check_params(model, params)


@pytest.mark.parametrize("member", cases("min", "string"))
def test_a_text_is_not_too_short(member: Member) -> None:
    """An empty text is one of no characters, not nothing."""
    length = f"have length greater than or equal to {member.shape.metadata['min']}"
    message = refusal(member, "")
    assert expected(member, "''", length).partition("detected: ")[2] in message


@pytest.mark.parametrize("member", cases("max", "integer", "long", "float"))
def test_a_number_is_not_too_large(member: Member) -> None:
    """The greatest value itself is taken."""
    most = member.shape.metadata["max"]
    shapes.check_params(MODEL.operation_model(member.action), request_with(member, most))
    value = f"have value less than or equal to {most}"
    assert refusal(member, most + 1) == expected(member, f"'{most + 1}'", value)


@pytest.mark.parametrize(
    "member",
    [
        case
        for case in cases("", "integer", "long", "float")
        if "min" in case.values[0].shape.metadata
    ],
)
def test_a_number_is_not_too_small(member: Member) -> None:
    """The least value itself is taken: 0 items a page are the default number."""
    least = member.shape.metadata["min"]
    shapes.check_params(MODEL.operation_model(member.action), request_with(member, least))
    value = f"have value greater than or equal to {least}"
    assert refusal(member, least - 1) == expected(member, f"'{least - 1}'", value)


@pytest.mark.parametrize("member", cases("enum", "string"))
def test_a_word_is_one_of_its_set(member: Member) -> None:
    """In its own spelling only."""
    word = member.shape.metadata["enum"][0].lower()
    message = refusal(member, word)
    assert message.startswith(expected(member, f"'{word}'", "satisfy enum value set: ["))


@pytest.mark.parametrize("member", cases("pattern", "string"))
def test_a_text_matches_its_pattern(member: Member) -> None:
    """The whole text does."""
    pattern = member.shape.metadata["pattern"]
    message = expected(member, "'é'", f"satisfy regular expression pattern: {pattern}")
    assert refusal(member, "é") == message


@pytest.mark.parametrize("action", sorted(MODEL.operation_names))
def test_an_unknown_member_violates_no_constraint(action: str) -> None:
    """A newer SDK may send what this model does not have; ``members`` refuses it."""
    model = MODEL.operation_model(action)
    shapes.check_params(model, {**sample(model.input_shape), "newMember": {"a": 1}})


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValidationException("x"), "com.amazon.coral.validate#ValidationException"),
        (
            ServiceError(ErrorCode.InvalidArn, "x"),
            "com.amazonaws.swf.service.v2.model#InvalidArn",
        ),
        (
            ProtocolError(ErrorCode.UnknownOperationException, "x"),
            "com.amazon.coral.service#UnknownOperationException",
        ),
        (
            ProtocolError(ErrorCode.SerializationException, "x"),
            "com.amazon.coral.service#SerializationException",
        ),
    ],
)
def test_an_error_says_who_refuses(error: ServiceError, kind: str) -> None:
    """The constraints, the operation, or the framework in front of them."""
    assert services.STATES.error_answer(error)[1]["__type"] == kind
