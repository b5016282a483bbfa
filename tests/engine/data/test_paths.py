"""A JSONPath selects what Jayway's dialect selects."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest

from engine.data.expression import ABSENT, ROOT, EvaluationScope
from engine.data.intrinsics import compile_intrinsic
from engine.data.paths import (
    REPLACE,
    PathSyntaxError,
    compile_path,
    compile_result_path,
    is_reference_path,
)
from engine.errors import InterpreterError

DATA = {
    "a": [1, 2, 3, {"b": 5}],
    "s": {"x": "v", "y": 2},
    "日本": {"k": 1},
    "it's": 4,
    'Test\\""Name"': 9,
    "a b": 2,
    "title": "T",
    "sum": 7,
    "null": None,
    "calls": {"length()": 6},
    "$metadata": {"a$b": 8},
    "sessions": [{"id": 1, "x": None}, {"id": 2, "x": {}}, {"id": 3}, {"id": 4, "x": False}],
    "list": [{"s": "failed", "n": 1, "t": ["x"]}, {"s": "ok", "n": 5, "t": []}],
}


def scope(value: Any = DATA) -> EvaluationScope:
    """Return a scope with a context object and a variable."""
    context = {"Execution": {"Id": "arn"}}
    return EvaluationScope(value, lambda: context, {"v": {"a": [1, 2]}}, lambda: random.Random(0))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$.a[0]", 1),
        ("$.a[(@.length-1)].b", 5),
        ("$.a[(@.length - 4)]", 1),
        ("$['a'][1]", 2),
        ("$.日本.k", 1),
        ("$['it\\'s']", 4),
        (r"""$['Test\\""Name"']""", 9),
        (r"""$["Test\\\"\"Name\""]""", 9),
        (r"""$['Test\""Name"']""", 9),
        ("$['a b']", 2),
        ("$['title','sum']", {"title": "T", "sum": 7}),
        ("$.null", None),
        ("$.a[9]", None),
        ("$.a[-1]", None),
        ("$.a[-9]", None),
        ("$.a[(@.length-9)]", None),
        ("$.s['x','no']", {"x": "v"}),
        ("$.s['no','nothing']", {}),
        ("$$.Execution.Id", "arn"),
        ("$v.a[1]", 2),
        ("$.calls.length()", 6),
        ("$.calls['length()']", 6),
        ("$.$metadata.a$b", 8),
    ],
)
def test_definite_paths_yield_the_value(path: str, value: Any) -> None:
    """Members and single indexes; beyond an array there is null."""
    assert compile_path(path).evaluate(scope()) == value


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("$.a[0,2]", [1, 3]),
        ("$.a[1:3]", [2, 3]),
        ("$.a[:2]", [1, 2]),
        ("$.a[-2:]", [3, {"b": 5}]),
        ("$.a[*]", [1, 2, 3, {"b": 5}]),
        ("$.list[*].n", [1, 5]),
        ("$..b", [5]),
        ("$..nothing", []),
        ("$.list[?(@.s == 'failed')].n", [1]),
        ("$.list[?(@.n > 2 && @.s == 'ok')].n", [5]),
        ("$.sessions[?(!@.x)].id", [1, 3]),
        ("$.sessions[?(@.x)].id", [2, 4]),
        ("$.sessions[?(@.x == null)].id", [1]),
        ("$.list[?(@.n < 2 || @.n >= 5)].n", [1, 5]),
        ("$.list[?(@.s =~ /F.*/i)].n", [1]),
        ("$.list[?(@.s in ['ok','x'])].n", [5]),
        ("$.list[?(@.s nin ['ok'])].n", [1]),
        ("$.list[?(!@.zz)].n", [1, 5]),
        ("$.list[?(@.t empty true)].n", [5]),
        ("$.list[?(@.t size 1)].n", [1]),
        ("$.list[?(@.n == '1')].n", [1]),
        ("$.a[?(@ > 1)]", [2, 3]),
        ("$.list[?(@.n > $.s.y)].n", [5]),
        ("$.list[?(@.t[*])].n", [1]),
        ("$.a[-1:]", [{"b": 5}]),
        ("$.a[:-2]", [1, 2]),
        ("$.a[-3:-1]", [None, None]),
        ("$.a[-2:2]", [None, None, 1, 2]),
        ("$.a[0,-1]", [1, None]),
        ("$.list[*].t[-1]", [None, None]),
        ("$.list[*].t[(@.length-1)]", ["x", None]),
        ("$..t[-1]", [None, None]),
        ("$.list[*].length()", []),
        ("$..length()", [6]),
        ("$.a[1:-1]", []),
        ("$.a[0,9]", [1, None]),
        ("$.list['s','n']", ABSENT),
        ("$.list[*]['s','n']", [{"s": "failed", "n": 1}, {"s": "ok", "n": 5}]),
        ("$.s['x','y'].z", ABSENT),
        ("$['s','a'][*]", ABSENT),
        ("$['s','a']..x", ABSENT),
        ("$.list[*]['s','n'].z", ABSENT),
        ("$..['s','n'].z", ABSENT),
        ("$.list[?(@['s','n'].z)]", ABSENT),
        ("$.no['s','n'].z", ABSENT),
        ("$..[?(@.b)]", [{"b": 5}]),
        ("$.list..n", [1, 5]),
    ],
)
def test_indefinite_paths_yield_an_array(path: str, value: Any) -> None:
    """Wildcards, slices, unions, deep scans and filters; no match is no error."""
    compiled: Any = compile_path(path)
    assert compiled.found(scope()) == value


@pytest.mark.parametrize(
    ("path", "field", "words"),
    [
        ("$.no", "x.$", "The JSONPath '$.no' specified for the field 'x.$' could not be found in"),
        ("$.no", "", "Invalid path '$.no' : No results for path: $['no']"),
        ("$.no.such", "", "Invalid path '$.no.such' : Missing property in path $['no']"),
        ("$.n.sum()", "r.$", "The JSONPath '$.n.sum()' specified for the field 'r.$' could not be"),
        ("$.n.max()", "r.$", "The JSONPath '$.n.max()' specified for the field 'r.$' could not be"),
        (
            "$.a.length()",
            "",
            "Invalid path '$.a.length()' : Property ['length()'] not found in path $['a']",
        ),
        ("$.s.keys()", "", "Invalid path '$.s.keys()' : No results for path: $['s']['keys()']"),
        ("$.a[-1].b", "r.$", "The JSONPath '$.a[-1].b' specified for the field 'r.$' could not be"),
        ("$.a[-1].b", "", "Invalid path '$.a[-1].b' : Property ['b'] not found in path $['a'][-1]"),
        (
            "$['s','a'].v",
            "",
            (
                "Invalid path '$['s','a'].v' : Multi properties can only be used as path leafs: "
                "$['s', 'a']"
            ),
        ),
        (
            "$.s['x','y'][0]",
            "",
            (
                "Invalid path '$.s['x','y'][0]' : Multi properties can only be used as path leafs: "
                "$['s']['x', 'y']"
            ),
        ),
        (
            "$..['x','y'].z",
            "",
            (
                "Invalid path '$..['x','y'].z' : Multi properties can only be used as path leafs: "
                "$['x', 'y']"
            ),
        ),
        ("$.a['x','y']", "", "Invalid path '$.a['x','y']' : Property ['x', 'y'] not found in path"),
        ("$.s[0].b", "", "Filter: [0]['b'] can only be applied to arrays. Current context is: {"),
        ("$w", "x.$", "Variable '$w' referenced in '$w' is not defined"),
    ],
)
def test_what_is_missing_is_told_as_aws_does(path: str, field: str, words: str) -> None:
    """The words differ between templates and InputPath."""
    with pytest.raises(InterpreterError) as caught:
        compile_path(path, field=field).evaluate(scope())
    assert words in str(caught.value.cause)


def test_presence_is_stricter_than_a_value() -> None:
    """IsPresent: null is there, an element beyond an array is not."""
    null: Any = compile_path("$.null")
    outside: Any = compile_path("$.a[9]")
    missing: Any = compile_path("$.no")
    from_end: Any = compile_path("$.a[-1]")
    inner_names: Any = compile_path("$.list[*]['s','n'].z")
    assert null.present(scope())
    assert not outside.present(scope())
    assert not from_end.present(scope())
    assert not inner_names.present(scope())
    assert missing.found(scope()) is ABSENT


@pytest.mark.slow
@pytest.mark.parametrize("quote", ["'", '"'])
def test_names_of_backslashes_and_quotes(quote: str) -> None:
    """Each name has a path in brackets, wherever a path may stand.

    A backslash escapes a backslash and the quote around the name, and is itself elsewhere.
    """
    names = ("".join(marks) for n in range(1, 5) for marks in product("\\'\"]", repeat=n))
    for name in names:
        step = (
            f"[{quote}{name.replace(chr(92), chr(92) * 2).replace(quote, chr(92) + quote)}{quote}]"
        )
        value = scope({name: {"v": 7}, "list": [{name: 7}, {}]})
        assert compile_path(f"${step}.v").evaluate(value) == 7
        assert compile_path(f"$.list[*]{step}").evaluate(value) == [7]
        assert compile_path(f"$.list[?(@{step} == 7)]").evaluate(value) == [{name: 7}]
        assert compile_intrinsic(f"States.Array(${step}.v, 1)").evaluate(value) == [7, 1]
        assert is_reference_path(f"${step}")
        assert compile_result_path(f"${step}").put({}, 1) == {name: 1}
    assert compile_path(r"""$["it\'s"]""").evaluate(scope({r"it\'s": 1})) == 1


def test_no_path_runs_away() -> None:
    """A scan of scans costs its own execution an error, within a second."""
    deep: Any = [1]
    for _ in range(12):
        deep = [deep, deep]
    with pytest.raises(InterpreterError, match="too many values"):
        compile_path("$..*..*..*..*").evaluate(scope(deep))


@pytest.mark.parametrize("path", ["$.no[*]", "$.no..x", "$.s.x[1:2]", "$.s.x[?(@.y)]"])
def test_an_indefinite_path_whose_beginning_is_missing_finds_nothing(path: str) -> None:
    """An empty array, and nothing is present."""
    assert compile_path(path).evaluate(scope()) == []
    compiled: Any = compile_path(path)
    assert not compiled.present(scope())


@pytest.mark.parametrize("path", ["a", "$.", "$.a[", "$.a b", "$[?(@.x ==)]", "$.a[?(@.x]", ""])
def test_bad_paths_are_refused(path: str) -> None:
    """A syntax error is told when the machine is made."""
    with pytest.raises(PathSyntaxError):
        compile_path(path)


def test_root_is_one_object() -> None:
    """The default path costs nothing."""
    assert compile_path("$") is ROOT
    assert compile_result_path("$") is REPLACE


@pytest.mark.parametrize(
    ("path", "raw", "expected"),
    [
        ("$.a.b.c", {"x": 1}, {"x": 1, "a": {"b": {"c": 9}}}),
        ("$.a", {"a": 1}, {"a": 9}),
        ("$.x[0]", {"x": [1, 2]}, {"x": [9, 2]}),
        ("$['a b']", {}, {"a b": 9}),
    ],
)
def test_result_path_makes_parents_and_changes_nothing_in_place(
    path: str, raw: Any, expected: Any
) -> None:
    """Missing parents are made as objects; the raw input stays as it was."""
    before = repr(raw)
    assert compile_result_path(path).put(raw, 9) == expected
    assert repr(raw) == before


def test_result_path_into_a_scalar_fails() -> None:
    """There is no place below a number."""
    with pytest.raises(InterpreterError, match="Unable to apply ReferencePath"):
        compile_result_path("$.a.b").put({"a": 1}, 9)


@pytest.mark.parametrize("path", ["$.a[*]", "$..a", "$.a[0,1]", "$.a[?(@.x)]", "$.a.length()"])
def test_reference_paths_have_no_operators(path: str) -> None:
    """Only members and single indexes."""
    assert not is_reference_path(path)
    with pytest.raises(PathSyntaxError):
        compile_result_path(path)


def test_deep_documents_do_not_recurse() -> None:
    """A deep scan over 500 levels is a loop."""
    value: Any = {}
    for _ in range(500):
        value = {"a": value}
    assert len(compile_path("$..a").evaluate(scope(value))) == 500


def test_a_wrong_pattern_is_not_written_to_the_log(capfd: pytest.CaptureFixture[str]) -> None:
    """RE2 would write it to stderr as it is, with lines that nobody could tell from the log's."""
    with pytest.raises(PathSyntaxError):
        compile_path("$.a[?(@.s =~ /(?=x)\nforged line/)]")
    assert capfd.readouterr().err == ""
