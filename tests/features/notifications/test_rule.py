"""The page of a rule changes, switches and deletes it, for users with the right."""

from __future__ import annotations

import html
import json
import re
from typing import TYPE_CHECKING

import pytest

from console.db.audit import Actor
from console.features.notifications import notices
from console.features.notifications.store import rules
from console.features.notifications.web import rule_display
from console.models import AuditEntry, Delivery, EventRule, EventTarget
from console.web.core.formatting import clock_text
from tests.console.store.helpers import PASS, REGION, create
from tests.console.web.helpers import markup, text
from tests.features.notifications.test_rules import ASKED, NOTIFICATIONS, SCHEDULES, rule

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client
    from pytest_django.fixtures import Settings

    from console.models import Project

    SignIn = Callable[[str], Client]


@pytest.mark.postgres_too
def test_a_rule_is_changed_switched_and_deleted(project: Project, client: Client) -> None:
    """Each on its own form; what was not asked stays."""
    rule(project)
    client.post("/rules/ends/switch/", {"act": "disable"})
    client.post("/rules/ends/", {"pattern": '{"source": ["my.app"]}', "description": "mine"})
    event_rule = EventRule.objects.get()
    assert (event_rule.pattern, event_rule.description) == ('{"source": ["my.app"]}', "mine")
    assert (event_rule.state, event_rule.targets.count()) == ("DISABLED", 1)
    assert "Disabled" in text(client.get("/rules/ends/"))
    wrong = text(client.post("/rules/ends/", {"pattern": "{"}), 422)
    assert "no JSON" in wrong
    assert "No deliveries are pending" in text(client.get("/rules/ends/delete/"))
    client.post("/rules/ends/delete/")
    assert EventRule.objects.count() == 0
    actions = [entry.action for entry in AuditEntry.objects.filter(actor="editor").order_by("pk")]
    assert actions == ["events:DisableRule", "events:PutRule", "events:DeleteRule"]


def test_a_rule_says_who_made_it_and_leads_to_its_changes(project: Project, client: Client) -> None:
    """The audit of its ARN has them all, and nothing of another rule."""
    for name in ("mine", "other"):
        rules.put_rule(project, REGION, name, actor=Actor("ada"), pattern='{"source": ["a"]}')
    event_rule = EventRule.objects.get(name="mine")
    shown = markup(client.get("/rules/mine/"))
    assert f"{clock_text(event_rule.created_ms)} UTC</time>by<bdi>ada</bdi>" in shown
    link = re.search(r'href="(/audit/[^"]*)">View changes in the audit', shown)
    assert link is not None
    assert [entry.target for entry in client.get(link[1]).context["entries"]] == [event_rule.arn]


def test_a_pattern_is_laid_out_for_its_reader(project: Project, signed_in: SignIn) -> None:
    """One entry a line, for a viewer, too; one that somebody has laid out stays as it is."""
    rule(
        project, pattern='{"source": ["aws.states"], "detail": {"status": ["FAILED"], "n": [1.50]}}'
    )
    shown = text(signed_in("viewer").get("/rules/ends/"))
    lines = ["{", '  "source": ["aws.states"],', '  "detail": {', '    "status": ["FAILED"],']
    laid_out = "\n".join([*lines, '    "n": [1.50]', "  }", "}"])
    assert f">{laid_out}</pre>" in shown
    editor = signed_in("editor")
    assert f"\n{laid_out}</textarea>" in text(editor.get("/rules/ends/?edit=1"))
    own = '{"source":\n ["aws.states"]}'
    editor.post("/rules/ends/", {"pattern": own})
    assert f"\n{own}</textarea>" in text(editor.get("/rules/ends/?edit=1"))


