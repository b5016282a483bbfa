"""Charts show metrics only to permitted users, and odd addresses get a sensible answer."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext

from console.db import clock
from console.features.metrics import rollups
from console.features.metrics.web import scale
from console.features.metrics.web.span import ChartSpan
from console.models import Execution, Project
from console.store.executions import redrive as redrives
from console.web.core.formatting import MINUTE, clock_text
from tests.console.store.helpers import PASS, WAIT, create, drain, start
from tests.console.web.helpers import markup, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

PAGES = ("/", "/charts/", "/charts.csv", "/charts/_delta", "/machines/mine/metrics/")
FAILS = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "No"}}}
ALL = "from=2000-01-01T00:00&to=2100-01-01T00:00"


@pytest.fixture
def two(project: Project) -> Project:
    """Return a project with one execution beside another project with three."""
    drain(start(create(project, PASS, "mine")))
    other = Project.objects.create(name="other", account_id="210987654321")
    theirs = create(other, PASS, "theirs")
    for _ in range(3):
        drain(start(theirs))
    return project


def test_nobody_sees_another_projects_numbers(two: Project, client: Client) -> None:
    """Charts and the executions behind them are those of the reader's project."""
    del two
    assert "ExecutionsSucceeded,Sum,Count" in text(client.get("/charts.csv?range=1h"))
    lines = [
        line
        for line in text(client.get("/charts.csv?range=1h")).splitlines()
        if line.startswith("ExecutionsSucceeded")
    ]
    assert sum(float(line.rsplit(",", 1)[1]) for line in lines) == 1
    behind = text(client.get(f"/charts/executions/?metric=ExecutionsSucceeded&{ALL}"))
    assert "<span data-count>1</span>" in behind
    assert "theirs" not in behind
    assert client.get("/machines/theirs/metrics/").status_code == 404
    assert client.get("/charts/_delta?machine=theirs").status_code == 404


@pytest.mark.parametrize("path", PAGES)
def test_who_is_not_signed_in_is_sent_to_the_login(two: Project, path: str) -> None:
    """Every page of metrics."""
    from django.test import Client

    del two
    answer = Client().get(path)
    assert answer.status_code == 302
    assert answer["Location"].startswith("/login/")


@pytest.mark.parametrize(
    "query",
    [
        "range=nonsense&period=x&statistic=<b>&group=../",
        "range=own&from=0001-01-01T00:00&to=9999-12-31T23:59",
        "range=own&from=2026-02-01T00:00&to=2026-01-01T00:00",
        "range=30d&period=1",
        "range=1h&period=10080",
    ],
)
def test_odd_choices_show_something_sensible(two: Project, client: Client, query: str) -> None:
    """Whatever stands in the address, the page draws its charts, and not too many bars."""
    del two
    page = text(client.get(f"/charts/?{query}"))
    assert page.count('class="chart"') == 7
    assert page.count("<rect") < 7 * 400


@pytest.mark.parametrize(
    "query", ["", "metric=Nope", f"metric=ActivityTime&{ALL}", "metric=ExecutionTime&from=x&to=y"]
)
def test_addresses_without_executions_are_missing(client: Client, query: str) -> None:
    """With words that help."""
    assert "needs a metric" in text(client.get(f"/charts/executions/?{query}"), 404)


@pytest.mark.postgres_too
def test_long_lists_behind_a_bar_come_in_pages(project: Project, client: Client) -> None:
    """Sixty executions: fifty, then ten, none twice."""
    machine = create(project, WAIT, "mine")
    names = {start(machine).name for _ in range(60)}
    address = f"/charts/executions/?metric=ExecutionsStarted&{ALL}"
    first = client.get(address)
    after = first.context["after"]
    second = client.get(f"{address}&after={after}")
    shown = [row.name for row in (*first.context["rows"], *second.context["rows"])]
    assert (len(shown), set(shown)) == (60, names)
    assert second.context["after"] == ""


