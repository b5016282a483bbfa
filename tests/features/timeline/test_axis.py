"""X10: the time axis folds what is idle, and knows one attempt from another."""

from __future__ import annotations

import re
from html import unescape
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from django.db.models import F

from console.db import clock
from console.features.timeline.axis import LEAST, MOST_WORDS, WIDTH, AxisSpan, fold_idle_time
from console.models import Execution, HistoryEvent, Timer
from console.store.executions import redrive as redrives
from console.store.executions.stop import stop_execution
from console.web.core.formatting import DAY, HOUR, MINUTE, SECOND, rough_duration
from console.web.history import traces
from tests.console.store.helpers import create, drain, function, start
from tests.console.transition_rates import Clock
from tests.console.web.helpers import page, text, timeline_page
from tests.features.test_state.test_scenario import answer

if TYPE_CHECKING:
    from typing import Any

    from django.test import Client

    from console.models import Project

DEFINITION = {
    "StartAt": "First",
    "States": {
        "First": {"Type": "Pass", "Next": "Pay"},
        "Pay": function("pay", Next="Last"),
        "Last": {"Type": "Pass", "End": True},
    },
}


def later(execution: Execution, milliseconds: int) -> None:
    """Let so much time go by: everything so far happened that much earlier."""
    rows = HistoryEvent.objects.filter(execution_id=execution.pk)
    rows.update(at_ms=F("at_ms") - milliseconds)
    moved = {name: F(name) - milliseconds for name in ("start_ms", "stop_ms")}
    Execution.objects.filter(pk=execution.pk).update(**moved)
    traces._TRACES._known.clear()


def again(execution: Execution) -> Execution:
    """Redrive an execution."""
    redrives.redrive_execution(Execution.objects.get(pk=execution.pk))
    return drain(execution)


def stopped_and_redriven_wait(project: Project) -> Execution:
    """Return an execution whose Wait was stopped, and two days later redriven and over."""
    states = {"Nap": {"Type": "Wait", "Seconds": 3600, "End": True}}
    execution = drain(start(create(project, {"StartAt": "Nap", "States": states}), name="x"))
    stop_execution(execution)
    later(execution, 2 * DAY)
    again(execution)
    Timer.objects.update(due_ms=0)
    return drain(execution)


@pytest.fixture
def redriven(project: Project) -> Execution:
    """Return an execution that failed, and three days later was redriven and succeeded."""
    execution = drain(start(create(project, DEFINITION), name="x"))
    answer(execution, "Pay", ("Bad", "it broke"))
    later(execution, 3 * DAY)
    again(execution)
    return answer(execution, "Pay", 1)


def drawn(client: Client, execution: Execution, query: str = "") -> Any:
    """Return the timeline of a page."""
    return client.get(timeline_page(execution, query)).context["timeline"]


def test_x10_three_idle_days_are_folded(client: Client, redriven: Execution) -> None:
    """The fold says so, and what worked has the room; each attempt has its lane."""
    timeline = drawn(client, redriven)
    axis = timeline.axis
    assert [(fold.text, fold.width) for fold in axis.span.folds] == [("3 d", 60)]
    assert "3 d 00 h idle, shortened" in text(client.get(timeline_page(redriven)))
    assert [attempt.label for attempt in axis.attempts] == ["First run", "Redrive 1"]
    pay = timeline.bars["n2"]
    assert [(piece.tone, piece.lane) for piece in pay] == [("failed", 0), ("succeeded", 1)]
    assert pay[0].text.startswith("First run: attempt 1 failed, ")
    assert pay[1].text.startswith("Redrive 1: attempt 2 succeeded, ")
    assert {piece.lane for piece in timeline.bars["n1"]} == {0}
    fold = axis.span.folds[0]
    assert pay[0].x < fold.x
    assert pay[1].x >= fold.x + fold.width - LEAST
    assert all(piece.width >= LEAST for bar in timeline.bars.values() for piece in bar)


