"""Hot states: figures of each state, painted on the graph, with links to their executions."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.features.hot_states import figures
from console.features.insights import past_executions
from console.models import Execution, HistoryEvent, StateMachine, Timer
from console.store.executions.start import start_execution
from console.store.machines import machines, versions
from tests.console.store.helpers import create, drain, start
from tests.console.web.helpers import markup, page

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project

_NAP = {"StartAt": "Nap", "States": {"Nap": {"Type": "Wait", "SecondsPath": "$.s", "End": True}}}
_BREAK = {
    "StartAt": "Break",
    "States": {"Break": {"Type": "Fail", "Error": "Broken"}},
}
WAYS: dict[str, Any] = {
    "StartAt": "Choose",
    "States": {
        "Choose": {
            "Type": "Choice",
            "Choices": [
                {"Variable": "$.n", "NumericEquals": 1, "Next": "Often"},
                {"Variable": "$.n", "NumericEquals": 2, "Next": "Rarely"},
                {"Variable": "$.n", "NumericEquals": 3, "Next": "Again"},
            ],
            "Default": "Slow",
        },
        "Often": {"Type": "Fail", "Error": "A"},
        "Rarely": {"Type": "Fail", "Error": "B"},
        "Again": {
            "Type": "Parallel",
            "Branches": [_BREAK],
            "Retry": [{"ErrorEquals": ["Broken"], "IntervalSeconds": 1, "MaxAttempts": 2}],
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Done"}],
            "Next": "Done",
        },
        "Slow": {"Type": "Parallel", "Branches": [_NAP], "Next": "Done"},
        "Done": {"Type": "Succeed"},
    },
}
HOT = "/machines/machine/hot-states/"


def run(machine: StateMachine, data: Any, name: str) -> Execution:
    """Start an execution and take it to its end, over its timers."""
    execution = start(machine, data, name)
    while drain(execution).status == "RUNNING":
        Timer.objects.filter(execution=execution).update(due_ms=0)
    return execution


def rows(shown: str) -> dict[str, list[str]]:
    """Return state -> the texts of its cells, in the order of the table."""
    body = shown.split('id="states"')[1].split("<tbody>")[1].split("</tbody>", maxsplit=1)[0]
    table = {}
    for each in re.findall(r"<tr .*?</tr>", body):
        row = re.sub(r'<span class="visually-hidden".*?</span>', "", each)
        cells = re.findall(r"<td.*?</td>", row)
        texts = [" ".join(re.sub(r"<[^>]*>", " ", cell).split()) for cell in cells]
        table[texts[0].rpartition(" ")[0]] = texts[1:]
    return table


def link(shown: str, state: str, figure: str) -> str:
    """Return where a figure of a state leads."""
    links = re.findall(r'href="([^"]*hot-states/executions/[^"]*)"', shown)
    asked = {f"state={state}", f"figure={figure}"}
    (address,) = (each for each in links if asked <= {*each.partition("?")[2].split("&")})
    return str(address)


@pytest.fixture
def mixed(project: Project) -> StateMachine:
    """Return a machine with six executions."""
    machine = create(project, WAYS)
    for number, data in enumerate((1, 1, 1, 2, 3, 4)):
        run(machine, {"n": data, "s": 0}, f"x{number}")
    return machine


def test_the_page_of_a_machine_leads_to_the_state_that_fails_most(
    mixed: StateMachine, client: Client
) -> None:
    """In one press: the first row fails most, and its figure lists the executions."""
    assert f'href="{HOT}">Which state fails most</a>' in markup(client.get("/machines/machine/"))
    shown = markup(client.get(HOT))
    table = rows(shown)
    assert next(iter(table)) == "Often"
    assert table["Often"][:2] == ["3 of 6", "3"]
    assert table["Rarely"][1] == "1"
    assert table["Again"][1:3] == ["1 1 caught", "2"]
    assert table["Done"][1:3] == ["0", "0"]
    listed = markup(client.get(link(shown, "Often", "failures")))
    named = re.findall(r'href="([^"]*)"><bdi>x\d</bdi>', listed)
    addresses = [page(each) for each in Execution.objects.filter(name__in=["x2", "x1", "x0"])]
    assert sorted(named) == sorted(f"{address}?step=Often" for address in addresses)
    assert "1 failure" in listed


def test_cost_counts_visits_and_retries(mixed: StateMachine, client: Client) -> None:
    """By the price of a state transition; the state that costs most is first."""
    shown = markup(client.get(f"{HOT}?by=cost"))
    table = rows(shown)
    assert next(iter(table)) == "Choose"
    assert table["Choose"][4] == "$0.000150"
    assert table["Again"][4] == "$0.000075"
    assert "visits and retries" in shown
    assert "3 visits and retries" in markup(client.get(link(shown, "Again", "cost")))


def test_the_graph_is_painted_by_the_chosen_figure(mixed: StateMachine, client: Client) -> None:
    """With a step of the colour, words in the box and a legend; the most has the last step."""
    shown = markup(client.get(HOT))
    boxes = re.findall(r'<a class="node ([\w-]+)[^"]*" data-step="(\w+)"', shown)
    painted = {name: tone for tone, name in boxes}
    assert painted["Often"] == "heat-4"
    assert painted["Rarely"] == "heat-2"
    assert painted["Done"] == "heat-0"
    assert 'aria-label="Often, Fail, 3 failures · 3 visits, level 4 of 4"' in shown
    assert "Failures: none" in shown
    assert "Failures: 3" in shown
    by_retries = markup(client.get(f"{HOT}?by=retries"))
    assert 'data-figure="retries"' in by_retries
    assert 'aria-label="Again, Parallel, 2 retries · 1 visit, level 4 of 4"' in by_retries


def test_the_table_sorts_by_links(mixed: StateMachine, client: Client) -> None:
    """A figure's heading sorts and paints by it; a name's heading leaves the painting."""
    by_name = markup(client.get(f"{HOT}?sort=name&by=cost"))
    assert [*rows(by_name)] == sorted(rows(by_name), key=str.casefold)
    assert 'data-figure="cost"' in by_name
    assert 'aria-sort="ascending"' in by_name
    (heading,) = re.findall(r'href="([^"]*)#states">p95 duration</a>', by_name)
    assert 'data-figure="p95"' in markup(client.get(f"{HOT}{heading}"))
    assert "sort" not in heading
    assert next(iter(rows(markup(client.get(f"{HOT}?sort=definition"))))) == "Choose"
    assert next(iter(rows(markup(client.get(f"{HOT}?by=retries"))))) == "Again"


@pytest.mark.postgres_too
def test_a_duration_lists_the_longest_visit_first(project: Project, client: Client) -> None:
    """The executions behind a duration are in the order of their longest visits."""
    machine = create(project, _NAP)
    for name, seconds in (("short", 1), ("long", 9), ("middle", 4)):
        execution = run(machine, {"s": 0}, name)
        HistoryEvent.objects.filter(execution_id=execution.pk, type="WaitStateExited").update(
            at_ms=execution.start_ms + seconds * 1000
        )
        HistoryEvent.objects.filter(execution_id=execution.pk, type="WaitStateEntered").update(
            at_ms=execution.start_ms
        )
    past_executions._known.clear()
    shown = markup(client.get(f"{HOT}?by=p95"))
    assert rows(shown)["Nap"][3] == "9.0 s"
    listed = markup(client.get(link(shown, "Nap", "p95")))
    assert re.findall(r"<bdi>(short|long|middle)</bdi>", listed) == ["long", "middle", "short"]
    assert "longest visit 9.0 s" in listed


@pytest.mark.postgres_too
def test_executions_of_a_version_an_alias_or_a_revision_are_chosen(
    project: Project, client: Client
) -> None:
    """Each choice counts its own executions and draws the definition that they ran with."""
    machine = create(project, WAYS)
    version = versions.publish_version(machine)
    routing = [{"stateMachineVersionArn": version.arn, "weight": 100}]
    alias = versions.create_alias(project, "PROD", routing)
    drain(
        start_execution(machine, version=version, alias_arn=alias.arn, name="a", input='{"n": 1}')
    )
    drain(start_execution(machine, version=version, name="v", input='{"n": 2}'))
    renamed = json.loads(json.dumps(WAYS).replace("Often", "Later"))
    machines.update_machine(machine, definition=json.dumps(renamed))
    machine = StateMachine.objects.get()
    drain(start(machine, {"n": 1}, "r"))
    shown = markup(client.get(HOT))
    assert rows(shown)["Later"][0] == "1 of 1"
    options = dict(re.findall(r'<option value="([\w-]+)"[^>]*>(.*?): ', shown))
    keys = {words: key for key, words in options.items()}
    assert {"Alias PROD", "Version 1"} <= {*keys}
    by_alias = rows(markup(client.get(f"{HOT}?of={keys['Alias PROD']}")))
    assert by_alias["Often"][0] == "1 of 1"
    by_version = markup(client.get(f"{HOT}?of=version-1"))
    assert rows(by_version)["Rarely"][0] == "1 of 2"
    assert "<bdi>v</bdi>" in markup(client.get(link(by_version, "Rarely", "failures")))
    first = next(
        key for words, key in keys.items() if "(current)" not in words and "evision" in words
    )
    assert rows(markup(client.get(f"{HOT}?of={first}")))["Choose"][0] == "2 of 2"


def test_long_histories_are_left_out_and_said(
    mixed: StateMachine, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only so many events are read; the page says how many executions are not counted."""
    assert "not counted" not in markup(client.get(HOT))
    monkeypatch.setattr(past_executions, "MOST_EVENTS", 30)
    shown = markup(client.get(f"{HOT}?last=20"))
    counted = int(rows(shown)["Choose"][0].split(" of ")[1])
    assert 1 <= counted < 6
    assert f"{6 - counted} of 20 executions are not counted" in shown
    assert "this page reads at most 30 events" in " ".join(shown.split())


