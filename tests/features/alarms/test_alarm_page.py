"""The page of one alarm: its metric against the threshold, and its history."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from console.db import clock
from console.db.audit import Actor
from console.features.alarms import store as alarms
from console.features.alarms.alarm_display import threshold_text
from console.features.alarms.alarm_rules import evaluate_alarm
from console.features.alarms.jobs import evaluate_alarms
from console.features.alarms.models import Alarm, AlarmChange
from console.features.notifications.store import rules
from console.statuses import AlarmKind
from console.web.core.formatting import DAY, HOUR, MINUTE
from tests.console.store.helpers import PASS, REGION, WAIT, create
from tests.console.web.helpers import markup, text
from tests.features.alarms.test_alarms import BY, ended, put

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project, StateMachine


def on_metric(machine: StateMachine, **more: Any) -> Alarm:
    """Store an alarm of the failed executions of a machine by the minute."""
    fields = {
        "kind": AlarmKind.METRIC,
        "machine": machine,
        "metric": "ExecutionsFailed",
        "resource": machine.arn,
        "statistic": "Sum",
        "comparison": "GreaterThanOrEqualToThreshold",
        "threshold": 2.0,
        "period_s": 60,
        **more,
    }
    return alarms.put_alarm(machine.project, REGION, "failures", fields, actor=BY)


def reason(alarm: Alarm) -> str:
    """Return why an alarm is in the state that an evaluation finds."""
    return evaluate_alarm(alarm, clock.now_ms()).reason


@pytest.mark.postgres_too
def test_the_page_lists_rules_that_match_an_alarm_of_the_account(
    project: Project, client: Client
) -> None:
    """Such an alarm has no state machine; a rule for another alarm does not count."""
    alarm = on_metric(create(project, PASS))
    Alarm.objects.filter(pk=alarm.pk).update(machine=None, resource="")

    def rule_for(alarm_name: str) -> None:
        pattern = {"source": ["aws.cloudwatch"], "detail": {"alarmName": [alarm_name]}}
        target = {"Id": "1", "Arn": "https://example.com/hook"}
        matched = json.dumps(pattern)
        rules.save_rule(project, REGION, f"of-{alarm_name}", target, actor=BY, pattern=matched)

    rule_for("another")
    shown = text(client.get(f"/alarms/{alarm.pk}/"))
    assert "The whole account" in shown
    assert "No rule matches state changes of this alarm." in shown
    rule_for(alarm.name)
    answer = client.get(f"/alarms/{alarm.pk}/")
    assert [rule.name for rule in answer.context["rules"]] == [f"of-{alarm.name}"]
    assert "No rule matches" not in text(answer)


@pytest.mark.postgres_too
def test_each_change_of_state_is_kept(
    project: Project, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its reason, from which state to which, and by whom; the oldest go."""
    machine = create(project, PASS)
    alarm = on_metric(machine, missing="notBreaching")
    assert evaluate_alarms() == 1
    ended(project, machine, 3, status="FAILED", ago=MINUTE)
    assert evaluate_alarms() == 1
    assert evaluate_alarms() == 0  # nothing new is no change
    pairs = AlarmChange.objects.order_by("pk").values_list("before", "state", "actor")
    assert list(pairs) == [("INSUFFICIENT_DATA", "OK", ""), ("OK", "ALARM", "")]
    address = f"/alarms/{alarm.pk}/"
    history = client.get(address).context["history"]
    assert [row.after.word if row.after else "edited" for row in history] == [
        *("In alarm", "OK", "edited"),
    ]
    assert "was greater than or equal to the threshold (2.0)" in history[0].reason
    monkeypatch.setattr(alarms, "MOST_CHANGES", 2)
    alarms.set_alarm_state(project, REGION, "failures", "OK", "a drill", actor=Actor("bob"))
    newest = AlarmChange.objects.order_by("-pk")
    assert [(row.state, row.actor) for row in newest] == [("OK", "bob"), ("ALARM", "")]
    shown = markup(client.get(address))
    assert "a drill" in shown
    assert re.search(r"by ?<bdi>bob", shown)
    Alarm.objects.all().delete()
    assert not AlarmChange.objects.exists()


