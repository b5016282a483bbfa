"""An archived project is read-only for pages, API and commands, and nothing starts in it."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import resolve

from console import access
from console.awsapi import services
from console.db import clock
from console.db.audit import Actor
from console.errors import ServiceError
from console.feature import chosen_features
from console.features.alarms.jobs import evaluate_alarms
from console.features.bulk import store as bulk
from console.features.bulk.models import BulkItem
from console.features.exports import shares
from console.features.notifications.relay import relay_delivery
from console.features.notifications.store import deliveries, routing, rules, scheduler, start_links
from console.features.projects import store
from console.models import (
    AccessKey,
    AuditEntry,
    Delivery,
    EventRule,
    Execution,
    Membership,
    OutboxEvent,
    Project,
    StateMachine,
)
from console.store.events import outbox
from console.store.executions.start import start_execution
from console.store.people import people
from console.web.core.rights import ANYBODY, PAGES, SIGNED_IN
from tests.console.store.helpers import PASS, REGION, ROLE, WAIT, create, drain, start
from tests.console.web.helpers import text
from tests.console.worker import nesting
from tests.security.test_rights import LEAST, ROUTES, filled, send, served

BY = Actor("manage.py")
WORDS = "The project 'payments' is archived: it is read-only until an administrator of the server"
_FORM = re.compile(r'<form[^>]*method="post"[^>]*>')
_ACTION = re.compile(r'action="([^"]*)"')
REVOKING = {"RemoveMember", "RevokeInvitation", "UpdateAccessKey"}


@pytest.fixture
def payments(project: Project, django_user_model: Any) -> Project:
    """Return a project with a running execution, to be archived."""
    del project
    django_user_model.objects.create_user("owner")
    payments = store.create_project("payments", "222222222222", "owner", BY)
    start(create(payments, WAIT), name="x")
    access.forget_principals()
    return payments


@pytest.fixture
def owner(payments: Project, django_user_model: Any) -> Client:
    """Return the client of its owner."""
    del payments
    client = Client()
    client.force_login(django_user_model.objects.get(username="owner"))
    return client


def archived(payments: Project) -> Project:
    """Archive the project; return it anew."""
    store.archive_project(payments.name, BY)
    return Project.objects.get(pk=payments.pk)


@pytest.mark.postgres_too
def test_reading_actions_are_answered_and_all_others_refused(payments: Project) -> None:
    """By every service; the error names the archive. A key that is there signs the calls."""
    member = Membership.objects.get(project=payments)
    key, _ = people.new_key(member.user, payments, BY)
    archived(payments)
    wrong = {}
    for service, action in served():
        reads = LEAST[service.permission(action)] == "viewer"
        try:
            send(service, action, key.key_id)
            refused = ""
        except ServiceError as error:
            refused = error.code if error.message.startswith(WORDS) else ""
        if refused != ("" if reads else "AccessDeniedException"):
            wrong[action] = refused
    assert wrong == {}
    store.unarchive_project("payments", BY)
    arn = StateMachine.objects.get(project=payments).arn
    assert send(services.STATES, "StartExecution", key.key_id, stateMachineArn=arn)


def test_pages_show_a_banner_and_change_nothing(payments: Project, owner: Client) -> None:
    """Every page that changes something refuses it; no page has a form of one that does."""
    assert "was archived on" not in text(owner.get("/"))
    archived(payments)
    before = Execution.objects.count(), StateMachine.objects.count(), AccessKey.objects.count()
    for name, methods in PAGES.items():
        for method, actions in methods.items():
            if {ANYBODY, SIGNED_IN} & {*actions} or method != "POST":
                continue
            least = {access.least_role(action) for action in actions}
            if least & {access.ADMINISTRATOR} or {*actions} & {*REVOKING, "RevealPayloads"}:
                continue
            answer = owner.post(filled(ROUTES[name]))
            if name == "columns":  # what each reader prefers
                continue
            assert answer.status_code == 403, name
            assert "is archived: it is read-only" in text(answer, 403), name
    assert before == (
        *(Execution.objects.count(), StateMachine.objects.count(), AccessKey.objects.count()),
    )
    assert AuditEntry.objects.filter(project=payments, action="Refused").exists()


@pytest.mark.postgres_too
@pytest.mark.slow
def test_no_page_has_a_writing_form(payments: Project, owner: Client) -> None:
    """Besides those that take access away, and what each reader prefers."""
    key, _ = people.new_key(Membership.objects.get(project=payments).user, payments, BY)
    people.put_member(payments, "ben", "viewer", BY)
    archived(payments)
    shut = {}
    shown = 0
    for name, methods in PAGES.items():
        if "GET" not in methods or {ANYBODY} & {*methods["GET"]}:
            continue
        path = filled(ROUTES[name])
        answer = owner.get(path)
        if answer.status_code != 200 or "text/html" not in answer["Content-Type"]:
            continue
        page = answer.content.decode()
        if "<html" not in page:
            continue
        shown += 1
        assert "was archived on" in page, name
        for form in _FORM.findall(page):
            action = _ACTION.search(form)
            target = resolve((action[1] if action else path).partition("?")[0]).url_name or ""
            rights = {*PAGES[target].get("POST", ())}
            if name != "projects" and not rights & {SIGNED_IN, "PutColumns", *REVOKING}:
                shut[name] = target
    assert shown > 25
    assert shut == {}
    assert key.key_id in text(owner.get("/keys/"))
    assert "Create access key" not in text(owner.get("/keys/"))


def test_nothing_starts_and_what_runs_goes_on(payments: Project) -> None:
    """A running execution comes to its end; a start from anywhere is refused."""
    machine = create(payments, PASS, "other")
    running = start_execution(machine, input="{}")
    payments = archived(payments)
    machine = StateMachine.objects.get(pk=machine.pk)
    with pytest.raises(ServiceError) as caught:
        start_execution(machine, input="{}")
    assert caught.value.code == "AccessDeniedException"
    assert caught.value.message.startswith(WORDS)
    assert drain(running).status == "SUCCEEDED"


def test_a_task_starts_no_other_execution(payments: Project) -> None:
    """It fails with AWS's error, so that an execution that starts itself again comes to rest."""
    child = create(payments, PASS, "child")
    definition = nesting.starting(child)
    machine = nesting.machine_of(payments, "owner", definition, "parent")
    execution = nesting.started(machine, "owner")
    archived(payments)
    execution = nesting.worked(execution)
    assert execution.status == "FAILED"
    assert "is archived" in (execution.cause or "")
    assert not Execution.objects.filter(state_machine=child).exists()


