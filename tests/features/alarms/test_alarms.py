"""Alarms: what each says, that a change is told once, and the pages and the API that keep them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from console import access
from console.db import clock
from console.db.audit import Actor
from console.db.prepared import read_rows
from console.errors import ServiceError
from console.features.alarms import alarm_display, views
from console.features.alarms import store as alarms
from console.features.alarms.alarm_rules import evaluate_alarm
from console.features.alarms.jobs import evaluate_alarms
from console.features.alarms.models import Alarm
from console.features.metrics import rollups
from console.features.notifications import notices
from console.features.notifications.store import rules
from console.models import AuditEntry, Execution, HistoryEvent, OutboxEvent, Project
from console.statuses import AlarmKind, AlarmState
from console.web.core.formatting import DAY, HOUR, MINUTE, clock_text
from console.web.core.scope import Scope
from tests.console.store.helpers import PASS, REGION, WAIT, create, drain, start
from tests.console.web.helpers import markup, text
from tests.console.web.search.test_filters import seed

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.contrib.auth.models import User
    from django.test import Client

    from console.models import StateMachine

BY = Actor("ada")
PAGE = "/machines/machine/alarms/"
RATE = {"act": "save", "kind": "failure-rate", "name": "rate", "threshold": "20", "period": "1 h"}


def put(machine: StateMachine, kind: AlarmKind, **fields: Any) -> Alarm:
    """Store an alarm of a machine."""
    values = {"kind": kind, "machine": machine, "period_s": 3600, **fields}
    return alarms.put_alarm(machine.project, REGION, str(kind), values, actor=BY)


def ended(
    project: Project, machine: StateMachine, count: int, ago: int = MINUTE, **more: Any
) -> None:
    """Store executions that ended some time ago."""
    stop = clock.now_ms() - ago
    took = more.pop("took", 1000)
    seed(project, machine, count, start_ms=stop - took, stop_ms=stop, **more)


def said(alarm: Alarm) -> str:
    """Return what an alarm says now."""
    return str(evaluate_alarm(alarm, clock.now_ms()).state)


def test_failure_rate(project: Project) -> None:
    """Of those that ended within the time, but for what was stopped; too few say nothing."""
    machine = create(project, PASS)
    alarm = put(machine, AlarmKind.FAILURE_RATE, threshold=20, minimum=5)
    ended(project, machine, 9, ago=3 * HOUR, status="FAILED")
    ended(project, machine, 3)
    ended(project, machine, 3, status="ABORTED")
    ended(project, create(project, PASS, "other"), 9, status="FAILED")
    assert said(alarm) == "INSUFFICIENT_DATA"
    ended(project, machine, 1)
    ended(project, machine, 1, status="TIMED_OUT")
    verdict = evaluate_alarm(alarm, clock.now_ms())
    assert (verdict.state, "1 of 5 ends" in verdict.reason) == ("OK", True)
    ended(project, machine, 1, status="FAILED")
    verdict = evaluate_alarm(alarm, clock.now_ms())
    assert (verdict.state, "2 of 6 ends" in verdict.reason) == ("ALARM", True)
    rollups.sum_up()
    assert said(alarm) == "ALARM"


@pytest.mark.postgres_too
def test_no_success_since(project: Project) -> None:
    """The last success counts; without any, the time since the alarm was made."""
    machine = create(project, PASS)
    alarm = put(machine, AlarmKind.NO_SUCCESS)
    ended(project, machine, 3, status="FAILED")
    assert said(alarm) == "INSUFFICIENT_DATA"
    Alarm.objects.update(created_ms=clock.now_ms() - 2 * HOUR)
    alarm = Alarm.objects.get()
    verdict = evaluate_alarm(alarm, clock.now_ms())
    never = "No execution has succeeded since the alarm was made, 2 h ago; the limit is 1 h"
    assert verdict == (AlarmState.ALARM, never)
    ended(project, machine, 1, ago=30 * MINUTE)
    assert said(alarm) == "OK"
    Execution.objects.filter(status="SUCCEEDED").update(stop_ms=clock.now_ms() - 90 * MINUTE)
    verdict = evaluate_alarm(alarm, clock.now_ms())
    said_so = "The last success was 1 h 30 min ago; the limit is 1 h"
    assert verdict == (AlarmState.ALARM, said_so)


def test_duration_against_its_own_past(project: Project) -> None:
    """The 95th percentile of an hour, against that of the two weeks before."""
    machine = create(project, PASS)
    alarm = put(machine, AlarmKind.DURATION, threshold=150, minimum=5)
    ended(project, machine, 20, ago=2 * DAY, took=10_000)
    assert said(alarm) == "INSUFFICIENT_DATA"
    ended(project, machine, 10, took=12_000)
    assert said(alarm) == "OK"
    ended(project, machine, 10, took=40_000)
    assert said(alarm) == "ALARM"
    rollups.sum_up()
    assert said(alarm) == "ALARM"


@pytest.mark.postgres_too
def test_stuck_in_a_state(project: Project) -> None:
    """By the state that a running execution entered last, any or one."""
    machine = create(project, WAIT)
    execution = drain(start(machine, name="sleeper"))
    alarm = put(machine, AlarmKind.STUCK)
    assert said(alarm) == "OK"
    Execution.objects.filter(pk=execution.pk).update(start_ms=clock.now_ms() - 3 * HOUR)
    assert said(alarm) == "OK"  # it entered the state just now
    HistoryEvent.objects.filter(execution=execution).update(at_ms=clock.now_ms() - 2 * HOUR)
    verdict = evaluate_alarm(alarm, clock.now_ms())
    state = HistoryEvent.objects.filter(execution=execution, type__endswith="Entered").get().state
    assert verdict.state == "ALARM"
    assert verdict.reason == f"sleeper has been in {state} for 2 h; the limit is 1 h"
    other = drain(start(machine, name="later"))
    Execution.objects.filter(pk=other.pk).update(start_ms=clock.now_ms() - 3 * HOUR)
    HistoryEvent.objects.filter(execution=other).update(at_ms=clock.now_ms() - 80 * MINUTE)
    several = evaluate_alarm(alarm, clock.now_ms()).reason
    assert several == (
        "2 executions have been in one state for more than 1 h:"
        f" sleeper longest, in {state} for 2 h"
    )
    other.delete()
    alarm.state_name = "Elsewhere"
    assert said(alarm) == "OK"
    alarm.state_name = state
    assert said(alarm) == "ALARM"
    Execution.objects.filter(pk=execution.pk).update(status="ABORTED")
    assert said(alarm) == "OK"


def listening(project: Project) -> None:
    """Make a rule that hears of alarms."""
    pattern = json.dumps({"source": ["aws.cloudwatch"]})
    rules.put_rule(project, REGION, "hears", pattern=pattern)


def test_a_change_is_told_once_by_many_processes(project: Project) -> None:
    """The event is written with the state; who comes second writes nothing."""
    listening(project)
    machine = create(project, PASS)
    put(machine, AlarmKind.FAILURE_RATE, threshold=20, minimum=1)
    ended(project, machine, 1, status="FAILED")
    read = [Alarm.objects.select_related("project", "machine").get() for _ in range(4)]
    changed = [alarms.change_state(alarm, AlarmState.ALARM, "why") for alarm in read]
    assert changed == [True, False, False, False]
    assert evaluate_alarms() == 0
    [event] = OutboxEvent.objects.all()
    told = json.loads(event.body)
    assert (told["source"], told["detail-type"]) == (
        "aws.cloudwatch",
        "CloudWatch Alarm State Change",
    )
    assert told["resources"] == [Alarm.objects.get().arn, machine.arn]
    assert told["detail"]["state"]["value"] == "ALARM"
    assert told["detail"]["previousState"]["value"] == "INSUFFICIENT_DATA"
    ended(project, machine, 99)
    assert evaluate_alarms() == 1
    assert evaluate_alarms() == 0
    assert OutboxEvent.objects.count() == 2


def test_a_changed_alarm_is_not_judged_by_its_old_self(project: Project) -> None:
    """Somebody changes the alarm while it is looked at: the verdict is dropped."""
    machine = create(project, PASS)
    old = put(machine, AlarmKind.FAILURE_RATE, threshold=20)
    put(machine, AlarmKind.FAILURE_RATE, threshold=90)
    assert not alarms.change_state(old, AlarmState.ALARM, "of before")
    assert Alarm.objects.get().state == "INSUFFICIENT_DATA"


def test_one_broken_alarm_keeps_no_other_from_its_turn(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one is evaluated, and the broken one again a minute later."""
    from console.features.alarms import alarm_rules

    def broken(*_: object) -> Any:
        raise ValueError("broken")

    machine = create(project, PASS)
    put(machine, AlarmKind.FAILURE_RATE)
    put(machine, AlarmKind.STUCK)
    monkeypatch.setitem(alarm_rules._RULES, AlarmKind.FAILURE_RATE, broken)
    assert evaluate_alarms() == 1
    assert Alarm.objects.get(kind="stuck").state == "OK"


