"""A start link starts executions of its own machine only, and only editors make links."""

from __future__ import annotations

import json
import re
import threading
from typing import TYPE_CHECKING, Any

import pytest
from django.test import Client

from console.config import quotas
from console.db import clock
from console.db.audit import Actor
from console.errors import ErrorCode
from console.features.members import store as invitations
from console.features.notifications.store import rules, start_links
from console.features.notifications.web import trigger_views
from console.models import AuditEntry, Execution, Membership, StartLink, StateMachine
from console.store.people import people
from console.web.core.formatting import clock_text
from tests.console.store.helpers import PASS, REGION, WAIT, create, ended, one, start
from tests.console.web.helpers import MARKUP, text
from tests.refusals import raises_code

if TYPE_CHECKING:
    from collections.abc import Callable

    from console.models import Project

    SignIn = Callable[[str], Client]


def linked(machine: StateMachine, kind: str = "STANDARD") -> str:
    """Create link to a machine of a type; return its path."""
    StateMachine.objects.filter(pk=machine.pk).update(type=kind)
    if not Membership.objects.filter(project=machine.project, user__username="ana").exists():
        people.put_member(machine.project, "ana", "editor", Actor("olga"))
    _, secret = start_links.create_link(machine, "shop", Actor("ana"))
    return f"/start/{machine.name}/{secret}"


def post(path: str, body: Any = "") -> tuple[int, dict[str, Any]]:
    """Post without any cookie; return status and answer."""
    answer = Client(enforce_csrf_checks=True).post(path, body, content_type="application/json")
    return answer.status_code, json.loads(answer.content)


def test_a_link_starts_an_execution_with_the_body(project: Project) -> None:
    """The input is the body's text; the answer is that of StartExecution."""
    path = linked(create(project, WAIT))
    status, answer = post(path, '{"a": 1.0}')
    execution = Execution.objects.get()
    assert status == 200
    assert answer == {"executionArn": execution.arn, "startDate": execution.start_ms / 1000}
    assert (execution.input, execution.started_by) == ('{"a": 1.0}', "link shop")
    assert AuditEntry.objects.get(action="StartExecution").actor == "link shop"
    assert StartLink.objects.get().used_ms is not None


def test_an_empty_body_is_an_empty_object(project: Project) -> None:
    """As of StartExecution without an input."""
    assert post(linked(create(project, WAIT)))[0] == 200
    assert Execution.objects.get().input == "{}"


def test_a_name_makes_the_start_safe_to_repeat(project: Project) -> None:
    """The same name and input while it runs is the same execution, another input a conflict."""
    path = linked(create(project, WAIT)) + "?name=order-7"
    assert post(path, "1") == post(path, "1")
    status, answer = post(path, "2")
    assert (status, answer["__type"]) == (400, "ExecutionAlreadyExists")
    assert Execution.objects.count() == 1


def test_an_express_machine_answers_with_its_output(project: Project, worker: Any) -> None:
    """Also where it fails: the call itself went well."""
    status, answer = post(linked(create(project, PASS), "EXPRESS"), '{"a": 1}')
    assert (status, answer["status"], answer["output"]) == (200, "SUCCEEDED", '{"a": 1}')
    failing = one("F", Type="Fail", Error="Broken")
    del failing["States"]["F"]["End"]
    status, answer = post(linked(create(project, failing, "failing"), "EXPRESS"))
    assert (status, answer["status"], answer["error"]) == (200, "FAILED", "Broken")
    assert "output" not in answer


def test_the_caller_is_not_kept_waiting_for_ever(
    project: Project, worker: Any, monkeypatch: Any
) -> None:
    """A slow execution goes on; its caller hears what API Gateway says."""
    monkeypatch.setattr(trigger_views, "LONGEST_S", 0.2)
    nap = one("W", Type="Wait", Seconds=2)
    status, answer = post(linked(create(project, nap), "EXPRESS"))
    assert (status, answer) == (504, {"message": "Endpoint request timed out"})
    assert Execution.objects.get().status == "RUNNING"


