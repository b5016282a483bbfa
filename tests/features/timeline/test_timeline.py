"""The timeline: iterations summed up, lanes, the critical path, and a part of it alone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.http import QueryDict

from console.db import clock
from console.features.timeline.axis import WIDTH, AxisSpan
from console.features.timeline.bars import MOST_VISITS
from console.features.timeline.critical_path import critical_path
from console.features.timeline.pieces import TimelineZoom
from console.features.timeline.timeline_part import MOST_LANES, MOST_RECTANGLES, lane_bar
from console.models import Execution, HistoryEvent, Timer
from console.store.executions.stop import stop_execution
from console.web.execution.iteration_rows import IterationSpan
from console.web.execution.step_tree import MOST_LEVELS
from console.web.history.traces import open_trace
from engine.history.visits import Visits, VisitTable
from tests.console.store.helpers import create, drain, function, one, start
from tests.console.transition_rates import Clock
from tests.console.web.helpers import CHAIN, page, steps_page, text, timeline_page
from tests.features.test_state.test_scenario import answer
from tests.features.timeline.test_axis import later

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project

ITEMS = 60


def mapped(most: int = 0) -> dict[str, Any]:
    """Return a Map whose items over 56 fail, each caught inside; ``most`` at once."""
    odd = {"Variable": "$", "NumericGreaterThan": 56, "Next": "Try"}
    fail = {"StartAt": "Odd", "States": {"Odd": {"Type": "Fail", "Error": "TooMuch"}}}
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "Rest"}]
    states = {
        "Look": {"Type": "Choice", "Choices": [odd], "Default": "Rest"},
        "Try": {"Type": "Parallel", "Branches": [fail], "Catch": catch, "Next": "Rest"},
        "Rest": {"Type": "Pass", "End": True},
    }
    each = {"StartAt": "Look", "States": states}
    over = {"Type": "Map", "MaxConcurrency": most, "ItemProcessor": each, "End": True}
    return {"StartAt": "Over", "States": {"Over": over}}


@pytest.fixture
def execution(project: Project) -> Execution:
    """Return an execution of sixty items, three of them caught."""
    return drain(start(create(project, mapped()), list(range(ITEMS)), "x"))


def rows(client: Client, execution: Execution, query: str = "") -> list[Any]:
    """Return the rows of steps table and timeline."""
    shown: list[Any] = client.get(steps_page(execution, query)).context["steps"].rows
    return shown


def test_a_map_has_one_row_for_its_iterations(client: Client, execution: Execution) -> None:
    """With what became of them; below it the worst, not all; the address opens the others."""
    shown = rows(client, execution)
    labels = [row.label for row in shown]
    assert labels[:5] == ["Over", "60 iterations", "#57", "#58", "#59"]
    assert shown[1].iterations.text == "3 with a caught error · 57 succeeded"
    assert "#3" not in labels
    opened = [row.label for row in rows(client, execution, "?rows=n1")]
    assert opened[1:6] == ["60 iterations", "#57", "#58", "#59", "#0"]
    assert len([label for label in opened if label.startswith("#")]) == ITEMS
    page_text = text(client.get(page(execution, "?view=timeline")))
    assert "worst 3 below" in page_text
    assert page_text.count('aria-expanded="false"') >= 2  # in the table and in the timeline
    for bad in ("n9999999", "x", "<b>", "n1" * 900):
        assert text(client.get(page(execution, f"?view=timeline&rows={bad}")))


def test_a_thousand_iterations_are_a_small_page(project: Project, client: Client) -> None:
    """Compressed it stays below 60 KB; its rows are few and its lanes bounded."""
    machine = create(project, mapped(), name="thousand")
    execution = drain(start(machine, [number % 60 for number in range(1000)], "x"))
    answer = client.get(page(execution, "?view=timeline"), headers={"Accept-Encoding": "gzip"})
    assert answer.headers["Content-Encoding"] == "gzip"
    assert len(answer.content) < 60_000
    shown = rows(client, execution)
    assert len(shown) < 20
    opened = rows(client, execution, "?rows=n1")
    assert len([row for row in opened if row.iteration]) == 100
    drawn = client.get(timeline_page(execution)).context["timeline"].lanes[shown[1].id]
    assert len(drawn.rectangles) <= MOST_RECTANGLES


def test_lanes_say_how_many_ran_at_once() -> None:
    """Each iteration stands in the first lane that is free."""
    axis = AxisSpan(0, 1000, 1000)
    spans = [IterationSpan(0, 500, "succeeded"), IterationSpan(100, 300, "failed")]
    spans += [IterationSpan(300, 600, "succeeded"), IterationSpan(700, None, "running")]
    bar = lane_bar(spans, axis, "4 iterations")
    assert [(each.lane, each.x, each.width, each.tone) for each in bar.rectangles] == [
        (0, 0.0, 500.0, "succeeded"),
        (1, 100.0, 200.0, "failed"),
        (1, 300.0, 300.0, "succeeded"),
        (0, 700.0, 300.0, "running"),
    ]
    assert bar.text.endswith("up to 2 at once")
    alone = lane_bar([IterationSpan(0, 10, "succeeded")], axis, "1")
    assert alone.text.endswith("one at a time")
    crowd = [IterationSpan(number, number + 900, "succeeded") for number in range(1000)]
    many = lane_bar(crowd, AxisSpan(0, 2000, 2000), "1,000 iterations")
    assert many.text.endswith("up to 900 at once")
    assert many.lanes == MOST_LANES
    assert all(0 <= each.x <= each.x + each.width <= WIDTH for each in many.rectangles)
    assert len(many.rectangles) <= MOST_RECTANGLES


def test_no_iteration_hides_or_swallows_a_worse_one() -> None:
    """Iterations too short to be told apart overlap: the one that failed is drawn last."""
    axis = AxisSpan(0, 60_000, 60_000)
    spans = [IterationSpan(5, 5, status) for status in ("aborted", "failed", "aborted")]
    bar = lane_bar(spans, axis, "3 iterations")
    assert re.findall(r'rect class="(\w+)"', bar.drawing)[-1] == "failed"
    crowd = [IterationSpan(100 * number, 100 * number + 50, "succeeded") for number in range(590)]
    mixed = [
        span._replace(
            status="failed" if place % 100 == 99 else "aborted" if place % 2 else "caught"
        )
        for place, span in enumerate(crowd)
    ]
    drawn = lane_bar(mixed, axis, "590 iterations").rectangles
    assert len(drawn) <= MOST_RECTANGLES
    for span in mixed:
        if span.status == "failed":
            assert span.end is not None
            x = axis.place(span.begin, span.end)[0]
            assert any(
                each.x <= x <= each.x + each.width and each.tone == "failed" for each in drawn
            )


def test_iterations_of_maps_side_by_side_have_rows_of_their_own(
    project: Project, client: Client
) -> None:
    """#0 of the second Map succeeded; the bar of #0 of the first one shows a failure."""
    each = {"StartAt": "Bad", "States": {"Bad": {"Type": "Fail", "Error": "Bad"}}}
    fine = {"StartAt": "Nap", "States": {"Nap": {"Type": "Wait", "Seconds": 3600, "End": True}}}
    catch = [{"ErrorEquals": ["States.ALL"], "ResultPath": None, "Next": "Second"}]
    first = {"Type": "Map", "ItemProcessor": each, "Catch": catch, "Next": "Second"}
    second = {"Type": "Map", "ItemProcessor": fine, "End": True}
    machine = create(project, {"StartAt": "First", "States": {"First": first, "Second": second}})
    execution = drain(start(machine, [1], "x"))
    stop_execution(execution)
    shown = [row for row in rows(client, execution) if row.iteration]
    assert [(row.step, row.label) for row in shown] == [("Bad", "#0"), ("Nap", "#0")]
    assert len({row.id for row in shown}) == 2
    bars = client.get(timeline_page(execution)).context["timeline"].bars
    assert [bars[row.id][0].tone for row in shown] == ["failed", "aborted"]