# -- pages -----------------------------------------------------------------------------------------


@pytest.mark.postgres_too
def test_an_editor_makes_changes_and_deletes_an_alarm(project: Project, client: Client) -> None:
    """Each is in the audit; the machine's pages and the overview say what is in alarm."""
    create(project, PASS)
    assert client.post(PAGE, {**RATE, "minimum": "5"}).status_code == 302
    alarm = Alarm.objects.get()
    assert (alarm.kind, alarm.threshold, alarm.period_s, alarm.minimum) == (
        *("failure-rate", 20, 3600, 5),
    )
    shown = text(client.get(PAGE))
    words = "Alarm if more than 20\u00a0% of 5 or more executions within 1\u00a0h fail or time out"
    assert words in shown
    edit = text(client.get(f"{PAGE}?alarm=rate"))
    assert f'name="revision" value="{alarm.updated_ms}"' in edit
    assert "Edit alarm</h2>" in edit
    assert 'id="alarm-stuck"' not in edit
    changed = {**RATE, "threshold": "30", "revision": str(alarm.updated_ms)}
    assert client.post(PAGE, changed).status_code == 302
    assert Alarm.objects.get().threshold == 30
    Alarm.objects.update(state="ALARM", reason="too many failed")
    for page in ("/", "/machines/machine/", "/alarms/"):
        assert "too many failed" in text(client.get(page)), page
    assert client.post(PAGE, {"act": "delete", "name": "rate"}).status_code == 302
    assert not Alarm.objects.exists()
    actions = AuditEntry.objects.filter(action__startswith="monitoring:").order_by("pk")
    assert list(actions.values_list("action", flat=True)) == [
        "monitoring:PutMetricAlarm",
        "monitoring:PutMetricAlarm",
        "monitoring:DeleteAlarms",
    ]