def test_a_caller_is_answered_when_the_server_shuts_down(
    project: Project, worker: Any, monkeypatch: Any
) -> None:
    """By 503; what has ended is answered all the same."""
    shutting_down = threading.Event()
    shutting_down.set()
    monkeypatch.setattr(trigger_views, "SHUTTING_DOWN", shutting_down)
    nap = one("W", Type="Wait", Seconds=600)
    assert post(linked(create(project, nap), "EXPRESS"))[0] == 503
    over = ended(start(create(project, PASS, "quick")))
    assert trigger_views._wait_for_end(over).status_code == 200


def test_what_is_no_input_is_refused(project: Project) -> None:
    """With the words of StartExecution; nothing starts."""
    path = linked(create(project, PASS))
    for body in ("{not", b"\xff", '"' + "x" * 262_144 + '"'):
        status, answer = post(path, body)
        assert status == 400
        assert answer["message"]
    assert Execution.objects.count() == 0


def test_only_the_secret_opens_and_only_its_machine(project: Project) -> None:
    """A wrong one, another machine's, and a revoked one are all the same: nothing there."""
    first, second = create(project, PASS), create(project, PASS, "second")
    path = linked(first)
    secret = path.rpartition("/")[2]
    for wrong in (path + "x", f"/start/second/{secret}", f"/start/machine/{'a' * 43}"):
        assert post(wrong) == (404, {"message": "Not Found"})
    link = StartLink.objects.get()
    assert secret not in str(StartLink.objects.values())
    start_links.revoke_link(first, link.pk, Actor("ana"))
    assert post(path)[0] == 404
    assert Client().get(linked(second)).status_code == 405
    assert Execution.objects.count() == 0


def test_a_link_ends_with_the_membership_of_its_maker(project: Project, signed_in: SignIn) -> None:
    """Removal revokes it and says so; who is added again has no link, and may make another."""
    people.put_member(project, "owner", "owner", Actor("manage.py"))
    machine = create(project, PASS)
    path, express = linked(machine), linked(create(project, PASS, "express"), "EXPRESS")
    assert post(path)[0] == 200
    people.remove_member(project, "ana", Actor("olga"))
    assert [post(address) for address in (path, express)] == [(404, {"message": "Not Found"})] * 2
    entries = AuditEntry.objects.filter(action="RevokeStartLink").order_by("target")
    assert [(entry.actor, entry.reason) for entry in entries] == [("olga", "shop, made by ana")] * 2
    assert entries[1].target == machine.arn
    people.put_member(project, "ana", "owner", Actor("olga"))
    assert post(path)[0] == 404
    assert "Revoked" in text(signed_in("viewer").get("/machines/machine/triggers/"))
    assert post(linked(machine))[0] == 200


@pytest.mark.postgres_too
def test_a_link_is_closed_while_its_maker_may_make_none(
    project: Project, signed_in: SignIn
) -> None:
    """Its page says so."""
    path = linked(create(project, PASS))
    people.put_member(project, "ana", "operator", Actor("olga"))
    assert post(path)[0] == 404
    assert "Closed" in text(signed_in("viewer").get("/machines/machine/triggers/"))
    people.put_member(project, "ana", "editor", Actor("olga"))
    assert post(path)[0] == 200
    Membership.objects.get(user__username="ana").user.__class__.objects.update(is_active=False)
    assert post(path)[0] == 404


@pytest.mark.postgres_too
def test_a_link_that_outlived_its_maker_stays_closed(project: Project) -> None:
    """One of an earlier release has no membership: it ends when its maker is added again."""
    people.put_member(project, "owner", "owner", Actor("manage.py"))
    other = type(project).objects.create(name="other", account_id="999999999999")
    path = linked(create(project, PASS))
    for invited in (False, True):
        StartLink.objects.update(membership=None, revoked_ms=None)
        Membership.objects.filter(project=project, user__username="ana").delete()
        assert post(path)[0] == 404
        if invited:
            user = people.put_member(other, "ana", "viewer", Actor("manage.py")).user
            _, token = invitations.create_invitation(project, "ana", "editor", 24, Actor("owner"))
            invitations.accept_invitation(token, "", user)
        else:
            people.put_member(project, "ana", "editor", Actor("olga"))
        assert post(path)[0] == 404