def test_a_state_that_runs_has_the_time_of_all_its_visits(project: Project, client: Client) -> None:
    """One visit took an hour, another one waits: the clock begins with that hour."""
    each = {"StartAt": "Nap", "States": {"Nap": {"Type": "Wait", "Seconds": 3600, "End": True}}}
    machine = create(project, one("Over", Type="Map", MaxConcurrency=1, ItemProcessor=each))
    execution = drain(start(machine, [1, 2], "x"))
    later(execution, 3_600_000)
    Timer.objects.update(due_ms=0)
    execution = drain(execution)
    row = next(row for row in rows(client, execution) if row.label == "Nap")
    assert (row.visits, row.key) == (2, "running")
    entered = [visit.entered_ms for visit in row.visits_made]
    assert entered[1] - entered[0] >= 3_600_000
    assert row.since == entered[0]
    painted = client.get(page(execution, "_delta?cursor=1&view=timeline")).context
    assert json.loads(painted["poll"].paint)["nodes"][row.id]["worked_since"] == entered[0]


def test_rows_are_indented_by_their_depth_at_any_level(project: Project, client: Client) -> None:
    """Each level has a class of its own that the style sheet knows."""
    inner: dict[str, Any] = {"StartAt": "Last", "States": {"Last": {"Type": "Pass", "End": True}}}
    for number in range(9, 0, -1):
        inner = one(f"L{number}", Type="Map", ItemProcessor=inner)
    execution = drain(start(create(project, inner), [[[[[[[[[1]]]]]]]]], "x"))
    levels = {row.label: row.level for row in rows(client, execution)}
    assert [levels[f"L{number}"] for number in range(1, 10)] == list(range(9))
    style = (Path(settings.BASE_DIR) / "static/stateyard/workflow.css").read_text()
    depths = [float(depth) for depth in re.findall(r"\.depth-\d+ \{ --depth: ([\d.]+); \}", style)]
    assert len(depths) == MOST_LEVELS
    assert depths == sorted(set(depths))