@pytest.mark.parametrize(
    ("status", "count", "word", "message"),
    [
        ("FAILED", 11, "In alarm", "Its state is In alarm."),
        ("SUCCEEDED", 11, "OK", "Its state is OK."),
        ("SUCCEEDED", 0, "Insufficient data", "Its state is Insufficient data."),
    ],
)
def test_an_alarm_of_the_page_is_evaluated_at_once(
    project: Project, client: Client, status: str, count: int, word: str, message: str
) -> None:
    """So that its state is never beside the reason of another one; a change evaluates, too."""
    machine = create(project, PASS)
    ended(project, machine, count, status=status)
    response = client.post(PAGE, {**RATE, "minimum": "5"}, follow=True)
    assert f"The alarm rate was created. {message}" in text(response)
    [row] = response.context["rows"]
    assert (row.status.word, row.past_reason) == (word, "")
    assert row.alarm.reason == row.current
    again = {**RATE, "minimum": "50", "revision": row.revision}
    response = client.post(PAGE, again, follow=True)
    assert "The alarm rate was changed. Its state is Insufficient data." in text(response)
    assert response.context["rows"][0].status.word == "Insufficient data"


def test_each_kind_says_what_it_is_before_it_is_opened(project: Project, client: Client) -> None:
    """One line in the summary of each form."""
    create(project, PASS)
    shown = text(client.get(PAGE)).partition('id="create-title"')[2]
    summaries = re.findall(r"<summary>(.*?)</summary>", shown, re.DOTALL)
    lines = [re.sub(r"<[^>]+>", " ", each).split() for each in summaries]
    assert len(lines) == 5
    assert all(len(line) > 8 for line in lines), lines


