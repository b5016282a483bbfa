"""What a picky reader found wrong in lists, errors, sign-in and approvals stays mended."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from console.db import audit
from console.features.audit import views as audit_views
from console.models import AuditEntry, Execution, Membership, Project
from console.store.people import masks
from console.web.core.formatting import DAY
from console.web.templatetags.stateyard import breakable_name_html
from tests.console.store.helpers import PASS, WAIT, create, drain, start
from tests.console.web.helpers import markup, text

if TYPE_CHECKING:
    from collections.abc import Callable

    SignIn = Callable[[str], Client]


def test_a_short_name_does_not_break() -> None:
    """``OrderRejected`` stays whole in a narrow column; a long name breaks between its words."""
    assert "<wbr>" not in breakable_name_html("OrderRejected")
    assert "<wbr>" not in breakable_name_html("States.DataLimitExceeded")
    assert "Orders.<wbr>" in breakable_name_html("Orders.TooLateForTheWarehouse")


def test_a_tile_counts_what_its_list_shows(project: Project, client: Client) -> None:
    """Failures of a day are those that failed or timed out and started in it."""
    machine = create(project, PASS)
    for name, status, age in (
        ("failed", "FAILED", 0),
        ("late", "TIMED_OUT", 0),
        ("old", "FAILED", 2 * DAY),
        ("fine", "SUCCEEDED", 0),
        ("oldfine", "SUCCEEDED", 2 * DAY),
    ):
        execution = drain(start(machine, name=name))
        rows = Execution.objects.filter(pk=execution.pk)
        rows.update(status=status, start_ms=execution.start_ms - age)
    shown = markup(client.get("/"))
    assert shown.count("Failed or timed out in 24 h") == 2  # the tile and the heading of the list
    for word in ("Succeeded", "Failed or timed out"):
        tile = re.search(rf'href="([^"]*)">(?:(?!</a>).)*{word} in 24 h.*?<b>(\d+)</b>', shown)
        assert tile is not None
        listed = client.get(tile[1]).context["executions"].rows
        assert len(listed) == int(tile[2]), tile[1]


def test_the_audit_leaves_out_starts_and_knows_times(project: Project, client: Client) -> None:
    """Starts are most entries: they can be left out. From and to are minutes, both whole."""
    machine = create(project, WAIT)
    start(machine)
    first, minute = 1_700_000_000_000 // 60_000 * 60_000, 60_000
    for number in range(3):
        entry = AuditEntry.objects.create(
            at_ms=first + number * minute, project=project, actor="ada", action=f"Act{number}"
        )
        assert entry.pk
    answer = client.get("/audit/", {"act": audit_views.BUT_STARTS})
    actions = {entry.action for entry in answer.context["entries"]}
    assert {"Act0", "Act1", "Act2"} <= actions
    assert "StartExecution" not in actions
    begins = "2023-11-14T22:14"
    answer = client.get("/audit/", {"from": begins, "to": begins})
    assert [entry.action for entry in answer.context["entries"]] == ["Act1"]
    assert "is not a time" in text(client.get("/audit/", {"from": "whenever"}), 422)


def test_the_audit_is_worded_and_grouped_by_day(project: Project, client: Client) -> None:
    """What was done to which object, with a link to it, and from where; a day is named once."""
    first = 1_700_000_000_000
    arns = {
        "events:PutRule": f"arn:aws:events:us-east-1:{project.account_id}:rule/ends",
        "StopExecution": f"arn:aws:states:us-east-1:{project.account_id}:execution:Orders:x",
    }
    for number, (action, arn) in enumerate(arns.items()):
        AuditEntry.objects.create(
            at_ms=first + number * DAY,
            project=project,
            actor="ada",
            action=action,
            target=arn,
            key_id="" if number else "AKIA1",
            request_id="r",
        )
    AuditEntry.objects.create(at_ms=first + DAY, project=project, action="LockLogin", target="x")
    shown = markup(client.get("/audit/"))
    rows = shown.split("<tbody>")[1:]
    words = [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in rows]
    assert words[0].startswith("2023-11-15 UTC 22:13:20 the server Lock login x Server 22:13:20")
    assert "ada Stop execution Execution x (deleted) of Orders Console" in words[0]
    assert words[1].startswith("2023-11-14 UTC 22:13:20 ada Put rule Rule ends (deleted) API")
    for arn in arns.values():
        assert f'href="/arn/{arn}"' not in shown, "it leads to nowhere"


@pytest.mark.postgres_too
def test_the_audit_of_a_person_uses_an_index(project: Project, client: Client) -> None:
    """It did not: whose last act was long ago had the whole audit read backwards."""
    AuditEntry.objects.bulk_create(
        AuditEntry(
            at_ms=number,
            project=project,
            actor="often" if number % 100 else "seldom",
            action="StartExecution",
            target=f"t{number}",
        )
        for number in range(20_000)
    )
    with connection.cursor() as cursor, CaptureQueriesContext(connection) as queries:
        cursor.execute("ANALYZE console_auditentry")
        answer = client.get("/audit/", {"who": "seldom"})
        assert {entry.actor for entry in answer.context["entries"]} == {"seldom"}
        listing = next(q["sql"] for q in queries if "ORDER BY" in q["sql"] and "seldom" in q["sql"])
        explain = "EXPLAIN QUERY PLAN" if connection.vendor == "sqlite" else "EXPLAIN"
        cursor.execute(f"{explain} {listing}")
        plan = " ".join(str(row[-1]) for row in cursor.fetchall())
    assert "audit_by_person" in plan
    assert "TEMP B-TREE" not in plan  # of SQLite: nothing is sorted
    assert "Sort" not in plan


def test_the_choices_of_the_audit_do_not_read_all_of_it(
    project: Project, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """People and actions come from the newest entries; what is chosen stays a choice."""
    monkeypatch.setattr(audit_views, "OFFERED", 5)
    for number in range(20):
        AuditEntry.objects.create(at_ms=number, project=project, actor="a", action=f"Act{number}")
    answer = client.get("/audit/", {"act": "Act3"})
    assert answer.context["actions"] == ["Act15", "Act16", "Act17", "Act18", "Act19", "Act3"]


def test_a_link_of_another_project_leads_there(
    project: Project, client: Client, django_user_model: type
) -> None:
    """Addresses do not name their project, so a colleague's link may be of another one."""
    create(project, PASS, "Orders")
    other = Project.objects.create(name="other", account_id="210987654321")
    user = django_user_model.objects.get(username="editor")  # type: ignore[attr-defined]
    Membership.objects.create(project=other, user=user, role="viewer")
    client.cookies["project"] = "other"
    address = "/machines/Orders/executions/x/"
    shown = markup(client.get(address), 404)
    assert "Switch to the project" in shown
    assert f'name="next" value="{address}"' in shown
    answer = client.post("/preferences/", {"project": project.name, "next": address})
    assert answer["Location"] == address
    assert "Switch to the project" not in text(client.get(address), 404)
    shown = markup(client.get(address), 404)
    assert 'name="q" value="x"' in shown
    assert 'href="/machines/Orders/"' in shown