def test_a_rule_of_choices_is_edited_by_choices(project: Project, client: Client) -> None:
    """As it is created; the same choices leave the text alone, and the JSON is a press away."""
    machine = create(project, PASS)
    own = '{"source": ["aws.states"],\n "detail": {"status": ["FAILED"]}}'
    rule(project, pattern=own)
    shown = markup(client.get("/rules/ends/?edit=1"))
    assert re.findall(r'name="status" value="(\w+)" checked', shown) == ["FAILED"]
    assert 'name="pattern"' not in shown
    assert "edit=1#edit" not in shown, "the form is open"
    asked = {"choices": "1", "status": ["FAILED"], "machine": ""}
    client.post("/rules/ends/", asked | {"description": "mine"})
    event_rule = EventRule.objects.get()
    assert (event_rule.pattern, event_rule.description) == (own, "mine")
    client.post("/rules/ends/", asked | {"status": ["ABORTED"], "machine": machine.arn})
    event_rule.refresh_from_db()
    assert json.loads(event_rule.pattern)["detail"] == {
        "status": ["ABORTED"],
        "stateMachineArn": [machine.arn],
    }
    shown = markup(client.get("/rules/ends/?edit=1"))
    assert f'<option value="{machine.arn}" selected>' in shown
    assert 'name="pattern"' in text(client.get("/rules/ends/?edit=json"))
    wrong = text(client.post("/rules/ends/", asked | {"status": []}), 422)
    assert "an empty array matches nothing" in wrong
    assert 'name="choices"' in wrong


def test_a_machine_that_is_gone_stays_chosen(project: Project, client: Client) -> None:
    """A save of the description does not widen the rule to any state machine."""
    arn = f"arn:aws:states:{REGION}:123456789012:stateMachine:gone"
    rule(project, pattern=rule_display.pattern_of(["FAILED"], arn))
    shown = markup(client.get("/rules/ends/?edit=1"))
    assert f'<option value="{arn}" selected>gone</option>' in shown


def test_delete_stands_last_and_apart(project: Project, client: Client) -> None:
    """After what can be undone, as a dangerous button; the schedule's page has the same order."""
    rule(project, "nightly", schedule="cron(0 2 * * ? *)")
    shown = markup(client.get("/rules/nightly/"))
    places = [shown.index(word) for word in ("Run now", ">Edit<", ">Disable<", ">Delete<")]
    assert places == sorted(places)
    assert '<a class="button danger apart" href="/rules/nightly/delete/">' in shown


def test_targets_are_added_and_removed(project: Project, client: Client) -> None:
    """Up to five; a wrong one says why."""
    rule(project)
    for number in range(5):
        client.post("/rules/ends/targets/", {"target": f"a{number}@example.com"})
    ids = EventTarget.objects.order_by("target_id").values_list("target_id", flat=True)
    assert list(ids) == ["1", "2", "3", "4", "5"]
    assert "at most five targets" in text(client.get("/rules/ends/"))
    client.post("/rules/ends/targets/remove/", {"id": "2"})
    wrong = text(client.post("/rules/ends/targets/", {"target": "x"}, follow=True))
    assert "'x' is not a target. Enter the ARN of" in wrong
    assert EventTarget.objects.count() == 4


def test_the_signing_secret_is_the_editors(project: Project, signed_in: SignIn) -> None:
    """A viewer sees where a rule sends, not how to sign for it, and no form."""
    event_rule = rule(project)
    secret = notices.target_secret(event_rule.arn, "1")
    assert secret in text(signed_in("editor").get("/rules/ends/"))
    viewer = signed_in("viewer")
    shown = text(viewer.get("/rules/ends/"))
    assert "https://example.com/hook" in shown
    assert secret not in shown
    for page in (NOTIFICATIONS, SCHEDULES, "/rules/ends/"):
        assert 'method="post"' not in text(viewer.get(page)).partition("<main")[2]
    for path in ("", "switch/", "delete/", "targets/", "targets/remove/"):
        assert viewer.post(f"/rules/ends/{path}", {"act": "disable"}).status_code == 403
    assert viewer.post(NOTIFICATIONS, ASKED).status_code == 403
    assert viewer.post(SCHEDULES, ASKED).status_code == 403


def test_the_path_of_a_chat_is_masked_until_an_editor_opens_it(
    project: Project, signed_in: SignIn
) -> None:
    """Others never get it; the message of adding such a target masks it, too."""
    rule(project)
    whole = "slack+https://hooks.example.com/services/secret"
    editor = signed_in("editor")
    added = text(editor.post("/rules/ends/targets/", {"target": whole}, follow=True))
    added = added.replace("<wbr>", "")
    hidden = f"<summary>Show the whole address</summary><code>{whole}</code></details>"
    assert hidden in added
    assert "/services/secret" not in added.replace(hidden, "")
    assert added.count("slack+https://hooks.example.com/(masked)") == 2
    assert added.count("Show the whole address") == 1, "https://example.com/hook has no secret"
    seen = text(signed_in("viewer").get("/rules/ends/")).replace("<wbr>", "")
    assert "slack+https://hooks.example.com/(masked)" in seen
    assert "services/secret" not in seen
    assert "Show the whole address" not in seen


