"""How a definition's text is shown: states to jump to, and what changed."""

from __future__ import annotations

import json
import re

import pytest

from console.features.versions import definition_diff
from console.web.graph import definition_text

NESTED = {
    "StartAt": "States",
    "States": {
        "States": {"Type": "Pass", "Result": {"States": {"Inner": {}}}, "Next": "Each"},
        "Each": {
            "Type": "Map",
            "ItemProcessor": {
                "StartAt": "Inner",
                "States": {"Inner": {"Type": "Pass", "End": True}},
            },
            "Next": "Both",
        },
        "Both": {
            "Type": "Parallel",
            "Branches": [
                {"StartAt": "<b>", "States": {"<b>": {"Type": "Pass", "End": True}}},
                {"StartAt": "R", "States": {"R": {"Type": "Pass", "End": True}}},
            ],
            "End": True,
        },
    },
}


@pytest.mark.parametrize("indent", [None, 2])
def test_each_state_can_be_jumped_to_in_the_text(indent: int | None) -> None:
    """A mark stands around each state, whatever payloads look like, and nothing else changes."""
    definition = json.dumps(NESTED, indent=indent)
    ids = {name: name.strip("<>") for name in ("States", "Each", "Inner", "Both", "<b>", "R")}
    marked = str(definition_text.text_page(definition, ids).html)
    plain = re.sub(r"<[^>]*>", "", marked)
    assert plain.replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">") == definition
    for place, key in {
        "Inner": '"Inner": {',
        "b": '"&lt;b&gt;": {',
        "States": '"States": {',
    }.items():
        (line,) = re.findall(rf'<span class="src" id="src-{place}" tabindex="-1">(.*)', marked)
        assert re.sub(r"<[^>]*>", "", line).startswith(key.replace('"', "&quot;"))
    inner = marked.index('id="src-Inner"')
    assert marked.index('id="src-Each"') < inner < marked.index('id="src-Both"')


def test_a_text_has_numbered_lines_and_colours() -> None:
    """Kinds of values are told apart, also where a quote stands in a string."""
    definition = '{\n  "a\\"b": "x\\": 1",\n  "n": -1.5e3, "c": [true, null], "t": "</pre>"\n}\n'
    html = str(definition_text.text_page(definition, {}).html)
    assert re.findall(r'data-line="(\d+)"', html) == ["1", "2", "3", "4", "5"]
    assert re.findall(r'class="(.)">([^<]*)<', html) == [
        ("s", "&quot;x\\&quot;: 1&quot;"),
        ("n", "-1.5e3"),
        ("c", "true"),
        ("c", "null"),
        ("s", "&quot;&lt;/pre&gt;&quot;"),
    ]
    assert "</pre>" not in html


def test_names_of_states_are_links() -> None:
    """From its own name to the step that ran, from another state to its lines."""
    ids = {"States": "n0", "Each": "n1", "Inner": "n2", "Both": "n3", "<b>": "n4", "R": "n5"}
    links = definition_text.StateLinks("/x/?step=", "#src-")
    html = str(definition_text.text_page(json.dumps(NESTED, indent=2), ids, links=links).html)
    assert '<a class="state-key" href="/x/?step=%3Cb%3E">&quot;&lt;b&gt;&quot;</a>' in html
    assert '<a class="s" href="#src-n3">&quot;Both&quot;</a>' in html
    assert '<a class="s" href="#src-n2">&quot;Inner&quot;</a>' in html
    assert html.count('class="state-key"') == len(ids)  # not the "Inner" of a payload
    plain = str(definition_text.text_page(json.dumps(NESTED), ids).html)
    assert "<a" not in plain


def test_a_later_page_of_a_long_text_goes_on_counting() -> None:
    """Its lines have the numbers that they have in the file."""
    rows = definition_text.PAGE_LINES
    page = definition_text.text_page("\n".join(["{}"] * (rows + 3)), {}, 2)
    assert re.findall(r'data-line="(\d+)"', str(page.html)) == [str(rows + n) for n in (1, 2, 3)]


def test_long_unchanged_stretches_are_left_out() -> None:
    """Three lines stand around each change; where lines are missing a sign says so."""
    before = [f"line {number}" for number in range(100)]
    after = [*before[:50], "new", *before[51:]]
    rows = definition_diff.diff_rows("\n".join(before), "\n".join(after))
    assert rows is not None
    assert [row.sign for row in rows] == ["…", "", "", "", "-", "+", "", "", ""]
    assert (rows[4].before, rows[5].after, rows[5].text) == (51, 51, "new")


def test_texts_that_are_too_long_are_not_compared() -> None:
    """A page answers in time, whatever stands in a definition."""
    assert definition_diff.diff_rows("\n" * 15_000, "x\n" * 15_000) is None


@pytest.mark.parametrize("text", ["{", '{"a": 1', "[]{}"])
def test_a_text_that_is_no_definition_is_shown_as_it_is(text: str) -> None:
    """Only what is valid is indented."""
    assert definition_text.readable_text(text) == text
