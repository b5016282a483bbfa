"""The charts show the metrics, and every bar leads to its executions (rows E21 and X12)."""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from console.features.metrics.names import METRICS, SEVEN
from tests.acceptance.browser.accessibility import faults_at_all_sizes
from tests.acceptance.browser.yard import create, start, unique
from tests.acceptance.server import wait_for_end

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from tests.acceptance.server import Server

pytestmark = [pytest.mark.browser, pytest.mark.acceptance]
ARN = "arn:aws:states:us-east-1:123456789012"
FAILS = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "No"}}}
FAILED = 7


@pytest.fixture(scope="module")
def machine(server: Server) -> str:
    """Return a machine of which seven executions have failed."""
    name = create(server, FAILS)
    client = server.client()
    for number in range(FAILED):
        start(server, name, name=f"run-{number}")
        wait_for_end(client, f"{ARN}:execution:{name}:run-{number}")
    return name


def bars(page: Page, metric: str) -> list[int]:
    """Return the values of a chart's table."""
    cells = page.locator(f"#values-{metric} tbody td.number").all_text_contents()
    return [int(text.replace(",", "")) for text in cells]


def test_e21_the_failed_bars_equal_the_lists_they_link_to(page: Page, machine: str) -> None:
    """The seven metrics of one machine; the sum of ExecutionsFailed is that of its lists."""
    page.goto(f"/machines/{machine}/metrics/?range=1h&period=1")
    for metric in SEVEN:
        expect(page.locator(f"#chart-{metric}")).to_be_visible()
    values = bars(page, "ExecutionsFailed")
    assert sum(values) == FAILED
    links = page.locator("#plot-ExecutionsFailed svg a")
    addresses = [links.nth(n).get_attribute("href") or "" for n in range(links.count())]
    assert len(addresses) == len(values)
    for address, value in zip(addresses, values, strict=True):
        page.goto(address)
        expect(page.locator("[data-count]")).to_have_text(str(value))
        expect(page.locator("#executions tbody tr")).to_have_count(value)


def test_e21_every_metric_and_choice_has_its_place(page: Page, machine: str) -> None:
    """The groups together show every name; period, range and statistic change what is drawn."""
    shown: set[str] = set()
    page.goto("/charts/")
    for group in page.locator("#group option").evaluate_all("all => all.map((one) => one.value)"):
        page.goto(f"/charts/?group={group}")
        marks = page.locator("[data-metric]").evaluate_all(
            "all => all.map((one) => one.dataset.metric)"
        )
        shown |= set(marks)
    assert shown == set(METRICS)
    page.goto(f"/machines/{machine}/metrics/")
    page.click("text=30d")
    page.select_option("#statistic", "p99")
    page.click("form.filters button")
    expect(page.locator("#plot-ExecutionTime")).to_contain_text("p99")
    assert bars(page, "ExecutionsFailed") == [FAILED]


def test_e21_the_overview_shows_the_seven_of_all_machines(page: Page, machine: str) -> None:
    """At least as many failures as the one machine had."""
    page.goto("/")
    expect(page.locator("[data-metric]")).to_have_count(len(SEVEN))
    assert sum(bars(page, "ExecutionsFailed")) >= FAILED


def test_x12_a_bar_opens_the_executions_of_its_minute(page: Page, machine: str) -> None:
    """Press a bar: the address names the minute, the list has as many rows as the bar said."""
    page.goto(f"/machines/{machine}/metrics/?range=1h&period=1")
    bar = page.locator("#plot-ExecutionsFailed svg a").first
    said = re.fullmatch(r"(\S+) (\d\d:\d\d):00 UTC: (\d+)", bar.get_attribute("aria-label") or "")
    assert said is not None
    bar.click()
    page.wait_for_url("**/charts/executions/**")
    assert f"from={said[1]}T{said[2].replace(':', '%3A')}" in page.url
    expect(page.locator("[data-count]")).to_have_text(said[3])
    expect(page.locator("#executions tbody tr")).to_have_count(int(said[3]))
    page.locator("#executions a").first.click()
    expect(page.locator("#status")).to_have_text("Failed")


def test_a_chart_says_its_value_under_the_pointer(page: Page, machine: str) -> None:
    """Time and all series of a column, beside it; gone when the pointer leaves."""
    page.goto(f"/machines/{machine}/metrics/?range=1h&period=60")
    chart = page.locator("#plot-outcomes")
    chart.locator(".bar").last.hover()
    expect(chart.locator(".readout")).to_have_text(
        re.compile(rf"^\d{{4}}-\d\d-\d\d \d\d:\d\d Failed {FAILED}$")
    )
    page.locator("h1").hover()
    expect(chart.locator(".readout")).to_be_hidden()
    chart.locator("svg a.failed").last.focus()
    expect(chart.locator(".readout")).to_be_visible()