@pytest.mark.postgres_too
def test_a_change_of_an_earlier_release_is_in_the_history(project: Project, client: Client) -> None:
    """That release kept the last one only, in the alarm itself."""
    alarm = on_metric(create(project, PASS))
    Alarm.objects.update(state="ALARM", state_ms=alarm.created_ms + MINUTE, reason="long ago")
    [change, edit] = client.get(f"/alarms/{alarm.pk}/").context["history"]
    assert (change.reason, change.before, change.after.word) == ("long ago", None, "In alarm")
    assert (edit.after, edit.actor) == (None, "ada")


def test_the_chart_draws_a_metric_against_its_threshold(project: Project, client: Client) -> None:
    """A bar for each period with a value; those beyond the threshold are marked, as they count."""
    machine = create(project, PASS)
    alarm = on_metric(machine)
    now_ms = clock.now_ms()
    whole = now_ms - now_ms % MINUTE
    for minutes, count in ((3, 1), (10, 2), (20, 4)):
        ended(project, machine, count, status="FAILED", ago=now_ms - whole + minutes * MINUTE)
    answer = client.get(f"/alarms/{alarm.pk}/")
    chart = answer.context["chart"]
    assert [(bar.text, bar.breaching) for bar in chart.bars] == [
        *(("4", True), ("2", True), ("1", False)),
    ]
    assert chart.threshold_y == pytest.approx(50)  # 2 of 4
    assert chart.missing == 0
    assert (chart.breaching, chart.threshold_text) == (2, "2")
    assert 'class="threshold"' in text(answer)


def test_missing_data_that_counts_as_breaching_is_drawn_so(
    project: Project, client: Client
) -> None:
    """Each period is a bar, hatched without data, and the count has all of them."""
    machine = create(project, PASS)
    alarm = on_metric(machine, missing="breaching")
    now_ms = clock.now_ms()
    for minutes, count in ((3, 1), (10, 2)):
        ended(project, machine, count, status="FAILED", ago=now_ms % MINUTE + minutes * MINUTE)
    answer = client.get(f"/alarms/{alarm.pk}/")
    chart = answer.context["chart"]
    assert len(chart.bars) == 60
    assert [bar.start for bar in chart.bars] == sorted({bar.start for bar in chart.bars})
    assert (chart.breaching, chart.missing) == (59, 58)
    assert text(answer).count('class="bar failed missing"') == 58
    assert "58 without data (hatched)" in text(answer)


def test_a_threshold_has_the_unit_of_its_metric(project: Project, client: Client) -> None:
    """In the words of the alarm, in the chart below whose top its line lies, and in the form."""
    machine = create(project, PASS)
    time = {"metric": "ExecutionTime", "statistic": "Maximum", "period_s": 300}
    alarm = on_metric(machine, **time, comparison="GreaterThanThreshold", threshold=60_000.0)
    answer = client.get(f"/alarms/{alarm.pk}/?edit=1")
    words = "Maximum of ExecutionTime is above 1 min within 5 min"
    assert words in text(answer).replace("\N{NO-BREAK SPACE}", " ")
    chart = answer.context["chart"]
    assert chart.threshold_text == "1 min"
    assert 0 < chart.threshold_y < 100
    assert 'Threshold <span class="note">times in ms</span></label>' in text(answer)
    assert "(in ms)" not in text(client.get(f"/alarms/{on_metric(machine).pk}/?edit=1"))


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        *((1_500, "Milliseconds", "1.5 s"), (1_501, "Milliseconds", "1,501 ms")),
        *((0.5, "Milliseconds", "0.5 ms"), (0, "Milliseconds", "0 ms")),
        *((5_400_000, "Milliseconds", "1 h 30 min"), (3_601_000, "Milliseconds", "3,601,000 ms")),
        *((1_000_001, "Count", "1000001"), (0.5, "Count", "0.5")),
    ],
)
def test_a_threshold_is_written_exactly(value: float, unit: str, shown: str) -> None:
    """A time of more than two units is written in milliseconds."""
    assert threshold_text(value, unit) == shown


