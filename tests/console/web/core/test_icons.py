"""Icons are drawn from the package's archive, which is opened once."""

from __future__ import annotations

import re
from zipfile import ZipFile

import pytest

from console.web.templatetags import stateyard


def test_the_archive_is_opened_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of a fresh server with many icons reads the list of names once."""
    opened = []

    class Archive(ZipFile):
        def __init__(self, *parts: object) -> None:
            opened.append(1)
            super().__init__(*parts)  # type: ignore[call-overload]

    monkeypatch.setattr(stateyard, "ZipFile", Archive)
    stateyard._archive.cache_clear()
    stateyard.icon_svg.cache_clear()
    drawn = [stateyard.icon_svg(name, 14) for name in ("play", "timer", "circle-x", "workflow")]
    assert len(set(drawn)) == 4
    assert len(opened) == 1


def test_an_icon_is_decoration_of_the_size_asked_for() -> None:
    """It has no namespace, which a page does not need, and the colour of its text."""
    icon = stateyard.icon_svg("timer", 14)
    head = re.match(r"<svg [^>]*>", icon)
    assert head
    assert 'width="14" height="14"' in head[0]
    assert 'aria-hidden="true"' in head[0]
    assert "currentColor" in head[0]
    assert "xmlns" not in icon


def test_an_icon_that_does_not_exist_is_an_error() -> None:
    """A misspelt name fails the page's test instead of drawing nothing."""
    with pytest.raises(KeyError):
        stateyard.icon_svg("no-such-icon", 14)
