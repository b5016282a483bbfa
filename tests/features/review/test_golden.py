"""The reviews of ten pairs of commits are those that were recorded, Markdown and SVG."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from console.features.review.reviewing import review_commits, write_review
from tests.features.review.golden import HUNDRED, NAMES, RECORDED, make_repository

if TYPE_CHECKING:
    from console.features.review.markdown import Review

_NUMBER = re.compile(r"(?<![#\w])-?\d+\.\d+")


def review_of(folder: Path, output: Path) -> Review:
    """Write the review of the last commit of a repository, and return it."""
    review = review_commits(folder, "HEAD~1..HEAD", [Path()], {})
    write_review(replace(review, left_out="no server"), output)
    return review


@pytest.mark.parametrize("name", NAMES)
def test_the_review_is_as_recorded(name: str, tmp_path: Path) -> None:
    """The files have the same names and contents; coordinates may differ by a pixel."""
    make_repository(tmp_path / "repository", name)
    review_of(tmp_path / "repository", tmp_path / "output")
    expected = {path.name: path for path in (RECORDED / name).iterdir()}
    written = {path.name: path for path in (tmp_path / "output").iterdir()}
    assert expected.keys() == written.keys()
    for file, path in written.items():
        text, recorded = (each.read_text("utf-8") for each in (path, expected[file]))
        if not file.endswith(".svg"):
            assert text == recorded
            continue
        assert _NUMBER.sub("N", text) == _NUMBER.sub("N", recorded), file
        numbers, recorded_numbers = (
            [float(number) for number in _NUMBER.findall(each)] for each in (text, recorded)
        )
        assert numbers == pytest.approx(recorded_numbers, abs=1)
        ET.fromstring(text)  # noqa: S314 - our own


def test_there_are_ten_pairs() -> None:
    """One of them has 100 states."""
    assert len(NAMES) == 10
    drawn = (RECORDED / HUNDRED / "trips.before.svg").read_text("utf-8")
    assert drawn.count('font-weight="600" y=') == 100