def test_an_alarm_on_executions_is_drawn_as_it_is_judged(project: Project, client: Client) -> None:
    """The rate in percent by its period; too few executions are no value."""
    machine = create(project, PASS)
    rate = put(machine, AlarmKind.FAILURE_RATE, threshold=20, minimum=4)
    ended(project, machine, 3, status="FAILED", ago=10 * MINUTE)
    ended(project, machine, 9, ago=10 * MINUTE)
    ended(project, machine, 2, ago=5 * HOUR)
    [bar] = client.get(f"/alarms/{rate.pk}/").context["chart"].bars
    assert (bar.text, bar.breaching) == ("25 %", True)
    assert "25 %" in reason(rate)
    duration = put(machine, AlarmKind.DURATION, threshold=150, minimum=5)
    ended(project, machine, 20, ago=2 * DAY, took=10_000)
    ended(project, machine, 30, took=40_000)
    chart = client.get(f"/alarms/{duration.pk}/").context["chart"]
    assert chart.bars[-1].breaching
    assert (chart.threshold_text, chart.bars[-1].text) == ("15 s", "40 s")
    stuck = put(create(project, WAIT, "other"), AlarmKind.STUCK)
    answer = client.get(f"/alarms/{stuck.pk}/")
    assert answer.context["chart"] is None
    assert 'href="/machines/other/?status=RUNNING"' in text(answer)


def test_reasons_are_in_the_words_of_cloudwatch(project: Project) -> None:
    """Datapoints with their moments, the newest first, and what missing ones count as."""
    machine = create(project, PASS)
    alarm = on_metric(machine)
    assert reason(alarm) == "Insufficient Data: 1 datapoint was unknown."
    alarm.missing, alarm.periods, alarm.datapoints = "notBreaching", 3, 2
    assert reason(alarm) == (
        "Threshold Crossed: no datapoints were received for 3 periods and 3 missing datapoints"
        " were treated as [NonBreaching]."
    )
    now_ms = clock.now_ms()
    ended(project, machine, 3, status="FAILED", ago=now_ms % MINUTE + MINUTE)
    assert " was not greater than" not in reason(alarm)
    assert "3 missing" not in reason(alarm)
    alarm.threshold = 4.0
    assert reason(alarm).startswith("Threshold Crossed: 1 datapoint [3.0 (")
    assert reason(alarm).endswith(
        "was not greater than or equal to the threshold (4.0) and 2 missing datapoints were"
        " treated as [NonBreaching]."
    )
    alarm.threshold, alarm.datapoints, alarm.missing = 3.0, 1, "missing"
    assert reason(alarm).startswith("Threshold Crossed: 1 out of the last 3 datapoints [3.0 (")
    assert reason(alarm).endswith(
        ")] was greater than or equal to the threshold (3.0)"
        " (minimum 1 datapoint for OK -> ALARM transition)."
    )


def test_the_page_is_of_its_project_and_its_buttons_are_for_editors(
    project: Project, client: Client, signed_in: Callable[[str], Client]
) -> None:
    """A name leads there from the lists, and *Alarms* is in the navigation."""
    machine = create(project, PASS)
    alarm = put(machine, AlarmKind.FAILURE_RATE, threshold=20)
    for address in ("/alarms/", "/machines/machine/alarms/"):
        assert f'<a href="/alarms/{alarm.pk}/">' in text(client.get(address)), address
    page = text(client.get(f"/alarms/{alarm.pk}/"))
    assert '<a href="/alarms/" aria-current="true">Alarms</a>' in page
    assert 'value="delete"' in page
    assert "alarm=failure-rate#alarm-failure-rate" in page
    reader = signed_in("viewer")
    viewer = text(reader.get(f"/alarms/{alarm.pk}/"))
    assert 'value="delete"' not in viewer
    metric = 'name="metric"'
    assert metric not in page + viewer
    address = f"/alarms/{on_metric(machine).pk}/?edit=1"
    assert metric in text(client.get(address))
    assert metric not in text(reader.get(address))
    assert client.get(f"/alarms/{alarm.pk}/?region=eu-west-1").status_code == 404


def test_the_page_costs_few_queries(
    project: Project, client: Client, django_assert_max_num_queries: Callable[..., Any]
) -> None:
    """Whatever its history."""
    machine = create(project, PASS)
    alarm = on_metric(machine)
    for number in range(20):
        state = "OK" if number % 2 else "ALARM"
        alarms.set_alarm_state(project, REGION, "failures", state, "x", actor=BY)
    with django_assert_max_num_queries(24):
        assert len(client.get(f"/alarms/{alarm.pk}/").context["history"]) == 21