# -- the critical path -----------------------------------------------------------------------------


def timed(execution: Execution, times: dict[int, int]) -> None:
    """Give each event a time after the start, in milliseconds."""
    for number, after in times.items():
        HistoryEvent.objects.filter(execution_id=execution.pk, event_id=number).update(
            at_ms=execution.start_ms + after
        )
    Execution.objects.filter(pk=execution.pk).update(
        stop_ms=execution.start_ms + max(times.values())
    )


def names_on_path(execution: Execution) -> list[str]:
    """Return the states on the critical path, with their iterations, in order."""
    execution.refresh_from_db()
    assert execution.stop_ms is not None
    with open_trace(execution) as trace:
        path = critical_path(trace, execution.start_ms, execution.stop_ms)
        names = []
        for node, visits in trace.visits.items():
            name = trace.graph.by_id[node].name
            names += [
                (visit.number, f"{name}{''.join(map(str, visit.iteration))}")
                for visit in visits
                if visit.number in path.visits
            ]
    return [name for _, name in sorted(names)]


@pytest.mark.postgres_too
def test_the_branch_that_ended_last_is_critical(project: Project) -> None:
    """The other one could have been slower without any harm."""
    branches = [{"StartAt": name, "States": {name: {"Type": "Pass", "End": True}}} for name in "AB"]
    both = {"Type": "Parallel", "Branches": branches, "Next": "Last"}
    states = {"Both": both, "Last": {"Type": "Succeed"}}
    execution = drain(start(create(project, {"StartAt": "Both", "States": states}), {}, "x"))
    events = list(
        HistoryEvent.objects.filter(execution_id=execution.pk)
        .order_by("event_id")
        .values_list("event_id", "type", "state")
    )
    times: dict[int, int] = {}
    for number, kind, state in events:
        slow = kind == "PassStateExited" and state == "A"
        times[number] = 9_000 if slow else 1_000 if state == "B" else 0
        if state in ("Both", "Last") and kind != "ParallelStateEntered" and "Started" not in kind:
            times[number] = 9_000
    times[events[-1][0]] = 9_500
    timed(execution, times)
    assert names_on_path(execution) == ["Both", "A", "Last"]