def test_x10_half_a_minute_before_a_redrive_is_folded(project: Project, client: Client) -> None:
    """It is no part of any attempt; half a minute within one is none that is worth it."""
    execution = drain(start(create(project, DEFINITION), name="x"))
    answer(execution, "Pay", ("Bad", "it broke"))
    later(execution, 30_600)
    again(execution)
    answer(execution, "Pay", 1)
    (fold,) = drawn(client, execution).axis.span.folds
    assert fold.text == "30 s"
    whole = AxisSpan(0, MINUTE, MINUTE)
    busy = [(0, 9 * SECOND), (50 * SECOND, MINUTE)]
    assert fold_idle_time(whole, busy).folds == ()
    ended = [(9 * SECOND, 50 * SECOND)]
    (fold,) = fold_idle_time(whole, busy, ended=ended).folds
    assert (fold.since, fold.until) == ended[0]
    assert fold_idle_time(whole, busy, ended=[(9 * SECOND, 9_500)]).folds == ()


def test_the_duration_says_how_much_of_it_was_in_the_attempts(
    client: Client, redriven: Execution
) -> None:
    """The states of an execution that lay ended for three days do not add up to three days."""
    redriven.refresh_from_db()
    shown = " ".join(re.sub("<[^>]+>", "", text(client.get(page(redriven)))).split())
    assert re.search(r"Duration 3 d 00 h from start to end, \d+ ms running in 2 attempts", shown)


def test_x10_one_attempt_is_looked_at_alone(client: Client, redriven: Execution) -> None:
    """Its time is the whole axis, and the address says which it is."""
    timeline = drawn(client, redriven, "?attempt=2&view=timeline")
    axis = timeline.axis
    assert (axis.chosen, axis.lanes, axis.span.folds) == (2, 1, ())
    assert axis.span.length < HOUR
    assert [piece.tone for piece in timeline.bars["n2"]] == ["succeeded"]
    assert timeline.bars["n1"] == ()
    shown = text(client.get(page(redriven, "?attempt=2&view=timeline&step=Pay")))
    assert 'aria-current="true" title="succeeded, ' in shown
    assert '<input type="hidden" name="attempt" value="2">' in shown
    assert drawn(client, redriven, "?attempt=7").axis.chosen == 0
    assert drawn(client, redriven, "?attempt=x").axis.chosen == 0


def test_x10_a_wait_that_was_stopped_has_a_piece_in_each_lane(
    project: Project, client: Client
) -> None:
    """It was aborted in the first run, and over in the second."""
    execution = stopped_and_redriven_wait(project)
    pieces = drawn(client, execution).bars["n1"]
    assert [(piece.tone, piece.lane) for piece in pieces] == [("aborted", 0), ("succeeded", 1)]
    assert pieces[0].text.startswith("First run: aborted, ")


def test_x10_a_branch_beside_the_one_that_failed_is_drawn_as_aborted(
    project: Project, client: Client
) -> None:
    """The first run failed, and the Wait in it did not."""
    nap = {"StartAt": "Nap", "States": {"Nap": {"Type": "Wait", "Seconds": 3600, "End": True}}}
    pay = {"StartAt": "Pay", "States": {"Pay": function("pay", End=True)}}
    both = {"Both": {"Type": "Parallel", "Branches": [nap, pay], "End": True}}
    execution = drain(start(create(project, {"StartAt": "Both", "States": both}), name="x"))
    answer(execution, "Pay", ("Bad", "it broke"))
    later(execution, DAY)
    again(execution)
    timeline = drawn(client, execution)
    first = {row.step: timeline.bars[row.id][0] for row in drawn_rows(client, execution)}
    assert {step: (piece.tone, piece.lane) for step, piece in first.items()} == {
        "Both": ("failed", 0),
        "Nap": ("aborted", 0),
        "Pay": ("failed", 0),
    }
    assert first["Nap"].text.startswith("First run: aborted, ")


def drawn_rows(client: Client, execution: Execution) -> Any:
    """Return the rows of the steps that the timeline draws."""
    return client.get(timeline_page(execution)).context["steps"].rows


