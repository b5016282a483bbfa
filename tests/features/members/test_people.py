"""Only permitted people manage the team and the keys, and the audit page shows their acts."""

from __future__ import annotations

import configparser
import html
import re
from typing import TYPE_CHECKING, Any

import pytest

from console import access
from console.db import audit, clock
from console.models import AccessKey, AuditEntry, Membership
from console.store.people import people
from console.web.core.formatting import DAY
from tests.console.store.helpers import WAIT, create, start
from tests.console.web.helpers import MARKUP, markup, page, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

    SignIn = Callable[[str], Client]


@pytest.mark.postgres_too
def test_only_an_owner_changes_members(project: Project, signed_in: SignIn) -> None:
    """Others see the members, but no form, and a POST is refused."""
    editor = signed_in("editor")
    assert 'id="role"' not in text(editor.get("/members/"))
    assert editor.post("/members/", {"name": "eve", "role": "owner"}).status_code == 403
    assert editor.post("/members/remove/", {"name": "editor"}).status_code == 403
    assert Membership.objects.filter(user__username="eve").count() == 0


def test_an_owner_adds_and_removes_a_member(project: Project, signed_in: SignIn) -> None:
    """A new name makes a person without a password; each change is in the audit."""
    owner = signed_in("owner")
    owner.post("/members/", {"name": "ana", "role": "operator"})
    ana = Membership.objects.get(user__username="ana")
    assert ana.role == "operator"
    assert not ana.user.has_usable_password()
    owner.post("/members/remove/", {"name": "ana"})
    assert not Membership.objects.filter(user__username="ana").exists()
    actions = AuditEntry.objects.filter(target="ana").order_by("pk").values_list("action")
    assert [action for (action,) in actions] == ["PutMember", "RemoveMember"]


def test_an_owner_changes_a_role_in_its_row(project: Project, signed_in: SignIn) -> None:
    """The select of a member has the member's role; others see the role as a word."""
    owner = signed_in("owner")
    owner.post("/members/", {"name": "ana", "role": "operator"})
    shown = " ".join(text(owner.get("/members/")).split())
    row = shown.partition('name="name" value="ana"')[2].partition("</form>")[0]
    assert 'aria-label="Role of ana"' in row
    assert '<option value="operator" selected>' in row
    owner.post("/members/", {"name": "ana", "role": "editor"})
    shown = text(signed_in("viewer").get("/members/"))
    assert "Role of ana" not in shown
    assert "Editor" in shown


def test_the_only_owner_has_no_forms_that_would_be_refused(
    project: Project, signed_in: SignIn
) -> None:
    """Their row says why, until there is another owner. Who reads is marked in their own row."""
    owner = signed_in("owner")
    owner.post("/members/", {"name": "ana", "role": "editor"})
    shown = markup(owner.get("/members/"))
    assert "The only owner cannot be removed or given another role." in shown
    assert 'aria-label="Role of owner"' not in shown
    assert 'aria-label="Role of ana"' in shown
    assert "Remove owner" not in shown
    assert "Remove ana" in shown
    assert shown.count("(you)") == 1
    owner.post("/members/", {"name": "ana", "role": "owner"})
    shown = markup(owner.get("/members/"))
    assert "the only one" not in shown
    assert 'aria-label="Role of owner"' in shown


def test_removing_a_member_is_asked_once_with_what_is_lost(
    project: Project, signed_in: SignIn
) -> None:
    """The button opens a question that counts the keys which are deleted."""
    owner = signed_in("owner")
    owner.post("/members/", {"name": "ana", "role": "editor"})
    ana = Membership.objects.get(user__username="ana").user
    people.new_key(ana, project, audit.Actor("owner"))
    shown = markup(owner.get("/members/"))
    asked = shown.partition('<details class="confirm">')[2].partition("</details>")[0]
    assert "Also deletes 1 access key. There is no undo." in asked
    assert '<button class="button small danger">Remove ana' in asked


def test_a_member_leads_to_what_they_did(project: Project, signed_in: SignIn) -> None:
    """The entries of that person in the audit, for every reader."""
    signed_in("owner").post("/members/", {"name": "ana", "role": "operator"})
    viewer = signed_in("viewer")
    assert 'href="/audit/?who=owner"' in text(viewer.get("/members/"))
    assert "Put member" in markup(viewer.get("/audit/?who=owner"))
    assert 'href="/audit/?who=ana"' in text(viewer.get("/members/"))