@pytest.mark.postgres_too
def test_an_iteration_that_waited_for_its_place_leads_to_the_one_before(
    project: Project,
) -> None:
    """One at a time: all are on the path. All at once: only the one that ended last."""
    states = {"Rest": {"Type": "Pass", "End": True}}
    each = {"StartAt": "Rest", "States": states}
    for most, expected in ((1, ["Over", "Rest0", "Rest1", "Rest2"]), (0, ["Over", "Rest2"])):
        over = {"Type": "Map", "MaxConcurrency": most, "ItemProcessor": each, "End": True}
        machine = create(project, {"StartAt": "Over", "States": {"Over": over}}, name=f"m{most}")
        execution = drain(start(machine, [1, 2, 3], "x"))
        events = HistoryEvent.objects.filter(execution_id=execution.pk).order_by("event_id")
        times, after, exits = {}, 0, 0
        for number, kind in events.values_list("event_id", "type"):
            exits += kind == "PassStateExited"
            if most:
                after += 100
                times[number] = after
            else:
                ended = kind == "PassStateExited" or exits == 3
                times[number] = 100 * exits if ended else 0
        timed(execution, times)
        assert names_on_path(execution) == expected, most


def test_the_page_names_where_the_path_was_longest(client: Client, execution: Execution) -> None:
    """In words, and at each segment; not while the execution runs."""
    numbers = HistoryEvent.objects.filter(execution_id=execution.pk).order_by("event_id")
    timed(execution, {each: each * 10 for each in numbers.values_list("event_id", flat=True)})
    shown = text(client.get(page(execution, "?view=timeline")))
    assert re.search(r"Longest on the <b>critical path</b>:\s+<span><bdi>", shown)
    assert "on the critical path" in shown
    bars = client.get(timeline_page(execution)).context["timeline"].bars
    assert bars["in1-59"][0].critical
    assert not bars["in1-57"][0].critical
    past = text(client.get(timeline_page(execution, "?at=20")))
    assert "Critical path</b>" not in past


