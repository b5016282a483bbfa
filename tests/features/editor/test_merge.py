"""Two texts made from one are merged line by line; nothing of either side is dropped unasked."""

from __future__ import annotations

import pytest

from console.features.editor.merge import MergeSide, merge_chunks, merged_text

BASE = "a\nb\nc\nd\ne\nf"


def merged(base: str | None, mine: str, theirs: str, **choices: MergeSide) -> str:
    """Return the merged text; ``choices``: ``d1`` for the first difference."""
    chunks = merge_chunks(base, mine, theirs)
    assert chunks is not None
    return merged_text(chunks, {int(name[1:]): side for name, side in choices.items()})


def test_changes_in_different_lines_are_both_taken() -> None:
    """Each difference proposes the side that changed it."""
    assert merged(BASE, "a\nB\nc\nd\ne\nf", "a\nb\nc\nd\ne\nF\ng") == "a\nB\nc\nd\ne\nF\ng"
    assert merged(BASE, "b\nc\nd\ne\nf", "a\nb\nc\nd\ne") == "b\nc\nd\ne"


@pytest.mark.parametrize(
    ("side", "line"), [(None, "X"), ("mine", "X"), ("theirs", "Y"), ("both", "Y\nX")]
)
def test_a_conflict_asks(side: str | None, line: str) -> None:
    """Both changed one line: the reader's own stays unless another side is chosen."""
    choices = {} if side is None else {"d1": MergeSide(side)}
    assert merged("a\nb\nc", "a\nX\nc", "a\nY\nc", **choices) == f"a\n{line}\nc"
    chunks = merge_chunks("a\nb\nc", "a\nX\nc", "a\nY\nc")
    assert [chunk.conflict for chunk in chunks or ()] == [False, True, False]


def test_the_same_change_is_no_difference() -> None:
    """What both did is done once."""
    chunks = merge_chunks(BASE, "a\nX\nc\nd\ne\nf", "a\nX\nc\nd\ne\nf")
    assert all(chunk.number == 0 for chunk in chunks or ())


def test_without_a_base_every_difference_asks() -> None:
    """A text of unknown origin proposes nothing of its own."""
    chunks = merge_chunks(None, "a\nX\nc", "a\nY\nc\nd")
    assert [chunk.conflict for chunk in chunks or () if chunk.number] == [True, True]
    assert merged(None, "a\nX\nc", "a\nY\nc\nd", d2=MergeSide.THEIRS) == "a\nX\nc\nd"


def test_texts_that_are_too_long_are_not_compared() -> None:
    """The page says so instead of computing for minutes."""
    assert merge_chunks("", "x\n" * 15_000, "y\n" * 15_000) is None
