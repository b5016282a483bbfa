"""The intrinsic functions check their arguments and yield what AWS's do."""

from __future__ import annotations

import random
from typing import Any

import pytest

from engine.data.expression import EvaluationScope
from engine.data.intrinsics import compile_intrinsic
from engine.data.paths import PathSyntaxError
from engine.errors import InterpreterError

DATA = {"a": [1, 2, 2, 3], "s": "x,y;z", "o": {"k": 1}, "p": {"k": 2, "m": 3}, "n": 1.5, "t": True}


def call(text: str) -> Any:
    """Evaluate a call over the data above."""
    scope = EvaluationScope(DATA, dict, {}, lambda: random.Random(7))
    return compile_intrinsic(text).evaluate(scope)


@pytest.mark.parametrize("mark", ['"', "n", "t", "u0041", "/"])
def test_a_backslash_stands_before_few_characters(mark: str) -> None:
    r"""Before another one than ' { } and \\ it is refused, as on the service [recorded]."""
    with pytest.raises(PathSyntaxError, match="a backslash only before one of"):
        compile_intrinsic(f"States.Array('a\\{mark}')")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("States.Format('{} and {}', 'a', $.n)", "a and 1.5"),
        ("States.Format('it\\'s \\{{}\\}', null)", "it's {null}"),
        ("States.Format('{}', $.o)", "{k=1}"),
        (r"States.Format('C:\\{}', 'x')", r"C:\x"),
        (r"States.Format('\\\{\}\\')", "\\{}\\"),
        (r"States.Format('a\\b')", r"a\b"),
        (r"States.Format('{}', 'C:\\\{')", r"C:\{"),
        (r"States.Array('\\{\'')", [r"\{'"]),
        ("States.StringToJson('{\"a\":1}')", {"a": 1}),
        ("States.StringToJson('')", None),
        ("States.JsonToString($.o)", '{"k":1}'),
        ("States.Array()", []),
        ("States.Array(1, 'b', null, true, $.o)", [1, "b", None, True, {"k": 1}]),
        ("States.ArrayPartition($.a, 3)", [[1, 2, 2], [3]]),
        ("States.ArrayContains($.a, 3)", True),
        ("States.ArrayContains($.a, true)", False),
        ("States.ArrayRange(1, 9, 2)", [1, 3, 5, 7, 9]),
        ("States.ArrayRange(3, 1, -1)", [3, 2, 1]),
        ("States.ArrayGetItem($.a, 1)", 2),
        ("States.ArrayLength($.a)", 4),
        ("States.ArrayUnique($.a)", [1, 2, 3]),
        ("States.Base64Encode('é')", "w6k="),
        ("States.Base64Decode('w6k=')", "é"),
        ("States.Base64Decode('w6k')", "é"),
        ("States.Base64Decode('YQ')", "a"),
        ("States.Hash('a', 'SHA-1')", "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8"),
        ("States.JsonMerge($.o, $.p, false)", {"k": 2, "m": 3}),
        ("States.MathAdd(1.5, 2)", 4),
        ("States.MathAdd(-2.5, 0)", -2),
        ("States.StringSplit($.s, ',;')", ["x", "y", "z"]),
        ("States.StringSplit(',,,', ',')", []),
        ("States.ArrayLength(States.Array(States.MathAdd(1, 1), 2))", 2),
        ("States.MathRandom(1, 6, 4) ", None),
    ],
)
def test_values(text: str, value: Any) -> None:
    """Each function, with its edge cases."""
    result = call(text)
    if "Random" in text:
        assert result == call(text)
        assert 1 <= result < 6
    else:
        assert result == value


@pytest.mark.parametrize(
    "text",
    [
        "States.StringToJson('{')",
        "States.ArrayPartition($.a, 0)",
        "States.ArrayRange(0, 100000, 1)",
        "States.ArrayRange(0, 9, 0)",
        "States.ArrayGetItem($.a, 9)",
        "States.ArrayLength($.s)",
        "States.Base64Decode('%')",
        "States.Base64Decode('YWJjZ')",
        "States.Base64Decode('YQ=')",
        "States.Hash('a', 'CRC')",
        "States.JsonMerge($.o, $.p, true)",
        "States.MathAdd($.s, 2)",
        "States.MathAdd(2147483647, 1)",
        "States.Format('{} {}', 1)",
        "States.MathRandom(5, 5)",
    ],
)
def test_refused_arguments_fail_the_state(text: str) -> None:
    """The error names the call and what was got."""
    with pytest.raises(InterpreterError) as caught:
        call(text)
    assert "The function 'States." in str(caught.value.cause)


@pytest.mark.parametrize(
    "text",
    [
        "States.Nothing(1)",
        "States.UUID(1)",
        "States.Format('a'",
        "States.Format('a') x",
        "States.Array(1,,2)",
        "States.Array(" * 11 + ")" * 11,
        "not a call",
    ],
)
def test_bad_calls_are_refused_when_the_machine_is_made(text: str) -> None:
    """Unknown names, wrong counts, bad syntax, too much nesting."""
    with pytest.raises(PathSyntaxError):
        compile_intrinsic(text)


@pytest.mark.parametrize(
    ("arguments", "brace", "missing"),
    [
        ("'{} {x}', $.s", "{", "}"),
        ("'{}: {\"k\":1}', $.s", "{", "}"),
        (r"'Hi {}, e.g. \\{ n \\}', $.s", "{", "}"),
        ("'{', $.s", "{", "}"),
        ("'{{}}', $.s", "{", "}"),
        ("'a} {}', $.s", "}", "{"),
        ("$.template, $.s", "{", "}"),
        ("States.Format('{}', $.template), $.s", "{", "}"),
    ],
)
def test_a_brace_of_a_template_is_escaped(arguments: str, brace: str, missing: str) -> None:
    """A brace that is no part of {} stands behind one backslash, or the function fails."""
    scope = EvaluationScope({"s": "S", "template": "{x}"}, dict, {}, lambda: random.Random(7))
    with pytest.raises(InterpreterError) as caught:
        compile_intrinsic(f"States.Format({arguments})").evaluate(scope)
    assert caught.value.name == "States.IntrinsicFailure"
    assert caught.value.cause == (
        f"The function 'States.Format({arguments})' had the following error: Invalid template in "
        f"States.Format: matching '{missing}' not found for '{brace}'."
    )


def test_uuid_and_random_come_from_the_step() -> None:
    """The same seed gives the same values: a step can be replayed."""
    assert call("States.UUID()") == call("States.UUID()")
    assert call("States.MathRandom(0, 1000000)") == call("States.MathRandom(0, 1000000)")


def test_an_argument_that_leads_nowhere_is_told_with_its_function() -> None:
    """The innermost one; a missing variable has words of its own."""
    with pytest.raises(InterpreterError) as missing:
        call("States.Array(1, States.Format('{}', $.nope))")
    assert missing.value.name == "States.Runtime"
    assert str(missing.value.cause).startswith(
        "The function 'States.Format('{}', $.nope)' had the following error: The JsonPath argument "
        "for the field '$.nope' could not be found in the input '{"
    )
    with pytest.raises(InterpreterError, match=r"Variable '\$nope' referenced in"):
        call("States.Array($nope)")