@pytest.mark.postgres_too
def test_a_page_says_what_is_true_now_beside_the_reason_of_the_change(
    project: Project, client: Client
) -> None:
    """The stored reason has its moment where it is no longer what is true."""
    machine = create(project, PASS)
    alarm = put(machine, AlarmKind.FAILURE_RATE, threshold=20)
    ended(project, machine, 11, status="FAILED")
    ended(project, machine, 33)
    assert evaluate_alarms() == 1
    rate = "ends in the last hour were failures or timeouts"
    then = f"11 of 44 {rate}: 25 %; the limit is 20 %"
    assert markup(client.get(PAGE)).count(then) == 2  # the column, and the same on a phone
    assert "As of" not in text(client.get(PAGE))
    ended(project, machine, 8)
    alarm.refresh_from_db()
    at = f"{clock_text(alarm.state_ms)} UTC</time>: {then}"
    for address in (PAGE, "/alarms/"):
        shown = markup(client.get(address))
        assert at in shown, address
        assert f"11 of 52 {rate}: 21.2 %; the limit is 20 %" in shown, address
    assert at in markup(client.get("/machines/machine/"))
    assert at in markup(client.get("/"))


def test_the_arn_of_an_alarm_leads_to_its_page(project: Project, client: Client) -> None:
    """As the audit links it; to all alarms where it is gone."""
    alarm = put(create(project, PASS), AlarmKind.STUCK)
    answer = client.get(f"/arn/{alarm.arn}")
    assert answer["Location"] == f"/alarms/{alarm.pk}/?region={REGION}"
    assert f'id="alarm-{alarm.pk}"' in text(client.get(PAGE))
    alarm.delete()
    assert client.get(f"/arn/{alarm.arn}")["Location"] == f"/alarms/?region={REGION}"


