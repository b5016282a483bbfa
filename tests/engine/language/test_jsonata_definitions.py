"""A definition refuses JSONata that the service refuses, at its place and in its words."""

from __future__ import annotations

import json
from typing import Any

import pytest

import engine
from engine.errors import DefinitionError


def problems(state: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return code, message and place of each problem of a machine of one JSONata state."""
    end = {} if state["Type"] in ("Fail", "Choice") else {"End": True}
    definition = {
        "QueryLanguage": "JSONata",
        "StartAt": "E",
        "States": {"E": {**state, **end}, "F": {"Type": "Succeed"}},
    }
    if state["Type"] != "Choice":
        definition["States"] = {"E": {**state, **end}}
    diagnostics = engine.check(json.dumps(definition))
    return [
        (diagnostic.code, diagnostic.message, diagnostic.location)
        for diagnostic in diagnostics
        if diagnostic.severity == "ERROR"
    ]


def output(text: str) -> list[tuple[str, str, str]]:
    """Return the problems of an expression in a Pass state's output."""
    return problems({"Type": "Pass", "Output": {"v": f"{{% {text} %}}"}})


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("phone", ["phone"]),
        ("phone.number", ["phone"]),
        ("`Product Name`", ["Product Name"]),
        ("a + b", ["a", "b"]),
        ("a + a", ["a"]),
        ("$sum(prices)", ["prices"]),
        ("[a, $x]", ["a"]),
        ("{'k': a}", ["a"]),
        ("a ? 1 : 2", ["a"]),
        ("($y := a; $y)", ["a"]),
        ("(a).b", ["a"]),
        ("$map($states.input.a, function($x) { b })", ["b"]),
        ("a[b > 1]", ["a"]),
        ("$", ["$"]),
        ("$.a", ["$"]),
    ],
)
def test_names_at_the_top_level_are_refused(text: str, names: list[str]) -> None:
    """A state machine has no value there: each name once, at the field's place."""
    code, place = "UNSUPPORTED_JSONATA_EXPRESSION", "/States/E/Output/v"
    messages = [f"Reference to '{name}' at the top level is not supported." for name in names]
    assert output(text) == [(code, message, place) for message in messages]


@pytest.mark.parametrize("text", ["$$", "$$.a", "$states.input.items[id = $$.a]"])
def test_the_root_is_refused_anywhere(text: str) -> None:
    """``$$`` reads the top level wherever it stands."""
    message = "Reference to '$$' is not supported."
    assert output(text) == [("UNSUPPORTED_JSONATA_EXPRESSION", message, "/States/E/Output/v")]


@pytest.mark.parametrize(
    "text",
    [
        "$states.input.items[value > 3]",
        "$states.input.items^(value).name",
        "$states.input.items{name: value}",
        "$states.input.(a + b)",
        "$states.input ~> |items|{'n': value}, ['x']|",
        "$filter($states.input.a, function($v) { $v.b > $count($v.c) })",
        "($x := $states.input; $x.a)",
        "$states.input.a.$sum(b)",
        "$replace('a', /a/, '$$')",
        "$eval('1')",
        "'phone'",
    ],
)
def test_names_that_read_a_value_are_taken(text: str) -> None:
    """Later steps, predicates, orders, groupings and updates read what stands before them."""
    assert output(text) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("$x[1,2)", 'Expected "]", got ","'),
        ("1 +", "Unexpected end of expression"),
        ('"unterminated', "String literal must be terminated by a matching quote"),
    ],
)
def test_a_syntax_error_is_told_in_the_sentence_of_jsonata(text: str, message: str) -> None:
    """The service leaves JSONata's own code out."""
    assert output(text) == [("INVALID_JSONATA_EXPRESSION", message, "/States/E/Output/v")]


@pytest.mark.parametrize(
    ("state", "place"),
    [
        ({"Type": "Pass", "Output": "{% a %}"}, "/States/E/Output"),
        ({"Type": "Pass", "Assign": {"x": "{% a %}"}}, "/States/E/Assign/x"),
        ({"Type": "Wait", "Seconds": "{% a %}"}, "/States/E/Seconds"),
        ({"Type": "Fail", "Cause": "{% a %}"}, "/States/E/Cause"),
        (
            {"Type": "Choice", "Choices": [{"Condition": "{% a %}", "Next": "F"}], "Default": "F"},
            "/States/E/Choices[0]/Condition",
        ),
    ],
)
def test_every_field_tells_it(state: dict[str, Any], place: str) -> None:
    """The problem stands at the field of the expression."""
    message = "Reference to 'a' at the top level is not supported."
    assert problems(state) == [("UNSUPPORTED_JSONATA_EXPRESSION", message, place)]


def test_trying_a_state_tells_the_code_of_jsonata() -> None:
    """Who tries a state is still writing the expression."""
    state = {"Type": "Pass", "QueryLanguage": "JSONata", "Output": "{% 1 + %}", "End": True}
    with pytest.raises(DefinitionError, match=r"Unexpected end of expression \(S0207\)"):
        engine.parse_state(json.dumps(state))


def test_a_stored_definition_keeps_the_rules_of_its_time() -> None:
    """It was accepted before the service's rule was known; every other error remains one."""
    state = {"Type": "Pass", "Output": "{% a.b ? 1 : 2 %}", "End": True}
    definition: dict[str, Any] = {
        "QueryLanguage": "JSONata",
        "StartAt": "E",
        "States": {"E": state},
    }
    text = json.dumps(definition)
    assert engine.parse_stored(text).block.start_at == "E"
    with pytest.raises(DefinitionError, match="at the top level"):
        engine.parse(text)
    broken = json.dumps({**definition, "StartAt": "F"})
    with pytest.raises(DefinitionError, match="MISSING_TRANSITION_TARGET"):
        engine.parse_stored(broken)
