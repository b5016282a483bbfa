"""A mask hides the masked values of a text and leaves the rest as it was."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import engine
from console.masking.mask import MASK, Mask, fill_mask
from console.masking.masked_execution import HIDDEN_TOKEN, hide_tokens

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings


def mask_of(*paths: str, values: tuple[str, ...] = ()) -> Mask:
    """Return a mask of these paths and values."""
    return Mask(engine.compile_path_set(paths), frozenset(values))


@pytest.mark.parametrize(
    ("path", "text", "shown"),
    [
        ("$.a", '{"a": 1, "b": 2.50}', '{"a":"(masked)","b":2.50}'),
        ("$.a", '{"b": 2.50}', '{"b": 2.50}'),
        ("$..a", '{"b": [{"a": {"c": 1}}, {"x": 1}]}', '{"b":[{"a":"(masked)"},{"x":1}]}'),
        ("$.a", '{"a": 1, "a": 2}', '{"a":"(masked)","a":"(masked)"}'),
        ("$.a", '{"\\u0061": 1}', '{"a":"(masked)"}'),
        ("$.a[*].b", '{"a": [{"b": 1}, {"c": 2}]}', '{"a":[{"b":"(masked)"},{"c":2}]}'),
        ("$[1]", "[1, 2]", '[1,"(masked)"]'),
        ("$", "5", '"(masked)"'),
        ("$", "no JSON", MASK),
        ("$..a", '{"body": "{\\"a\\": 1}"}', '{"body":"{\\"a\\":\\"(masked)\\"}"}'),
        ("$['a b']", '{"a b": 1}', '{"a b":"(masked)"}'),
    ],
)
def test_a_place_is_hidden(path: str, text: str, shown: str) -> None:
    """Also one of two equal keys, an escaped key, and one in a JSON text within the text."""
    assert mask_of(path).payload(text) == shown


@pytest.mark.parametrize(
    ("value", "text", "shown"),
    [
        ("secret", '"a secret thing"', '"a (masked) thing"'),
        ("secret", '{"secret": 1}', '{"(masked)":1}'),
        ("secret", "a secret thing", "a (masked) thing"),
        ("1234", "[1234, 12345]", '["(masked)",12345]'),
        ("123", '[123, "123", "1234"]', '["(masked)","(masked)","1234"]'),
        ("12", "[12]", "[12]"),
        ('p"w\\x', json.dumps(json.dumps({"a": ['p"w\\x!']})), '"{\\"a\\":[\\"(masked)!\\"]}"'),
        ("sécrét", '"s\\u00e9cr\\u00e9t"', '"(masked)"'),
    ],
)
def test_a_hidden_value_is_hidden_elsewhere(value: str, text: str, shown: str) -> None:
    """Within texts if it is long, as a whole if it is not, and not at all if it is tiny."""
    assert mask_of("$.x", values=(value,)).payload(text) == shown


@pytest.mark.parametrize("many", [0, 500])
def test_overlapping_values_are_hidden_whole(many: int) -> None:
    """Few or many: what two of them have in common leaves nothing of either."""
    values = ("abcdef", "defghi", "defg", "zzzz", *(f"other-{number}" for number in range(many)))
    mask = mask_of("$.x", values=values)
    assert mask.words("-abcdefghi-abcdef-zzzzzz-") == "-(masked)-(masked)-(masked)-"
    assert mask.words("abcde") == "abcde"
    assert mask.words("defgzzzz") == "(masked)(masked)"


def test_what_stood_at_a_place_is_told() -> None:
    """All strings and numbers below it, and those of JSON texts among them."""
    values: set[str] = set()
    text = '{"a": {"b": ["x", 1.50, null], "c": "{\\"d\\": \\"y\\"}"}, "e": "z"}'
    mask_of("$.a").payload(text, values)
    assert values == {"x", "1.50", '{"d": "y"}', "y"}


def test_the_details_of_an_event_name_no_places_themselves() -> None:
    """Their texts are payloads each; variables are one together."""
    details = json.dumps(
        {
            "name": "S",
            "input": '{"name": "n"}',
            "cause": "no JSON",
            "assignedVariables": {"name": '"v"', "x": '{"name": 1}'},
        }
    )
    shown = json.loads(mask_of("$.name").details(details))
    assert shown["name"] == "S"
    assert shown["input"] == '{"name":"(masked)"}'
    assert shown["cause"] == "no JSON"
    assert shown["assignedVariables"] == {"name": '"(masked)"', "x": '{"name": 1}'}


def test_what_is_too_deep_to_look_into_is_hidden() -> None:
    """Rather than shown unread."""
    deep = '{"a":' * 900 + '"canary"' + "}" * 900
    assert "canary" not in mask_of("$..b", values=("canary",)).payload(deep)


def test_a_masked_text_is_filled_again_where_it_was_left_alone() -> None:
    """A changed place keeps what was typed, also where there was a mask."""
    true = '{"a": "A", "b": [1, "B"], "c": "C"}'
    masked = '{"a": "(masked)", "b": [1, "(masked)"], "c": "(masked)"}'
    typed = '{"c": "mine", "b": [2, "(masked)", 3], "a": "(masked)", "d": "(masked)"}'
    assert json.loads(fill_mask(typed, masked, true)) == {
        "c": "mine",
        "b": [2, "B", 3],
        "a": "A",
        "d": "(masked)",
    }
    assert fill_mask("{", masked, true) == "{"


def test_a_text_that_is_a_token_is_not_too_short_to_hide_it(settings: Settings) -> None:
    """A text shorter than a token holds none and is left alone; one as long may be it."""
    token = engine.task_token(settings.STATEYARD_TOKEN_KEY, "arn", 7)
    assert hide_tokens(token, "arn", 7) == HIDDEN_TOKEN
    assert hide_tokens(f'{{"token": "{token}"}}', "arn", 7) == f'{{"token": "{HIDDEN_TOKEN}"}}'
    assert hide_tokens(token[:-1], "arn", 7) == token[:-1]
