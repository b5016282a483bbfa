"""Sets of paths are matched on the way down, without the value."""

from __future__ import annotations

import pytest

import engine


@pytest.mark.parametrize(
    ("path", "way", "named"),
    [
        ("$", (), True),
        ("$.a.b", ("a", "b"), True),
        ("$.a.b", ("a",), False),
        ("$.a.b", ("a", "b", "c"), False),
        ("$['a','b'].c", ("b", "c"), True),
        ("$.*", ("x",), True),
        ("$.a[*].b", ("a", 7, "b"), True),
        ("$.a[0,2]", ("a", 2), True),
        ("$.a[0,2]", ("a", 1), False),
        ("$..b", ("a", 3, "b"), True),
        ("$..b", ("b", "b"), True),
        ("$..a.b", ("x", "a", "b"), True),
        ("$..a.b", ("x", "a", "x", "b"), False),
        ("$..a..b", ("a", "x", "b"), True),
    ],
)
def test_a_place_is_named_or_not(path: str, way: tuple[str | int, ...], named: bool) -> None:
    """Names, indexes, all of them, and any depth."""
    paths = engine.compile_path_set([path])
    for key in way:
        paths = paths.child(key)
    assert paths.matches == named


@pytest.mark.parametrize(
    "path", ["", "a", "$$.a", "$a.b", "$.a[-1]", "$.a[1:2]", "$.a[?(@.b)]", "$.a.length()", "$."]
)
def test_what_depends_on_the_value_is_refused(path: str) -> None:
    """Filters, slices, counting from the end, functions, and what is no path."""
    with pytest.raises(engine.EngineError, match=r"\$|wanted"):
        engine.compile_path_set([path])