def test_the_pages_of_a_project_lead_to_each_other(project: Project, signed_in: SignIn) -> None:
    """Settings, team, access keys and audit, for every member; settings lead to targets, too."""
    viewer = signed_in("viewer")
    pages = ("/settings/", "/settings/targets/", "/members/", "/keys/", "/audit/")
    for address in pages:
        shown = text(viewer.get(address))
        tabs = shown.partition('aria-label="Project">')[2].partition("</nav>")[0]
        assert re.findall('href="([^"]*)"', tabs) == list(pages)
        assert f'href="{address}" aria-current="page"' in tabs
    facts = text(viewer.get("/settings/")).partition("Your role")[2].partition("</dl>")[0]
    assert re.findall('href="([^"]*)"', facts) == ["/members/", "/keys/", "/targets/"]
    assert "Viewer" in facts


def test_the_last_owner_stays(project: Project, signed_in: SignIn) -> None:
    """Neither removing nor another role takes the project's only owner away."""
    owner = signed_in("owner")
    owner.post("/members/remove/", {"name": "owner"})
    refused = owner.post("/members/", {"name": "owner", "role": "viewer"})
    assert "at least one owner" in text(refused, 422)
    assert Membership.objects.get(user__username="owner").role == "owner"


def test_the_former_address_of_members_leads_there(signed_in: SignIn) -> None:
    """A bookmark of the page *Team* opens the page *Members*."""
    answer = signed_in("viewer").get("/team/")
    assert (answer.status_code, answer["Location"]) == (302, "/members/")


def test_a_role_or_name_that_is_none_is_refused(project: Project, signed_in: SignIn) -> None:
    """The words say what was wanted."""
    owner = signed_in("owner")
    assert "must be one of viewer" in text(
        owner.post("/members/", {"name": "a", "role": "king"}), 422
    )
    assert "a name of 1 to 64" in text(
        owner.post("/members/", {"name": MARKUP, "role": "viewer"}), 422
    )


@pytest.mark.postgres_too
def test_a_new_key_shows_its_secret_once(project: Project, signed_in: SignIn) -> None:
    """The secret is the one that signs; the next look has none of it."""
    viewer = signed_in("viewer")
    shown = text(viewer.post("/keys/"))
    key = AccessKey.objects.get(user__username="viewer")
    secret = access.secret_for(key.key_id)
    assert re.search(rf"aws_secret_access_key = {re.escape(secret)}\n?<", shown)
    profile = configparser.ConfigParser()
    profile.read_string("".join(re.findall(r"<pre[^>]*>(.*?)</pre>", shown, re.DOTALL)))
    assert dict(profile["stateyard"]) == {
        "aws_access_key_id": key.key_id,
        "aws_secret_access_key": secret,
        "region": "us-east-1",
        "endpoint_url": "http://testserver",
        "disable_host_prefix_injection": "true",
    }
    assert secret not in text(viewer.get("/keys/"))
    assert "never" in text(viewer.get("/keys/"))


