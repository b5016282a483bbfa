"""The event table: pages, filters, deep links, downloads."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import TYPE_CHECKING

import pytest

from console.models import HistoryEvent
from console.web.core.formatting import iso_text, without_formula
from console.web.history.event_filter import parse_moment
from tests.console.store.helpers import create, drain, one, start
from tests.console.web.helpers import CHAIN, markup, page, text

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Execution, Project


@pytest.fixture
def chain(project: Project) -> Execution:
    """Return an execution that has entered its second state."""
    return drain(start(create(project, CHAIN), {"order": 4711}, "x"))


def numbers(client: Client, execution: Execution, query: str) -> list[int]:
    """Return the ids of the rows a query shows."""
    return [row.id for row in client.get(page(execution, query)).context["events"].rows]


@pytest.mark.postgres_too
def test_events_are_found_by_what_is_written_in_them(client: Client, chain: Execution) -> None:
    """A text matches type, state and payloads, also where these are JSON within JSON."""
    assert numbers(client, chain, "?text=4711") == [1, 2]
    assert numbers(client, chain, '?text="order": 4711') == [1, 2]
    assert numbers(client, chain, "?text=waitstate") == [4]
    assert numbers(client, chain, "?text=nap&type=WaitStateEntered") == [4]
    assert numbers(client, chain, "?text=nowhere") == []
    assert "No matching events" in text(client.get(page(chain, "?text=nowhere")))


@pytest.mark.postgres_too
def test_events_are_found_by_time(client: Client, chain: Execution) -> None:
    """Both ends are included and count as UTC, to the millisecond."""
    begin = chain.start_ms
    for number in range(1, 5):
        HistoryEvent.objects.filter(execution_id=chain.pk, event_id=number).update(
            at_ms=begin + number * 1000
        )
    since, until = iso_text(begin + 2000).rstrip("Z"), iso_text(begin + 3000).rstrip("Z")
    assert numbers(client, chain, f"?since={since}&until={until}") == [2, 3]
    assert numbers(client, chain, f"?since={since}") == [2, 3, 4]
    assert numbers(client, chain, "?since=yesterday") == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("1970-01-02", 86_400_000),
        ("1970-01-01T00:01", 60_000),
        ("1970-01-01T00:00:01.5Z", 1_500),
        ("1969-12-31T23:59:59.999", -1),
        ("1970-13-01", None),
        ("soon", None),
        ("", None),
    ],
)
def test_moments_are_read_as_utc(written: str, told: int | None) -> None:
    """What a field or a hand-written address may hold."""
    assert parse_moment(written) == told


@pytest.mark.postgres_too
def test_the_table_has_an_address_of_its_own(client: Client, chain: Execution) -> None:
    """``events/?at=3`` marks the row; the page says how many events there are in all."""
    shown = markup(client.get(page(chain, "events/?at=3")))
    assert 'id="e3" class="succeeded current-event" tabindex="-1"' in shown
    assert "1 to 4 of 4 events" in shown
    filtered = markup(client.get(page(chain, "events/?type=WaitStateEntered")))
    assert "1 to 1 of 1 matching, of 4 events" in filtered


def test_an_event_leads_to_the_one_it_followed(client: Client, chain: Execution) -> None:
    """The previous event is a link to its row."""
    shown = text(client.get(page(chain, "events/?open=4")))
    assert 'events/?at=3#e3" data-event="3"' in shown


@pytest.mark.postgres_too
def test_downloads_hold_what_the_filter_lets_through(client: Client, chain: Execution) -> None:
    """CSV and JSON carry the same events; the JSON has the shape that AWS prints."""
    answer = client.get(page(chain, "events.csv?type=WaitStateEntered"))
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert answer["Content-Disposition"] == 'attachment; filename="x-events.csv"'
    assert [(row["id"], row["previousEventId"], row["state"]) for row in rows] == [
        ("4", "3", "Nap")
    ]
    told = client.get(page(chain, "events.json?order=newest")).json()["events"]
    assert [event["id"] for event in told] == [4, 3, 2, 1]
    assert told[3]["executionStartedEventDetails"]["input"] == '{"order": 4711}'
    assert told[0]["timestamp"].endswith("Z")


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t", "\r"])
def test_a_cell_is_never_a_formula(project: Project, client: Client, sign: str) -> None:
    """A name that a spreadsheet would run is quoted; other texts stay as they are."""
    name = f"{sign}cmd|' /C calc'!A0"
    assert without_formula(name) == f"'{name}"
    assert without_formula('{"a": "=1"}') == '{"a": "=1"}'
    execution = drain(start(create(project, one(name, Type="Pass")), name="x"))
    table = client.get(page(execution, "events.csv")).content.decode()
    states = {row["state"] for row in csv.DictReader(io.StringIO(table, newline=""))}
    assert states == {"", f"'{name}"}


def test_strangers_get_no_file(project: Project, client: Client, chain: Execution) -> None:
    """Without signing in there is no table and no download."""
    del project
    client.logout()
    for address in ("events/", "events.csv", "events.json"):
        assert client.get(page(chain, address)).status_code == 302


def test_an_empty_file_is_still_json(client: Client, chain: Execution) -> None:
    """The file parses as JSON even when nothing matches."""
    answer = client.get(page(chain, "events.json?type=Nothing"))
    assert json.loads(answer.content) == {"events": []}


@pytest.fixture
def failed(project: Project) -> Execution:
    """Return an execution that ended in a Fail state."""
    states = {"No": {"Type": "Fail", "Error": "Card.Declined", "Cause": "no money"}}
    return drain(start(create(project, {"StartAt": "No", "States": states}), {"card": "x"}, "f"))


def test_a_failure_names_its_error_in_its_row(client: Client, failed: Execution) -> None:
    """Without being unfolded; the events that led to it say nothing of the kind."""
    rows = client.get(page(failed, "events/")).context["events"].rows
    assert [row.error for row in rows] == ["", "", "Card.Declined"]
    shown = text(client.get(page(failed, "events/")))
    assert "Card.Declined" in shown
    assert "no money" not in shown


def test_a_hidden_error_stays_hidden_in_its_row(
    client: Client, failed: Execution, project: Project
) -> None:
    """As in the unfolded event."""
    HistoryEvent.objects.filter(execution_id=failed.pk, event_id=3).update(
        details=json.dumps({"error": "canary-9", "cause": "c"})
    )
    type(failed).objects.filter(pk=failed.pk).update(input=json.dumps({"card": "canary-9"}))
    type(project).objects.update(masked="$.card")
    shown = text(client.get(page(failed, "events/")))
    assert "canary-9" not in shown
    assert "(masked)" in shown


def test_all_events_of_a_page_are_unfolded_by_one_link(client: Client, chain: Execution) -> None:
    """And folded again; the filter stays."""
    shown = text(client.get(page(chain, "events/?type=WaitStateEntered")))
    link = re.search(r'href="([^"]*)" data-history>Unfold all', shown)
    assert link is not None
    assert "type=WaitStateEntered" in link[1]
    answer = client.get(page(chain, f"events/{link[1]}"))
    assert all(row.detail for row in answer.context["events"].rows)
    past = text(client.get(page(chain, f"?at=3&open={'.'.join('1234')}&page=1")))
    fold = re.search(r'href="([^"]*)" data-history>Fold all', past)
    assert fold is not None
    assert "at=3" in fold[1]  # the time machine stays where it is
    folded = client.get(page(chain, fold[1].partition("#")[0])).context["events"].rows
    assert not any(row.detail for row in folded)


def test_the_time_range_is_open_where_it_filters(client: Client, chain: Execution) -> None:
    """Else it is one press away."""
    assert '<details class="time-range">' in text(client.get(page(chain, "events/")))
    address = page(chain, "events/?since=2020-01-01T00:00")
    assert '<details class="time-range" open>' in text(client.get(address))


@pytest.mark.postgres_too
def test_each_row_says_how_long_after_the_start_and_after_the_event_before(
    client: Client, chain: Execution
) -> None:
    """Also where a filter hides the event before; the first has none."""
    for number in range(1, 5):
        HistoryEvent.objects.filter(execution_id=chain.pk, event_id=number).update(
            at_ms=chain.start_ms + number * number * 1000
        )
    shown = text(client.get(page(chain, "events/")))
    assert "Started after (ms)" in shown
    assert "Since previous (ms)" in shown
    assert "+7,000" in shown
    rows = client.get(page(chain, "events/?order=newest")).context["events"].rows
    assert [(row.elapsed, row.after) for row in rows] == [
        (16_000, 7_000),
        (9_000, 5_000),
        (4_000, 3_000),
        (1_000, None),
    ]
    rows = client.get(page(chain, "events/?type=WaitStateEntered")).context["events"].rows
    assert [(row.id, row.after) for row in rows] == [(4, 7_000)]


@pytest.mark.postgres_too
def test_the_page_of_an_event_says_where_and_when_it_was(project: Project, client: Client) -> None:
    """Its iteration, a way to its step, and how long after the start and the event before."""
    inner = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
    each = one("Each", Type="Map", ItemProcessor=inner)
    execution = drain(start(create(project, each), [1, 2], "x"))
    entered = HistoryEvent.objects.filter(execution_id=execution.pk, type="PassStateEntered")
    number = entered.order_by("event_id").values_list("event_id", flat=True)[1]
    HistoryEvent.objects.filter(execution_id=execution.pk, event_id=number).update(
        at_ms=execution.start_ms + 1_500
    )
    shown = markup(client.get(page(execution, f"events/{number}/")))
    assert '?step=P&visit=2&tab=events#workflow"><bdi>P</bdi></a>' in shown
    assert "iteration #1" in shown
    assert "1,500 ms after the start" in shown
    assert "ms after the event before" in shown
    panel = text(client.get(page(execution, "?step=P&visit=2&tab=events")))
    assert f'data-event="{number}"' in panel
    assert "after the start" not in text(
        client.get(page(execution, f"events/{number}/"), headers={"HX-Request": "true"})
    )
