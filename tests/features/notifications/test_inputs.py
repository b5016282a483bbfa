"""A target gets the part of an event that its input settings select."""

from __future__ import annotations

import json
from typing import Any

import pytest

from console.events.addresses import AddressError, address_kind, kind_of_row
from console.features.notifications.inputs import InputError, build_input, check_input

EVENT = json.dumps(
    {
        "version": "0",
        "id": "7bf73129",
        "source": "aws.ec2",
        "time": "2015-11-11T21:29:54Z",
        "detail": {"instance-id": "i-0123", "state": 'say "RUNNING"', "tags": [{"k": 1}]},
    }
)
PATHS = {"instance": "$.detail.instance-id", "state": "$.detail.state", "tags": "$.detail.tags"}


def template(text: str, **paths: str) -> dict[str, Any]:
    """Return the settings of an input transformer."""
    return {"InputTransformer": {"InputPathsMap": paths or PATHS, "InputTemplate": text}}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, EVENT),
        ({"Input": '{"a":1}'}, '{"a":1}'),
        ({"InputPath": "$.detail.tags[0]"}, '{"k":1}'),
        ({"InputPath": "$.detail['instance-id']"}, '"i-0123"'),
        ({"InputPath": "$.nothing.there"}, "null"),
        ({"InputPath": "$.detail[0]"}, "null"),
        (template('"<instance> is up"'), '"i-0123 is up"'),
        (template('{"state": <state>}'), '{"state": "say \\"RUNNING\\""}'),
        (template('{"state": "now <state>"}'), '{"state": "now say \\"RUNNING\\""}'),
        (template('{"tags": <tags>}'), '{"tags": [{"k":1}]}'),
        (template('{"x": "<none>", "y": <none>}'), '{"x": "", "y": ""}'),
        (template('{"at": "<instance>: up", "n": <tags>}'), '{"at": "i-0123: up", "n": [{"k":1}]}'),
        (template('{"rule": <aws.events.rule-name>}'), '{"rule": "r"}'),
    ],
)
def test_a_target_gets(settings: dict[str, Any], expected: str) -> None:
    """All, a text of its own, a part, or a filled template that stays JSON."""
    check_input(settings)
    got = build_input(EVENT, settings, "arn:rule/r", "r")
    assert got == expected
    json.loads(got)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"Input": "no json"}, "Input is not JSON"),
        ({"Input": '{"a": NaN}'}, "Input is not JSON"),
        ({"Input": '{"a": 1e999}'}, "Input is not JSON"),
        ({"InputPath": "detail"}, "is not a path such as"),
        ({"InputPath": "$.a[*]"}, "is not a path such as"),
        ({"Input": "1", "InputPath": "$"}, "Use only one of"),
        (template("x", bad="$..a"), "bad: '"),
        (template('{"<state>": 1}'), "<state> is a key"),
        (template('{"a": {"is <state> now" : 1}}'), "<state> is a key"),
        (template("{<state> : 1}"), "<state> is a key"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], words: str) -> None:
    """Before an event comes."""
    with pytest.raises(InputError, match=words):
        check_input(settings)


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("arn:aws:states:us-east-1:123456789012:stateMachine:m", "machine"),
        ("arn:aws:states:us-east-1:123456789012:stateMachine:m:PROD", "machine"),
        ("arn:aws:sns:us-east-1:123456789012:topic", "sns"),
        ("arn:aws:sqs:us-east-1:123456789012:q.fifo", "sqs"),
        ("arn:aws:events:us-east-1:123456789012:event-bus/other", "events"),
        ("https://example.com/hook?x=1", "webhook"),
        ("mailto:ops@example.com", "email"),
        ("mailto:a@b.c,d@e.f", None),
        ("https://user:secret@example.com/", None),
        ("ftp://example.com", None),
        ("https://", None),
        ("arn:aws:states:us-east-1:123456789012:activity:a", None),
        ("arn:aws:events:us-east-1:123456789012:rule/r", None),
        ("arn:aws:lambda:us-east-1:123456789012:function:f", "lambda"),
        ("arn:aws:lambda:us-east-1:123456789012:layer:f", None),
        ("arn:aws:s3:us-east-1:123456789012:bucket", None),
    ],
)
def test_an_address_is_of_a_kind(address: str, kind: str | None) -> None:
    """What nothing can be sent to is refused with what was wanted."""
    if kind is None:
        with pytest.raises(AddressError, match="is not a target"):
            address_kind(address)
    else:
        assert address_kind(address) == kind


def test_an_address_of_an_earlier_release_has_no_kind() -> None:
    """Pages that list targets show such a row, too."""
    assert kind_of_row("gopher://old") == ""
    assert kind_of_row("mailto:ana@example.com") == "email"
