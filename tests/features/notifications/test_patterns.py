"""The pattern language matches exactly what EventBridge's documentation says."""

from __future__ import annotations

import json
from typing import Any

import pytest

from console.features.notifications.patterns import PatternError, parse_pattern

EVENT: dict[str, Any] = {
    "version": "0",
    "id": "6a7e8feb-b491-4cf7-a9f1-bf3703467718",
    "detail-type": "EC2 Instance State-change Notification",
    "source": "aws.ec2",
    "account": "111122223333",
    "time": "2017-12-22T18:43:48Z",
    "region": "us-west-1",
    "resources": ["arn:aws:ec2:us-west-1:123456789012:instance/i-1234567890abcdef0"],
    "detail": {
        "instance-id": "i-1234567890abcdef0",
        "state": "terminated",
        "c-count": 5,
        "d-count": 10,
        "x-limit": 301.8,
        "source-ip": "10.0.0.123",
        "eventVersion": "",
        "responseElements": None,
        "FileName": "photo.PNG",
        "EventBusArn": "arn:aws:events:us-east-1:123456789012:event-bus/myEventBus",
        "initializing": True,
        "location": [{"city": "Rome", "zip": 1}, {"city": "Oslo", "zip": 2}],
    },
}


def detail(**fields: Any) -> dict[str, Any]:
    """Return a pattern of the detail."""
    return {"detail": {name.replace("_", "-"): value for name, value in fields.items()}}


MATCHES: list[tuple[str, dict[str, Any], bool]] = [
    ("a value", {"source": ["aws.ec2"]}, True),
    ("another value", {"source": ["aws.states"]}, False),
    ("one of some", {"source": ["aws.states", "aws.ec2"]}, True),
    ("all fields", {"source": ["aws.ec2"], "region": ["eu-west-1"]}, False),
    ("an array meets one of its items", {"resources": [EVENT["resources"][0]]}, True),
    ("case counts", detail(state=["Terminated"]), False),
    ("true", detail(initializing=[True]), True),
    ("true is not the text", detail(initializing=["true"]), False),
    ("the empty string", detail(eventVersion=[""]), True),
    ("the empty string is not null", detail(eventVersion=[None]), False),
    ("null", detail(responseElements=[None]), True),
    ("null is not missing", detail(nothing=[None]), False),
    ("a number", detail(c_count=[5]), True),
    ("a number is compared as it is written", detail(c_count=[5.0]), False),
    ("a number is not its text", detail(c_count=["5"]), False),
    ("prefix", {"region": [{"prefix": "us-"}]}, True),
    ("prefix, no", {"region": [{"prefix": "eu-"}]}, False),
    ("prefix without case", detail(FileName=[{"prefix": {"equals-ignore-case": "PHO"}}]), True),
    ("suffix", detail(FileName=[{"suffix": ".PNG"}]), True),
    ("suffix, no", detail(FileName=[{"suffix": ".png"}]), False),
    ("suffix without case", detail(FileName=[{"suffix": {"equals-ignore-case": ".png"}}]), True),
    ("equals-ignore-case", {"detail-type": [{"equals-ignore-case": EVENT["detail-type"]}]}, True),
    ("equals-ignore-case, no", detail(state=[{"equals-ignore-case": "running"}]), False),
    ("anything-but", detail(state=[{"anything-but": "initializing"}]), True),
    ("anything-but, no", detail(state=[{"anything-but": "terminated"}]), False),
    ("anything-but a number", detail(x_limit=[{"anything-but": 123}]), True),
    ("anything-but strings", detail(state=[{"anything-but": ["stopped", "terminated"]}]), False),
    ("anything-but numbers", detail(c_count=[{"anything-but": [100, 200]}]), True),
    ("anything-but prefix", detail(state=[{"anything-but": {"prefix": "init"}}]), True),
    ("anything-but prefixes", detail(state=[{"anything-but": {"prefix": ["x", "ter"]}}]), False),
    ("anything-but suffix", detail(FileName=[{"anything-but": {"suffix": ".txt"}}]), True),
    (
        "anything-but suffixes",
        detail(FileName=[{"anything-but": {"suffix": [".txt", ".PNG"]}}]),
        False,
    ),
    (
        "anything-but without case",
        detail(state=[{"anything-but": {"equals-ignore-case": ["TERMINATED", "x"]}}]),
        False,
    ),
    ("anything-but wildcard", detail(state=[{"anything-but": {"wildcard": "t*d"}}]), False),
    ("anything-but of what is missing", detail(nothing=[{"anything-but": "x"}]), False),
    ("numeric", detail(c_count=[{"numeric": [">", 0, "<=", 5]}]), True),
    ("numeric below", detail(d_count=[{"numeric": ["<", 10]}]), False),
    ("numeric is no matter of writing", detail(x_limit=[{"numeric": ["=", 3.018e2]}]), True),
    ("numeric of a text", detail(state=[{"numeric": [">", 0]}]), False),
    ("cidr", detail(source_ip=[{"cidr": "10.0.0.0/24"}]), True),
    ("cidr, no", detail(source_ip=[{"cidr": "10.0.1.0/24"}]), False),
    ("cidr of no address", detail(state=[{"cidr": "10.0.0.0/24"}]), False),
    ("exists", detail(c_count=[{"exists": True}]), True),
    ("exists, null", detail(responseElements=[{"exists": True}]), True),
    ("exists, missing", detail(nothing=[{"exists": True}]), False),
    ("exists not", detail(nothing=[{"exists": False}]), True),
    ("exists not, below what is missing", detail(nothing={"deep": [{"exists": False}]}), True),
    ("exists not, no", detail(c_count=[{"exists": False}]), False),
    ("exists is of leaves", {"detail": [{"exists": True}]}, False),
    ("missing or a value", detail(state=[{"exists": False}, "terminated"]), True),
    ("wildcard", detail(EventBusArn=[{"wildcard": "*:event-bus/my*Bus"}]), True),
    ("wildcard, no", detail(EventBusArn=[{"wildcard": "*:event-bus/your*"}]), False),
    ("wildcard of nothing", detail(state=[{"wildcard": "terminated*"}]), True),
    ("wildcard does not overlap", detail(state=[{"wildcard": "terminated*ed"}]), False),
    ("wildcard, escaped", detail(state=[{"wildcard": r"termin\*"}]), False),
    (
        "or",
        {
            "detail": {
                "$or": [
                    {"c-count": [{"numeric": [">", 10]}]},
                    {"d-count": [{"numeric": ["<", 8]}]},
                    {"x-limit": [{"numeric": ["=", 301.8]}]},
                ]
            }
        },
        True,
    ),
    ("or, none", {"$or": [{"source": ["a"]}, {"source": ["b"]}]}, False),
    (
        "or beside a field",
        {"region": ["eu-west-1"], "$or": [{"source": ["aws.ec2"]}, {"source": ["b"]}]},
        False,
    ),
    (
        "or in or",
        {"$or": [{"source": ["x"]}, {"$or": [{"source": ["y"]}, {"source": ["aws.ec2"]}]}]},
        True,
    ),
    ("objects in an array", detail(location={"city": ["Oslo"]}), True),
    ("of one object in the array", detail(location={"city": ["Oslo"], "zip": [1]}), False),
]