@pytest.mark.postgres_too
def test_a_list_behind_a_bar_says_which_it_leaves_out(project: Project, client: Client) -> None:
    """Two failed, one was redriven since and works now: the bar counts two, the list has one."""
    machine = create(project, FAILS, "mine")
    for name in ("stays", "again"):
        execution = drain(start(machine, name=name))
    address = f"/charts/executions/?metric=ExecutionsFailed&{ALL}&machine=mine"
    assert 'id="gone"' not in text(client.get(address))
    redrives.redrive_execution(Execution.objects.get(pk=execution.pk))
    assert Execution.objects.get(pk=execution.pk).status == "RUNNING"
    shown = " ".join(text(client.get(address)).split())
    assert "<span data-count>1</span>" in shown
    assert (
        "The bar in the chart counted 2 executions; 1 was redriven or deleted since and is not"
        " listed." in shown
    )


@pytest.mark.parametrize(
    ("minutes", "period", "step", "rooms"),
    [
        (60, 1, 10, ["", "medium", "", "medium", "medium", "wider"]),
        (180, 5, 30, ["", "medium", "", "medium", "wide", None]),
        (12 * 60, 15, 120, ["", "medium", "", "medium", "wide", None]),
        (24 * 60, 30, 6 * 60, ["", "medium", "wider", None]),
        (7 * 24 * 60, 180, 2 * 24 * 60, ["", "medium", "wide", None]),
    ],
)
def test_the_axis_of_times_names_round_times_and_its_end(
    minutes: int, period: int, step: int, rooms: list[str | None]
) -> None:
    """Which lines have a text depends on the width: at even distances, and not below the end's."""
    until = (1_800_000 * 16 + 7) * MINUTE
    *ticks, end = scale.time_ticks(until - minutes * MINUTE, until, period * MINUTE)
    assert {tick.at_ms % (step * MINUTE) for tick in ticks} == {0}
    assert [tick.room if tick.form else None for tick in ticks] == rooms
    assert (end.at_ms, end.left, end.is_end) == (until, "100.00%", True)
    assert end.form
    assert not any(tick.is_end for tick in ticks)
    classes = ["", "medium", "wide", "wider"]
    for width in range(len(classes)):
        named = [tick.x for tick in ticks if tick.form and classes.index(tick.room) <= width]
        assert len({round(after - before) for before, after in pairwise(named)}) <= 1


@pytest.mark.postgres_too
def test_the_failures_behind_a_bar_have_their_errors(project: Project, client: Client) -> None:
    """With the state; the machine of a row that was deleted is no link."""
    ended = drain(start(create(project, FAILS, "mine"), name="bad"))
    address = f"/charts/executions/?metric=ExecutionsFailed&{ALL}"
    shown = markup(client.get(address))
    cells = [re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"<td.*?</td>", shown)]
    assert cells[1:5] == ["mine", "Failed", "F", "No"]
    assert 'href="/machines/mine/"' in shown
    type(ended).objects.filter(pk=ended.pk).update(state_machine=None)
    shown = markup(client.get(address))
    assert 'href="/machines/mine/"' not in shown
    assert "(deleted)" in shown


def test_a_tick_without_change_carries_nothing(two: Project, client: Client) -> None:
    """The second poll with what the first had seen answers 204."""
    del two
    address = client.get("/charts/?range=30d").context["delta_url"]
    assert client.get(address).status_code == 204
    assert client.get(address.partition("seen=")[0]).status_code == 200


@pytest.mark.parametrize(
    ("path", "most"), [("/", 16), ("/charts/", 15), ("/machines/mine/metrics/", 15)]
)
def test_few_queries(two: Project, client: Client, path: str, most: int) -> None:
    """However much there is to show; the overview has one for what drifts."""
    del two
    rollups.sum_up()
    with CaptureQueriesContext(connection) as queries:
        assert client.get(path).status_code == 200
    assert len(queries) <= most, [query["sql"][:90] for query in queries]


# -- several metrics in one chart ------------------------------------------------------------------


