"""Every count leads to a list of as many, and every row says where and how an execution ended."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.db import clock
from console.db.audit import Actor
from console.features.alarms import store as alarms
from console.features.alarms.jobs import evaluate_alarms
from console.features.alarms.models import Alarm
from console.features.failures import overview
from console.models import Execution
from console.store.executions.last_states import open_states
from console.store.executions.stop import stop_execution
from console.store.machines import machines
from console.store.tasks import activities
from console.web.search import scan
from tests.console.store.helpers import PASS, REGION, ROLE, WAIT, WORK, create, drain, start
from tests.console.transition_rates import Clock
from tests.console.web.helpers import markup, page, text
from tests.console.web.search.test_filters import seed

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project

FAILS = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "Oops"}}}


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock for everything that asks for the time."""
    fake_clock = Clock()
    monkeypatch.setattr(clock, "now_ms", lambda: fake_clock.now_ms)
    return fake_clock


def express(project: Project, text: str, name: str) -> Any:
    """Create an Express machine."""
    return machines.create_machine(
        project, REGION, name=name, definition=text, role_arn=ROLE, type="EXPRESS"
    )


def plain(response: Any) -> str:
    """Return the HTML of a page without the marks in its names."""
    return re.sub(r"</?(wbr|bdi)>", "", markup(response))


def listed(client: Client, address: str) -> int:
    """Return how many executions the list at an address has."""
    return len(client.get(address).context["executions"].rows)


# -- counts ----------------------------------------------------------------------------------------


@pytest.mark.postgres_too
def test_tiles_lists_and_bars_count_express_too(project: Project, client: Client) -> None:
    """One set of executions: the overview, its lists, the machines, failures and the charts."""
    fails = '{"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "Oops"}}}'
    passes = '{"StartAt": "P", "States": {"P": {"Type": "Pass", "End": true}}}'
    for machine in (
        *(create(project, PASS, "standard"), create(project, FAILS, "failing")),
        *(express(project, passes, "quick"), express(project, fails, "broken")),
    ):
        for _ in range(2):
            drain(start(machine))
    shown = markup(client.get("/"))
    tiles = re.findall(r'<a class="card tile" href="([^"]*)">.*?<b>(\d+)</b></a>', shown)
    counts = [int(count) for _, count in tiles[:4]]
    assert counts == [0, 4, 4, 0]
    assert [listed(client, address) for address, _ in tiles[:4]] == counts
    shown_counts = [client.get(address).context["match_count"] for address, _ in tiles[:4]]
    assert [shown.count for shown in shown_counts] == counts
    assert "4 executions" in plain(client.get(tiles[1][0]))
    kinds = {kind.group.like.machine_name: kind.count for kind in client.get("/").context["kinds"]}
    assert kinds == {"failing": 2, "broken": 2}
    assert markup(client.get("/failures/")).count("Redrive…") == 1, "no Express one is redriven"
    for kind in client.get("/").context["kinds"]:
        assert listed(client, f"/executions/?{kind.address}") == kind.count
    bars = [
        (bar.href, bar.value)
        for chart in client.get("/").context["charts"]
        if chart.name in ("ExecutionsSucceeded", "ExecutionsFailed")
        for bar in chart.bars
        if bar.value
    ]
    assert sum(value for _, value in bars) == 8
    for address, value in bars:
        assert client.get(address).context["total"] == value
    cells = re.findall(r'href="(/machines/[^"]*status=FAILED[^"]*)">(\d+)</a>', shown)
    assert [int(count) for _, count in cells] == [2, 2]
    assert [listed(client, address) for address, _ in cells] == [2, 2]


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("status=FAILED", 3),
        ("machine=quick&status=SUCCEEDED", 2),
        ("from=2000-01-01", 5),
        ("find=age < 1 h", 5),
        ("find=error = Oops", None),
        ("find=started > 1 h ago Oops", None),
        ("q=seed", None),
        ("", 5),
        ("before=9999999999999-1", 5),
    ],
)
@pytest.mark.postgres_too
def test_a_list_counts_all_its_pages_where_an_index_can(
    project: Project,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    query: str,
    count: int | None,
) -> None:
    """By machine, status and start; else each execution would have to be read."""
    monkeypatch.setattr(scan, "PAGE", 1)
    moment = {"start_ms": clock.now_ms() - 60_000, "stop_ms": clock.now_ms()}
    seed(project, create(project, PASS, "quick"), 2, **moment)
    fails = create(project, FAILS, "fails")
    seed(project, fails, 3, status="FAILED", error="Oops", **moment)
    shown = client.get(f"/executions/?{query}").context["match_count"]
    assert (shown and (shown.count, shown.more)) == (count and (count, False))