@pytest.mark.parametrize(
    ("what", "pattern", "expected"), MATCHES, ids=[case[0] for case in MATCHES]
)
def test_a_pattern_lets_through(what: str, pattern: dict[str, Any], expected: bool) -> None:
    """Each operator of the documentation, met and missed."""
    assert parse_pattern(json.dumps(pattern)).matches(json.dumps(EVENT)) is expected


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("", "no JSON"),
        ("[]", "The pattern must be a JSON object"),
        ("{}", "the pattern: an empty object matches nothing"),
        ('{"source": "aws.ec2"}', '"source" must be an object or an array'),
        ('{"source": []}', "source: an empty array matches nothing"),
        ('{"detail": {}}', "detail: an empty object matches nothing"),
        ('{"a": {"b": [["c"]]}}', "a.b: an array cannot stand in an array of values"),
        ('{"a": [{"like": "x"}]}', "a: 'like' is not an operator. Use one of prefix"),
        ('{"a": [{"prefix": "x", "suffix": "y"}]}', "a has 2 operators in one object"),
        ('{"a": [{"prefix": 1}]}', "a.prefix must be a string"),
        ('{"a": [{"numeric": [">"]}]}', "a.numeric must be one or two pairs"),
        ('{"a": [{"numeric": ["~", 1]}]}', "a.numeric must have an operator"),
        ('{"a": [{"numeric": [">", "1"]}]}', "a.numeric must have a number"),
        ('{"a": [{"numeric": [">", 6e9]}]}', "a.numeric must have a number"),
        ('{"a": [{"numeric": ["<", 1, ">", 2]}]}', "a range begins with"),
        ('{"a": [{"numeric": [">", 2, "<", 1]}]}', "not below its top"),
        ('{"a": [{"cidr": "10.0.0/8"}]}', "a.cidr must be addresses such as"),
        ('{"a": [{"exists": "yes"}]}', "a.exists must be true or false"),
        ('{"a": [{"anything-but": []}]}', "a.anything-but: the list is empty"),
        ('{"a": [{"anything-but": ["x", 1]}]}', "only strings or only numbers"),
        ('{"a": [{"anything-but": {"cidr": "x"}}]}', "is not prefix, suffix"),
        ('{"a": [{"wildcard": "a**b"}]}', "two \\* beside each other"),
        ('{"a": [{"wildcard": "a\\\\b"}]}', "a backslash stands before"),
        ('{"$or": [{"a": ["b"]}]}', "at least two objects"),
        ('{"a": ["' + "x" * 4096 + '"]}', "At most 4096 are accepted"),
    ],
)
def test_a_wrong_pattern_is_refused_with_its_place(pattern: str, words: str) -> None:
    """The message says where, the value and the accepted ones."""
    with pytest.raises(PatternError, match=words):
        parse_pattern(pattern)


def test_a_wildcard_costs_no_more_than_the_text_is_long() -> None:
    """Many stars and a long text that nearly matches are answered at once."""
    pattern = parse_pattern(json.dumps({"a": [{"wildcard": "*a" * 60 + "*b"}]}))
    assert not pattern.matches(json.dumps({"a": "a" * 200_000}))