def test_a_long_list_of_alarms_has_pages(
    project: Project, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each page evaluates its own rows only; the counts are those of all."""
    monkeypatch.setattr(views, "PAGE", 2)
    machine = create(project, PASS)
    for name in ("a", "b", "c"):
        values = {"kind": AlarmKind.STUCK, "machine": machine, "period_s": 3600}
        alarms.put_alarm(project, REGION, name, values, actor=BY)
    first, second = client.get("/alarms/"), client.get("/alarms/", {"after": "2"})
    assert [row.alarm.name for row in first.context["rows"]] == ["a", "b"]
    assert [row.alarm.name for row in second.context["rows"]] == ["c"]
    assert 'href="?after=2"' in text(first)
    for answer in (first, second):
        assert "3 alarms" in text(answer)
        assert "Insufficient data 3" in text(answer)


@pytest.mark.postgres_too
def test_the_list_of_alarms_finds_by_name_and_leads_to_the_form(
    project: Project, client: Client, signed_in: Callable[[str], Client]
) -> None:
    """A new alarm begins with its state machine; a viewer is offered none."""
    machine = create(project, PASS)
    put(machine, AlarmKind.STUCK)
    put(machine, AlarmKind.NO_SUCCESS)
    assert [row.alarm.name for row in client.get("/alarms/?q=STU").context["rows"]] == ["stuck"]
    assert "No alarm matches this name" in text(client.get("/alarms/?q=other"))
    assert f'<option value="{machine.arn}"' in text(client.get("/alarms/?create=1"))
    answer = client.get("/alarms/", {"machine": machine.arn})
    assert answer["Location"] == f"{PAGE}#create-title"
    viewer = signed_in("viewer")
    assert "Create alarm" not in text(viewer.get("/alarms/?create=1"))
    assert viewer.get("/alarms/", {"machine": machine.arn}).status_code == 200


def test_an_alarm_is_deleted_after_one_question(project: Project, client: Client) -> None:
    """The button of the row opens the one that deletes."""
    put(create(project, PASS), AlarmKind.STUCK)
    shown = markup(client.get(PAGE))
    form = shown[shown.index('<details class="confirm">') :]
    assert form.index("</summary>") < form.index('value="delete"') < form.index("</details>")


def test_a_banner_counts_all_alarms(project: Project, client: Client) -> None:
    """The newest is named, and the heading has their whole number."""
    machine = create(project, PASS)
    for number in range(7):
        values = {"kind": AlarmKind.STUCK, "machine": machine, "period_s": 3600}
        alarms.put_alarm(project, REGION, f"a{number}", values, actor=BY)
    Alarm.objects.update(state="ALARM", reason="stuck")
    shown = text(client.get("/machines/machine/definition/"))
    assert "7 alarms</a>" in shown
    assert shown.count("stuck") == 1
    assert "and 6 more" in shown


@pytest.mark.postgres_too
def test_an_alarm_that_recovers_meanwhile_is_not_listed(
    project: Project, django_user_model: type[User], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It recovers between the query of the numbers and that of the rows."""
    alarm = put(create(project, PASS), AlarmKind.FAILURE_RATE)
    Alarm.objects.filter(pk=alarm.pk).update(state=AlarmState.ALARM)

    def read_and_recover(*arguments: Any) -> Any:
        rows = read_rows(*arguments)
        assert rows
        Alarm.objects.update(state=AlarmState.OK)
        return rows

    monkeypatch.setattr(alarm_display, "read_rows", read_and_recover)
    person = django_user_model.objects.create_user("mia")
    scope = Scope.of(access.Principal(person, project, "owner"), REGION)
    listed, _ = alarm_display.alarms_in_alarm(scope, 5)
    assert listed == []


def test_two_editors_at_once(project: Project, client: Client) -> None:
    """Who saves an alarm that was changed meanwhile is told, and keeps what they typed."""
    create(project, PASS)
    client.post(PAGE, RATE)
    revision = str(Alarm.objects.get().updated_ms)
    client.post(PAGE, {**RATE, "threshold": "30", "revision": revision})
    shown = text(client.post(PAGE, {**RATE, "threshold": "40", "revision": revision}), 422)
    assert "was changed meanwhile" in shown
    assert 'value="40"' in shown
    assert "30 %" in shown
    assert Alarm.objects.get().threshold == 30
    now = str(Alarm.objects.get().updated_ms)
    assert f'name="revision" value="{now}"' in shown
    client.post(PAGE, {**RATE, "threshold": "40", "revision": now})
    assert Alarm.objects.get().threshold == 40
    shown = text(client.post(PAGE, RATE), 422)
    assert "exists already" in shown
    client.post(PAGE, {"act": "delete", "name": "rate"})
    assert "was deleted meanwhile" in text(client.post(PAGE, {**RATE, "revision": revision}), 422)
    assert "There is no alarm rate" in text(
        client.post(PAGE, {"act": "delete", "name": "rate"}), 422
    )


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"period": "soon"}, "is not a duration"),
        ({"period": "1 s"}, "must be 1 min to 31 d"),
        ({"period": "999 d"}, "must be 1 min to 31 d"),
        ({"threshold": "many"}, "Percent must be a number, not “many”"),
        ({"minimum": "0"}, "not “0”"),
        ({"name": ""}, "AlarmName must have 1 to 255"),
        ({"name": "x" * 256}, "AlarmName must have 1 to 255"),
        ({"kind": "metric"}, "is not one of failure-rate"),
    ],
)
def test_a_bad_value_is_told(
    project: Project, client: Client, fields: dict[str, str], words: str
) -> None:
    """The form stays as it was typed."""
    create(project, PASS)
    assert words in text(client.post(PAGE, {**RATE, **fields}), 422)
    assert not Alarm.objects.exists()


