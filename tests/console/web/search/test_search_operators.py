"""The operators of a search: order, another value, a part of a text, times, and histories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.db import clock
from console.models import Project
from console.web.core.formatting import HOUR, MINUTE
from console.web.search import verify
from tests.console.store.helpers import PASS, create, drain, start
from tests.console.web.execution.test_root_cause import ORDERS
from tests.console.web.helpers import text
from tests.console.web.search.test_filters import NOON, seed
from tests.console.web.search.test_search import found

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Execution

NAP = {
    "StartAt": "Charge card",
    "States": {"Charge card": {"Type": "Wait", "Seconds": 600, "End": True}},
}


@pytest.mark.parametrize(
    ("find", "expected"),
    [
        ("input.total > 100", {"large"}),
        ("input.total >= 100", {"large", "hundred"}),
        ("input.total < 100", {"small"}),
        ("input.total <= 100", {"small", "hundred"}),
        ("input.total != 100", {"small", "large", "words"}),
        ("input.total>99.5 input.total<101", {"hundred"}),
        ("input.total ~ many", {"words"}),
        ("input.total ~ 10", {"hundred", "large"}),
        ("input.day >= 2026-03-01", {"large"}),
        ("input.day < 2026-03-01", {"small"}),
        ("input ~ MANY", {"words"}),
        ("input.on > 0", set()),
        ("a>b", set()),
        ("name ~ all", {"small"}),
        ("name != small name != large", {"hundred", "words"}),
    ],
)
@pytest.mark.postgres_too
def test_values_are_compared(
    project: Project, client: Client, find: str, expected: set[str]
) -> None:
    """Numbers with numbers, texts with texts; what has no value there is not another value."""
    machine = create(project, PASS)
    for name, payload in {
        "small": '{"total": 9, "day": "2026-02-28T10:00:00Z"}',
        "hundred": '{"total": 1e2, "on": true}',
        "large": '{"total": 1000, "day": "2026-03-02"}',
        "words": '{"total": "too many"}',
    }.items():
        seed(project, machine, 1, name=name, input=payload)
    assert set(found(client, find)) == expected


@pytest.mark.parametrize(
    ("find", "expected"),
    [
        ("status = failed", {"late", "refused"}),
        ("status != SUCCEEDED", {"late", "refused", "timed", "runs"}),
        ("status = timed out", None),
        ('status = "timed out"', {"timed"}),
        ("error ~ late", {"late"}),
        ("error != Orders.Late", {"refused", "timed"}),
        ("duration > 10 m", {"timed", "runs"}),
        ("duration>10m status != RUNNING", {"timed"}),
        ("duration <= 500ms", {"late", "refused", "paid"}),
        ("by = ada", {"paid"}),
        ("by ~ AD", {"paid"}),
        ("redrives > 0", {"refused"}),
        ("started > 2026-01-02T11:59:59 started < 2026-01-02 13:00", {"late", "refused", "paid"}),
        ("started >= 2026-01-03", {"runs"}),
        ("started < 2 h ago", {"late", "refused", "paid", "timed"}),
        ("started > 2h ago", {"runs"}),
        ("ended < 2026-01-01", {"timed"}),
        ("age < 2h", {"runs"}),
        ("age > 2 h status = FAILED", {"late", "refused"}),
    ],
)
@pytest.mark.postgres_too
def test_columns_are_compared(
    project: Project, client: Client, find: str, expected: set[str] | None
) -> None:
    """Statuses, times, ages, lengths and people; one that runs has lasted until now."""
    machine = create(project, PASS)
    rows: dict[str, dict[str, Any]] = {
        "late": {"status": "FAILED", "error": "Orders.Late"},
        "refused": {"status": "FAILED", "error": "Refused", "redrive_count": 1},
        "paid": {"started_by": "ada"},
        "timed": {"status": "TIMED_OUT", "error": "States.Timeout", "start_ms": NOON - 48 * HOUR},
        "runs": {"status": "RUNNING", "start_ms": clock.now_ms() - 20 * MINUTE},
    }
    for name, values in rows.items():
        if name == "timed":
            values["stop_ms"] = values["start_ms"] + HOUR
        seed(project, machine, 1, name=name, **values)
    if expected is None:  # a blank ends it: "out" is a word, and "timed" no status
        assert "not a status. Use RUNNING" in text(client.get("/executions/", {"find": find}), 422)
    else:
        assert set(found(client, find)) == expected


@pytest.mark.postgres_too
def test_state_names_have_blanks(project: Project, client: Client) -> None:
    """Up to the next condition, or a text in quotes."""
    napping = start(create(project, NAP), {"n": 1}, name="napping")
    drain(napping)
    for find in (
        "state = Charge card",
        "state=Charge card input.n = 1",
        'state = Charge card "napping"',
        "input.n = 1 state = Charge card",
        'state = "Charge card"',
        "state ~ charge c",
        "state != Charge",
    ):
        assert found(client, find) == ["napping"], find
    for find in ("state = Charge", "state != Charge card", "state = Charge card napping"):
        assert found(client, find) == [], find


@pytest.mark.parametrize(
    ("find", "place", "words"),
    [
        ("input.n = 1 foo > 3", 13, "Did you mean input.foo?"),
        ("started > soon", 11, "Enter a time (UTC) such as 2026-11-21 13:20, an age such as"),
        ("started = 2 h ago", 1, "Enter >, >=, < or <= after started; = needs a day"),
        ("started >", 1, "such as 2026-11-21, yesterday or 2 h ago"),
        ("duration > long", 12, "is not a duration such as"),
        ("redrives > x", 12, "is not a whole number"),
        ("history = x", 1, "Enter ~ after history"),
        ("error > A", 1, "Enter =, != or ~ after error"),
        ("late > ", 1, "Did you mean input.late?"),
        ("late ~", 1, "Did you mean input.late?"),
        ("input != 3", 1, "Enter input.path"),
        ("started > 99999999999999999999", 11, "is not a time"),
        ("started > 999999999d ago", 11, None),
        ("duration > 999999999d", 12, None),
    ],
)
def test_a_broken_search_says_where_and_what(
    project: Project, client: Client, find: str, place: int, words: str | None
) -> None:
    """The place of the first character, what stands there, what could; never an error page."""
    seed(project, create(project, PASS), 1)
    response = client.get("/executions/", {"find": find})
    if words is None:
        assert response.status_code == 200
        return
    shown = text(response, 422).split('id="find-problem"')[1].split("</p>")[0]
    assert f"At character {place}" in shown
    assert words in shown


@pytest.mark.postgres_too
def test_nothing_found_is_one_sentence(client: Client, project: Project) -> None:
    """All that was asked, in words; and where else it might be."""
    assert project
    query = {"find": "error ~ Late duration > 10 m", "status": "FAILED"}
    shown = text(client.get("/executions/", query))
    assert (
        "status is FAILED and error contains “Late” and duration is above 10 min 00 s</bdi>:"
        " no execution."
    ) in shown
    assert 'caught ~ "Late"' in shown
    shown = text(client.get("/executions/", {"find": "lorry broke"}))
    assert 'history ~ "lorry broke"' in shown


def retried(project: Project) -> Execution:
    """Return an execution that succeeded after a failed attempt."""
    again = {"ErrorEquals": ["States.ALL"], "IntervalSeconds": 0, "MaxAttempts": 1}
    parallel = {**ORDERS["States"]["Charge card"], "Retry": [again], "Next": "Ship"}
    states = {**ORDERS["States"], "Charge card": parallel}
    execution = start(create(project, {**ORDERS, "States": states}, "again"), name="again")
    return drain(execution)


def test_caught_errors_are_found(project: Project, client: Client) -> None:
    """Those that led to a Fail state, but not the error that ended the execution."""
    failed = drain(start(create(project, ORDERS), name="led"))
    assert (failed.status, failed.error) == ("FAILED", "OrderRejected")
    plain = {"StartAt": "No", "States": {"No": {"Type": "Fail", "Error": "ConnectionError"}}}
    drain(start(create(project, plain, "plain"), name="plain"))
    assert found(client, "caught = ConnectionError") == ["led"]
    assert found(client, "caught ~ connection") == ["led"]
    assert found(client, "caught = Connection") == []
    assert found(client, "caught = OrderRejected") == []
    assert found(client, "error = ConnectionError") == ["plain"]


def test_evaluation_errors_that_were_caught_are_found(project: Project, client: Client) -> None:
    """An error with an event of its own; where nothing catches it, it is the execution's."""
    broken = {"Type": "Pass", "Output": "{% $error('x') %}", "End": True}
    caught = {
        "Type": "Parallel",
        "Branches": [{"StartAt": "Broken", "States": {"Broken": broken}}],
        "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Done"}],
        "Next": "Done",
    }
    done = {"Type": "Succeed"}
    whole = {
        "QueryLanguage": "JSONata",
        "StartAt": "Try",
        "States": {"Try": caught, "Done": done},
    }
    assert drain(start(create(project, whole, "tried"), name="tried")).status == "SUCCEEDED"
    plain = {"QueryLanguage": "JSONata", "StartAt": "Broken", "States": {"Broken": broken}}
    failed = drain(start(create(project, plain, "plain"), name="plain"))
    assert failed.error == "States.QueryEvaluationError"
    assert found(client, "caught = States.QueryEvaluationError") == ["tried"]


