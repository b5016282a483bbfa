"""No function of JSONata ends in an internal error, whatever its arguments are."""

from __future__ import annotations

import random
from typing import Any

import pytest

from engine.data import jsonata_eval
from engine.data.jsonata_builtins import LIBRARY
from tests.engine.runtime.harness import Sim, machine

EXTREMES = (
    *("$nothing", "null", "true", "0", "-1", "2.5", "1e308", "-1e308", "9007199254740993"),
    *("1e21", "1e-320", "99999999999999", "''", "'a'", "'é😀'", "'\\uD800'", "'12345'"),
    *(f"'{'9' * 400}'", "'one" + " trillion" * 40 + "'", "'[f001]'", "'[Y]-[M]-[D]'", "'w'", "'I'"),
    *("'#,##0.00'", "'0e0'", "'2018-02-31'", "'+0000'", "'+9999'", "'%E0%A4%A'", "'('", "'[FNn]'"),
    *("[]", "[1,2]", "['a',1]", "[[1],{}]", "{}", "{'a':1}", "/a|/", "function($x){$x}", "$sum"),
)
AS_ON_THE_SERVICE = {"base64decode"}  # docs/reference/jsonata.md


def evaluated(expression: str) -> tuple[str, Any]:
    """Return what an expression yields, as the engine takes it."""
    return jsonata_eval.evaluate(jsonata_eval.compiled(expression), {"states": {}}, 1)


@pytest.mark.parametrize("name", sorted(set(LIBRARY.bindings) - AS_ON_THE_SERVICE))
def test_no_function_ends_in_an_internal_error(name: str) -> None:
    """With one extreme argument of each kind, and with two to four drawn from them."""
    drawn = random.Random(name)
    calls = [(), *((argument,) for argument in EXTREMES)]
    calls += [tuple(drawn.choices(EXTREMES, k=count)) for count in (2, 3, 4) for _ in range(40)]
    for arguments in calls:
        expression = f"${name}({', '.join(arguments)})"
        kind, _ = evaluated(expression)
        assert kind != jsonata_eval.INTERNAL, expression


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ("[-1e308..1e308]", "D2014"),
        ("[9007199254740993..1e21]", "D2014"),
        ("-(function($x){$x})", "D1002"),
        ("-($sum)", "D1002"),
        ("-($substring(?, 1))", "D1002"),
        ("-(|$|{}|)", "D1002"),
        ("{(function($x){$x}): 1}", "T1003"),
        ("{($substring(?, 1)): 1}", "T1003"),
        ("(function($x){$x}) + 1", "T2001"),
    ],
)
def test_operators_on_extremes(expression: str, code: str) -> None:
    """A range of more than 64 bits and a function as an operand have JSONata's own errors."""
    kind, message = evaluated(expression)
    assert (kind, str(message)[:6]) == (jsonata_eval.ERROR, f"{code}:")


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (f"$parseInteger('{'9' * 400}', '0')", "Infinity"),
        ("$parseInteger('one trillion trillion', 'w')", 1e24),
        ("$parseInteger('nine hundred trillion', 'w')", 900_000_000_000_000),
        ("$round(1e308)", 1e308),
        ("$round(-1e308, 1)", -1e308),
        ("$round(2.5, 99)", 2.5),
        ("$round(1e308, -309)", 0),
    ],
)
def test_numbers_beyond_those_of_the_library(expression: str, value: Any) -> None:
    """They are doubles, as all numbers of JSONata."""
    assert evaluated(expression) == (jsonata_eval.VALUE, value)


@pytest.mark.parametrize(
    ("call", "function"),
    [
        ("$toMillis('12345', '[f001]')", "toMillis"),
        ("$toMillis('2020-02-31', '[Y]-[M]-[D]')", "toMillis"),
        ("$fromMillis(1e308)", "fromMillis"),
        ("$formatInteger(1, $nothing)", "formatInteger"),
        ("$map([1, 2], /a/)", "map"),
    ],
)
def test_arguments_that_a_function_cannot_use(call: str, function: str) -> None:
    """The state fails with an error that a Catch takes, and the cause names the function."""
    definition = machine("P", P={"Type": "Pass", "Output": f"{{% {call} %}}"})
    sim = Sim({**definition, "QueryLanguage": "JSONata"}, {})
    assert sim.finish is not None
    assert sim.finish.error == "States.QueryEvaluationError"
    assert f"The function '${function}' cannot use its arguments" in str(sim.finish.cause)