def test_outcomes_are_stacked_and_lead_to_their_executions(
    project: Project, client: Client
) -> None:
    """A column is as high as all that ended; each part opens those it stands for."""
    passes, fails = create(project, PASS, "ok"), create(project, FAILS, "bad")
    for machine, count in ((passes, 3), (fails, 1)):
        for _ in range(count):
            drain(start(machine))
    context = client.get("/charts/?range=1h&period=60").context
    outcomes, durations = context["combined"]
    assert [series.summary for series in outcomes.series] == ["3", "1", "0", "0"]
    parts = [part for column in outcomes.columns for part in column.segments]
    assert sum(part.height for part in parts) == pytest.approx(100)  # the axis ends at four
    failed = next(part for part in parts if part.tone == "failed")
    assert client.get(failed.href).context["total"] == 1
    assert [series.word for series in durations.series] == ["Median", "p90", "p99"]
    assert all(series.path for series in durations.series)
    alone = {chart.label.removeprefix("Executions "): chart.tone for chart in context["charts"]}
    together = {series.word.lower(): series.tone for series in outcomes.series}
    assert {word: alone[word] for word in together} == together


def test_long_times_have_plain_lines_instead_of_percentiles(client: Client) -> None:
    """Percentiles of a month would read every minute's spread of every machine."""
    durations = client.get("/charts/?range=30d").context["combined"][1]
    assert [series.word for series in durations.series] == ["Average", "Longest"]


@pytest.mark.parametrize(
    ("most", "times", "end"),
    [
        *(
            (1, False, 1),
            (3, False, 4),
            (41, False, 60),
            (22, False, 30),
            (250, False, 300),
            (0.4, False, 1),
        ),
        *(
            (3, True, 4),
            (950, True, 1_000),
            (61_000, True, 120_000),
            (90_000_000, True, 172_800_000),
        ),
    ],
)
def test_axes_end_at_round_numbers(most: float, times: bool, end: float) -> None:
    """Half of it is round, too: it is the line in the middle."""
    assert scale.axis_end(most, times=times) == end
    assert most <= end


@pytest.mark.parametrize(
    ("query", "since", "until"),
    [
        ("range=1h&period=60", "2026-07-01 18:00:00", "2026-07-01 20:00:00"),
        ("range=3h&period=5", "2026-07-01 16:00:00", "2026-07-01 19:05:00"),
        (
            "range=own&from=2026-07-01T10:50&to=2026-07-01T11:10&period=60",
            *(
                "2026-07-01 10:00:00",
                "2026-07-01 12:00:00",
            ),
        ),
    ],
)
def test_the_whole_time_is_shown(
    monkeypatch: pytest.MonkeyPatch, query: str, since: str, until: str
) -> None:
    """The last hour is an hour also two minutes after a full one, when a bar is an hour."""
    monkeypatch.setattr(clock, "now_ms", lambda: 1_782_932_520_000)  # 2026-07-01 19:02 UTC
    span = ChartSpan.of(QueryDict(query), ("seven",))
    assert (clock_text(span.since), clock_text(span.until)) == (since, until)


def test_a_press_chooses_the_time(two: Project, client: Client) -> None:
    """The title says which; no heading says the page's title again; other choices are kept."""
    shown = text(client.get("/charts/?range=7d&statistic=p90"))
    assert re.findall(r"<h[12][^>]*>([^<]*)</h[12]>", shown)[:2] == ["Metrics", "Last 7 days"]
    nav = shown.partition('aria-label="Time"')[2].partition("</nav>")[0]
    links = re.findall(r'href="\?([^"#]*)#charts-title" title="([^"]*)"\s*(aria-current)?', nav)
    assert [word for _, word, _ in links] == [
        *("Last hour", "Last 3 hours", "Last 12 hours", "Last 24 hours"),
        *("Last 7 days", "Last 30 days", "Custom time"),
    ]
    assert [word for _, word, current in links if current] == ["Last 7 days"]
    assert all("statistic=p90" in address for address, *_ in links)
    assert 'type="datetime-local"' not in shown
    own = text(client.get("/charts/?range=own"))
    assert own.count('type="datetime-local"') == 2
    assert '<input type="hidden" name="range" value="own">' in own