@pytest.mark.postgres_too
def test_a_list_of_one_page_is_counted_whatever_narrows_it(
    project: Project, client: Client
) -> None:
    """Its rows are all there are: no query counts them again."""
    seed(project, create(project, PASS, "quick"), 2)
    seed(project, create(project, FAILS, "fails"), 3, status="FAILED")
    for query, words in (
        ("", "5 executions"),
        ("q=no-such-name", "0 executions"),
        ("min=0 s&status=FAILED", "3 executions"),
        ("min=5 s", "0 executions"),
    ):
        page = markup(client.get(f"/executions/?{query}"))
        title = re.search(r'<h2 id="executions-title">(.*?)</h2>', page, re.DOTALL)
        assert title is not None
        assert title[1].strip() == words, query


@pytest.mark.postgres_too
def test_a_list_is_counted_as_far_as_is_cheap(
    project: Project, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where nothing of what an index gives is of the region."""
    monkeypatch.setattr(scan, "PAGE", 3)
    monkeypatch.setattr(scan, "MOST_EXACT", 5)
    machine = create(project, PASS)
    seed(project, machine, 4)
    seed(project, machine, 9, status="FAILED")
    query = "/executions/?status=SUCCEEDED&status=FAILED"
    shown = client.get(query).context["match_count"]
    assert (shown.count, shown.more) == (5, True)
    assert "5+ executions" in plain(client.get(query))
    assert "5+ executions" in plain(client.get("/executions/"))
    assert "5+ executions" in plain(client.get(f"/machines/{machine.name}/"))
    elsewhere = client.get(f"{query}&region=eu-west-1").context["match_count"]
    assert (elsewhere.count, elsewhere.more) == (0, False), "the page looked to the end"
    monkeypatch.setattr(scan, "WINDOW", 5)
    elsewhere = client.get(f"{query}&region=eu-west-1").context["match_count"]
    assert (elsewhere.count, elsewhere.more) == (0, True)


def test_the_tile_of_alarms_counts_them_all(project: Project, client: Client) -> None:
    """Also more than are shown; its list has those in alarm, and says how many there are else."""
    machine = create(project, PASS)
    values: dict[str, Any] = {"kind": "stuck", "machine": machine, "period_s": 60}
    for number in range(12):
        alarms.put_alarm(project, REGION, f"a{number:02}", values, actor=Actor("ada"))
    Alarm.objects.exclude(name="a00").update(state="ALARM")
    shown = markup(client.get("/"))
    tile = re.search(r'href="(/alarms/[^"]*)">(?:(?!</a>).)*In alarm</span><b>(\d+)</b>', shown)
    assert tile is not None
    assert tile[2] == "11"
    answer = client.get(tile[1])
    assert len(answer.context["rows"]) == 11
    assert "Insufficient data 1" in markup(answer)
    assert "All 12" in markup(answer)
    assert "No alarm is in this state" in text(client.get("/alarms/?state=OK"))


def test_what_runs_or_was_aborted_is_no_failure(project: Project, client: Client) -> None:
    """The part that succeeded is of what ended of itself; without that there is no figure."""
    stopped, mixed = create(project, WAIT, "stopped"), create(project, PASS, "mixed")
    for status in ("RUNNING", "RUNNING", "ABORTED"):
        seed(project, stopped, 1, status=status)
    for status in ("ABORTED", "SUCCEEDED", "TIMED_OUT"):
        seed(project, mixed, 1, status=status)
    answer = client.get("/machines/")
    rows = {row.machine.name: row for row in answer.context["machines"].rows}
    assert rows["stopped"].success_percent is None
    assert rows["mixed"].success_percent == 50
    assert "0 %" not in markup(answer).replace("50 %", "")
    assert "No recent execution has succeeded, failed or timed out" in text(answer)
    assert "of the last 2 succeeded, failed or timed-out executions; 1 running or aborted" in text(
        answer
    )


def test_the_overview_says_among_how_many_failures_it_counts(
    project: Project, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there are more than it groups; the page of failures groups more of them."""
    machine = create(project, FAILS)
    for _ in range(3):
        drain(start(machine))
    assert "the newest" not in plain(client.get("/")).partition("Failures by kind")[2]
    monkeypatch.setattr(overview, "MOST_GROUPED", 2)
    shown = plain(client.get("/")).partition("Failures by kind")[2]
    assert "24 h, 2 most recent failures" in shown
    assert [kind.count for kind in client.get("/").context["kinds"]] == [2]


# -- where and how ---------------------------------------------------------------------------------


def test_a_machine_that_timed_out_names_state_and_limit(
    project: Project, client: Client, now: Clock
) -> None:
    """Among the failures by kind, on the overview and in the list of executions."""
    machine = create(project, {**WAIT, "TimeoutSeconds": 90})
    quick = express(
        project,
        '{"StartAt": "Nap", "States": {"Nap": {"Type": "Wait", "Seconds": 900, "End": true}}}',
        "quick",
    )
    executions = [drain(start(machine)), drain(start(quick))]
    now.later(301)
    assert [drain(each).status for each in executions] == ["TIMED_OUT", "TIMED_OUT"]
    kinds, overview = plain(client.get("/failures/")), plain(client.get("/"))
    for shown in (kinds, overview):
        assert "Before the first state" not in shown
        assert "No error name" not in shown
    for state, limit in (("W", "TimeoutSeconds"), ("Nap", "5 minutes of Express")):
        assert f"Timed out at {state}" in kinds
        assert f"limit: {limit}" in kinds
        assert f'Timed out</a><span class="second-line always">{state}·' in overview
    answer = client.get("/executions/")
    facts = answer.context["facts"]
    assert [facts[each.pk].state for each in executions] == ["W", "Nap"]
    assert facts[executions[0].pk].ending == "Timed out: TimeoutSeconds"
    assert "Timed out: TimeoutSeconds at W" in plain(answer)
    [kind] = [
        kind
        for kind in client.get("/failures/").context["groups"]
        if kind.group.like.machine_name == "machine"
    ]
    assert (kind.group.like.state_text, kind.group.like.ending) == (
        *("W", "Timed out: TimeoutSeconds"),
    )
    assert listed(client, f"/executions/?{kind.address}") == 1


def test_an_aborted_execution_says_where_and_why(project: Project, client: Client) -> None:
    """The state that was open, the error of who stopped it, else that none was given."""
    machine = create(project, WAIT)
    why, silent = (drain(start(machine, name=name)) for name in ("why", "silent"))
    stop_execution(why, error="Operator.Stopped", cause="wrong input")
    stop_execution(silent)
    answer = client.get("/executions/")
    facts = answer.context["facts"]
    assert (facts[why.pk].error, facts[why.pk].state) == ("Operator.Stopped", "W")
    assert (facts[silent.pk].ending, facts[silent.pk].state) == ("Stopped, no error given", "W")
    assert "Operator.Stopped at W" in plain(answer)


@pytest.mark.postgres_too
def test_the_open_state_is_that_of_the_execution_page(project: Project, client: Client) -> None:
    """Of two branches the newer one has ended: the older one is where the execution is."""
    activities.create_activity(project, REGION, "work")
    done = {"StartAt": "Quick", "States": {"Quick": {"Type": "Pass", "End": True}}}
    inner = {
        "StartAt": "Both",
        "States": {"Both": {"Type": "Parallel", "Branches": [WORK, done], "End": True}},
    }
    execution = drain(start(create(project, inner)))
    assert open_states([execution.pk])[execution.pk][0] == "A"
    assert client.get("/executions/").context["facts"][execution.pk].state == "A"
    assert client.get(page(execution)).context["panel"].shown.node.name == "A"
    stop_execution(execution)
    assert client.get("/executions/").context["facts"][execution.pk].state == "A"
    assert open_states([]) == {}


def test_rows_of_all_kinds_take_as_many_queries_for_many(project: Project, client: Client) -> None:
    """States, errors and what bulk actions leave out are read for all rows together."""
    activities.create_activity(project, REGION, "work")
    waits, fails = create(project, WAIT), create(project, FAILS, "fails")
    counts = []
    for more in (1, 12):
        for _ in range(more):
            stop_execution(drain(start(waits)))
            drain(start(fails))
            drain(start(waits))
        text(client.get("/executions/"))
        with CaptureQueriesContext(connection) as taken:
            text(client.get("/executions/"))
        counts.append(len(taken))
    assert counts[0] == counts[1] <= 16


# -- two to compare --------------------------------------------------------------------------------


def test_the_list_to_compare_from_is_that_of_the_machine_of_a(
    project: Project, client: Client
) -> None:
    """With error and state of each; a link shows those of all state machines."""
    machine = create(project, FAILS)
    first = drain(start(machine, name="first"))
    drain(start(machine, name="second"))
    drain(start(create(project, WAIT, "other"), name="elsewhere"))
    query = {"choose": "1", "a": first.arn}
    for more in ({}, {"machine": ""}):
        answer = client.get("/compare/", query | more)
        assert [row.name for row in answer.context["rows"]] == ["second"]
        assert ">Oops</td>" in plain(answer)
        assert ">F</td>" in plain(answer)
        assert answer.context["same_machine"] == machine
    everything = re.search(r'<a href="([^"]*)">Show executions of all', markup(answer))
    assert everything is not None
    answer = client.get(f"/compare/{everything[1]}")
    assert {row.name for row in answer.context["rows"]} == {"second", "elsewhere"}
    assert answer.context["chosen"]["a"] == first
    answer = client.get("/compare/", {**query, "machine": "other"})
    assert [row.name for row in answer.context["rows"]] == ["elsewhere"]
    assert answer.context["same_machine"] is None


# -- words -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("started > 24 h ago", "started in the last 24 h"),
        ("started < 7 d ago", "started longer ago than 7 d"),
        ("late", "“late” somewhere in name, input, output, error or cause"),
        ("input.n > 5", "input.n is above 5"),
    ],
)
@pytest.mark.postgres_too
def test_the_chip_of_a_search_says_what_is_searched(client: Client, query: str, said: str) -> None:
    """In words: what is compared, and in which span of time."""
    [chip] = client.get("/executions/", {"find": query}).context["chips"]
    assert (chip.label, chip.value) == ("Search", said)