def test_pauses_before_retries_count_for_the_state(
    project: Project, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a Map as of a Task; what runs inside of the Map has its own share."""
    now = Clock()
    monkeypatch.setattr(clock, "now_ms", lambda: now.now_ms)
    retry = [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 2, "MaxAttempts": 1}]
    mail = function("mail", End=True)
    each = {"StartAt": "Mail", "States": {"Mail": mail}}
    ship = {"Type": "Map", "ItemProcessor": each, "Retry": retry, "Next": "Bill"}
    states = {"Ship each": ship, "Bill": function("bill", Retry=retry, End=True)}
    machine = create(project, {"StartAt": "Ship each", "States": states})
    execution = drain(start(machine, [1], "x"))
    for state in ("Mail", "Bill"):
        now.later(1)
        answer(execution, state, ("Bad", "it broke"))
        now.later(2)
        drain(execution)
        now.later(1)
        answer(execution, state, 1)
    execution.refresh_from_db()
    assert execution.status == "SUCCEEDED"
    shown = text(client.get(page(execution, "?view=timeline")))
    words = shown.partition('id="critical-path"')[2].partition("</p>")[0].partition(">")[2]
    assert " ".join(re.sub(r"<[^>]*>", "", words).split()) == (
        "Longest on the critical path: Bill 4.0 s (50%) incl. 2.0 s waiting for retries, "
        "Ship each 2.0 s (25%) incl. 2.0 s waiting for retries, Mail 2.0 s (25%)"
    )
    steps = text(client.get(steps_page(execution)))
    row = steps.partition('id="step-table"')[2].partition('data-step="Ship each"')[2]
    visits = row.partition('data-cell="visits">')[2].partition("</td>")[0]
    assert " ".join(visits.split()) == '1 <span class="note">(1 retry)</span>'


# -- a part of it ----------------------------------------------------------------------------------


def test_a_part_of_the_timeline_is_shown_alone(client: Client, execution: Execution) -> None:
    """The axis counts on from the start; what lies outside is left out, or cut."""
    numbers = list(
        HistoryEvent.objects.filter(execution_id=execution.pk)
        .order_by("event_id")
        .values_list("event_id", flat=True)
    )
    timed(execution, {number: number * 100 for number in numbers})
    whole = client.get(timeline_page(execution)).context["timeline"].axis
    assert not whole.zoomed
    answer = client.get(page(execution, "?view=timeline&from=2&to=4.5"))
    axis = answer.context["timeline"].axis
    assert axis.zoomed
    assert (axis.span.first_ms, axis.span.last_ms) == (2000, 4500)
    assert all(2000 < tick.after_ms < 4500 for tick in axis.span.ticks)
    shown = text(answer)
    assert 'value="4.5"' in shown
    assert "Show all" in shown
    (over,) = answer.context["timeline"].bars["n1"]
    assert (over.x, over.width) == (0.0, WIDTH)
    assert axis.span.knots == "0:2000 1000:4500"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("from=1&to=2.5", (1000, 2500)),
        ("from=3", (3000, 10_000)),
        ("to=99999", (0, 10_000)),
        ("from=5&to=5", (0, 10_000)),
        ("from=50&to=60", (0, 10_000)),
        ("from=-1&to=<b>", (0, 10_000)),
        ("from=1e3&to=٣", (0, 10_000)),
        ("from=1.23456", (0, 10_000)),
    ],
)
def test_what_makes_no_sense_shows_all(query: str, expected: tuple[int, int]) -> None:
    """Whatever stands in the address, there is something to see."""
    assert TimelineZoom.of(QueryDict(query)).cut(0, 10_000) == expected


def test_a_folded_axis_tells_where_time_bends() -> None:
    """The script finds the time below the pointer from it."""
    assert AxisSpan(100, 1100, 1100).knots == "0:0 1000:1000"


def napping(rounds: int) -> dict[str, Any]:
    """Return a loop that waits a second and adds one, so many times."""
    add = {"Type": "Pass", "Parameters": {"n.$": "States.MathAdd($.n, 1)"}, "Next": "Enough"}
    rule = {"Variable": "$.n", "NumericGreaterThanEquals": rounds, "Next": "Done"}
    states = {
        "Nap": {"Type": "Wait", "Seconds": 1, "Next": "Add"},
        "Add": add,
        "Enough": {"Type": "Choice", "Choices": [rule], "Default": "Nap"},
        "Done": {"Type": "Succeed"},
    }
    return {"StartAt": "Nap", "States": states}


def test_the_duration_of_many_visits_leaves_out_the_time_between_them(
    project: Project, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Pass in a long loop took no time. Its bar has a gap where the loop waited for long."""
    now = Clock()
    monkeypatch.setattr(clock, "now_ms", lambda: now.now_ms)
    rounds = MOST_VISITS + 10
    execution = start(create(project, napping(rounds)), {"n": 0})
    for number in range(rounds):
        drain(execution)
        now.later(1 if number != 20 else 30)
    assert drain(execution).status == "SUCCEEDED"
    shown = client.get(page(execution, "?view=timeline")).context
    rows = {each.label: each.id for each in shown["steps"].rows}
    took = {name: shown["summaries"][row].worked for name, row in rows.items()}
    assert (took["Nap"], took["Add"]) == ("1 min 29 s", "0 ms")
    bars = shown["timeline"].bars
    path = ", on the critical path"
    assert [each.text for each in bars[rows["Nap"]]] == [f"60 visits, succeeded, 1 min 29 s{path}"]
    assert [each.text for each in bars[rows["Add"]]] == [
        f"20 visits, succeeded, 0 ms active within 19 s{path}",
        f"40 visits, succeeded, 0 ms active within 39 s{path}",
    ]


def test_each_bar_of_many_visits_has_the_status_of_its_own_visits(
    project: Project, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that succeeded stay so when a later one is aborted."""
    now = Clock()
    monkeypatch.setattr(clock, "now_ms", lambda: now.now_ms)
    execution = start(create(project, napping(100)), {"n": 0})
    for number in range(MOST_VISITS + 1):
        drain(execution)
        now.later(1 if number != 20 else 30)
    stop_execution(execution)
    assert drain(execution).status == "ABORTED"
    shown = client.get(page(execution, "?view=timeline")).context
    rows = {each.label: each.id for each in shown["steps"].rows}
    (nap,) = shown["timeline"].bars[rows["Nap"]]
    assert (nap.tone, nap.text.partition(", ")[2]) == (
        "aborted",
        "1 aborted · 51 succeeded, 1 min 20 s, on the critical path",
    )
    assert {each.tone for each in shown["timeline"].bars[rows["Add"]]} == {"succeeded"}


def test_the_duration_of_a_row_is_what_its_bar_shows(
    project: Project, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a state in a loop that of all its visits, not of the last one alone."""
    now = Clock()
    monkeypatch.setattr(clock, "now_ms", lambda: now.now_ms)
    execution = start(create(project, napping(3)), {"n": 0})
    for _ in range(3):
        drain(execution)
        now.later(1)
    assert drain(execution).status == "SUCCEEDED"
    response = client.get(page(execution, "?view=timeline"))
    (nap,) = (each for each in response.context["steps"].rows if each.label == "Nap")
    assert len(response.context["timeline"].bars[nap.id]) == 3
    assert response.context["graph"].painting.summaries[nap.id].worked == "3.0 s"
    row = " ".join(
        text(response).partition(f'data-bar="{nap.id}"')[2].partition("</tr>")[0].split()
    )
    assert '3.0 s <span class="note visit-count">3 visits</span>' in row
    steps = text(client.get(steps_page(execution)))
    table = steps.partition('id="step-table"')[2].partition(f'data-row="{nap.id}"')[2]
    entered = table.partition('data-cell="entered">')[2].partition("</td>")[0]
    assert " ".join(entered.split()).endswith('</time> <span class="note">first</span>')
    assert (nap.entered_ms, nap.took) == (execution.start_ms, 3_000)
    assert nap.left_ms == execution.start_ms + 3_000


def test_visits_side_by_side_count_once() -> None:
    """Two of a second each that overlap by half of it have worked for 1.5 seconds."""
    table = VisitTable()
    table.times = [0, 1_000, 1_500, 9_000]
    table.end_times = {1: 2_000, 2: 2_500}
    visits = Visits(table, "n1")
    visits.numbers = [1, 2]
    assert visits.covered_ms(0) == 1_500
    visits.numbers = [1, 2, 3]
    assert visits.covered_ms(9_250) == 1_750
    visits.numbers = [1, 2] * MOST_VISITS
    assert visits.covered_ms(0) == 1_500


def test_a_tick_draws_bars_that_have_grown(project: Project, client: Client) -> None:
    """Of a timeline that is in view, now and then; links of a tick carry nothing of its own."""
    execution = drain(start(create(project, CHAIN), name="x"))
    shown = text(client.get(page(execution, "?view=timeline&step=Nap")))
    drawn = re.search(r'data-drawn="(\d+)"', shown)
    assert drawn is not None
    tick = "_delta?after=4&maps=&beats=&step=Nap&seen_visit=1&seen_rows=0&view="
    future = int(drawn[1]) + 60_000
    assert client.get(page(execution, f"{tick}timeline&drawn={future}")).status_code == 204
    assert client.get(page(execution, f"{tick}graph&drawn={execution.start_ms}")).status_code == 204
    assert client.get(page(execution, f"{tick}timeline")).status_code == 204
    long_ago = int(drawn[1]) - 60_000
    grown = text(client.get(page(execution, f"{tick}timeline&drawn={long_ago}")))
    assert 'id="axis"' in grown
    assert "drawn=" not in grown.replace('data-drawn="', "")
    assert "maps=" not in re.sub(r'hx-get="[^"]*"', "", grown)
