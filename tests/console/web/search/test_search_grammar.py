"""The grammar between conditions, and words for days: searched as meant, or refused."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from console.db import clock
from console.web.core.formatting import DAY, HOUR
from console.web.search.moments import parse_moment, parse_period, parse_span
from console.web.search.query import Operator
from console.web.search.query_parser import parse_search
from tests.console.store.helpers import PASS, create
from tests.console.web.helpers import text
from tests.console.web.search.test_filters import seed
from tests.console.web.search.test_search import found

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project

WEDNESDAY = 1_772_632_800_000
"""2026-03-04T14:00:00Z."""


@pytest.mark.parametrize(
    "find",
    [
        "input.customerId = 42 and started > 7 d ago",
        "input.customerId = 42 AND started > 7 days ago",
        "input.customerId=42 && started>168h ago",
        "started > a week ago and input.customerId = 42",
        "input.customerId = 42 and started >= last month and name ~ new",
    ],
)
@pytest.mark.postgres_too
def test_and_stands_between_conditions(project: Project, client: Client, find: str) -> None:
    """The word is no text to find, though a cause or an input may have it."""
    machine = create(project, PASS)
    now = clock.now_ms()
    seed(project, machine, 1, name="new", input='{"customerId": 42}', start_ms=now - HOUR)
    seed(project, machine, 1, name="handler", input='{"customerId": 7}', cause="Handler")
    seed(project, machine, 1, name="old", input='{"customerId": 42}', start_ms=now - 90 * DAY)
    assert found(client, find) == ["new"]


def test_a_state_ends_before_and() -> None:
    """A name with blanks ends where the next condition begins."""
    search = parse_search("state = Charge card and input.n = 1")
    assert [condition.value for condition in search.conditions] == ["Charge card", 1]
    search = parse_search('state = "Pack and ship" and "two words"')
    assert search.conditions[0].value == "Pack and ship"
    assert search.words == ("two words",)
    assert parse_search('rock "and" roll').words == ("rock", "and", "roll")


@pytest.mark.parametrize(
    ("find", "words"),
    [
        ("status = FAILED or status = TIMED_OUT", "“or” is not supported"),
        ("status = FAILED || error = X", "“||” is not supported"),
        ("error = X , cause = Y", "“,” is not supported"),
        ("not status = FAILED", "“not” is not supported"),
        ("input.a = 1 and not error = X", "“not” is not supported"),
        ("!status=FAILED", "Negation is not supported"),
        ("-error ~ Late", "Negation is not supported"),
        ("(status = FAILED)", "Parentheses are not supported"),
        ("input.a = 1 and (error = X)", "Parentheses are not supported"),
        ("status in (FAILED, TIMED_OUT)", "Lists of values are not supported"),
        ("input.customerId in (42, 43)", "Lists of values are not supported"),
        ("customerId in (42, 43)", "Lists of values are not supported"),
        ("customerId in(42,43)", "Lists of values are not supported"),
        ("duration between 1 m and 5 m", "Lists of values are not supported"),
        ("status = (FAILED)", "Lists of values are not supported"),
        ("input.a = 1, input.b = 2", "Lists of values are not supported"),
        ("input.customerId 42", "Enter =, !=, >, >=, <, <= or ~ after input.customerId"),
        ("status is FAILED", "Enter = or != after status"),
        ("error like Late", "Enter =, != or ~ after error"),
        ("started after 2026-01-02", "Enter >, >=, <, <= or = after started"),
        ("started today", "Enter >, >=, <, <= or = after started"),
        ("status:FAILED", "Enter status = …"),
        ("input.customerId:42", "Enter input.customerId = …"),
        ("and status = FAILED", "Enter a condition or a text on both sides"),
        ("status = FAILED and", "Enter a condition or a text on both sides"),
        ("lorry and and broke", "Enter a condition or a text on both sides"),
        ("name = and started > 7 d ago", "Enter a value, or use quotes"),
        ("state = Charge or Ship", "needs quotes"),
        ("state = A or state = B", "needs quotes"),
        ("state = A and lorry", "needs quotes"),
        ("customerId = 42", "“customerId” is not a field. Did you mean input.customerId?"),
        ("$.order.id = 42", "Did you mean input.order.id?"),
        ("Status = FAILED", "Did you mean status?"),
        ("start > today", "Did you mean started?"),
        ("Input.x = 1", "Did you mean input.x?"),
        ("started > yesterday 10:00", "Enter a time (UTC)"),
        ("started > 8 days", "Enter a time (UTC)"),
        ("started > 2026-02-30", "Enter a time (UTC)"),
        ("started != today", "Enter >, >=, <, <= or = after started"),
    ],
)
def test_other_grammar_is_refused(project: Project, client: Client, find: str, words: str) -> None:
    """It would be looked for as text, and what that finds looks right."""
    seed(project, create(project, PASS), 1, cause="status or customerId in and not FAILED")
    shown = text(client.get("/executions/", {"find": find}), 422)
    assert words in shown.split('id="find-problem"')[1].split("</p>")[0]


@pytest.mark.parametrize(
    ("words", "start", "end"),
    [
        ("today", "2026-03-04", "2026-03-05"),
        ("Yesterday", "2026-03-03", "2026-03-04"),
        ("this week", "2026-03-02", "2026-03-09"),
        ("last  week", "2026-02-23", "2026-03-02"),
        ("this month", "2026-03-01", "2026-04-01"),
        ("last month", "2026-02-01", "2026-03-01"),
        ("2026-01-31", "2026-01-31", "2026-02-01"),
    ],
)
def test_days_weeks_and_months_have_names(
    monkeypatch: pytest.MonkeyPatch, words: str, start: str, end: str
) -> None:
    """A moment is their beginning (UTC); ``=`` takes all of it."""
    monkeypatch.setattr(clock, "now_ms", lambda: WEDNESDAY)
    bounds = tuple(
        round(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() * 1000)
        for day in (start, end)
    )
    assert parse_period(words) == bounds
    assert parse_moment(words) == bounds[0]
    conditions = parse_search(f"ended = {words}").conditions
    assert [(condition.operator, condition.value) for condition in conditions] == [
        (Operator.AT_LEAST, bounds[0]),
        (Operator.BELOW, bounds[1]),
    ]


def test_ages_have_whole_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """As people write them."""
    monkeypatch.setattr(clock, "now_ms", lambda: WEDNESDAY)
    assert parse_moment("8 days ago") == WEDNESDAY - 8 * DAY
    assert parse_moment("an hour ago") == WEDNESDAY - HOUR
    assert parse_span("2 weeks") == 14 * DAY
    assert parse_span("10 minutes") == 600_000


@pytest.mark.parametrize("address", ["/executions/?from=last+week", "/executions/?to=yesterday"])
@pytest.mark.postgres_too
def test_fields_take_the_same_words(project: Project, client: Client, address: str) -> None:
    """One reader of moments for every field."""
    assert project
    assert client.get(address).status_code == 200


def test_the_palette_offers_a_search(project: Project, client: Client) -> None:
    """Conditions are no name; what is wrong with them is told before they are searched."""
    seed(project, create(project, PASS), 1, name="new", input='{"customerId": 42}')
    shown = text(client.get("/palette/", {"q": "input.customerId = 42 and started > today"}))
    assert "Executions: input.customerId is 42" in shown
    assert "/executions/?find=input.customerId+%3D+42+and+started+%3E+today" in shown
    shown = text(client.get("/palette/", {"q": "customerId = 42"}))
    assert "Did you mean input.customerId?" in shown
    shown = text(client.get("/palette/", {"q": "customerId 42"}))
    assert "Search inputs and outputs for “<bdi>customerId 42</bdi>”" in shown
    assert "/executions/?find=customerId+42" in shown


@pytest.mark.postgres_too
def test_a_name_with_conditions_leads_to_the_search(project: Project, client: Client) -> None:
    """A name has no operator: a list of names says where conditions are read."""
    seed(project, create(project, PASS), 1)
    for path in ("/executions/", "/machines/", "/activities/", "/alarms/"):
        shown = text(client.get(path, {"q": "input.customerId = 42"}))
        assert "find=input.customerId+%3D+42" in shown, path


@pytest.mark.parametrize("pattern", ["Timeout and Handler", "Timeout OR Handler", "not Handler"])
def test_log_patterns_have_no_words_between_terms(
    project: Project, client: Client, pattern: str
) -> None:
    """CloudWatch takes them as terms to find, which is rarely meant."""
    create(project, PASS)
    form = {"act": "logging", "level": "ALL", "group": "/aws/vendedlogs/states/x"}
    client.post("/machines/machine/settings/", form)
    shown = text(client.get("/machines/machine/logs/", {"pattern": pattern}), 422)
    assert "is a term to find" in shown
    quoted = {"pattern": '"Timeout" "and" ?a'}
    assert client.get("/machines/machine/logs/", quoted).status_code == 200
