"""Every action takes any text and any type, or refuses it in AWS's shape."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from console.awsapi import services
from console.awsapi.asgi import parse_params
from console.errors import ServiceError
from tests.console.awsapi.requests import Path, ask, filled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from botocore.model import Shape

    from tests.console.awsapi.world import World

TEXTS = (
    "",
    " ",
    "\x00",
    "a\x00b",
    "\x7f",
    "\ufffe",
    "\U0001f4a5" * 40,
    "x" * 300_000,
    "null",
    "true",
    "1",
    "-1",
    "1e400",
    "NaN",
    '"x"',
    "[]",
    "[1]",
    "{}",
    '{"a": null}',
    '{"a": "\\u0000"}',
    '{"a\\u0000": 1}',
    '{"a": "\\ud800"}',
    '{"a": 1, "a": 2}',
    '{"": {}}',
    "[" * 5_000,
    '{"a":' * 5_000,
    "{",
    '{"a": 1e400}',
    '{"a": 123456789012345678901234567890}',
    "$",
    "$.",
    "$.a[",
    "{% $ %}",
    "{% ( %}",
    "States.Format('{}', $)",
    "' OR 1=1 --",
    "%00",
    "../x",
    "arn:",
    "arn:aws:states:us-east-1:123456789012:stateMachine:a\x00b",
    "arn:aws:s:::" + "x" * 80,
    "arn:aws:states:us-east-1:123456789012:execution:a:\x00",
    "rate(1 day)",
    "cron(0 0 * * ? *)",
    "at(2099-01-01T00:00:00)",
    "at(0001-01-01T00:00:00)",
    "Europe/\x00",
    "../../etc/passwd",
)
TYPES: tuple[Any, ...] = (
    None,
    True,
    1,
    1.5,
    "x",
    [],
    {},
    [None],
    {"a": None},
    [[]],
    [{}],
    {"": ""},
)


def places_in(shape: Shape, path: Path = (), above: tuple[str, ...] = ()) -> Iterator[Path]:
    """Yield the way to every value in a shape."""
    if path:
        yield path
    if shape.name in above:
        return
    if shape.type_name == "structure":
        for name, member in shape.members.items():
            yield from places_in(member, (*path, name), (*above, shape.name))
    elif shape.type_name == "list":
        yield from places_in(shape.member, (*path, 0), (*above, shape.name))


PRESENT: dict[str, dict[str, Any]] = {
    "TestState": {"definition": '{"Type": "Pass", "End": true}', "inspectionLevel": "DEBUG"},
    "PutTargets": {"Targets": [{"Id": "one"}]},
    "CreateSchedule": {"FlexibleTimeWindow": {"Mode": "OFF"}, "ScheduleExpression": "rate(1 day)"},
    "UpdateSchedule": {"FlexibleTimeWindow": {"Mode": "OFF"}, "ScheduleExpression": "rate(1 day)"},
}
"""What else a request needs to come far enough."""
ACTIONS = [
    pytest.param(service, action, id=f"{service.name}-{action}")
    for service in (*services.SERVICES, services.SCHEDULER)
    for action in sorted(service.handlers)
    if service.operation(action).input_shape is not None
]


@pytest.mark.slow
@pytest.mark.parametrize(("service", "action"), ACTIONS)
@pytest.mark.postgres_too
def test_a_value_is_refused_in_the_shape_of_aws_or_taken(
    world: World, samples: dict[str, Any], service: services.ApiService, action: str
) -> None:
    """At each place of the request: a 4xx that says what is wrong, or an answer; no failure."""
    shape = service.operation(action).input_shape
    for path in places_in(shape):
        for value in (*TEXTS, *TYPES):
            whole = filled(shape, samples | PRESENT.get(action, {}), (), None)
            params: dict[str, Any] = _with_value(whole, shape, path, value)
            about = f"{action} {path}: {str(value)[:60]!r}"
            try:
                refused = _refusal(lambda params=params: ask(world, service, action, params))
            except Exception as error:
                raise AssertionError(about) from error
            assert refused is None or (400 <= refused.status < 500 and refused.message), about


def _refusal(call: Callable[[], object]) -> ServiceError | None:
    """Return how a call is refused; None where it is answered, with what can be sent."""
    try:
        json.dumps(call(), allow_nan=False, default=lambda raw: bytes(raw).decode())
    except ServiceError as error:
        return error
    return None


def _with_value(whole: Any, shape: Shape, path: Path, value: Any) -> dict[str, Any]:
    """Return a request with a value at a place; what is above it is made."""
    params: dict[str, Any] = json.loads(json.dumps(whole))
    here: Any = params
    at: Any = shape
    for step, following in zip(path, (*path[1:], None), strict=True):
        at = at.member if step == 0 else at.members[step]
        empty: Any = [None] if following == 0 else {}
        if following is None:
            here[step] = value
            break
        filling = filled(at, {}, (), None)
        present = here[step] if step == 0 or step in here else None
        here[step] = present or (filling if following != 0 or filling else empty)
        here = here[step]
    return params


@pytest.mark.parametrize("body", ["[]", "1", "null", '"x"', "{", "\x00", "[" * 100_000])
def test_a_request_that_is_no_object(body: str) -> None:
    """It is told so, and nothing breaks."""
    with pytest.raises(ServiceError) as refused:
        parse_params({}, body.encode())
    assert refused.value.code == "SerializationException"