def test_a_row_says_which_bulk_actions_leave_it_out(project: Project, client: Client) -> None:
    """With the reason that the dry run gives, for actions that the reader may do."""
    running = drain(start(create(project, WAIT)))
    failed = drain(start(create(project, FAILS, "fails")))
    fine = drain(start(create(project, PASS, "fine")))
    refusals = client.get("/executions/").context["refusals"]
    assert set(refusals[running.pk]) == {"redrive"}
    assert set(refusals[failed.pk]) == {"stop", "pause"}
    assert set(refusals[fine.pk]) == {"stop", "redrive", "pause"}
    numbers = "&".join(f"x={each.pk}" for each in (running, failed, fine))
    for action in ("stop", "redrive", "start", "pause"):
        plan = client.get(f"/executions/bulk/?action={action}&{numbers}").context["plan"]
        assert plan.refusals == {
            number: reasons[action] for number, reasons in refusals.items() if action in reasons
        }
    assert 'data-no-stop="It has ended"' in text(client.get("/executions/"))


# -- alarms ----------------------------------------------------------------------------------------


def test_an_alarm_without_data_says_what_it_lacks(project: Project) -> None:
    """After its first turn it is checked; its reason follows the data until there are enough."""
    machine = create(project, PASS)
    values: dict[str, Any] = {"kind": "failure-rate", "machine": machine, "period_s": 3600}
    alarms.put_alarm(project, REGION, "rate", {**values, "minimum": 5}, actor=Actor("ada"))
    since = Alarm.objects.get().state_ms
    assert evaluate_alarms() == 0
    alarm = Alarm.objects.get()
    assert "Insufficient data: 0 ends in the last hour; it takes 5" in alarm.reason
    assert (alarm.state, alarm.state_ms) == ("INSUFFICIENT_DATA", since)
    stop = clock.now_ms() - 60_000
    seed(project, machine, 2, start_ms=stop - 1, stop_ms=stop)
    assert evaluate_alarms() == 0
    assert "Insufficient data: 2 ends" in Alarm.objects.get().reason
    metric: dict[str, Any] = {"kind": "metric", "metric": "ExecutionsFailed", "period_s": 60}
    source = {"statistic": "Sum", "resource": machine.arn, "machine": machine}
    alarms.put_alarm(project, REGION, "metric", metric | source, actor=Actor("ada"))
    evaluate_alarms()
    reason = Alarm.objects.get(name="metric").reason
    assert reason == "Insufficient Data: 1 datapoint was unknown."
    assert Execution.objects.count() == 2