@pytest.mark.postgres_too
def test_a_viewer_reads_and_changes_nothing(
    project: Project, signed_in: Callable[[str], Client]
) -> None:
    """No form is offered, and none is taken."""
    machine = create(project, PASS)
    put(machine, AlarmKind.STUCK)
    viewer = signed_in("viewer")
    shown = text(viewer.get(PAGE))
    assert 'name="act"' not in shown
    for act in ("save", "metric", "delete", "notify"):
        assert viewer.post(PAGE, {**RATE, "act": act, "name": "stuck"}).status_code == 403
    assert Alarm.objects.count() == 1


def test_a_rule_hears_of_the_alarms_of_its_machine(project: Project, client: Client) -> None:
    """The rule of the page takes events of this machine alone, and is listed there."""
    from console.features.notifications.store import routing

    machine = create(project, PASS)
    other = create(project, PASS, "other")
    target = {"act": "notify", "target": machine.arn}
    assert client.post(PAGE, target).status_code == 302
    assert "These rules notify" in text(client.get(PAGE))
    assert "Alarm state change" in text(client.get("/notifications/"))
    for each in (machine, other):
        values = {"kind": "stuck", "machine": each, "period_s": 60}
        alarms.put_alarm(project, REGION, each.name, values, actor=BY)
        alarms.set_alarm_state(project, REGION, each.name, "OK", "fine", actor=BY)
        alarms.set_alarm_state(project, REGION, each.name, "ALARM", "bad", actor=BY)
        alarms.set_alarm_state(project, REGION, each.name, "OK", "fine", actor=BY)
    while routing.route_events():
        pass
    from console.models import Delivery

    told = [json.loads(each.event.body)["detail"] for each in Delivery.objects.order_by("pk")]
    assert [(each["alarmName"], each["state"]["value"]) for each in told] == [
        ("machine", "ALARM"),
        ("machine", "OK"),
    ]


def test_a_mail_says_what_is_in_alarm(
    project: Project, settings: Any, mailoutbox: list[Any]
) -> None:
    """Alarm and reason in the subject; the machine's page in the text, before the event."""
    settings.STATEYARD_MAIL = "smtp://localhost"
    settings.STATEYARD_URL = "https://yard.example.com"
    listening(project)
    machine = create(project, PASS)
    put(machine, AlarmKind.STUCK)
    alarms.set_alarm_state(project, REGION, "stuck", "ALARM", "x has been in Pay", actor=BY)
    event = OutboxEvent.objects.get()
    notices.send_notice(
        notices.Notice(
            *(event.event_id, event.body, event.body),
            address="mailto:ops@example.com",
            region=REGION,
            secret="",
        )
    )
    [mail] = mailoutbox
    assert mail.subject == "stuck is in alarm: x has been in Pay"
    assert f"Page: https://yard.example.com/arn/{machine.arn}" in mail.body
    assert '"alarmName": "stuck"' in mail.body


def test_the_alarms_go_with_their_machine_and_stay_in_their_project(project: Project) -> None:
    """Another project's alarm of the same name is another alarm."""
    machine = create(project, PASS)
    put(machine, AlarmKind.STUCK)
    theirs = Project.objects.create(name="theirs", account_id="999999999999")
    with pytest.raises(ServiceError):
        alarms.delete_alarms(theirs, REGION, ["stuck"], actor=BY)
    machine.delete()
    assert not Alarm.objects.exists()
