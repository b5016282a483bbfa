"""Filter patterns of CloudWatch Logs select the right lines."""

from __future__ import annotations

import json

import pytest

from console.features.logs import patterns

LINE = json.dumps(
    {
        "id": "7",
        "type": "TaskFailed",
        "details": {"error": "Lambda.TooMany", "attempt": 3, "ok": True, "tags": ["a", "b"]},
        "none": None,
    }
)


@pytest.mark.parametrize(
    ("pattern", "matches"),
    [
        ("", True),
        ("TaskFailed", True),
        ("taskfailed", False),
        ("TaskFailed Lambda", True),
        ("TaskFailed Glue", False),
        ("TaskFailed -Lambda", False),
        ("-Glue", True),
        ("?Glue ?Lambda", True),
        ("?Glue ?Batch", False),
        ('"Lambda.TooMany"', True),
        ('"Lambda TooMany"', False),
        ('{ $.type = "TaskFailed" }', True),
        ("{ $.type = TaskFailed }", True),
        ('{ $.type = "Task*" }', True),
        ('{ $.type = "*Succeeded" }', False),
        ('{ $.type != "TaskFailed" }', False),
        ('{ $.missing != "x" }', False),
        ('{ $.type = "Task?ailed" }', False),
        ("{ $.details.attempt = 3 }", True),
        ("{ $.details.attempt > 3 }", False),
        ("{ $.details.attempt >= 3.0 }", True),
        ("{ $.id > 6 }", True),
        ('{ $.details.tags[1] = "b" }', True),
        ('{ $.details.tags[2] = "b" }', False),
        ("{ $.none IS NULL }", True),
        ("{ $.missing IS NULL }", False),
        ("{ $.details.ok IS TRUE }", True),
        ("{ $.details.ok IS FALSE }", False),
        ("{ $.missing NOT EXISTS }", True),
        ("{ $.type NOT EXISTS }", False),
        ('{ $.type = "TaskFailed" && $.details.attempt = 4 }', False),
        ('{ $.type = "X" && $.id = 7 || $.details.attempt = 3 }', True),
        ('{ $.type = "X" && ($.id = 7 || $.details.attempt = 3) }', False),
    ],
)
def test_a_line_matches_or_not(pattern: str, matches: bool) -> None:
    """Terms, phrases, selectors, comparisons, and how they are joined."""
    assert patterns.compile_pattern(pattern)(LINE) is matches


@pytest.mark.parametrize(
    "pattern",
    [
        "{ $.type = ",
        "{ $.type }",
        "{ type = 1 }",
        '{ $.type = "x }',
        "{ $.type = 1 && }",
        "{ ($.type = 1 }",
        "{ $.type = 1 $.id = 2 }",
        "{ $..type = 1 }",
        "{ $.type IS ODD }",
        '"open',
        "{ " + "(" * 3000 + " }",
    ],
)
def test_a_pattern_that_cannot_be_read_is_refused(pattern: str) -> None:
    """With the code of CloudWatch Logs, whatever is wrong with it."""
    with pytest.raises(patterns.InvalidPattern) as caught:
        patterns.compile_pattern(pattern)
    assert caught.value.code == "InvalidParameterException"
