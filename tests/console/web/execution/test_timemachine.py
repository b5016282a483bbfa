"""The page as it was at one of the events."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from console.models import HistoryEvent, Timer
from console.web.core import formatting
from console.web.history import traces
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
    summaries = (
        client.get(page(execution, f"?at={at}")).context["graph"].painting.summaries.values()
    )
    return [
        f"{summary.node.name} {summary.status.tone}"
        for summary in summaries
        if summary.status.tone != "idle"
    ]


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
    traces._past.clear()


def test_nonsense_is_the_present(client: Client, three: Execution) -> None:
    """An event that cannot be is no error."""
    for at in ("0", "-3", "zzz", "1e3"):
        assert client.get(page(three, f"?at={at}")).context.get("moment") is None


@pytest.fixture
def crossed(project: Project) -> Execution:
    """Return a Map in which #0 waits while #1 has ended, an event every 100 ms."""
    wait = {"Type": "Wait", "SecondsPath": "$", "End": True}
    inner = {"StartAt": "Look", "States": {"Look": {"Type": "Pass", "Next": "Nap"}, "Nap": wait}}
    each = {"Type": "Map", "ItemProcessor": inner, "End": True}
    machine = create(project, {"StartAt": "Each", "States": {"Each": each}})
    execution = drain(start(machine, [3600, 0], "m"))
    Timer.objects.filter(execution=execution).update(due_ms=0)
    drain(execution)
    for event in HistoryEvent.objects.filter(execution_id=execution.pk):
        HistoryEvent.objects.filter(pk=event.pk).update(
            at_ms=execution.start_ms + 100 * event.event_id
        )
    return execution


def event_of(execution: Execution, kind: str, place: int = 0) -> int:
    """Return the number of an event: of those of its type the one at a place."""
    events = HistoryEvent.objects.filter(execution_id=execution.pk, type=kind)
    return events.order_by("event_id")[place].event_id


@pytest.mark.postgres_too
def test_the_panel_is_about_the_iteration_of_the_event(client: Client, crossed: Execution) -> None:
    """Also where a state was chosen before; what the address names wins."""
    ended, later = (event_of(crossed, "WaitStateExited", place) for place in (0, 1))
    for at, iteration in ((ended, "#1"), (later, "#0")):
        for query in (f"?at={at}", f"?at={at}&step=Nap", f"?at={at}&step=Look"):
            assert client.get(page(crossed, query)).context["panel"].shown.iteration == iteration
    asked = client.get(page(crossed, f"?at={ended}&step=Nap&iteration=0"))
    assert asked.context["panel"].shown.iteration == "#0"


def test_a_state_in_progress_shows_the_time_of_the_visit_in_progress(
    client: Client, crossed: Execution
) -> None:
    """Not how long the visit of another iteration lasted that has ended."""
    entered = event_of(crossed, "WaitStateEntered")
    ended = event_of(crossed, "WaitStateExited")
    passed = formatting.duration_text(100 * (ended - entered))
    shown = client.get(page(crossed, f"?at={ended}"))
    nap = next(
        summary
        for summary in shown.context["graph"].painting.summaries.values()
        if summary.node.name == "Nap"
    )
    assert (nap.under, nap.running_since) == ("In progress", crossed.start_ms + 100 * entered)
    assert f"{passed} so far" in markup(shown).partition('data-step="Nap"')[2].partition("</a>")[0]
    moved = text(client.get(page(crossed, f"_at?at={ended}")))
    painted = json.JSONDecoder().raw_decode(moved.partition('data-paint="')[2])[0]
    assert painted["nodes"][nap.node.id]["under"] == f"{passed} so far"
