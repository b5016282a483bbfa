"""A filter of a JSONPath compares as Jayway 2.0.0 does, also with texts without quotes."""

from __future__ import annotations

import random
from typing import Any

import pytest

from engine.data.expression import EvaluationScope
from engine.data.intrinsics import compile_intrinsic
from engine.data.paths import PathSyntaxError, compile_path
from tests.engine.runtime.harness import Sim, machine


def select(test: str, *values: Any) -> list[Any]:
    """Return the values whose ``v`` passes a test on ``@.v``."""
    data = {"list": [{"v": value} for value in values] + [{}], "x": "x"}
    scope = EvaluationScope(data, dict, {}, lambda: random.Random(0))
    return [match["v"] for match in compile_path(f"$.list[?({test})]").evaluate(scope)]


@pytest.mark.parametrize(
    ("test", "text"),
    [
        ("@.v==x", "x"),
        ("@.v == x y", "x y"),
        ("@.v==/eggs/cooked/like", "/eggs/cooked/like"),
        ("@.v==ecs.availability-zone", "ecs.availability-zone"),
        ("@.v==arn:aws:s3:::b/*", "arn:aws:s3:::b/*"),
        ("@.v==2024-01-01", "2024-01-01"),
        ("@.v==10.0.0.1", "10.0.0.1"),
        ("@.v==-x", "-x"),
        ("@.v==a,b", "a,b"),
        ("@.v==a@b.c", "a@b.c"),
        ("@.v==a=b", "a=b"),
        ("@.v==a&b|c", "a&b|c"),
        ("@.v==f(x)", "f(x)"),
        ("@.v==it's", "it's"),
        ("@.v==Ä ö", "Ä ö"),
        ("@.v==nullable", "nullable"),
        ("(@.v==x)", "x"),
        ("  @.v  ==  x  ", "x"),
    ],
)
def test_a_text_without_quotes(test: str, text: str) -> None:
    """It goes on to the end of the comparison; blanks around it do not belong to it."""
    assert select(test, text, f"{text}.", 1, None, True) == [text]


@pytest.mark.parametrize(
    ("test", "passing"),
    [
        ("@.v==x && @.v==x", ["x"]),
        ("@.v==x&&@.v!=y z", ["x"]),
        ("@.v==x || @.v==y z", ["x", "y z"]),
        ("!(@.v==x) && @.v", ["y z", 1]),
        ("@.v!=x", ["y z", 1]),
        ("@.v>=x", ["x", "y z"]),
        ("@.v<y", ["x"]),
        ("@.v==$.x", ["x"]),
        ("@.v=='x'", ["x"]),
        ('@.v=="x"', ["x"]),
    ],
)
def test_texts_without_quotes_in_larger_tests(test: str, passing: list[Any]) -> None:
    """``&&``, ``||`` and a parenthesis end them; quoted texts and paths stay what they are."""
    assert select(test, "x", "y z", 1) == passing


@pytest.mark.parametrize(
    ("test", "passing"),
    [
        ("@.v==5", [5, 5.0, "5"]),
        ("@.v=='5'", [5, 5.0, "5"]),
        ("@.v!=5", [True, "true", "x", None]),
        ("@.v>4", [5, 5.0, "5", "true", "x"]),
        ("@.v==true", [True, "true"]),
        ("@.v=='TRUE'", [True]),
        ("@.v==null", [None]),
        ("@.v!=null", [5, 5.0, "5", True, "true", [5], "x"]),
        ("@.v!=[5]", [None]),
        ("@.v!='x'", [5, 5.0, "5", True, "true", None]),
    ],
)
def test_values_of_different_types(test: str, passing: list[Any]) -> None:
    """A literal is what it says to the type of the value; a missing value passes no comparison."""
    values = select(test, 5, 5.0, "5", True, "true", [5], "x", None)
    assert [(type(value), value) for value in values] == [(type(value), value) for value in passing]


@pytest.mark.parametrize(
    ("test", "passing"),
    [
        ("@.v =~ /^.*/metadata.json$/", ["a/metadata.json"]),
        ("@.v =~ /^.*/META.*$/i", ["a/metadata.json"]),
        ("@.v =~ /a/b/ || @.v =~ /x/", ["a/b", "x"]),
        ("@.v =~ /.*/.*/ && @.v != a/b", ["a/metadata.json", "/)/"]),
        (r"@.v =~ /a\/b/", ["a/b"]),
        ("@.v =~ /(a|x)/b/", ["a/b"]),
        ("@.v =~ /(a/)b/", ["a/b"]),
        ("@.v =~ /[/][)][/]/", ["/)/"]),
        ("@.v =~ /x/", ["x"]),
        ("@.v =~ //", [""]),
    ],
)
def test_patterns_with_slashes(test: str, passing: list[str]) -> None:
    """A slash ends a pattern where the comparison ends behind it."""
    assert select(test, "a/metadata.json", "a/b", "x", "/)/", "", 1) == passing


@pytest.mark.parametrize("test", ["@.v==", "@.v== && @.v", "@.v =~ x", "@.v =~ /x", "@.v==x)", "x"])
def test_what_is_no_filter(test: str) -> None:
    """A comparison has a right side, a pattern has an end."""
    with pytest.raises(PathSyntaxError):
        compile_path(f"$.list[?({test})]")


CONTENTS = {"Contents": [{"Key": "a/metadata.json"}, {"Key": "b"}], "a": [{"b": "x, y"}, {"b": 1}]}
KEYS = "$.Contents[?(@.Key =~ /^.*/metadata.json$/)].Key"


@pytest.mark.parametrize(
    ("state", "output"),
    [
        ({"InputPath": "$.a[?(@.b==x, y)].b"}, ["x, y"]),
        ({"InputPath": KEYS}, ["a/metadata.json"]),
        ({"OutputPath": KEYS}, ["a/metadata.json"]),
        ({"Parameters": {"r.$": "$.a[?(@.b == x, y)].b"}}, {"r": ["x, y"]}),
        ({"Parameters": {"r.$": f"States.ArrayLength({KEYS})"}}, {"r": 1}),
        ({"Parameters": {"r.$": "States.Array($.a[?(@.b==x, y)].b, 2)"}}, {"r": [["x, y"], 2]}),
        ({"Parameters": {"r.$": "States.Array($.a[?(@.b =~ /[)]|x.*/)].b)"}}, {"r": [["x, y"]]}),
        ({"InputPath": "$.Contents[*][?(@.Key==b)]"}, [{"Key": "b"}]),
        ({"InputPath": "$.Contents[*][?(@.Key =~ /^.*/metadata.json$/)].Key"}, ["a/metadata.json"]),
    ],
)
def test_filters_in_the_fields_of_a_state(state: dict[str, Any], output: Any) -> None:
    """They are accepted in paths, in templates and in intrinsic functions."""
    assert Sim(machine("P", P={"Type": "Pass", **state}), CONTENTS).output == output


def test_a_filter_in_an_intrinsic_function_ends_where_it_ends() -> None:
    """An apostrophe, a comma or a parenthesis in it ends no argument."""
    scope = EvaluationScope({"a": [{"b": "it's, (so"}]}, dict, {}, lambda: random.Random(0))
    call = compile_intrinsic("States.Array($.a[?(@.b =~ /it's, [(]so/)].b, 'c')")
    assert call.evaluate(scope) == [["it's, (so"], "c"]
