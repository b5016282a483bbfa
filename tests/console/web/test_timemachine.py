"""The page as it was at one of the events."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from console.models import HistoryEvent
from console.web.execution import time_machine
from tests.console.store.helpers import create, drain, start
from tests.console.web.helpers import CHAIN, markup, page, text

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Execution, Project

STEPS = {
    "QueryLanguage": "JSONata",
    "StartAt": "A",
    "States": {
        "A": {"Type": "Pass", "Assign": {"n": 1}, "Next": "B"},
        "B": {"Type": "Pass", "Assign": {"n": 2, "m": "x"}, "Next": "C"},
        "C": {"Type": "Pass", "End": True},
    },
}


@pytest.fixture
def three(project: Project) -> Execution:
    """Return an ended execution of three states: entered at events 2, 4 and 6."""
    return drain(start(create(project, STEPS), name="x"))


def coloured(client: Client, execution: Execution, at: int) -> list[str]:
    """Return name and status of the states that are coloured at an event."""
    summaries = client.get(page(execution, f"?at={at}")).context["summaries"].values()
    return [f"{one.node.name} {one.status.tone}" for one in summaries if one.status.tone != "idle"]


def test_exactly_what_was_entered_is_coloured(client: Client, three: Execution) -> None:
    """Event by event the states come in, first in progress and then succeeded."""
    assert coloured(client, three, 1) == []
    assert coloured(client, three, 4) == ["A succeeded", "B running"]
    assert coloured(client, three, 2) == ["A running"]
    assert coloured(client, three, 8) == ["A succeeded", "B succeeded", "C succeeded"]
    assert coloured(client, three, 99_999) == coloured(client, three, 8)


def test_variables_are_those_of_the_moment(client: Client, three: Execution) -> None:
    """They equal what the history had assigned until then."""
    told = {}
    for at in (2, 3, 5):
        moment = client.get(page(three, f"_at?at={at}")).context["moment"]
        told[at] = {name: json.loads(payload.text) for name, payload in moment.variables}
    assert told == {2: {}, 3: {"n": 1}, 5: {"n": 2, "m": "x"}}


def test_the_panel_shows_what_was_known(client: Client, three: Execution) -> None:
    """A step in progress has no output yet, also where the execution has long ended."""
    shown = text(client.get(page(three, "_step?step=B&at=4")))
    assert "No output yet" in shown
    assert "so far" in shown
    assert "data-since" not in shown
    assert "No output yet" not in text(client.get(page(three, "_step?step=B")))


def test_the_past_is_read_without_a_script(project: Project, client: Client) -> None:
    """Links lead back and forth, the slider is a form, and nothing polls."""
    execution = drain(start(create(project, CHAIN), name="y"))
    shown = markup(client.get(page(execution, "?at=3&step=Nap"))).replace("&amp;", "&")
    assert "event 3 of 4" in shown
    assert re.search(r'data-event-step="-1" href="\?at=2&step=Nap', shown)
    assert re.search(r'data-event-step="1" href="\?at=4&step=Nap', shown)
    assert 'data-poll="execution"' not in shown
    assert 'data-poll="execution"' in text(client.get(page(execution)))


def test_moving_on_reads_only_what_lies_between(client: Client, three: Execution) -> None:
    """A step forwards goes on from the last trace; a step backwards begins anew."""
    client.get(page(three, "_at?at=4"))
    HistoryEvent.objects.filter(execution_id=three.pk, event_id=2).delete()
    assert "A succeeded" in coloured(client, three, 5)
    assert "A running" not in coloured(client, three, 2)
    time_machine._past.clear()


def test_nonsense_is_the_present(client: Client, three: Execution) -> None:
    """An event that cannot be is no error."""
    for at in ("0", "-3", "zzz", "1e3"):
        assert client.get(page(three, f"?at={at}")).context.get("moment") is None