@pytest.mark.postgres_too
@pytest.mark.parametrize("membership", [True, False])
def test_a_link_stays_closed_after_a_removal_without_notifications(
    project: Project, monkeypatch: pytest.MonkeyPatch, *, membership: bool
) -> None:
    """Nobody revoked it then; it names the membership that ended, or was made before the end."""
    people.put_member(project, "owner", "owner", Actor("manage.py"))
    path = linked(create(project, PASS))
    if not membership:
        StartLink.objects.update(membership=None)
    assert post(path)[0] == 200
    with monkeypatch.context() as without:
        without.setattr(people, "hooked", lambda _: ())
        people.remove_member(project, "ana", Actor("olga"))
        people.put_member(project, "ana", "editor", Actor("olga"))
    assert StartLink.objects.get().revoked_ms is None
    assert post(path)[0] == 404
    StartLink.objects.update(created_ms=clock.now_ms() + 1)
    assert post(path)[0] == (404 if membership else 200)


def test_the_secret_is_shown_once(project: Project, signed_in: SignIn) -> None:
    """The page that made it has it and it works; the next look has not."""
    create(project, WAIT)
    editor = signed_in("editor")
    shown = text(editor.post("/machines/machine/triggers/", {"name": "shop"}))
    match = re.search(r"http://testserver(/start/machine/[\w-]+)", shown)
    assert match is not None
    assert post(match[1])[0] == 200
    again = text(editor.get("/machines/machine/triggers/"))
    assert "shop" in again
    assert match[1].rpartition("/")[2] not in again


def test_the_page_of_a_new_link_keeps_its_rows_and_copies_the_link(
    project: Project, signed_in: SignIn
) -> None:
    """It is the page of the machine's triggers with one section more."""
    machine = create(project, WAIT)
    shown = text(signed_in("editor").post("/machines/machine/triggers/", {"name": "shop"}))
    assert "<dt>Type</dt>" in shown
    assert f'title="{machine.arn}"' in shown
    assert re.search(r'data-copy-text="http://testserver/start/machine/[\w-]+"', shown)
    assert re.search(r'data-copy-text="curl -X POST [^"]*/start/machine/[\w-]+', shown)