def test_statements_do_not_grow_with_executions(
    mixed: StateMachine, client: Client, known_settings: None
) -> None:
    """Neither the page nor its list reads an execution by itself."""
    client.get(HOT)
    counts = []
    for size in (1, 12):
        for number in range(size):
            run(mixed, {"n": 1}, f"more-{size}-{number}")
        with CaptureQueriesContext(connection) as queries:
            client.get(f"{HOT}?last=500")
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_a_page_without_executions_says_what_it_is_for(project: Project, client: Client) -> None:
    """With the button that starts the first execution."""
    create(project, WAYS)
    shown = markup(client.get(HOT))
    assert "Hot states show where executions fail" in shown
    assert "Start execution" in shown


@pytest.mark.parametrize("query", ["", "?state=Nowhere&figure=p95", "?state=Often&figure=colour"])
def test_an_unknown_state_or_figure_is_not_found(
    mixed: StateMachine, client: Client, query: str
) -> None:
    """The address needs both."""
    assert client.get(f"{HOT}executions/{query}").status_code == 404


@pytest.mark.parametrize(
    ("value", "most", "level"), [(0, 9, 0), (None, 9, 0), (1, 100, 1), (26, 100, 2), (9, 9, 4)]
)
def test_levels_divide_the_range_into_quarters(value: Any, most: int, level: int) -> None:
    """Nothing has no level, the most has the last."""
    assert figures.level_of(value, most) == level


def test_express_costs_time_not_transitions(project: Project, client: Client) -> None:
    """A Parallel of an Express machine has no cost of its own: the states inside have it."""
    machine = machines.create_machine(
        project,
        "us-east-1",
        name="machine",
        definition=json.dumps(WAYS),
        role_arn="arn:aws:iam::123456789012:role/test",
        type="EXPRESS",
    )
    run(machine, {"n": 4, "s": 0}, "x")
    shown = markup(client.get(f"{HOT}?by=cost"))
    assert rows(shown)["Slow"][4] == "-"
    assert rows(shown)["Nap"][4].startswith("$0.0")
    assert "memory and time" in shown