def test_the_last_use_of_a_key_is_kept_and_shown_to_the_minute(
    project: Project, signed_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A use in the next minute is kept, too, so that no page contradicts the audit."""
    owner = signed_in("owner")
    owner.post("/keys/")
    key_id = AccessKey.objects.get().key_id
    minute = 1_700_000_040_000  # 22:14:00
    for now_ms in (minute + 50_000, minute + 61_000):
        monkeypatch.setattr(clock, "now_ms", lambda now_ms=now_ms: now_ms)
        people.note_use(key_id)
    for address in ("/keys/", "/members/"):
        shown = text(owner.get(address))
        assert " data-minute>2023-11-14 22:15</time>" in shown, address
        assert "2023-11-14 22:15:" not in shown


def test_only_an_owner_makes_the_key_of_a_service_account(
    project: Project, signed_in: SignIn, django_user_model: Any
) -> None:
    """As the command does; a person's key is theirs alone to make."""
    owner = signed_in("owner")
    owner.post("/members/", {"name": "robot", "role": "operator"})
    assert 'href="/keys/?member=robot"' in text(owner.get("/members/"))
    for role in ("viewer", "operator", "editor"):
        other = signed_in(role)
        assert 'name="member"' not in text(other.get("/keys/"))
        assert other.post("/keys/", {"member": "robot"}).status_code == 403
        assert not AccessKey.objects.filter(user__username="robot").exists()
    assert '<option value="robot" selected>' in text(owner.get("/keys/?member=robot"))
    shown = text(owner.post("/keys/", {"member": "robot"}))
    key = AccessKey.objects.get(user__username="robot")
    assert access.secret_for(key.key_id) in shown
    principal = access.principal_of_key(key.key_id)
    assert principal is not None
    assert (principal.user.get_username(), principal.role) == ("robot", "operator")
    assert AuditEntry.objects.filter(actor="owner", action="CreateAccessKey", reason="robot")
    person = django_user_model.objects.get(username="viewer")
    person.set_password("x")
    person.save()
    django_user_model.objects.create_user("stranger")
    for name in ("viewer", "stranger", "nobody"):
        assert "is no service account" in text(owner.post("/keys/", {"member": name}), 422), name
        assert not AccessKey.objects.filter(user__username=name).exists()


def test_a_disabled_key_is_nobodys(project: Project, signed_in: SignIn) -> None:
    """Disabled, enabled again, then deleted; only its owner and the project's may do so."""
    viewer = signed_in("viewer")
    viewer.post("/keys/")
    key = AccessKey.objects.get(user__username="viewer")
    assert signed_in("editor").post(f"/keys/{key.key_id}/", {"act": "disable"}).status_code == 403
    viewer.post(f"/keys/{key.key_id}/", {"act": "disable"})
    assert access.principal_of_key(key.key_id) is None
    signed_in("owner").post(f"/keys/{key.key_id}/", {"act": "enable"})
    assert access.principal_of_key(key.key_id) is not None
    viewer.post(f"/keys/{key.key_id}/", {"act": "delete"})
    assert not AccessKey.objects.filter(pk=key.pk).exists()


def test_the_caller_of_any_key_is_remembered_until_rights_change(
    project: Project, signed_in: SignIn, django_assert_num_queries: Any
) -> None:
    """Where any key is accepted, a call costs no query; the next owner is seen at once."""
    owner = signed_in("owner")
    access.forget_principals()
    before = access.anonymous_principal().user.get_username()
    with django_assert_num_queries(0):
        assert access.anonymous_principal().user.get_username() == before
    owner.post("/members/", {"name": "ana", "role": "owner"})
    owner.post("/members/", {"name": before, "role": "viewer"})
    assert access.anonymous_principal().user.get_username() == "ana"


def test_only_an_owner_enables_a_key_that_an_owner_disabled(
    project: Project, signed_in: SignIn
) -> None:
    """Its holder may not, nor after disabling it once more; the page does not offer it."""
    viewer, owner = signed_in("viewer"), signed_in("owner")
    viewer.post("/keys/")
    key = AccessKey.objects.get(user__username="viewer")
    owner.post(f"/keys/{key.key_id}/", {"act": "disable"})
    for act in ("enable", "disable", "enable"):
        viewer.post(f"/keys/{key.key_id}/", {"act": act})
    key.refresh_from_db()
    assert key.disabled_ms is not None
    assert access.principal_of_key(key.key_id) is None
    shown = text(viewer.get("/keys/"))
    assert "Disabled by <bdi>owner</bdi>" in shown
    assert 'value="enable"' not in shown
    owner.post(f"/keys/{key.key_id}/", {"act": "enable"})
    assert access.principal_of_key(key.key_id) is not None


def test_a_holder_enables_what_they_disabled_themselves(
    project: Project, signed_in: SignIn
) -> None:
    """The page offers it to them; the change counts at once."""
    viewer = signed_in("viewer")
    viewer.post("/keys/")
    key = AccessKey.objects.get(user__username="viewer")
    assert access.principal_of_key(key.key_id) is not None
    viewer.post(f"/keys/{key.key_id}/", {"act": "disable"})
    assert access.principal_of_key(key.key_id) is None
    assert 'value="enable"' in text(viewer.get("/keys/"))
    viewer.post(f"/keys/{key.key_id}/", {"act": "enable"})
    assert access.principal_of_key(key.key_id) is not None


def test_a_key_disabled_by_nobody_known_is_enabled_by_an_owner_only(
    project: Project, signed_in: SignIn
) -> None:
    """The version before did not keep who disabled a key: it may have been an owner."""
    viewer = signed_in("viewer")
    viewer.post("/keys/")
    AccessKey.objects.update(disabled_ms=1)
    key = AccessKey.objects.get(user__username="viewer")
    viewer.post(f"/keys/{key.key_id}/", {"act": "enable"})
    key.refresh_from_db()
    assert key.disabled_ms == 1
    signed_in("owner").post(f"/keys/{key.key_id}/", {"act": "enable"})
    key.refresh_from_db()
    assert key.disabled_ms is None


def test_a_removed_member_keeps_nothing(project: Project, signed_in: SignIn) -> None:
    """Sessions end and keys are gone at once; added again, they are somebody without a way in."""
    operator, owner = signed_in("operator"), signed_in("owner")
    operator.post("/keys/")
    user = Membership.objects.get(user__username="operator").user
    key = AccessKey.objects.get(user=user)
    token = access.create_login_link(user)
    assert access.principal_of_key(key.key_id) is not None
    assert operator.get("/executions/_new").status_code != 302
    owner.post("/members/remove/", {"name": "operator"})
    assert access.principal_of_key(key.key_id) is None
    assert not AccessKey.objects.filter(user=user).exists()
    assert operator.get("/executions/_new")["Location"].startswith("/login/")
    owner.post("/members/", {"name": "operator", "role": "operator"})
    assert not AccessKey.objects.filter(user=user).exists()
    assert operator.get("/")["Location"].startswith("/login/")
    right = {"username": "operator", "password": "a long enough password"}
    assert operator.post("/login/", right).status_code == 422
    assert operator.post(f"/login/{token}/").status_code == 410


def test_removed_before_this_version_a_member_starts_anew_as_well(
    project: Project, signed_in: SignIn
) -> None:
    """What that removal left is taken away when the person is added again."""
    operator = signed_in("operator")
    operator.post("/keys/")
    Membership.objects.filter(user__username="operator").delete()
    signed_in("owner").post("/members/", {"name": "operator", "role": "viewer"})
    assert not AccessKey.objects.exists()
    assert operator.get("/")["Location"].startswith("/login/")


def test_a_member_of_two_projects_loses_one(project: Project, signed_in: SignIn) -> None:
    """The pages show the other one at once; its key works on, that of the first does not."""
    from console.db import audit
    from console.models import Project as Projects
    from console.store.people import people

    create(project, WAIT, "ours")
    operator = signed_in("operator")
    user = Membership.objects.get(user__username="operator").user
    other = Projects.objects.create(name="other", account_id="999999999999")
    Membership.objects.create(project=other, user=user, role="viewer")
    keys = [people.new_key(user, team, audit.NOBODY)[0].key_id for team in (project, other)]
    assert "ours" in text(operator.get("/machines/"))
    signed_in("owner").post("/members/remove/", {"name": "operator"})
    shown = text(operator.get("/machines/"))
    assert "999999999999" in shown
    assert "ours" not in shown
    assert [access.principal_of_key(key) is not None for key in keys] == [False, True]
    right = {"username": "operator", "password": "a long enough password"}
    assert operator.post("/login/", right).status_code == 302


def test_the_audit_page_names_who_did_it(project: Project, signed_in: SignIn) -> None:
    """Stopped by the operator, with the execution's link; filters narrow it."""
    execution = start(create(project, WAIT), name="x")
    operator = signed_in("operator")
    operator.post(page(execution, "stop/"), {"cause": "wrong input"})
    shown = markup(operator.get("/audit/", {"act": "StopExecution"}))
    assert "<td><bdi>operator</bdi></td>" in shown
    assert f"/arn/{execution.arn}" in shown
    assert "wrong input" in shown
    assert "StopExecution</td>" not in text(operator.get("/audit/", {"who": "nobody"}))


def test_the_audit_names_the_execution_whose_task_did_it(
    project: Project, signed_in: SignIn
) -> None:
    """On the page of the audit, and on that of what it was done to; both link it."""
    from console.db.audit import Actor
    from console.store.executions.stop import stop_execution

    execution, other = (start(create(project, WAIT, name), name="x") for name in ("one", "other"))
    stop_execution(other, actor=Actor("ana", execution=execution.arn, acting_for=("ana", "ed")))
    viewer = signed_in("viewer")
    for place in ("/audit/", page(other)):
        shown = markup(viewer.get(place))
        assert f'/arn/{execution.arn}"' in shown, place
        assert "</a>, started by<bdi>ana</bdi>" in shown, place


def test_the_audit_leads_to_the_rule_that_acted(project: Project, signed_in: SignIn) -> None:
    """To a schedule of EventBridge Scheduler, too; actions to choose from are words."""
    from console.db import audit

    for actor in ("rule nightly", "schedule default/tick", "rule", "schedule x"):
        audit.record(project, audit.Actor(actor), "StartExecution", "target")
    shown = markup(signed_in("viewer").get("/audit/"))
    assert 'rule<a href="/rules/nightly/">' in shown
    assert 'schedule<a href="/schedules/default/tick/">' in shown
    assert shown.count('href="/rules/') == shown.count('href="/schedules/default/') == 1
    assert '<option value="StartExecution">Start execution</option>' in shown


def test_the_audit_of_another_project_stays_there(project: Project, signed_in: SignIn) -> None:
    """Its entries and names are in no page of this one."""
    from console.db import audit
    from console.models import Project as Projects

    other = Projects.objects.create(name="other", account_id="999999999999")
    audit.record(other, audit.Actor("stranger"), "StartExecution", "arn:theirs")
    assert "stranger" not in text(signed_in("owner").get("/audit/"))


def test_older_entries_are_a_page_away(project: Project, signed_in: SignIn) -> None:
    """Fifty at a time, none twice and none missing; the queries do not grow."""
    from console.db import audit

    for number in range(60):
        audit.record(project, audit.Actor("ana"), "StartExecution", f"target-{number:03}")
    owner = signed_in("owner")
    first = text(owner.get("/audit/"))
    older = re.search(r"after=(\d+)", first)
    assert older is not None
    second = text(owner.get("/audit/", {"after": older[1]}))
    targets = re.findall(r"target-\d{3}", first) + re.findall(r"target-\d{3}", second)
    assert targets == [f"target-{number:03}" for number in range(59, -1, -1)]


def test_a_viewer_meets_no_form_that_is_refused(project: Project, signed_in: SignIn) -> None:
    """Settings and imports are read by everybody; their forms are for those who may send them."""
    assert project
    viewer, editor = signed_in("viewer"), signed_in("editor")
    for address in ("/settings/", "/import/"):
        assert 'method="post"' in main_of(editor, address)
        assert 'method="post"' not in main_of(viewer, address)
    assert "no masked paths" in main_of(viewer, "/settings/")
    assert "Add the files" not in main_of(viewer, "/import/")
    assert 'href="/import/"' in main_of(editor, "/")
    assert 'href="/import/"' not in main_of(viewer, "/")


def test_a_page_without_keys_has_one_button_to_create(project: Project, signed_in: SignIn) -> None:
    """It is the one of the empty list; with a key it stands in the head."""
    assert project
    viewer = signed_in("viewer")
    assert main_of(viewer, "/keys/").count("Create access key") == 1
    assert viewer.post("/keys/").status_code == 200
    assert main_of(viewer, "/keys/").count("Create access key") == 1


def main_of(client: Client, address: str) -> str:
    """Return what a page says below its head."""
    return text(client.get(address)).partition("<main")[2]


def test_a_key_says_what_uses_it(project: Project, signed_in: SignIn) -> None:
    """Its maker may say so, and later who may disable it; the audit has it."""
    owner, viewer = signed_in("owner"), signed_in("viewer")
    viewer.post("/keys/", {"description": " nightly  <b>load "})
    key = AccessKey.objects.get()
    assert key.description == "nightly <b>load"
    for client in (owner, viewer):
        assert "<bdi>nightly <b>load</bdi>" in text(client.get("/keys/"))
        assert "<b>load</bdi>" not in client.get("/keys/").content.decode()
    address = f"/keys/{key.key_id}/"
    sent = {"act": "describe", "description": "weekly load"}
    assert signed_in("editor").post(address, sent).status_code == 403
    owner.post(address, sent)
    owner.post(address, {**sent, "description": "x" * 101})
    key.refresh_from_db()
    assert (key.description, key.disabled_ms) == ("weekly load", None)
    entry = AuditEntry.objects.get(action="DescribeAccessKey")
    assert (entry.actor, entry.target, entry.reason) == ("owner", key.key_id, "weekly load")
    refused = text(viewer.post("/keys/", {"description": "y" * 101}), 422)
    assert "must be one line of at most 100 characters" in refused
    assert f'value="{"y" * 101}"' in refused


def test_keys_that_nothing_uses_are_counted(project: Project, signed_in: SignIn) -> None:
    """Those that are active; each leads to the calls that it signed."""
    owner = signed_in("owner")
    for _ in range(4):
        owner.post("/keys/")
    keys = list(AccessKey.objects.order_by("key_id"))
    now = clock.now_ms()
    for key, used_ms in ((keys[0], now), (keys[1], now - 91 * DAY)):
        AccessKey.objects.filter(pk=key.pk).update(last_used_ms=used_ms)
    AccessKey.objects.filter(pk=keys[3].pk).update(disabled_ms=now, disabled_by="owner")
    shown = text(owner.get("/keys/"))
    assert "1 active, but never used" in shown
    assert "1 active, but not used for 90 days" in shown
    assert shown.count("unused for 90 days") == 1
    audit.record(project, audit.Actor("owner", key_id=keys[0].key_id), "StopExecution", "mine")
    audit.record(project, audit.Actor("owner", key_id=keys[1].key_id), "StopExecution", "other")
    (link,) = re.findall(rf'href="(/audit/\?[^"]*key={keys[0].key_id}[^"]*)"', shown)
    listed = text(owner.get(html.unescape(link)))
    assert "<bdi>mine</bdi>" in listed
    assert "<bdi>other</bdi>" not in listed