@pytest.mark.postgres_too
def test_histories_are_searched_to_a_bound(
    project: Project, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Types, names and payloads between the states; the first and the last events of each."""
    states = {
        f"S{number}": {"Type": "Pass", "Result": f"made-{number}", "Next": f"S{number + 1}"}
        for number in range(20)
    }
    last = {"S20": {"Type": "Pass", "Result": "end", "End": True}}
    drain(start(create(project, {"StartAt": "S0", "States": {**states, **last}}), name="long"))
    drain(start(create(project, PASS, "short"), name="short"))
    assert found(client, "history ~ MADE-10") == ["long"]
    assert set(found(client, "history ~ passstate")) == {"long", "short"}
    assert found(client, 'history ~ "made-10" name = short') == []
    monkeypatch.setattr(verify, "MOST_EVENTS", 5)
    assert found(client, "history ~ made-10") == []
    assert found(client, "history ~ made-0") == ["long"]
    assert found(client, "history ~ made-19") == ["long"]


@pytest.mark.parametrize("field", ["history", "caught"])
def test_many_histories_are_searched_by_few_statements(
    project: Project, client: Client, monkeypatch: pytest.MonkeyPatch, field: str
) -> None:
    """Histories are read in growing portions, and matches keep the order of the list."""
    monkeypatch.setattr(verify, "_QUICK_S", 60.0)
    machine = create(project, PASS)
    seed(project, machine, 400, start_ms=1)
    for number in range(60):
        drain(start(machine, {"say": "lorry"}, f"match-{number:02}"))
    with CaptureQueriesContext(connection) as statements:
        assert found(client, f"{field} ~ nothing-says-this") == []
    read = [each for each in statements if 'FROM "console_historyevent"' in each["sql"]]
    assert len(read) == 4, "50, 100, 200 and the rest"
    names = [f"match-{number:02}" for number in range(59, 9, -1)]
    assert found(client, "history ~ lorry") == names


@pytest.mark.postgres_too
def test_a_long_search_of_histories_goes_on_where_it_stopped(
    project: Project, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the time of a page is over, the next one begins behind what was looked at."""
    machine = create(project, PASS)
    drain(start(machine, name="told"))
    seed(project, machine, 120, start_ms=clock.now_ms() + HOUR)
    monkeypatch.setattr(verify, "VERIFY_S", -1.0)
    before, names = "", []
    for _ in range(5):
        page: Any = client.get("/executions/", {"find": "history ~ pass", "before": before})
        names += [row.name for row in page.context["executions"].rows]
        before = page.context["executions"].before
        if not before:
            break
    assert names == ["told"]


@pytest.mark.postgres_too
def test_what_is_hidden_meets_no_condition(project: Project, client: Client) -> None:
    """Neither by order, nor by being another, nor in a history: a search tells no bit of it."""
    machine = create(project, PASS)
    rejected = {"status": "FAILED", "error": "secret-4711", "cause": "about secret-4711"}
    seed(project, machine, 1, name="hidden", input='{"card": "secret-4711"}', **rejected)
    drain(start(machine, {"card": "secret-4711"}, name="ran"))
    finds = (
        *("input.card > a", "input.card < z", "input.card != x", "input.card != secret-4711"),
        *("input.card ~ secret", "input ~ secret", "history ~ secret", "caught ~ secret"),
        *("error ~ secret", "error != x", "error != secret-4711", "cause ~ 4711", "cause != x"),
    )
    assert any(found(client, find) for find in finds)
    Project.objects.filter(pk=project.pk).update(masked="$.card")
    for find in finds:
        assert found(client, find) == [], find
    assert set(found(client, "name != x")) == {"hidden", "ran"}
    assert found(client, "status = FAILED duration < 1 m age > 1 m") == ["hidden"]