@pytest.mark.postgres_too
def test_x10_a_wait_that_is_over_at_once_has_a_piece_in_each_lane(
    project: Project, client: Client
) -> None:
    """Redrive and end of the Wait may stand in the same millisecond."""
    execution = stopped_and_redriven_wait(project)
    rows = HistoryEvent.objects.filter(execution_id=execution.pk)
    redriven_ms = rows.get(type="ExecutionRedriven").at_ms
    rows.filter(type__in=["WaitStateExited", "ExecutionSucceeded"]).update(at_ms=redriven_ms)
    Execution.objects.filter(pk=execution.pk).update(stop_ms=redriven_ms)
    traces._TRACES._known.clear()
    pieces = drawn(client, execution).bars["n1"]
    assert [(piece.tone, piece.lane) for piece in pieces] == [("aborted", 0), ("succeeded", 1)]


@pytest.mark.postgres_too
def test_x10_the_time_machine_knows_only_the_attempts_begun(
    client: Client, redriven: Execution
) -> None:
    """Before the redrive there was one, and nobody knew how long it would stay so."""
    assert len(drawn(client, redriven, "?at=4").axis.attempts) == 1
    assert len(drawn(client, redriven, "?at=99").axis.attempts) == 2


def test_x10_no_redrive_no_selector(project: Project, client: Client) -> None:
    """One run has one lane, of the usual height."""
    execution = drain(start(create(project, DEFINITION), name="x"))
    axis = drawn(client, execution).axis
    assert (axis.lanes, axis.height) == (1, 22)
    assert "Attempts at this execution" not in text(client.get(timeline_page(execution)))


def test_x10_only_long_idle_time_is_folded() -> None:
    """Compared with a minute, and with the time something worked."""
    whole = AxisSpan(0, 2 * HOUR, 2 * HOUR)
    assert fold_idle_time(whole, [(0, 2 * HOUR)]).folds == ()
    assert fold_idle_time(whole, [(0, HOUR), (HOUR + 50 * SECOND, 2 * HOUR)]).folds == ()
    assert fold_idle_time(whole, [(0, HOUR), (HOUR + 5 * MINUTE, 2 * HOUR)]).folds == ()
    (fold,) = fold_idle_time(whole, [(0, HOUR), (HOUR + 20 * MINUTE, 2 * HOUR)]).folds
    assert (fold.since, fold.until, fold.text) == (HOUR, HOUR + 20 * MINUTE, "20 min")


def test_x10_many_folds_leave_room_for_what_worked() -> None:
    """They share half of the width, stand in order, and only the longest is labelled."""
    busy = [(day * DAY, day * DAY + HOUR) for day in range(30)]
    span = fold_idle_time(AxisSpan(0, 30 * DAY, 30 * DAY), busy)
    assert len(span.folds) == 30
    assert sum(fold.width for fold in span.folds) <= WIDTH / 2 + 30
    assert len(span.labelled_folds) == 1 < MOST_WORDS
    places = [span.place(since, until) for since, until in busy]
    assert [x for x, _ in places] == sorted(x for x, _ in places)
    assert all(width >= LEAST and x + width <= WIDTH for x, width in places)


def test_x10_nothing_but_idle_time_is_one_fold() -> None:
    """Nothing is divided by nothing."""
    span = fold_idle_time(AxisSpan(0, DAY, DAY), [(0, 0), (DAY, DAY)])
    assert [(fold.x, fold.width) for fold in span.folds] == [(0, WIDTH)]
    assert span.place(DAY, DAY) == (WIDTH - LEAST, LEAST)


@pytest.mark.parametrize(
    ("milliseconds", "said"),
    [
        (45, "45 ms"),
        (1080, "1 s"),
        (3 * MINUTE, "3 min"),
        (90 * MINUTE, "90 min"),
        (36 * HOUR, "36 h"),
        (3 * DAY + HOUR, "3 d"),
    ],
)
def test_x10_a_fold_says_one_unit(milliseconds: int, said: str) -> None:
    """There is little room."""
    assert rough_duration(milliseconds) == said


@pytest.mark.parametrize(
    ("length", "texts"),
    [
        (3, ["1 ms", "2 ms"]),
        (4_006, ["1.0 s", "2.0 s", "3.0 s"]),
        (90 * 60_000, ["15 min", "30 min", "45 min", "1 h"]),
    ],
)
def test_the_axis_has_ticks_at_round_times(length: int, texts: list[str]) -> None:
    """A few of them, in order, none where the words of the end stand."""
    ticks = AxisSpan(1_000, 1_000 + length, 1_000 + length).ticks
    assert [tick.text for tick in ticks] == texts
    assert all(before.x < after.x for before, after in pairwise(ticks))