def test_outcomes_stand_upon_each_other(page: Page, server: Server) -> None:
    """Two ways to end share a column; a part opens those that ended so."""
    either = {"Variable": "$.ok", "BooleanEquals": True, "Next": "Yes"}
    name = create(
        server,
        {
            "StartAt": "Ok?",
            "States": {
                "Ok?": {"Type": "Choice", "Choices": [either], "Default": "No"},
                "Yes": {"Type": "Succeed"},
                "No": {"Type": "Fail", "Error": "No"},
            },
        },
        unique("either"),
    )
    for run, ok in (("a", True), ("b", True), ("c", False)):
        start(server, name, {"ok": ok}, name=run)
        wait_for_end(server.client(), f"{ARN}:execution:{name}:{run}")
    page.goto(f"/machines/{name}/metrics/?range=3h&period=180")
    parts = page.locator("#plot-outcomes svg")
    low = parts.locator("a.succeeded rect").last.bounding_box()
    high = parts.locator("a.failed rect").last.bounding_box()
    assert low is not None
    assert high is not None
    assert abs(high["y"] + high["height"] - low["y"]) < 1
    assert abs(low["height"] - 2 * high["height"]) < 1
    page.locator("#plot-outcomes svg a.failed").last.click()
    expect(page.locator("[data-count]")).to_have_text("1")


def test_the_overview_has_its_charts_above_the_fold(page: Page, machine: str) -> None:
    """What ended how, before any table; each metric by itself is one press away."""
    del machine
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto("/")
    expect(page.locator("#plot-outcomes")).to_be_in_viewport(ratio=1)
    expect(page.locator("#plot-durations")).to_be_in_viewport(ratio=1)
    expect(page.locator("#plot-ExecutionsFailed")).to_be_hidden()
    page.click("text=All metrics")
    expect(page.locator("#plot-ExecutionsFailed")).to_be_visible()


def test_the_download_has_the_same_numbers(page: Page, machine: str) -> None:
    """CSV: one line a bar, with metric, statistic and the start of the period."""
    page.goto(f"/machines/{machine}/metrics/?range=1h&period=1")
    with page.expect_download() as download:
        page.click("a[download]")
    text = download.value.path().read_text("utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    failed = [float(row["value"]) for row in rows if row["metric"] == "ExecutionsFailed"]
    assert sum(failed) == FAILED
    assert {row["seconds"] for row in rows} == {"60"}


def test_charts_change_without_a_reload(page: Page, server: Server) -> None:
    """A tick brings what changed; the open table and its place stay."""
    name = create(server, FAILS, unique("live"))
    page.goto(f"/machines/{name}/metrics/?range=1h&period=1")
    expect(page.locator("#plot-ExecutionsFailed .plot-maximum")).to_have_text("None in this time")
    page.locator("#chart-ExecutionsFailed summary").click()
    page.evaluate("window.untouched = document.querySelector('#plot-ExecutionsTimedOut svg')")
    start(server, name, name="now")
    wait_for_end(server.client(), f"{ARN}:execution:{name}:now")
    page.evaluate("htmx.trigger('#charts-poll', 'poll-now')")
    expect(page.locator("#values-ExecutionsFailed td.number")).to_have_text("1")
    expect(page.locator("#plot-ExecutionsFailed svg a")).to_have_count(1)
    assert page.locator("#chart-ExecutionsFailed details").evaluate("one => one.open")
    assert page.evaluate("window.untouched.isConnected")


def test_the_cost_stands_on_execution_and_machine(page: Page, server: Server, machine: str) -> None:
    """Two transitions a failed run of one state: seven runs cost 14 x 0.000025 dollars."""
    page.goto(f"/machines/{machine}/executions/run-0/")
    expect(page.locator("#cost")).to_have_text("$0.000050")
    page.goto(f"/machines/{machine}/metrics/")
    expect(page.locator("#cost-title")).to_contain_text("$0.000350")


def test_the_pages_fit_and_are_accessible(page: Page, machine: str) -> None:
    """No sideways scroll, no axe violation, on a phone and a desk, in both themes."""
    since = "from=2026-01-01T00:00&to=2100-01-01T00:00"
    behind = f"/charts/executions/?metric=ExecutionsFailed&machine={machine}&{since}"
    for path in ("/", "/charts/?range=own", f"/machines/{machine}/metrics/", behind):
        assert faults_at_all_sizes(page, path) == [], path
