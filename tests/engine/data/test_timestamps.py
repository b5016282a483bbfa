"""A timestamp is one of RFC 3339 wherever it stands: in Choice, in Wait, in text and in input."""

from __future__ import annotations

import json
from typing import Any

import pytest

import engine

GOOD = {
    "2024-01-01T00:00:00Z": "2024-01-01T00:00:00.000000000+00:00",
    "2024-01-01T02:00:00+02:00": "2023-12-31T23:59:00-00:01",
    "2024-01-01T00:00:00.123456789Z": "2024-01-01T01:00:00.123456789+01:00",
    "0001-01-01T00:00:00+23:59": "0001-01-01T00:00:00+23:59",
}
BAD = [
    "2024-W01-1T00:00:00Z",
    "20240101T000000Z",
    "20240101T000000+00:00",
    "2024-01-01T00Z",
    "2024-01-01T00:00Z",
    "2024-01-01T000000Z",
    "2024-01-01T00:00:00,5Z",
    "2024-01-01T00:00:00.Z",
    "2024-01-01t00:00:00Z",
    "2024-01-01T00:00:00z",
    "2024-01-01T00:00:00",
    "2024-02-30T00:00:00Z",
    "\uff12024-01-01T00:00:00Z",
]


def choose(rule: dict[str, Any], data: Any) -> Any:
    """Return whether a rule holds."""
    states = {
        "C": {"Type": "Choice", "Choices": [{**rule, "Next": "Y"}], "Default": "N"},
        "Y": {"Type": "Pass", "Result": True, "End": True},
        "N": {"Type": "Pass", "Result": False, "End": True},
    }
    return engine.run({"StartAt": "C", "States": states}, data).output


def wait(**until: str) -> dict[str, Any]:
    """Return a machine of one Wait."""
    return {"StartAt": "W", "States": {"W": {"Type": "Wait", **until, "End": True}}}


@pytest.mark.parametrize("text", GOOD)
def test_what_is_one(text: str) -> None:
    """Two of the same moment are equal, with whatever offset and fraction they are written."""
    data = {"a": text, "b": GOOD[text]}
    assert choose({"Variable": "$.a", "IsTimestamp": True}, data)
    assert choose({"Variable": "$.a", "TimestampEqualsPath": "$.b"}, data)
    assert choose({"Variable": "$.b", "TimestampLessThanEquals": text}, data)
    assert engine.run(wait(Timestamp=text), {}).status == "SUCCEEDED"
    assert engine.run(wait(TimestampPath="$.a"), data).status == "SUCCEEDED"


@pytest.mark.parametrize("text", BAD)
def test_what_is_none(text: str) -> None:
    """It was one for Choice, and for a Wait when it was created, which then failed."""
    data = {"a": text}
    assert not choose({"Variable": "$.a", "IsTimestamp": True}, data)
    assert not choose({"Variable": "$.a", "TimestampGreaterThan": "0001-01-01T00:00:00Z"}, data)
    failed = engine.run(wait(TimestampPath="$.a"), data)
    assert (failed.status, failed.error) == ("FAILED", "States.Runtime")
    said = "String does not match RFC3339 timestamp at /States/W/Timestamp"
    with pytest.raises(engine.DefinitionError, match=said):
        engine.parse(json.dumps(wait(Timestamp=text)))
    assert engine.parse_stored(json.dumps(wait(Timestamp=text)))


def test_fractions_count_to_the_nanosecond() -> None:
    """They were cut to microseconds."""
    data = {"a": "2024-01-01T00:00:00.0000001Z", "b": "2024-01-01T00:00:00.0000002Z"}
    assert choose({"Variable": "$.a", "TimestampLessThanPath": "$.b"}, data)
    assert not choose({"Variable": "$.a", "TimestampEqualsPath": "$.b"}, data)
