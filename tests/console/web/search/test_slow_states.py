"""A comparison counts durations that differ by far, and has the total."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from console.features.compare.compare import ComparedRow, ComparedState
from console.models import HistoryEvent
from console.web.core import formatting
from tests.console.store.helpers import create, drain, start
from tests.console.web.helpers import markup

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project

TWO = {
    "StartAt": "Work",
    "States": {"Work": {"Type": "Pass", "Next": "Done"}, "Done": {"Type": "Succeed"}},
}


@pytest.mark.parametrize(
    ("a", "b", "differs"),
    [
        (7_000, 300, True),
        (300, 7_000, True),
        (1_000, 1_500, True),
        (1_000, 1_499, False),
        (100, 500, False),
        (0, 500, True),
        (10_000, 14_900, False),
        (None, 7_000, False),
    ],
)
def test_durations_differ_from_half_more_and_half_a_second_on(
    a: int | None, b: int | None, differs: bool
) -> None:
    """Less is noise to a reader."""
    done = formatting.STEP[""]
    row = ComparedRow("Work", ComparedState(done, 1, 0, a), ComparedState(done, 1, 0, b))
    assert row.differs is differs
    assert row.lasts_differently is differs


def test_a_slow_state_is_what_differs(project: Project, client: Client) -> None:
    """The filter keeps it, and a row has the durations of the two executions."""
    machine = create(project, TWO)
    fast, slow = drain(start(machine, name="fast")), drain(start(machine, name="slow"))
    later = HistoryEvent.objects.filter(execution=slow, event_id__gte=3)
    for event in later:
        HistoryEvent.objects.filter(pk=event.pk).update(at_ms=event.at_ms + 6_700)
    for run, lasted in ((fast, 100), (slow, 6_800)):
        type(run).objects.filter(pk=run.pk).update(stop_ms=run.start_ms + lasted)
    address = f"/compare/?a={fast.arn}&b={slow.arn}"
    shown = markup(client.get(address))
    assert "1 of 2 differ" in shown
    total = shown.split('id="total-duration"')[1].split("</tr>")[0]
    assert "(+6.7" in total
    shown = markup(client.get(f"{address}&only=differing"))
    rows = shown.split('id="states"')[1].split("<tbody>")[1].split("</tbody>")[0]
    assert "Work" in rows
    assert "Done" not in rows
