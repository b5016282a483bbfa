"""JSONata expressions yield what AWS's do, and runaway expressions are contained."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from engine.data.expression import EvaluationScope
from engine.data.jsonata import UNDEFINED, Expression_, compile_jsonata, is_jsonata
from engine.data.jsonata_pool import LIMIT_S
from engine.data.paths import PathSyntaxError
from engine.errors import QueryEvaluationError

INPUT = {"a": 3, "list": [1, 2, 3], "none": None}
NEW_PROCESS_S = 10
"""How long an evaluator may take to start on a machine with other work."""


def evaluate(text: str, **variables: Any) -> Any:
    """Evaluate an expression over the input above."""
    expression = compile_jsonata(f"{{% {text} %}}", field="Output/x")
    scope = EvaluationScope(
        INPUT, lambda: {"Execution": {"Id": "arn"}}, variables, lambda: random.Random(1)
    )
    return expression.evaluate(scope)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$states.input.a + 1", 4),
        ("$states.input.list[$ > 1]", [2, 3]),
        ("$states.input.none", None),
        ("$states.context.Execution.Id", "arn"),
        ("$keys($states)", ["input", "context"]),
        ("$states.( context )", {"Execution": {"Id": "arn"}}),
        ("$v & '!'", "V!"),
        ("3.0", 3),
        ("{'gone': $nothing, 'b': 1}", {"b": 1}),
        ("[$nothing, 1]", [1]),
        ("$map($states.input.list, function($n) { $n * 2 })", [2, 4, 6]),
        ("$partition([1, 2, 3], 2)", [[1, 2], [3]]),
        ("$range(1, 9, 3)", [1, 4, 7]),
        ("$range(1, 1, 1)", 1),
        ("$parse('{\"a\": [1]}')", {"a": [1]}),
        ("$hash('a', 'MD5')", "0cc175b9c0f1b6a831c399e269772661"),
        ("$random(4) = $random(4)", True),
        ("$match('abc', /b/).match", "b"),
    ],
)
def test_values(text: str, value: Any) -> None:
    """Results are plain JSON; undefined members are left out; null stays null."""
    assert evaluate(text, v="V") == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("$nothing", "returned nothing (undefined)."),
        ("function($x) { $x }", "returned an unsupported result type."),
        ("$randomSeeded(1)", "T1006: Attempted to invoke a non-function"),
        ("$toMillis('x')", "threw an error during evaluation. "),
        ("'\\ud800'", "returned an unsupported result type."),
        ("$power(10, 400)", "threw an error during evaluation. D3061: The power function"),
        ("$range(1, 400000, 1)", "evaluation: Expression evaluation memory limit exceeded: Check"),
        ("$eval('1')", "T1006: Attempted to invoke a non-function"),
        ("$base64decode('!!!')", "threw an internal error during evaluation. "),
    ],
)
def test_failures_are_query_evaluation_errors(text: str, words: str) -> None:
    """Whatever goes wrong is the execution's error, told with expression and field."""
    with pytest.raises(QueryEvaluationError) as caught:
        evaluate(text)
    assert caught.value.location == "Output/x"
    assert str(caught.value.cause).startswith(f"The JSONata expression '{text}' specified for")
    assert words in str(caught.value.cause)


@pytest.mark.parametrize("text", ["1 +", "(", "a.b[", "a.b", "$$"])
def test_what_cannot_be_compiled_is_refused(text: str) -> None:
    """Syntax errors and what reads the top level are told when the machine is made."""
    with pytest.raises(PathSyntaxError):
        compile_jsonata(f"{{% {text} %}}", field="Output")


@pytest.mark.slow
@pytest.mark.parametrize(
    "bomb",
    [
        "($f := function($x) { $f($x + 1) }; $f(1))",
        "$pad('x', 1000000000)",
        "[1..10000000]",
        "($s := 'aaaaaaaaaa';" + "$s := $s & $s;" * 26 + "$length($s))",
        "$map([1..3000], function($i) { $map([1..3000], function($j) { $i * $j }) })",
    ],
)
def test_bombs_cost_only_their_own_execution(bomb: str) -> None:
    """Each ends within its limit with an error, and the evaluator works afterwards."""
    begun = time.monotonic()
    with pytest.raises(QueryEvaluationError):
        evaluate(bomb)
    assert time.monotonic() - begun < LIMIT_S + NEW_PROCESS_S
    assert evaluate("$sum([1..3])") == 6


def test_a_pattern_that_would_backtrack_for_ever_is_linear() -> None:
    """RE2 finds nothing where a backtracking engine reaches the limit of time."""
    with pytest.raises(QueryEvaluationError, match="undefined"):
        evaluate(f"$match('{'a' * 40}!', /^(a+)+$/)")


@pytest.mark.parametrize(
    ("text", "tame"),
    [
        ("$states.input.a + 1", True),
        ("$sum($states.input.list)", True),
        ("[1..10]", False),
        ("$pad('x', 10)", False),
        ("($x := 1; $x)", False),
        ("$map([1], function($v) { $v })", False),
        ("$match('a', /a/)", False),
        ("$states.input.**", False),
    ],
)
def test_only_what_cannot_run_away_runs_in_process(text: str, tame: bool) -> None:
    """Functions, bindings, ranges, patterns and descendants go to the child."""
    compiled = compile_jsonata(f"{{%{text}%}}", field="x")
    assert isinstance(compiled, Expression_)
    assert compiled.tame is tame


def test_marks_must_be_at_both_ends() -> None:
    """A text is an expression only if it begins and ends with the marks."""
    assert is_jsonata("{% 1 %}")
    assert not is_jsonata(" {% 1 %}")
    assert not is_jsonata("{% 1")
    assert UNDEFINED is not None