def test_words_of_the_axis_stand_apart() -> None:
    """Folds side by side: the longer one says how long it is; no tick repeats other words."""
    busy = [(0, 30 * SECOND), (5 * MINUTE, 5 * MINUTE + SECOND), (9 * MINUTE, 10 * MINUTE)]
    span = fold_idle_time(AxisSpan(0, 10 * MINUTE, 0), busy)
    first, second = span.folds
    assert not first.is_clear_of(second)
    assert span.labelled_folds == (first,)
    short = AxisSpan(0, 7 * MINUTE + 30, 0, origin=-7 * MINUTE)
    assert len({tick.text for tick in short.ticks}) == len(short.ticks)
    texts = [*(tick.text for tick in short.ticks), short.first_text, short.last_text]
    assert len(set(texts)) == len(texts)


def test_a_fold_at_the_end_has_its_words_within_the_axis() -> None:
    """They would be cut otherwise."""
    span = fold_idle_time(AxisSpan(0, 90 * MINUTE, 0), [(0, 0), (90 * MINUTE - 9, 90 * MINUTE)])
    fold = span.folds[0]
    assert fold.x < fold.text_x < WIDTH


def test_moments_of_work_are_no_reason_to_fold() -> None:
    """Four calls of milliseconds with minutes between would look as if they had taken all time."""
    whole = AxisSpan(0, 10 * MINUTE, 0)
    moments = [(0, 9), (4 * MINUTE, 4 * MINUTE + 9), (10 * MINUTE - 9, 10 * MINUTE)]
    assert fold_idle_time(whole, moments, magnified=False).folds == ()
    assert len(fold_idle_time(whole, moments).folds) == 2
    longer = [*moments, (4 * MINUTE, 4 * MINUTE + SECOND)]
    assert len(fold_idle_time(whole, longer, magnified=False).folds) == 2


def test_the_page_says_that_time_is_drawn_shorter(client: Client, redriven: Execution) -> None:
    """And how much of it, in the legend; where nothing is, it says nothing."""
    shown = " ".join(text(client.get(page(redriven, "?view=timeline"))).split())
    assert "Idle time, shortened (3 d 00 h)" in shown
    assert "Idle time, shortened" not in text(
        client.get(page(redriven, "?view=timeline&attempt=2"))
    )


def test_no_tick_is_in_a_fold() -> None:
    """Idle time has words of its own."""
    span = fold_idle_time(
        AxisSpan(0, 3 * 24 * HOUR, 0), [(0, 60_000), (3 * 24 * HOUR - 9, 3 * 24 * HOUR)]
    )
    fold = span.folds[0]
    assert span.ticks
    assert not [tick for tick in span.ticks if fold.x <= tick.x <= fold.x + fold.width]


# -- durations and the critical path of an attempt -------------------------------------------------


def timed_redrive(project: Project, monkeypatch: pytest.MonkeyPatch) -> Execution:
    """Return an execution that worked for 1 s, lay failed for 2 s, and worked for 4 s more."""
    now = Clock()
    monkeypatch.setattr(clock, "now_ms", lambda: now.now_ms)
    execution = drain(start(create(project, DEFINITION), name="x"))
    now.later(1)
    answer(execution, "Pay", ("Bad", "it broke"))
    now.later(2)
    again(execution)
    now.later(4)
    return answer(execution, "Pay", 1)


def duration_cells(client: Client, execution: Execution, query: str) -> dict[str, str]:
    """Return the words in the timeline's column Duration, by state."""
    shown = text(client.get(page(execution, query)))
    rows = re.findall(r'data-bar="(\w+)".*?data-cell="spent">(.*?)</td>', shown, re.DOTALL)
    names = {"n1": "First", "n2": "Pay", "n3": "Last"}
    return {names[row]: " ".join(cell.split()) for row, cell in rows}