def test_the_last_use_of_a_link_is_shown_to_the_minute(
    project: Project, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is kept once a minute, and again in the next one."""
    linked(create(project, WAIT))
    minute = clock.now_ms() // 60_000 * 60_000
    for now_ms in (minute + 50_000, minute + 61_000):
        monkeypatch.setattr(clock, "now_ms", lambda now_ms=now_ms: now_ms)
        start_links.note_use(StartLink.objects.get())
    shown = text(signed_in("editor").get("/machines/machine/triggers/"))
    assert f" data-minute>{clock_text(minute + 60_000)[:16]}</time>" in shown


@pytest.mark.postgres_too
def test_an_editor_makes_and_revokes_links(project: Project, signed_in: SignIn) -> None:
    """Others see them, with no form, and are refused; both changes are in the audit."""
    create(project, WAIT)
    path = "/machines/machine/triggers/"
    editor, operator = signed_in("editor"), signed_in("operator")
    editor.post(path, {"name": "shop"})
    number = StartLink.objects.get().pk
    assert "Create start link" not in text(operator.get(path))
    assert operator.post(path, {"name": "x"}).status_code == 403
    assert operator.post(f"{path}{number}/revoke/").status_code == 403
    editor.post(f"{path}{number}/revoke/")
    assert StartLink.objects.get().revoked_ms is not None
    assert "Revoked" in text(editor.get(path))
    actions = AuditEntry.objects.filter(actor="editor").order_by("pk")
    assert [action.action for action in actions] == ["CreateStartLink", "RevokeStartLink"]
    assert {action.reason for action in actions} == {"shop"}


def test_a_name_is_shown_as_typed_and_must_be_one(project: Project, signed_in: SignIn) -> None:
    """Markup does nothing, an empty name is refused beside the field."""
    create(project, WAIT)
    editor = signed_in("editor")
    path = "/machines/machine/triggers/"
    assert "to name the user of the link" in text(editor.post(path, {"name": " "}), 422)
    response = editor.post(path, {"name": MARKUP})
    assert MARKUP not in response.content.decode()
    assert MARKUP in text(response)


def test_a_machine_that_is_being_deleted_gets_no_link(project: Project) -> None:
    """The link would never start anything."""
    machine = create(project, WAIT)
    StateMachine.objects.filter(pk=machine.pk).update(status="DELETING")
    with raises_code(ErrorCode.StateMachineDeleting):
        start_links.create_link(machine, "shop", Actor("ana"))


def test_the_links_of_another_project_cannot_be_revoked(
    project: Project, signed_in: SignIn
) -> None:
    """Nor seen: their machine is not there."""
    other = type(project).objects.create(name="other", account_id="999999999999")
    machine = create(other, WAIT, "theirs")
    linked(machine)
    editor = signed_in("editor")
    create(project, WAIT)
    number = StartLink.objects.get().pk
    assert editor.get("/machines/theirs/triggers/").status_code == 404
    editor.post(f"/machines/machine/triggers/{number}/revoke/")
    assert StartLink.objects.get().revoked_ms is None


@pytest.mark.postgres_too
def test_many_starts_at_once_are_each_one(project: Project, worker: Any) -> None:
    """Eight callers of an Express machine have eight answers."""
    path = linked(create(project, PASS), "EXPRESS")
    got: list[tuple[int, dict[str, Any]]] = []

    def call(number: int) -> None:
        from django.db import connection

        got.append(post(path, str(number)))
        connection.close()

    threads = [threading.Thread(target=call, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer["output"] for _, answer in got) == [str(number) for number in range(8)]


def test_the_rules_for_the_events_of_a_machine_are_listed(
    project: Project, signed_in: SignIn
) -> None:
    """Those whose pattern can match a change of status; not those of other machines or sources."""
    machine = create(project, PASS)
    other = f"{machine.arn}-2"
    states = {"source": ["aws.states"]}
    patterns = {
        "any": states,
        "failed": {**states, "detail": {"status": ["FAILED"], "stateMachineArn": [machine.arn]}},
        "by-prefix": {**states, "detail": {"stateMachineArn": [{"prefix": machine.arn[:-3]}]}},
        "by-name": {**states, "detail": {"name": ["x"]}},
        "not-other": {**states, "detail": {"stateMachineArn": [f"{machine.arn}-2"]}},
        "not-states": {"source": ["shop"]},
        "not-these": {"detail": {"orderId": [{"exists": True}]}},
        "not-alarms": {"source": ["aws.cloudwatch"]},
    }
    for name, pattern in patterns.items():
        rules.put_rule(project, REGION, name, pattern=json.dumps(pattern))
    rules.put_targets(project, REGION, "failed", [{"Id": "1", "Arn": other}])
    answer = signed_in("viewer").get("/machines/machine/triggers/")
    listed = [row.rule.name for row in answer.context["event_rows"]]
    assert listed == ["any", "by-name", "by-prefix", "failed"]
    assert answer.context["rows"] == []
    section = text(answer).partition('id="rule-table"')[2].partition("</table>")[0]
    for name in listed:
        assert f'href="/rules/{name}/"' in section
    StateMachine.objects.filter(pk=machine.pk).update(type="EXPRESS")
    express = signed_in("editor").get("/machines/machine/triggers/")
    assert express.context["event_rows"] == []
    assert "Executions of Express state machines send no status change events" in text(express)


def test_a_link_beyond_its_rate_is_told_so(
    project: Project, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another link of the same machine goes on; nothing was started."""
    settings.STATEYARD_QUOTAS = {"start_link": {"bucket": 2, "refill": 0.001}}
    quotas.forget()
    monkeypatch.setattr(trigger_views, "_buckets", {})
    machine = create(project, PASS)
    busy, quiet = linked(machine), linked(machine)
    answers = [post(busy) for _ in range(4)]
    assert [status for status, _ in answers] == [200, 200, 429, 429]
    assert answers[-1][1]["__type"] == ErrorCode.ThrottlingException
    assert post(quiet)[0] == 200
    assert Execution.objects.count() == 3
    quotas.forget()


@pytest.mark.postgres_too
def test_few_callers_of_a_link_wait_at_once(project: Project, settings: Any) -> None:
    """One link cannot take the places of all that wait."""
    settings.STATEYARD_QUOTAS = {"start_link_waits": 0}
    quotas.forget()
    path = linked(create(project, PASS), kind="EXPRESS")
    assert post(path)[0] == 429
    assert not Execution.objects.exists()
    quotas.forget()