def test_a_schedule_is_run_now_and_a_target_tested(project: Project, client: Client) -> None:
    """From the page of the rule, by people with the right; what comes of it is listed there."""
    rule(project, "nightly", schedule="cron(0 2 * * ? *)")
    page = text(client.get("/rules/nightly/"))
    assert "Run now" in page
    assert "Send a test" in page
    assert "is running. See Last runs" in text(client.post("/rules/nightly/run/", follow=True))
    tested = client.post("/rules/nightly/targets/test/", {"id": "1"}, follow=True)
    assert "A test event was sent to target 1. See Last runs" in text(tested)
    assert [row.status for row in Delivery.objects.all()] == ["waiting"] * 2
    assert 'hx-trigger="every 2s"' in markup(tested)
    missing = client.post("/rules/nightly/targets/test/", {"id": "9"}, follow=True)
    assert "This target was removed" in text(missing)


def test_a_rule_without_a_schedule_is_not_run(project: Project, client: Client) -> None:
    """It has no moment of its own."""
    rule(project)
    assert "Run now" not in text(client.get("/rules/ends/"))
    assert client.post("/rules/ends/run/").status_code == 404


def test_a_viewer_neither_runs_nor_tests(project: Project, signed_in: SignIn) -> None:
    """An operator runs a schedule; testing a target is an editor's."""
    rule(project, "nightly", schedule="rate(5 minutes)")
    viewer, operator = signed_in("viewer"), signed_in("operator")
    assert "Run now" not in text(viewer.get("/rules/nightly/"))
    assert viewer.post("/rules/nightly/run/").status_code == 403
    assert operator.post("/rules/nightly/run/").status_code == 302
    assert operator.post("/rules/nightly/targets/test/", {"id": "1"}).status_code == 403


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("schedule=rate(5 minutes)", "in 5 min 00 s"),
        ("schedule=cron(0 9 ? * MON-FRI *)&timezone=Europe/Rome", "09:00:00 CE"),
        ("schedule=at(2090-12-24T18:00:00)", "Sun 24 Dec 2090 18:00:00 UTC"),
        ("schedule=at(2001-01-01T00:00:00)", "No runs left"),
        ("schedule=cron(0 9 * * *)", "5 fields instead of six"),
        ("schedule=rate(1 minute)&timezone=Nowhere/Here", "'Nowhere/Here' is not a time zone"),
        ("schedule=", ""),
    ],
)
def test_an_expression_that_is_being_typed_shows_its_next_times(
    client: Client, query: str, shown: str
) -> None:
    """In the zone that is typed, or why there are none."""
    page = text(client.get(f"/schedules/times/?{query}"))
    assert shown in page


def test_a_single_moment_becomes_a_schedule(project: Project, client: Client) -> None:
    """EventBridge's rules have none, so it is one of EventBridge Scheduler; wrong ones say why."""
    machine = create(project, PASS, "mine")
    asked = {"name": "once", "schedule": "at(2090-12-24T18:00:00)", "machine": machine.arn}
    client.post("/schedules/", asked)
    schedule = EventRule.objects.get()
    assert (schedule.schedule_group, schedule.schedule_name) == ("default", "once")
    assert (schedule.targets.get().address, schedule.edited_by != "") == (machine.arn, True)
    assert "already exists" in text(client.post("/schedules/", asked), 422)
    odd = client.post("/schedules/", asked | {"name": "a b"})
    assert "is not 1 to 64" in text(odd, 422)
    run = client.post("/schedules/default/once/run/", follow=True)
    assert "The schedule is running. See Last runs" in text(run)
    assert Delivery.objects.get().target.rule == schedule