def test_charts_without_values_have_no_axis_of_values(client: Client) -> None:
    """There is nothing to measure by it; the legend still shows a line for each statistic."""
    answer = client.get("/charts/?range=1h")
    context = answer.context
    assert all(chart.value_ticks == [] for chart in (*context["charts"], *context["combined"]))
    legend = markup(answer).partition('id="plot-durations"')[2].partition("</figcaption>")[0]
    assert legend.count('<path class="line"') == 3
    assert "<rect" not in legend


def test_no_middle_is_named_that_is_not_there() -> None:
    """Half of one millisecond is shown as none."""
    assert [tick.text for tick in scale.value_ticks(1, times=True)] == ["1 ms"]
    assert [tick.text for tick in scale.value_ticks(2, times=True)] == ["2 ms", "1 ms"]


def test_the_time_of_the_charts_ends_now(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last bar goes on after it; a time that is over, or all to come, stays as chosen."""
    now = 1_700_000_040_000  # 22:14 of 2023-11-14
    monkeypatch.setattr(clock, "now_ms", lambda: now)
    past = "range=own&from=2023-11-14T20:00&to=2023-11-14T21:00"
    ahead = "range=own&from=2023-11-15T20:00&to=2023-11-15T21:00"
    for query, first, last in (
        ("range=3h&period=15", "2023-11-14 19:00:00", "2023-11-14 22:14:00"),
        (past, "2023-11-14 20:00:00", "2023-11-14 21:00:00"),
        (ahead, "2023-11-15 20:00:00", "2023-11-15 21:00:00"),
    ):
        span = ChartSpan.of(QueryDict(query), ("seven",))
        assert clock_text(span.since) == first
        assert clock_text(span.shown_until) == last
    monkeypatch.undo()
    shown = re.sub(r"<[^>]+>", "", markup(client.get("/charts/?range=3h&period=180")))
    until = re.search(r" UTC ?to ?(\S+ \S+) UTC", shown)
    assert until is not None
    assert until[1] <= clock_text(clock.now_ms())


def test_the_poll_brings_charts_of_several_metrics_too(project: Project, client: Client) -> None:
    """What the page has seen is not sent again; what changed is."""
    machine = create(project, PASS, "mine")
    address = client.get("/charts/?range=1h&period=60").context["delta_url"]
    drain(start(machine))
    changed = client.get(address, headers={"HX-Request": "true"})
    assert 'id="plot-outcomes"' in markup(changed)
    assert 'id="values-durations"' in markup(changed)


# -- Prometheus ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "headers", "status"),
    [
        ("127.0.0.1", {}, 200),
        ("::1", {}, 200),
        ("203.0.113.9", {}, 401),
        ("", {}, 401),
        ("127.0.0.1", {"HTTP_X_FORWARDED_FOR": "203.0.113.9"}, 401),
        ("127.0.0.1", {"HTTP_FORWARDED": "for=127.0.0.1"}, 401),
        ("127.0.0.1", {"HTTP_X_FORWARDED_PROTO": "https"}, 401),
        ("127.0.0.1", {"HTTP_X_FORWARDED_PORT": "443"}, 401),
        ("127.0.0.1", {"HTTP_X_REAL_IP": "127.0.0.1"}, 401),
        ("127.0.0.1", {"HTTP_VIA": "1.1 proxy"}, 401),
    ],
)
def test_without_a_token_only_this_machine_scrapes(
    two: Project, address: str, headers: dict[str, Any], status: int
) -> None:
    """A proxy's visitors are not this machine."""
    from django.test import Client

    del two
    answer = Client().get("/metrics", REMOTE_ADDR=address, **headers)
    assert answer.status_code == status


def test_with_https_nobody_scrapes_without_a_token(two: Project, settings: Any) -> None:
    """A proxy that adds no header looks like this machine: behind one there is always a token."""
    from django.test import Client

    del two
    settings.STATEYARD_HTTPS = True
    assert Client().get("/metrics", secure=True).status_code == 401
    settings.STATEYARD_METRICS_TOKEN = "s3cret"
    headers: dict[str, Any] = {
        "HTTP_AUTHORIZATION": "Bearer s3cret",
        "HTTP_X_FORWARDED_PROTO": "https",
    }
    assert Client().get("/metrics", secure=True, **headers).status_code == 200


@pytest.mark.parametrize(("token", "status"), [("s3cret", 200), ("other", 401), (None, 401)])
def test_with_a_token_only_who_knows_it_scrapes(
    two: Project, settings: Any, token: str | None, status: int
) -> None:
    """Also on this machine."""
    from django.test import Client

    del two
    settings.STATEYARD_METRICS_TOKEN = "s3cret"
    headers: dict[str, Any] = {} if token is None else {"HTTP_AUTHORIZATION": f"Bearer {token}"}
    assert Client().get("/metrics", **headers).status_code == status


def test_names_from_people_cannot_break_the_exposition(
    project: Project, signed_in: Callable[[str], Client]
) -> None:
    """Quotes, backslashes and new lines in a label are escaped."""
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    from console.db.writer import write
    from console.features.metrics.openmetrics import RENDERERS, render_metrics
    from console.features.metrics.samples import Series
    from console.features.metrics.tally import Tally

    odd = 'a"b\\c\nd'
    tally = Tally()
    tally.add(1)
    series = Series(project.pk, "us-east-1", "ActivitiesFailed", odd)
    write(lambda: rollups._add_totals({series: tally}))
    text = render_metrics(next(iter(RENDERERS))).decode()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    (sample,) = families["stateyard_activities_failed"].samples
    assert sample.labels["activity_arn"] == odd


@pytest.mark.parametrize(
    ("accept", "answered"),
    [
        (None, "application/openmetrics-text; version=1.0.0; charset=utf-8"),
        ("text/html,*/*;q=0.8", "application/openmetrics-text; version=1.0.0; charset=utf-8"),
        (
            (
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
                "text/plain;version=0.0.4;q=0.4,*/*;q=0.2"
            ),
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
        ),
        ("text/plain;version=0.0.4;q=1,*/*;q=0.1", "text/plain; version=0.0.4; charset=utf-8"),
        ("text/plain", "text/plain; version=0.0.4; charset=utf-8"),
    ],
)
def test_metrics_come_in_the_format_that_the_reader_prefers(
    project: Project, accept: str | None, answered: str
) -> None:
    """Both formats have the same samples; without a preference it is OpenMetrics."""
    from django.test import Client
    from prometheus_client import openmetrics, parser

    from console.db.writer import write
    from console.features.metrics.samples import Series
    from console.features.metrics.tally import Tally

    tally = Tally()
    tally.add(12)
    series = Series(project.pk, "us-east-1", "ActivityTime", "arn")
    write(lambda: rollups._add_totals({series: tally}))
    response = Client().get("/metrics", headers={} if accept is None else {"Accept": accept})
    assert response["Content-Type"] == answered
    read = openmetrics.parser if answered.startswith("application") else parser
    families = read.text_string_to_metric_families(response.content.decode())
    samples = {
        (sample.name, sample.labels.get("le")): sample.value
        for family in families
        for sample in family.samples
        if sample.labels.get("activity_arn") == "arn"
    }
    name = "stateyard_activity_time_seconds"
    assert samples[f"{name}_bucket", "0.01"] == 0
    assert samples[f"{name}_bucket", "0.025"] == 1
    assert samples[f"{name}_count", None] == 1
    assert samples[f"{name}_sum", None] == 0.012


def test_large_counters_are_exact(project: Project) -> None:
    """A counter beyond a million has all its digits: of rounded ones a rate would be wrong."""
    from django.test import Client
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    from console.db.writer import write
    from console.features.metrics.samples import Series
    from console.features.metrics.tally import Tally

    series = Series(project.pk, "us-east-1", "ActivitiesFailed", "arn")
    write(lambda: rollups._add_totals({series: Tally(1_234_567, 1_234_567.0, 1, 1)}))
    text_answered = Client().get("/metrics").content.decode()
    families = {family.name: family for family in text_string_to_metric_families(text_answered)}
    (sample,) = families["stateyard_activities_failed"].samples
    assert sample.value == 1_234_567
