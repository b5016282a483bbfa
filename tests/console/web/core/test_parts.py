"""The pieces that pages are made of: words, JSON trees, layouts, places of problems."""

from __future__ import annotations

import json
import re
from html import unescape
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from django.http import QueryDict

import engine
from console.features.editor.problems import problems_in
from console.samples import MACHINES
from console.web.core import formatting
from console.web.core.formatting import cause_of
from console.web.graph import shapes, svg
from console.web.history.event_filter import EventFilter

if TYPE_CHECKING:
    from console.web.graph.shapes import Box


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (-5, "0 ms"),
        (0, "0 ms"),
        (999, "999 ms"),
        (1_200, "1.2 s"),
        (59_999, "59 s"),
        (65_000, "1 min 05 s"),
        (3_600_000, "1 h 00 min"),
        (2 * 86_400_000 + 4 * 3_600_000, "2 d 04 h"),
    ],
)
def test_spans_have_at_most_two_units(milliseconds: int, text: str) -> None:
    """A span of time is short enough for a table and exact enough to compare."""
    assert formatting.duration_text(milliseconds) == text


def test_moments_are_utc_and_sortable() -> None:
    """The text of a moment and its machine-readable form agree."""
    assert formatting.iso_text(1_700_000_000_123) == "2023-11-14T22:13:20.123Z"
    assert formatting.clock_text(1_700_000_000_123, precise=True) == "2023-11-14 22:13:20.123"


@pytest.mark.parametrize("kind", sorted(engine.DETAILS))
def test_every_event_type_has_a_tone(kind: str) -> None:
    """Each of AWS's event types is coloured by what it tells."""
    tone = engine.EVENT_TYPES[kind].tone
    assert tone in {"running", "succeeded", "failed", "aborted", "idle"}
    if "Failed" in kind or "TimedOut" in kind:
        assert tone == "failed"


def test_control_characters_become_visible() -> None:
    """What a terminal or browser would swallow is shown as its picture."""
    assert formatting.visible_text("a\x00b\x1b\x7f\t\n") == "a\u2400b\u241b\u2421\t\n"


# -- JSON ------------------------------------------------------------------------------------------


def test_json_keeps_the_text_of_numbers_and_duplicate_keys() -> None:
    """Nothing is rounded, reordered or dropped for display."""
    html = formatting.payload_view('{"n":9007199254740993,"f":1.0,"e":1E+2,"n":2}').html
    for number in ("9007199254740993", "1.0", "1E+2", ">2<"):
        assert number in html
    assert html.count("&quot;n&quot;") == 2


def test_json_is_escaped() -> None:
    """Markup in keys and values stays text."""
    html = formatting.payload_view(json.dumps({"<b>": "<script>alert(1)</script>"})).html
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "<b>&quot;" not in html


def test_long_values_fold_and_short_ones_do_not() -> None:
    """Small objects stay on one line, big ones become details."""
    assert "<details" not in formatting.payload_view('{"a":1}').html
    big = formatting.payload_view(json.dumps({"list": list(range(100))})).html
    assert big.count("<details") == 2
    assert "100 items" in big


def test_a_big_payload_is_cut_and_says_where_the_rest_is() -> None:
    """More than 64 KiB is not put into the page."""
    shown = formatting.payload_view(json.dumps("x" * 200_000), "input.json")
    assert shown.cut
    assert shown.url == "input.json"
    assert len(shown.html) < 70_000


def test_the_beginning_of_a_big_payload_has_a_line_for_each_member() -> None:
    """Nothing but white space is changed; short objects stay on one line."""
    rows = [{"n": number, "text": f"a, [b] {{{number}"} for number in range(4_000)]
    raw = json.dumps({"rows": rows, "none": []}, separators=(",", ":"))
    shown = unescape(re.sub("</?pre>", "", formatting.payload_view(raw).html))
    assert shown.startswith('{\n  "rows": [\n    {"n": 0, "text": "a, [b] {0"},\n    {"n": 1,')
    assert "".join(shown.split()) == "".join(raw[: formatting.TREE_LIMIT].split()) + "…"
    broken = "{" + raw
    assert unescape(formatting.payload_view(broken).html).startswith(f"<pre>{broken[:100]}")


@pytest.mark.parametrize("text", ["not json", '{"a":', "", "[" * 400 + "]" * 400, '"\\ud800"'])
def test_whatever_is_stored_can_be_shown(text: str) -> None:
    """Broken, deep or odd texts are shown as they are instead of breaking the page."""
    assert formatting.payload_view(text).html


def test_a_functions_cause_is_taken_apart() -> None:
    """Message, type and stack of a Lambda-style cause are readable; the raw text is kept."""
    raw = json.dumps({"errorMessage": "no", "errorType": "Oops", "stackTrace": ["a\n", "b"]})
    cause = cause_of(raw)
    assert cause is not None
    assert (cause.message, cause.kind, cause.stack, cause.raw) == ("no", "Oops", "a\nb", raw)
    plain = cause_of("[1]")
    assert plain is not None
    assert plain.message == ""
    assert cause_of(None) is None


# -- layout ----------------------------------------------------------------------------------------


