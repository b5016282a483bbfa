"""Pictures that leave the page: the graph of an execution as an SVG of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from console.features.exports import pictures
from console.web.core.formatting import STEP
from console.web.graph import svg
from tests.console.store.helpers import create, drain, start
from tests.console.web.helpers import MARKUP, page, text

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project

DEFINITION = {
    "StartAt": "Try",
    "States": {
        "Try": {
            "Type": "Parallel",
            "Branches": [{"StartAt": "Bad", "States": {"Bad": {"Type": "Fail", "Error": "E"}}}],
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": MARKUP}],
            "Next": "Never",
        },
        MARKUP: {"Type": "Pass", "End": True},
        "Never": {"Type": "Pass", "End": True},
    },
}


def words(answer: str) -> str:
    """Return all the text of an SVG, after parsing it."""
    return "".join(ET.fromstring(answer).itertext())  # noqa: S314 - what we have just written


def test_an_execution_is_drawn_with_its_statuses(project: Project, client: Client) -> None:
    """Colour, sign and word of each state, and a line that says what it is."""
    execution = drain(start(create(project, DEFINITION), name="x"))
    answer = client.get(page(execution, "graph.svg"))
    assert answer["Content-Type"].startswith("image/svg+xml")
    assert answer["Cache-Control"] == "no-store"
    shown = answer.content.decode()
    told = words(shown)
    assert "machine · x · Succeeded · " in told
    assert MARKUP in told
    for word in ("Caught error", "Failed", "Succeeded", "not entered"):
        assert word in told
    for tone in ("caught", "failed", "succeeded"):
        line, ground = pictures.TONES[tone]
        assert f'fill="{line}"' in shown
        assert f'href="#status-icon-{tone}"' in shown
        assert (ground in shown) == (tone != "caught")  # a Parallel is drawn around its branches
    tags = {element.tag.rpartition("}")[2] for element in ET.fromstring(shown).iter()}  # noqa: S314
    assert not tags & {"script", "style", "foreignObject", "a", "image"}


def test_the_picture_follows_the_time_machine(project: Project, client: Client) -> None:
    """With an event in the address it is as it was then, and says so."""
    execution = drain(start(create(project, DEFINITION), name="x"))
    told = words(text(client.get(page(execution, "graph.svg?at=2"))))
    assert "at event 2" in told
    assert "In progress" in told
    assert "Caught error" not in told


def test_every_status_has_its_colours() -> None:
    """But for what was not entered, which has none."""
    assert set(pictures.TONES) == {status.tone for status in STEP.values()} - {"idle"}


def test_a_long_caption_widens_the_picture() -> None:
    """It stands in the middle above the graph."""
    small = svg.definition_picture('{"StartAt":"A","States":{"A":{"Type":"Pass","End":true}}}')
    framed = pictures.picture_frame(small, "x" * 100)
    assert framed.width > small.width
    assert round(framed.middle - small.width / 2, 6) == 0
    assert pictures.picture_frame(small).width == small.width