def test_rules_rest(payments: Project) -> None:
    """No event is written, and a delivery that waits becomes a dead letter, to be sent again."""
    machine = create(payments, PASS, "other")
    target = {"Id": "t", "Arn": machine.arn, "RoleArn": ROLE}
    rules.put_rule(payments, REGION, "rule", pattern=json.dumps({"source": ["aws.states"]}))
    rules.put_targets(payments, REGION, "rule", [target])
    outbox.forget_rules()
    first = start_execution(create(payments, PASS, "first"), input="{}")
    routing.route_events()
    second = start_execution(StateMachine.objects.get(name="first"), input="{}")
    waiting = Delivery.objects.get()
    archived(payments)
    routing.route_events()
    assert Delivery.objects.count() == 1
    assert not OutboxEvent.objects.filter(routed=False).exists()
    assert deliveries.claim_due({waiting.target_id: 1}) == [(waiting.pk, waiting.target_id)]
    assert relay_delivery(waiting.pk) is None
    waiting.refresh_from_db()
    assert waiting.status == "dead"
    assert waiting.last_error.startswith(WORDS)
    drain(first)
    drain(second)
    assert not OutboxEvent.objects.filter(routed=False).exists()
    store.unarchive_project("payments", BY)
    deliveries.send_again(payments, waiting.pk, BY)
    start_execution(StateMachine.objects.get(name="first"), input="{}")
    assert OutboxEvent.objects.filter(routed=False).exists()


@pytest.mark.postgres_too
def test_moments_of_schedules_pass(payments: Project) -> None:
    """Of rules and of EventBridge Scheduler; an unarchived project makes up for none of them."""
    machine = create(payments, PASS, "other")
    rules.put_rule(payments, REGION, "minutely", schedule="rate(1 minute)")
    target = {"Id": "t", "Arn": machine.arn, "RoleArn": ROLE}
    rules.put_targets(payments, REGION, "minutely", [target])
    daily = scheduler.ScheduleSettings("rate(1 day)", {"Arn": machine.arn, "RoleArn": ROLE})
    scheduler.create_schedule(scheduler.ScheduleKey(payments, REGION, "default", "daily"), daily)
    archived(payments)
    past_ms = clock.now_ms() - 1000
    assert EventRule.objects.exclude(next_ms=None).update(next_ms=past_ms) == 1
    assert EventRule.objects.exclude(due_ms=None).update(due_ms=past_ms) == 1
    assert deliveries.fire_due() == 2
    assert deliveries.fire_due() == 0
    assert not Delivery.objects.exists()
    assert not OutboxEvent.objects.exists()
    store.unarchive_project("payments", BY)
    assert deliveries.fire_due() == 0
    assert EventRule.objects.get(name="minutely").next_ms > clock.now_ms()
    EventRule.objects.exclude(next_ms=None).update(next_ms=past_ms)
    assert deliveries.fire_due() == 1
    assert Delivery.objects.count() == 1


def test_alarms_keep_their_states(payments: Project) -> None:
    """Nobody would be told of a change."""
    archived(payments)
    assert evaluate_alarms() == 0


def test_links_of_a_project(payments: Project) -> None:
    """A start link says that the project is archived; a picture that was shared stays open."""
    machine = StateMachine.objects.get(project=payments)
    _, secret = start_links.create_link(machine, "shop", Actor("owner"))
    token = shares.create_share(Execution.objects.get(), 24, Actor("owner"))
    archived(payments)
    answer = Client().post(f"/start/{machine.name}/{secret}", "{}", content_type="text/plain")
    assert answer.status_code in (400, 403)
    assert json.loads(answer.content)["message"].startswith(WORDS)
    assert shares.open_share(token).name == "x"
    assert Execution.objects.count() == 1