def overlap(box: Box, other: Box) -> bool:
    """Return whether two boxes share room."""
    return (
        box.x < other.x + other.width
        and other.x < box.x + box.width
        and box.y < other.y + other.height
        and other.y < box.y + box.height
    )


@pytest.mark.parametrize("sample", MACHINES, ids=lambda sample: sample.name)
def test_boxes_of_a_sample_do_not_overlap(sample: Any) -> None:
    """Every state has its own room inside the picture; nested ones lie in their owner's."""
    drawn = svg.definition_picture(sample.definition)
    groups: dict[str, list[Box]] = {}
    for box in drawn.boxes:
        groups.setdefault(box.node.group, []).append(box)
        assert box.x >= 0
        assert box.y >= 0
        assert box.x + box.width <= drawn.width
        assert box.y + box.height <= drawn.height
    for boxes in groups.values():
        for place, first in enumerate(boxes):
            assert not any(overlap(first, other) for other in boxes[place + 1 :])


def test_a_state_lies_inside_the_box_that_holds_it() -> None:
    """Branches are drawn within their Parallel."""
    sample = next(machine for machine in MACHINES if machine.name == "LookupCustomerInfo")
    outer, *inner = svg.definition_picture(sample.definition).boxes
    for box in inner:
        assert outer.x < box.x
        assert outer.y < box.y
        assert box.x + box.width < outer.x + outer.width
        assert box.y + box.height < outer.y + outer.height


def test_graphviz_never_sees_a_name() -> None:
    """Markup and quotes in names can neither break nor enter the layout."""
    name = 'x" onload=alert(1) y="<b>'
    definition = json.dumps({"StartAt": name, "States": {name: {"Type": "Succeed"}}})
    drawn = svg.definition_picture(definition)
    assert drawn.boxes[0].node.name == name
    assert [line.kind for line in drawn.lines] == ["next", "next"]


def test_a_thousand_states_are_laid_out_in_time() -> None:
    """A chain at the limit of what people draw is placed without a fault."""
    states: dict[str, Any] = {f"s{n}": {"Type": "Pass", "Next": f"s{n + 1}"} for n in range(999)}
    states["s999"] = {"Type": "Succeed"}
    drawn = svg.definition_picture(json.dumps({"StartAt": "s0", "States": states}))
    for box, following in pairwise(drawn.boxes):  # in the same column, or at the top of the next
        assert box.y < following.y or box.x + box.width < following.x


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ReconcileTheSettlementFileWithTheGeneralLedgerOfThisDay", r"([A-Z][a-z]+)+"),
        ("reconcile_the_settlement_file_with_the_ledger_of_this_day", r"([a-z]+_)+|([a-z]+_?)+"),
        ("CheckStock", "CheckStock"),
    ],
)
def test_a_long_name_breaks_between_its_words(name: str, words: str) -> None:
    """Not within one, though it has no blanks."""
    lines = shapes.wrap_text(name)
    assert "".join(lines) == name
    assert len(lines) == (1 if len(name) < 20 else 2)
    assert all(re.fullmatch(words, line) for line in lines)
    assert not any(line.startswith("_") for line in lines)


@pytest.mark.parametrize(
    "name", ["a" * 80, "word " * 16, "日本語" * 20, "\u202eevil", "tab\tx", "🎉" * 40]
)
def test_any_name_is_wrapped_without_loss(name: str) -> None:
    """A name is broken into lines; no character of it is left out."""
    definition = json.dumps({"StartAt": name, "States": {name: {"Type": "Succeed"}}})
    box = svg.definition_picture(definition).boxes[0]
    assert "".join("".join(box.lines).split()) == "".join(name.split())


# -- problems --------------------------------------------------------------------------------------


def place(text: str, part: str) -> tuple[int, int]:
    """Return line and column of a text in another."""
    before = text[: text.index(part)]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def test_a_problem_knows_its_line() -> None:
    """A press on a problem can lead to the very place."""
    text = json.dumps(
        {
            "StartAt": "A",
            "States": {
                "A": {"Type": "Pass", "Next": "Nope"},
                "B": {"Type": "Choice", "Choices": [{"Variable": "$.x", "Next": "A"}]},
            },
        },
        indent=2,
    )
    lines = {problem.location: problem.line for problem in problems_in(text)}
    assert lines["/States/A/Next"] == place(text, '"Next": "Nope"')[0]
    choice = next(line for location, line in lines.items() if "/B/Choices" in location)
    assert choice >= place(text, '"Choices"')[0]


def test_text_that_is_not_json_has_a_place_too() -> None:
    """A missing bracket is pointed at as well."""
    problems = problems_in('{\n  "StartAt": nope\n}')
    assert problems[0].severe
    assert problems[0].line == 2


# -- the event table's query -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "page", "at", "opened"),
    [
        ("", 1, 0, ()),
        ("page=3&at=12&open=1.2.x", 3, 12, (1, 2)),
        ("page=-1&at=zzz&open=999999999", 1, 0, (999999, 999)),
    ],
)
def test_a_query_that_makes_no_sense_counts_as_not_said(
    query: str, page: int, at: int, opened: tuple[int, ...]
) -> None:
    """Whatever stands in the address, the page answers."""
    event_filter = EventFilter.of(QueryDict(query))
    assert (event_filter.page, event_filter.at, event_filter.opened) == (page, at, opened)
