"""The expression of a summary has a value, has none, or fails within limits."""

from __future__ import annotations

import json
import time

import pytest

from console.features.summary.expression import LONGEST, evaluate, expression_problem

INPUT = json.dumps({"order": 4711, "who": "Ada", "items": [{"price": 2}, {"price": 3}]})


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("input.order", "4711"),
        ("{% input.order %}", "4711"),
        ("'Order ' & input.order & ' of ' & input.who", "Order 4711 of Ada"),
        ("$sum(input.items.price)", "5"),
        ("input.items.price", "2, 3"),
        ("input.items[0]", '{"price":2}'),
        ("output.total", "9"),
        ("$states.input.who", "Ada"),
        ("name & ': ' & $states.context.Execution.Name", "run: run"),
        ("input.nothing", ""),
        ("null", ""),
        ("input.who & '\n\u202e' & input.order", "Ada 4711"),
        ("input.who /* a remark */", "Ada"),
    ],
)
def test_an_expression_has_a_value(expression: str, text: str) -> None:
    """One line of text, "" for nothing."""
    value = evaluate(expression, "run", INPUT, '{"total": 9}')
    assert (value.text, value.problem) == (text, "")


def test_an_execution_that_runs_has_no_output() -> None:
    """Its path leads to nothing, which is no error."""
    assert evaluate("output.total", "run", INPUT, None).text == ""
    shown = evaluate("$exists(output) ? 'done' : 'runs'", "run", INPUT, None)
    assert shown.text == "runs"


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("", "is empty"),
        ("{%  %}", "is empty"),
        ("input.a +", "cannot be used as a unary operator"),
        ("input.order) + (b", "Reference to 'b' at the top level is not supported"),
        ("order", ""),
    ],
)
def test_a_text_that_is_no_expression_has_a_reason(expression: str, problem: str) -> None:
    """As a sentence for the person who sets the tag."""
    assert problem in expression_problem(expression)
    assert bool(expression_problem(expression)) == bool(problem)


def test_an_expression_is_held_to_limits() -> None:
    """Of time, memory and length; it changes nothing but its own value."""
    began = time.monotonic()
    endless = evaluate("($f := function($x) {$f($x + 1)}; $f(1))", "run", INPUT, None)
    assert endless.text == ""
    assert endless.problem
    many = evaluate("$map([1..100000000], function($x) {$x})", "run", INPUT, None)
    assert many.problem.startswith("D2014")
    assert time.monotonic() - began < 30
    long = evaluate("$join($map([1..500], function($x) {'word'}), ' ')", "run", INPUT, None)
    assert len(long.text) == LONGEST
    assert long.text.endswith("…")


def test_a_payload_that_is_masked_whole_is_a_text() -> None:
    """It is no JSON then."""
    assert evaluate("input", "run", "(masked)", None).text == "(masked)"