def path_words(client: Client, execution: Execution, query: str) -> str:
    """Return what the timeline says of the critical path."""
    shown = text(client.get(page(execution, query)))
    words = shown.partition('id="critical-path"')[2].partition("</p>")[0].partition(">")[2]
    return " ".join(re.sub(r"<[^>]*>", "", words).split())


def test_the_time_before_a_redrive_is_no_duration(
    project: Project, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Timeline, steps, graph and panel say how long the state worked."""
    execution = timed_redrive(project, monkeypatch)
    query = "?view=timeline&step=Pay&tab=details"
    assert duration_cells(client, execution, query)["Pay"] == "5.0 s"
    assert path_words(client, execution, query) == "Longest on the critical path: Pay 5.0 s (100%)"
    context = client.get(page(execution, query)).context
    (row,) = (each for each in context["steps"].rows if each.label == "Pay")
    assert row.took == 5_000
    summary = context["graph"].painting.summaries["n2"]
    assert (summary.duration, summary.worked) == ("5.0 s", "5.0 s")
    assert summary.under == "Succeeded · 5.0 s"
    assert context["panel"].shown.spent == "5.0 s"
    assert "5.0 s, excluding 2.0 s before a redrive" in text(client.get(page(execution, query)))


def test_a_redriven_state_counts_on_from_what_it_had_worked(
    project: Project, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its clock does not count the time in which the execution had failed."""
    now = Clock()
    monkeypatch.setattr(clock, "now_ms", lambda: now.now_ms)
    execution = drain(start(create(project, DEFINITION), name="x"))
    now.later(1)
    answer(execution, "Pay", ("Bad", "it broke"))
    now.later(2)
    again(execution)
    context = client.get(page(execution, "?view=timeline&step=Pay")).context
    assert context["graph"].painting.summaries["n2"].running_since == execution.start_ms + 2_000
    assert context["panel"].shown.running_since == execution.start_ms + 2_000
    chosen = drawn(client, execution, "?attempt=2&view=timeline").durations
    assert chosen["n2"].since == execution.start_ms + 3_000
    assert drawn(client, execution, "?attempt=1&view=timeline").durations["n2"].worked == "1.0 s"
    tick = "_delta?after=4&maps=&beats=&step=Pay&view=timeline&attempt=1&seen_visit=1&seen_rows=0"
    assert '"drawn": {"worked": "1.0 s"' in unescape(text(client.get(page(execution, tick))))


@pytest.mark.parametrize(
    ("attempt", "durations", "path"),
    [
        (1, {"First": "0 ms", "Pay": "1.0 s", "Last": "-"}, "Pay 1.0 s (100%)"),
        (2, {"First": "-", "Pay": "4.0 s", "Last": "0 ms"}, "Pay 4.0 s (100%)"),
    ],
)
def test_one_attempt_has_its_own_durations_and_path(
    project: Project,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    attempt: int,
    durations: dict[str, str],
    path: str,
) -> None:
    """What was not in it has no duration."""
    execution = timed_redrive(project, monkeypatch)
    query = f"?attempt={attempt}&view=timeline"
    assert duration_cells(client, execution, query) == durations
    assert path_words(client, execution, query) == f"Longest on the critical path: {path}"


def test_the_path_of_a_failed_attempt_leads_to_what_failed(
    project: Project, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not to the branch that was aborted with it, though the redrive lets that one succeed."""
    now = Clock()
    monkeypatch.setattr(clock, "now_ms", lambda: now.now_ms)
    branches = [
        {"StartAt": name, "States": {name: function(name.lower(), End=True)}}
        for name in ("Slow", "Bad")
    ]
    both = {"Type": "Parallel", "Branches": branches, "End": True}
    definition = {"StartAt": "Both", "States": {"Both": both}}
    execution = drain(start(create(project, definition), name="x"))
    now.later(1)
    answer(execution, "Bad", ("Bad", "it broke"))
    now.later(2)
    again(execution)
    now.later(4)
    answer(execution, "Bad", 1)
    answer(execution, "Slow", 1)
    said = path_words(client, execution, "?attempt=1&view=timeline")
    assert said == "Longest on the critical path: Bad 1.0 s (100%)"
