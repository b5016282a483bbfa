"""Who manages the team and the keys, and what does the audit page tell?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from console import access
from console.models import AccessKey, AuditEntry, Membership
from tests.console.store.helpers import WAIT, create, start
from tests.console.web.helpers import MARKUP, page, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

    SignIn = Callable[[str], Client]


def test_only_an_owner_changes_the_team(project: Project, signed_in: SignIn) -> None:
    """Others see the members, but no form, and a POST is refused."""
    editor = signed_in("editor")
    assert 'id="role"' not in text(editor.get("/team/"))
    assert editor.post("/team/", {"name": "eve", "role": "owner"}).status_code == 403
    assert editor.post("/team/remove/", {"name": "editor"}).status_code == 403
    assert Membership.objects.filter(user__username="eve").count() == 0


def test_an_owner_adds_and_removes_a_member(project: Project, signed_in: SignIn) -> None:
    """A new name makes a person without a password; each change is in the audit."""
    owner = signed_in("owner")
    owner.post("/team/", {"name": "ana", "role": "operator"})
    ana = Membership.objects.get(user__username="ana")
    assert ana.role == "operator"
    assert not ana.user.has_usable_password()
    owner.post("/team/remove/", {"name": "ana"})
    assert not Membership.objects.filter(user__username="ana").exists()
    actions = AuditEntry.objects.filter(target="ana").order_by("pk").values_list("action")
    assert [one for (one,) in actions] == ["PutMember", "RemoveMember"]


def test_the_last_owner_stays(project: Project, signed_in: SignIn) -> None:
    """Neither removing nor another role takes the project's only owner away."""
    owner = signed_in("owner")
    owner.post("/team/remove/", {"name": "owner"})
    refused = owner.post("/team/", {"name": "owner", "role": "viewer"})
    assert "at least one owner" in text(refused, 422)
    assert Membership.objects.get(user__username="owner").role == "owner"


def test_a_role_or_name_that_is_none_is_refused(project: Project, signed_in: SignIn) -> None:
    """The words say what was wanted."""
    owner = signed_in("owner")
    assert "wanted one of viewer" in text(owner.post("/team/", {"name": "a", "role": "king"}), 422)
    assert "wanted 1 to 64" in text(owner.post("/team/", {"name": MARKUP, "role": "viewer"}), 422)


def test_a_new_key_shows_its_secret_once(project: Project, signed_in: SignIn) -> None:
    """The secret is the one that signs; the next look has none of it."""
    viewer = signed_in("viewer")
    made = text(viewer.post("/keys/"))
    key = AccessKey.objects.get(user__username="viewer")
    secret = access.secret_for(key.key_id)
    assert re.search(rf"aws_secret_access_key = {re.escape(secret)}\n?<", made)
    assert secret not in text(viewer.get("/keys/"))
    assert "never" in text(viewer.get("/keys/"))


def test_a_disabled_key_is_nobodys(project: Project, signed_in: SignIn) -> None:
    """Disabled, enabled again, then deleted; only its owner and the project's may do so."""
    viewer = signed_in("viewer")
    viewer.post("/keys/")
    key = AccessKey.objects.get(user__username="viewer")
    assert signed_in("editor").post(f"/keys/{key.key_id}/", {"act": "disable"}).status_code == 403
    viewer.post(f"/keys/{key.key_id}/", {"act": "disable"})
    access._principals.clear()
    assert access.principal_of_key(key.key_id) is None
    signed_in("owner").post(f"/keys/{key.key_id}/", {"act": "enable"})
    access._principals.clear()
    assert access.principal_of_key(key.key_id) is not None
    viewer.post(f"/keys/{key.key_id}/", {"act": "delete"})
    assert not AccessKey.objects.filter(pk=key.pk).exists()


def test_removing_a_member_disables_their_keys(project: Project, signed_in: SignIn) -> None:
    """What they had stays listed, and opens nothing."""
    signed_in("operator").post("/keys/")
    signed_in("owner").post("/team/remove/", {"name": "operator"})
    assert AccessKey.objects.get(user__username="operator").disabled_ms is not None


def test_the_audit_page_names_who_did_it(project: Project, signed_in: SignIn) -> None:
    """Stopped by the operator, with the execution's link; filters narrow it."""
    execution = start(create(project, WAIT), name="x")
    operator = signed_in("operator")
    operator.post(page(execution, "stop/"), {"cause": "wrong input"})
    shown = text(operator.get("/audit/", {"act": "StopExecution"}))
    assert "<td><bdi>operator</bdi></td>" in shown
    assert f"/arn/{execution.arn}" in shown
    assert "wrong input" in shown
    assert "StopExecution</td>" not in text(operator.get("/audit/", {"who": "nobody"}))


def test_the_audit_names_the_execution_whose_task_did_it(
    project: Project, signed_in: SignIn
) -> None:
    """On the page of the audit, and on that of what it was done to; both link it."""
    from console.store import executions
    from console.store.audit import Actor

    one, other = (start(create(project, WAIT, name), name="x") for name in ("one", "other"))
    executions.stop(other, actor=Actor("ana", execution=one.arn, acting_for=("ana", "ed")))
    viewer = signed_in("viewer")
    for place in ("/audit/", page(other)):
        shown = text(viewer.get(place))
        assert f'/arn/{one.arn}"' in shown, place
        assert "</a>, started by <bdi>ana</bdi>" in shown, place


def test_the_audit_of_another_project_stays_there(project: Project, signed_in: SignIn) -> None:
    """Its entries and names are in no page of this one."""
    from console.models import Project as Projects
    from console.store import audit

    other = Projects.objects.create(name="other", account_id="999999999999")
    audit.record(other, audit.Actor("stranger"), "StartExecution", "arn:theirs")
    assert "stranger" not in text(signed_in("owner").get("/audit/"))


def test_older_entries_are_a_page_away(project: Project, signed_in: SignIn) -> None:
    """Fifty at a time, none twice and none missing; the queries do not grow."""
    from console.store import audit

    for number in range(60):
        audit.record(project, audit.Actor("ana"), "StartExecution", f"target-{number:03}")
    owner = signed_in("owner")
    first = text(owner.get("/audit/"))
    older = re.search(r"after=(\d+)", first)
    assert older is not None
    second = text(owner.get("/audit/", {"after": older[1]}))
    targets = re.findall(r"target-\d{3}", first) + re.findall(r"target-\d{3}", second)
    assert targets == [f"target-{number:03}" for number in range(59, -1, -1)]