def test_a_bulk_job_ends_refused(payments: Project) -> None:
    """Each item says why."""
    numbers = list(Execution.objects.values_list("pk", flat=True))
    plan = bulk.plan_job(payments, "stop", numbers)
    job = bulk.create_job(plan, payments, Actor("owner"))
    archived(payments)
    while bulk.work_on_job(job.pk):
        pass
    item = BulkItem.objects.get()
    assert (item.status, item.error) == ("refused", "AccessDeniedException")
    assert item.words.startswith(WORDS)
    assert Execution.objects.get().status == "RUNNING"


@pytest.mark.postgres_too
def test_keys_are_refused_by_page_and_command(payments: Project, owner: Client) -> None:
    """Neither made nor enabled, by nobody; a key may still be disabled and deleted."""
    user = Membership.objects.get(project=payments).user
    key, _ = people.new_key(user, payments, BY)
    archived(payments)
    assert WORDS[:30] in text(owner.post("/keys/"), 403).replace("&#x27;", "'")
    for words in (["owner", "--key", "--role", "owner"], ["clara", "--key"]):
        with pytest.raises(CommandError, match="'payments' is archived"):
            call_command("member", *words, project="payments", stdout=io.StringIO())
    assert not Membership.objects.filter(user__username="clara").exists()
    assert AccessKey.objects.filter(project=payments).count() == 1
    for act in ("disable", "enable", "describe"):
        owner.post(f"/keys/{key.key_id}/", {"act": act, "description": "mine"})
    key.refresh_from_db()
    assert (key.disabled_ms is None, key.description) == (False, "")
    owner.post(f"/keys/{key.key_id}/", {"act": "delete"})
    assert not AccessKey.objects.filter(project=payments).exists()


def test_an_owner_removes_members_of_an_archived_project(payments: Project, owner: Client) -> None:
    """Access can be taken away, not given."""
    people.put_member(payments, "ben", "viewer", BY)
    archived(payments)
    assert "Remove ben" in text(owner.get("/members/"))
    assert "Invite a person" not in text(owner.get("/members/"))
    assert owner.post("/members/remove/", {"name": "ben"}).status_code == 302
    assert not Membership.objects.filter(user__username="ben").exists()
    assert owner.post("/members/", {"name": "ben", "role": "viewer"}).status_code == 403


def test_machines_are_not_imported(payments: Project, tmp_path: Any) -> None:
    """The operator's command says so, too."""
    archived(payments)
    path = tmp_path / "machines.json"
    path.write_text("[]")
    with pytest.raises(CommandError, match="'payments' is archived"):
        call_command("import_machines", str(path), project="payments")


@pytest.mark.parametrize("name", ["default", "samples", "nothing"])
def test_a_project_of_the_server_is_not_archived(payments: Project, name: str) -> None:
    """It finds them by name, and works in them."""
    del payments
    with pytest.raises(ServiceError) as caught:
        store.archive_project(name, BY)
    code = "ResourceNotFound" if name == "nothing" else "ValidationException"
    assert caught.value.code == code


@pytest.mark.postgres_too
def test_an_administrator_archives_by_page_and_command(
    payments: Project, administrator: Client
) -> None:
    """Each is in the audit of the project once, however often it is asked for."""
    for _ in range(2):
        assert administrator.post("/projects/archive/", {"name": "payments"}).status_code == 302
    shown = text(administrator.get("/projects/"))
    assert "Unarchive" in shown
    assert "1 running" in shown
    assert "payments" in text(administrator.post("/projects/archive/", {"name": "default"}), 422)
    assert administrator.post("/projects/unarchive/", {"name": "payments"}).status_code == 302
    out = io.StringIO()
    for act in ("archive", "list", "unarchive"):
        call_command("project", act, *([] if act == "list" else ["payments"]), stdout=out)
    lines = out.getvalue().splitlines()
    assert lines[0] == "payments is archived: it is read-only, and nothing starts in it"
    assert lines[2].endswith("1 member  archived")
    assert lines[3] == "payments is active again"
    actions = AuditEntry.objects.filter(project=payments, action__endswith="chiveProject")
    assert list(actions.order_by("pk").values_list("action", "actor")) == [
        ("ArchiveProject", "root"),
        ("UnarchiveProject", "root"),
        ("ArchiveProject", "manage.py"),
        ("UnarchiveProject", "manage.py"),
    ]


def test_viewers_actions_of_features_only_read() -> None:
    """A feature whose viewers write something would go on to do so in an archive."""
    reading = re.compile(r"(\w+:)?(Describe|Filter|Get|List|Test)\w+")
    for feature in chosen_features():
        for action in feature.rights.get("viewer", ()):
            assert reading.fullmatch(action), action


def test_one_state_is_not_tested(payments: Project, owner: Client) -> None:
    """It may call what it wants."""
    archived(payments)
    assert owner.get("/machines/machine/test/").status_code == 403