def test_a_refusal_names_who_can_help(project: Project, signed_in: SignIn) -> None:
    """A viewer reads their role, and which owners can give another one."""
    signed_in("owner")
    shown = text(signed_in("viewer").get("/machines/new/"), 403)
    assert "is viewer." in shown
    assert "owner." in shown
    assert project.name in shown


def test_a_refusal_says_which_right_is_missing_and_leads_back(
    project: Project, signed_in: SignIn
) -> None:
    """The act in words, the role that has it, the name of the right, and the page before."""
    assert project.name
    signed_in("owner")
    viewer = signed_in("viewer")
    shown = markup(viewer.get("/machines/new/", headers={"referer": "http://testserver/?a=1"}), 403)
    words = " ".join(re.sub(r"<[^>]+>", " ", shown).split())
    assert "Create state machine requires the role editor or a higher one" in words
    assert "ask an owner of the project: owner. Owners change roles under" in words
    assert "The missing right is CreateStateMachine" in words
    assert '<a class="button main" href="/?a=1">' in shown
    two_slashes = "http://testserver//evil.example/x"
    own = "http://testserver/machines/new/"
    for other in ("https://evil.example/x", two_slashes, own, "javascript:x", ""):
        shown = markup(viewer.get("/machines/new/", headers={"referer": other}), 403)
        assert ">Back</a>" not in shown
    form = "http://testserver/notifications/"
    assert 'href="/notifications/">' in markup(
        viewer.post("/notifications/", headers={"referer": form}), 403
    )


def test_a_stranger_comes_back_after_signing_in(project: Project) -> None:
    """The page of an unknown address leads to the sign-in and from there to the address."""
    del project
    shown = text(Client().get("/nothing/here/?x=1"), 404)
    link = re.search(r'href="/login/\?next=([^"]+)"', shown)
    assert link is not None
    assert unquote(link[1]) == "/nothing/here/?x=1"


def test_a_wrong_password_is_typed_again_at_once(project: Project) -> None:
    """The name is kept, and the focus is where the next key goes."""
    del project
    form = {"username": "ada", "password": "wrong"}
    shown = markup(Client().post("/login/", form), 422)
    field = re.search(r'<input[^>]*id="password"[^>]*>', shown)
    assert field is not None
    assert "autofocus" in field[0]
    assert 'aria-invalid="true"' in field[0]
    assert shown.count("autofocus") == 1
    fresh = re.search(r'<input[^>]*id="username"[^>]*>', markup(Client().get("/login/")))
    assert fresh is not None
    assert "autofocus" in fresh[0]


def test_the_settings_say_which_paths_find_nothing(project: Project, client: Client) -> None:
    """A misspelt path hides nothing, and nobody would know; the values themselves stay hidden."""
    machine = create(project, PASS)
    drain(start(machine, {"card": {"number": "4711471147114711"}}))
    drain(start(machine, {"card": {}}))
    masks.put_paths(project, ["$.card.number", "$.card.numbers"], audit.Actor("ada"))
    answer = client.get("/settings/")
    matches = [(match.path, match.matching, match.of) for match in answer.context["matches"]]
    assert matches == [("$.card.number", 1, 2), ("$.card.numbers", 0, 2)]
    shown = text(answer)
    assert "Nothing found" in shown
    assert "by <bdi>ada</bdi>" in shown
    assert "4711471147114711" not in shown
