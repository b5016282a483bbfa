"""The steps as bars over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.features.timeline.axis import LEAST, WIDTH, AxisSpan
from console.models import HistoryEvent, Timer
from tests.console.store.helpers import create, drain, one, start
from tests.console.web.helpers import CHAIN, page, steps_page, text, timeline_page

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project


def test_a_retried_state_has_a_segment_for_each_attempt(project: Project, client: Client) -> None:
    """Attempts and the pauses between them are told in words."""
    branch = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "Oops"}}}
    retry = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 1}]
    execution = start(create(project, one("P", Type="Parallel", Branches=[branch], Retry=retry)))
    drain(execution)
    Timer.objects.update(due_ms=0)
    drain(execution)
    begin = execution.start_ms
    events = HistoryEvent.objects.filter(execution_id=execution.pk)
    for number in events.values_list("event_id", flat=True):
        events.filter(event_id=number).update(at_ms=begin + number * 1000)
    shown = client.get(timeline_page(execution)).context["timeline"].bars["n1"]
    assert [segment.text for segment in shown] == [
        "attempt 1 failed, 1.0 s, on the critical path",
        "waited, 1.0 s, on the critical path",
        "attempt 2 failed, 2.0 s, on the critical path",
    ]
    assert [segment.tone for segment in shown] == ["failed", "wait", "failed"]


def test_the_bars_of_a_running_execution_follow(project: Project, client: Client) -> None:
    """A tick carries the bars while the timeline is on display, and at the end."""
    execution = drain(start(create(project, CHAIN), name="x"))
    seen = "&seen_rows=" + client.get(steps_page(execution)).context["steps"].stamp
    assert 'id="bar-n2"' in text(client.get(page(execution, f"_delta?after=1&view=timeline{seen}")))
    assert 'id="bar-n2"' not in text(
        client.get(page(execution, f"_delta?after=1&view=graph{seen}"))
    )
    unread = text(client.get(page(execution, "_delta?after=1&view=timeline")))
    assert 'id="bar-n2"' not in unread  # the page has just asked for the table


def test_a_segment_is_never_too_short_to_see() -> None:
    """Whatever the proportions, each segment stands within the bar."""
    span = AxisSpan(0, 1_000_000, 1_000_000)
    assert span.place(0, 0) == (0.0, LEAST)
    assert span.place(1_000_000, 1_000_000) == (WIDTH - LEAST, LEAST)
    assert span.place(250_000, 500_000) == (250.0, 250.0)
    assert AxisSpan(5, 5, 5).place(5, 5) == (0.0, LEAST)