@pytest.mark.postgres_too
def test_names_of_alarms_and_machines_are_links(project: Project, client: Client) -> None:
    """An alarm to its page, which leads to the charts of its metric; a machine to its page."""
    machine = create(project, PASS)
    stuck: dict[str, Any] = {"kind": "stuck", "machine": machine, "period_s": 60}
    alarms.put_alarm(project, REGION, "stuck", stuck, actor=Actor("ada"))
    metric = {"kind": "metric", "metric": "LambdaFunctionsFailed", "period_s": 60}
    alarms.put_alarm(
        project,
        REGION,
        "lambda",
        {**metric, "resource": "x", "statistic": "Sum"},
        actor=Actor("ada"),
    )
    shown = plain(client.get("/alarms/"))
    row = Alarm.objects.get(name="stuck").pk
    assert f'<a href="/alarms/{row}/">stuck</a>' in shown
    assert '<a href="/machines/machine/">machine</a>' in shown
    assert f'id="alarm-{row}"' in text(client.get("/machines/machine/alarms/"))
    page = plain(client.get(f"/alarms/{Alarm.objects.get(name='lambda').pk}/"))
    address = re.search(r'<a href="([^"#]*)#(chart-LambdaFunctionsFailed)">All metrics</a>', page)
    assert address is not None
    assert f'id="{address[2]}"' in text(client.get(address[1]))


def test_thousands_are_grouped_alike_on_a_page_and_in_what_a_poll_brings(
    project: Project, client: Client
) -> None:
    """Events and state transitions: a number does not change its look while it is looked at."""
    each = {"StartAt": "Each", "States": {"Each": {"Type": "Pass", "End": True}}}
    over = {"Type": "Map", "ItemProcessor": each, "Next": "Rest"}
    states = {"Over": over, "Rest": {"Type": "Wait", "Seconds": 60, "End": True}}
    machine = create(project, {"StartAt": "Over", "States": states})
    execution = drain(start(machine, list(range(1_000))))
    figures = (
        r'id="event-total"[^>]*>4,00\d<',
        r'id="transitions"[^>]*>1,00\d<',
    )
    for address in ("", "_delta?after=10&seen=1&shown=1&follow=1"):
        shown = markup(client.get(page(execution, address)))
        for figure in figures:
            assert re.search(figure, shown), (address, figure)