@pytest.mark.postgres_too
def test_a_schedule_says_its_next_times_its_arn_and_what_changes_it(
    project: Project, signed_in: SignIn
) -> None:
    """In its own zone with UTC beside; the command is in the form of those with the right."""
    machine = create(project, PASS, "mine")
    editor = signed_in("editor")
    asked = {"name": "once", "machine": machine.arn, "timezone": "Europe/Rome"}
    editor.post("/schedules/", asked | {"schedule": "at(2090-12-24T18:00:00)"})
    editor.post("/schedules/", asked | {"name": "daily", "schedule": "cron(0 9 24 12 ? 2090)"})
    page = "/schedules/default/once/"
    shown = text(editor.get(page))
    assert f'data-copy-text="{EventRule.objects.get(schedule_name="once").arn}"' in shown
    assert "aws scheduler update-schedule" in text(editor.get(page, {"edit": "1"}))
    viewer = signed_in("viewer")
    assert "aws scheduler update-schedule" not in text(viewer.get(page, {"edit": "1"}))
    for address, local, utc in (
        (page, "Sun 24 Dec 2090 18:00:00 CET", "2090-12-24T17:00:00"),
        ("/rules/daily/", "Sun 24 Dec 2090 09:00:00 CET", "2090-12-24T08:00:00"),
    ):
        shown = text(editor.get(address))
        head = shown.partition("<h1>")[2].partition('class="facts"')[0]
        assert f'next run <b class="nowrap">{local}</b>' in head
        due = shown.partition('class="due"')[2].partition("</div>")[0]
        assert local in due
        assert utc in due


@pytest.mark.postgres_too
def test_the_poll_of_the_last_runs_takes_the_state_of_the_target_along(
    project: Project, client: Client
) -> None:
    """Both come of one answer, so that they never contradict each other."""
    machine = create(project, PASS, "mine")
    client.post(
        "/schedules/",
        {"name": "once", "machine": machine.arn, "schedule": "at(2090-12-24T18:00:00)"},
    )
    rule(project)
    client.post("/schedules/default/once/run/")
    client.post("/rules/ends/targets/test/", {"id": "1"})
    for address in ("/schedules/default/once/", "/rules/ends/"):
        shown = text(client.get(address))
        polled = re.search(r'hx-select-oob="#(health-\d+),', shown)
        assert polled, address
        assert "Waiting" in shown.partition(f'id="{polled[1]}"')[2].partition("</span>")[0]


@pytest.mark.postgres_too
def test_what_is_wrong_with_an_expression_stands_at_its_field(client: Client) -> None:
    """And what is wrong with the time zone below that one."""
    page = "/schedules/times/?schedule="
    wrong = text(client.get(f"{page}cron(0 9 * * *)"))
    at_expression = '<p class="error" id="schedule-problem" role="status" hx-swap-oob="true">'
    assert f"{at_expression}cron: 5 fields" in wrong
    assert wrong.count('class="error"') == 1
    wrong = text(client.get(f"{page}rate(1 minute)&timezone=Nowhere/Here"))
    assert f"{at_expression}</p>" in wrong
    assert wrong.count('class="error"') == 2
    form = text(client.get("/schedules/?create"))
    field = form.partition('id="schedule"')[2].partition("</div>")[0]
    assert 'id="schedule-problem"' in field


@pytest.mark.postgres_too
def test_a_target_that_nothing_is_sent_to_says_so(
    project: Project, client: Client, settings: Settings
) -> None:
    """Beside the rule and in the list, until the operator names its origin."""
    url = "https://hooks.test/ends"
    rules.save_rule(
        project,
        REGION,
        "ends",
        {"Id": "1", "Arn": url},
        actor=Actor("ada"),
        pattern='{"source": ["a"]}',
    )
    for endpoints in (["https://other.test"], ["https://hooks.test"]):
        settings.STATEYARD_TARGETS = {"http": {"endpoints": endpoints}}
        refused = endpoints == ["https://other.test"]
        shown = text(client.get("/rules/ends/"))
        assert ("the address is not in the list" in shown) is refused
        line = '"http": {"endpoints": ["https://hooks.test"]}'
        assert (line in html.unescape(shown)) is refused
        assert ("(blocked, not in" in text(client.get(NOTIFICATIONS))) is refused
