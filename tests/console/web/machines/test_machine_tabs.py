"""A machine's tabs: definition, versions and aliases, changes, settings."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.models import Alias, AuditEntry, Execution, StateMachine, Tag, Version
from console.store.machines import machines, versions
from tests.console.store.helpers import PASS, create, drain, start
from tests.console.web.helpers import CHAIN, MARKUP, markup, text
from tests.console.web.helpers import page as page_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

GROUPS = {
    "": ("",),
    "grid/": ("grid/", "insights/"),
    "metrics/": ("metrics/",),
    "logs/": ("logs/",),
    "definition/": ("definition/", "calls/"),
    "versions/": ("versions/",),
    "triggers/": ("triggers/", "alarms/"),
    "settings/": ("settings/",),
}
"""A tab of a machine -> the pages that it groups."""


def post(client: Client, page: str, status: int = 302, **form: Any) -> str:
    """Send a form to a page of the machine; return what it answers."""
    answer = client.post(f"/machines/machine/{page}/", form)
    return text(answer, status)


# -- tabs ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tab", "page"), [(tab, page) for tab, pages in GROUPS.items() for page in pages]
)
def test_each_page_links_to_the_tabs_and_to_the_pages_of_its_own(
    project: Project, client: Client, tab: str, page: str
) -> None:
    """And marks itself as the one that is open."""
    create(project, PASS)
    shown = text(client.get(f"/machines/machine/{page}"))
    for other in (*GROUPS, *GROUPS[tab]):
        assert f'href="/machines/machine/{other}"' in shown
    assert f'<a href="/machines/machine/{page}" aria-current="page">' in shown


def test_the_graph_leads_to_the_text(project: Project, client: Client) -> None:
    """Each box is a link to the place of its state."""
    create(project, CHAIN)
    shown = text(client.get("/machines/machine/definition/"))
    for node in ("n1", "n2"):
        assert f'href="#src-{node}"' in shown
        assert f'id="src-{node}"' in shown


# -- versions and aliases --------------------------------------------------------------------------


def test_a_version_is_published_compared_and_deleted(project: Project, client: Client) -> None:
    """Each change has its audit row; a version in use stays, and the page says why."""
    machine = create(project, PASS)
    post(client, "versions", act="publish", description=MARKUP)
    machines.update_machine(machine, definition=json.dumps(CHAIN))
    shown = text(client.get("/machines/machine/versions/"))
    assert "/machines/machine/diff/?from=1" in shown
    post(client, "versions", act="create", name="live", first="1", second="", share="")
    refused = post(client, "versions", 422, act="delete-version", number="1")
    assert "must not be referenced by an alias" in refused
    assert "not a version number" in post(client, "versions", 422, act="delete-version", number="x")
    post(client, "versions", act="delete-alias", name="live")
    post(client, "versions", act="delete-version", number="1")
    assert not Version.objects.exists()
    assert set(AuditEntry.objects.values_list("action", "actor")) >= {
        ("PublishStateMachineVersion", "editor"),
        ("CreateStateMachineAlias", "editor"),
        ("DeleteStateMachineAlias", "editor"),
        ("DeleteStateMachineVersion", "editor"),
    }


def test_an_alias_shares_starts_between_two_versions(project: Project, client: Client) -> None:
    """By a percentage for the second one, which can be changed."""
    machine = create(project, PASS)
    versions.publish_version(machine)
    machines.update_machine(machine, definition=json.dumps(CHAIN))
    versions.publish_version(StateMachine.objects.get())
    post(client, "versions", act="create", name="live", first="1", second="2", share="10")
    assert json.loads(Alias.objects.get().routing) == [[1, 90], [2, 10]]
    assert "version 1: 90 %, version 2: 10 %" in markup(client.get("/machines/machine/versions/"))
    post(client, "versions", act="change", name="live", first="2", second="", description="all")
    alias = Alias.objects.get()
    assert (json.loads(alias.routing), alias.description) == ([[2, 100]], "all")


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"name": "1"}, "not digits alone"),
        ({"name": "a b"}, "is not an alias name"),
        ({"name": "ok", "second": "1", "share": "50"}, "distinct"),
        ({"name": "ok", "second": "2", "share": "many"}, "is not a share"),
        ({"name": "ok", "first": "9"}, "does not exist"),
    ],
)
def test_a_wrong_alias_is_refused_and_kept(
    project: Project, client: Client, form: dict[str, str], told: str
) -> None:
    """The page says what was wrong, and the name that was typed stands in its field."""
    versions.publish_version(create(project, PASS))
    sent = {"act": "create", "first": "1", "second": "", "share": "", **form}
    shown = post(client, "versions", 422, **sent)
    assert told in shown
    assert f'value="{form["name"]}"' in shown
    assert not Alias.objects.exists()


def test_who_changes_an_alias_second_is_asked(project: Project, client: Client) -> None:
    """A page from before another's change replaces it at the second press only."""
    machine = create(project, PASS)
    versions.publish_version(machine)
    machines.update_machine(machine, definition=json.dumps(CHAIN))
    versions.publish_version(StateMachine.objects.get())
    post(client, "versions", act="create", name="live", first="1", second="2", share="10")
    seen = str(Alias.objects.get().updated_ms)
    Alias.objects.update(routing="[[2, 100]]", updated_ms=int(seen) + 1)
    mine = {"act": "change", "name": "live", "first": "1", "second": "2", "share": "10"}
    shown = post(client, "versions", 422, **mine, description="mine", seen=seen)
    assert "live was changed after you opened this page" in shown
    assert json.loads(Alias.objects.get().routing) == [[2, 100]]
    assert 'value="mine"' in shown
    (again,) = re.findall(r'name="seen" value="(\d+)"', shown)
    post(client, "versions", 302, **mine, description="mine", seen=again)
    assert json.loads(Alias.objects.get().routing) == [[1, 90], [2, 10]]


@pytest.mark.parametrize(("act", "at"), [("create", "new"), ("change", "")])
def test_a_refused_alias_keeps_every_field(
    project: Project, client: Client, act: str, at: str
) -> None:
    """Of the form that was sent, which is open; the other form has its own texts."""
    versions.publish_version(create(project, PASS))
    machines.update_machine(StateMachine.objects.get(), definition=json.dumps(CHAIN))
    versions.publish_version(StateMachine.objects.get())
    post(client, "versions", act="create", name="live", first="1", second="", description="ours")
    at = at or str(Alias.objects.get().pk)
    sent = {"act": act, "name": "live", "first": "1", "second": "2", "share": "101"}
    shown = post(client, "versions", 422, **sent, description="half of it")
    assert selected(shown, f"second-{at}") == "2"
    assert 'value="101"' in shown
    assert 'value="half of it"' in shown
    assert ('value="ours"' in shown) == (act == "create")
    assert ('<details class="confirm" open>' in shown) == (act == "change")


# -- changes ---------------------------------------------------------------------------------------


def selected(shown: str, name: str) -> str:
    """Return the words of the chosen option of a field."""
    select = shown.partition(f'<select id="{name}"')[2].partition("</select>")[0]
    (words,) = re.findall(r"<option[^>]* selected>([^<]*)</option>", select)
    return str(words)


def test_the_difference_names_exactly_what_changed(project: Project, client: Client) -> None:
    """Between a version, an execution's definition and now, by lines, without a script."""
    machine = create(project, CHAIN)
    versions.publish_version(machine)
    execution = drain(start(machine, name="old"))
    changed = json.loads(json.dumps(CHAIN).replace("3600", "7200"))
    machines.update_machine(
        machine, definition=json.dumps(changed, indent=2), role_arn=f"{machine.role_arn}2"
    )
    for side in ("1", f"run:{execution.name}"):
        shown = markup(client.get(f"/machines/machine/diff/?from={side}"))
        assert "1 line added, 1 removed" in shown
        assert re.search(r'class="removed".*"Seconds": 3600', shown)
        assert re.search(r'class="added".*"Seconds": 7200', shown)
        assert machine.role_arn in shown
    answer = text(client.get("/machines/machine/diff/?from=run:old&to=rev:2"))
    assert selected(answer, "from") == "Execution old"
    assert selected(answer, "to") == "Revision 2", "what the page compares"
    assert re.findall(r"<option[^>]*>([^<]*)</option>", answer.partition('id="to"')[2]) == [
        *("Execution old", "Version 1", "Revision 2", "Revision 1", "Current"),
    ]
    assert selected(text(client.get("/machines/machine/diff/?from=1")), "to") == "Current"
    shown = text(client.get("/machines/machine/versions/"))
    assert selected(shown, "to") == "Current"
    assert 'value="rev:1"' in shown.partition('id="from"')[2]
    same = text(client.get("/machines/machine/diff/?from=1&to=1"))
    assert "The definitions are the same" in same
    assert client.get("/machines/machine/diff/?from=7").status_code == 404
    assert client.get("/machines/machine/diff/?from=run:nobody").status_code == 404


# -- logs ------------------------------------------------------------------------------------------


def test_the_newest_lines_are_shown_and_filtered(project: Project, client: Client) -> None:
    """Each leads to its event; a pattern narrows them down, a wrong one is told."""
    create(project, {"StartAt": MARKUP, "States": {MARKUP: {"Type": "Fail", "Error": "Bad"}}})
    assert "Logging is off" in text(client.get("/machines/machine/logs/"))
    post(client, "settings", act="logging", level="ALL", group="/aws/vendedlogs/states/x")
    for name in ("one", "two"):
        drain(start(StateMachine.objects.get(), name=name))
    shown = text(client.get("/machines/machine/logs/"))
    assert shown.count('class="log-line"') == 6
    assert shown.index("executions/two/events/3/") < shown.index("executions/one/events/3/")
    only = {"pattern": '{ $.type = "ExecutionFailed" }'}
    shown = text(client.get("/machines/machine/logs/", only))
    assert shown.count('class="log-line"') == 2
    assert "Invalid filter pattern" in text(client.get("/machines/machine/logs/?pattern={"), 422)
    assert "<script>alert" not in client.get("/machines/machine/logs/").content.decode()


@pytest.mark.postgres_too
def test_lines_of_many_executions_cost_the_same(project: Project, client: Client) -> None:
    """However many streams there are."""
    create(project, PASS)
    post(client, "settings", act="logging", level="ALL", group="/aws/vendedlogs/states/x")
    counts = []
    for number in (1, 9):
        for _ in range(number):
            drain(start(StateMachine.objects.get()))
        with CaptureQueriesContext(connection) as seen:
            text(client.get("/machines/machine/logs/"))
        counts.append(len(seen))
    assert counts[0] == counts[1] <= 15


# -- settings --------------------------------------------------------------------------------------


def test_settings_are_changed_one_by_one(project: Project, client: Client) -> None:
    """Logging, role, tracing and tags; what is set is shown, and the audit knows who."""
    create(project, PASS)
    post(client, "settings", act="logging", level="ERROR", group="/aws/vendedlogs/states/mine")
    post(client, "settings", act="tracing", tracing="on")
    post(client, "settings", act="role", role="arn:aws:iam::123456789012:role/other")
    post(client, "settings", act="tag", key="team", value="R+D @ home")
    machine = StateMachine.objects.get()
    assert json.loads(machine.logging)["level"] == "ERROR"
    assert json.loads(machine.tracing) == {"enabled": True}
    shown = text(client.get("/machines/machine/settings/"))
    assert 'value="/aws/vendedlogs/states/mine"' in shown
    assert 'value="arn:aws:iam::123456789012:role/other"' in shown
    post(client, "settings", act="untag", key="team")
    post(client, "settings", act="logging", level="OFF", group="")
    assert not Tag.objects.exists()
    assert StateMachine.objects.get().logging == ""
    actions = AuditEntry.objects.filter(actor="editor").values_list("action", flat=True)
    assert {"UpdateStateMachine", "TagResource", "UntagResource"} <= set(actions)


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ({"act": "logging", "level": "ALL", "group": "/team/nowhere"}, "Destination not found"),
        ({"act": "logging", "level": "LOUD"}, "“LOUD” is not a level"),
        ({"act": "role", "role": "me"}, "Invalid Role Arn"),
        ({"act": "tag", "key": "", "value": "x"}, "A tag has a key"),
        ({"act": "tag", "key": "aws:x", "value": "x"}, "must not begin with aws:"),
        ({"act": "tag", "key": "x", "value": MARKUP}, "Tags may only contain Unicode letters"),
    ],
)
def test_a_wrong_setting_is_told_beside_its_field(
    project: Project, client: Client, form: dict[str, str], told: str
) -> None:
    """Nothing is changed."""
    create(project, PASS)
    before = StateMachine.objects.values().get()
    assert told in post(client, "settings", 422, **form)
    assert StateMachine.objects.values().get() == before


def test_a_viewer_reads_the_tabs_and_changes_nothing(
    project: Project, signed_in: Callable[[str], Client]
) -> None:
    """No form is in the page, and every change answers 403."""
    versions.publish_version(create(project, PASS))
    viewer = signed_in("viewer")
    for page in ("versions", "settings"):
        assert (
            '<form method="post"'
            not in text(viewer.get(f"/machines/machine/{page}/")).partition("<main")[2]
        )
    for act in ("publish", "delete-version", "create", "change", "delete-alias"):
        assert viewer.post("/machines/machine/versions/", {"act": act}).status_code == 403
    for act in ("logging", "tracing", "role", "tag", "untag"):
        assert viewer.post("/machines/machine/settings/", {"act": act}).status_code == 403


def test_an_execution_of_an_older_definition_leads_to_what_changed(
    project: Project, client: Client
) -> None:
    """X19: the note and its link stand where the definition is another one, and only there."""
    machine = create(project, CHAIN)
    execution = start(machine, name="old")
    link = "/machines/machine/diff/?from=run%3Aold"
    assert link not in text(client.get(page_of(execution)))
    machines.update_machine(machine, definition=json.dumps(CHAIN).replace("3600", "7200"))
    shown = text(client.get(page_of(execution)))
    assert "definition has changed since" in shown
    assert link in shown
    assert "1 line added, 1 removed" in text(client.get(link))


def test_versions_and_revisions_name_each_other(project: Project, client: Client) -> None:
    """With the aliases of a version; a change of the logging makes no revision."""
    machine = create(project, PASS)
    shown = text(client.get("/machines/machine/versions/"))
    assert shown.count('value="publish"') == 1
    machines.update_machine(machine, definition=json.dumps(CHAIN))
    machines.update_machine(machine, tracing='{"enabled":true}')
    published = versions.publish_version(StateMachine.objects.get())
    routing = [{"stateMachineVersionArn": published.arn, "weight": 100}]
    versions.create_alias(project, "PROD", routing)
    shown = markup(client.get("/machines/machine/versions/"))
    assert shown.count('value="publish"') == 1
    row = shown.partition('id="versions-title"')[2].partition("<tbody>")[2].partition("</tr>")[0]
    assert 'diff/?from=1">1</a>' in row
    assert 'diff/?from=rev:2">2</a>' in row
    assert '<a href="#row-of-PROD"><bdi>PROD</bdi></a>' in row.replace(
        "\n                    ", " "
    )
    assert '<tr id="row-of-PROD">' in shown
    saves = shown.partition('id="revisions"')[2].partition("<tbody>")[2].partition("</tbody>")[0]
    newest, first = saves.split("</tr>")[:2]
    assert 'data-label="Version"><a href="/machines/machine/diff/?from=1">1</a>' in newest
    assert 'data-label="Version">-' in first
    assert '<details class="body" id="create-alias"><summary' in shown
    sent = {"act": "create", "name": "a b", "first": "1", "second": "", "share": ""}
    refused = post(client, "versions", 422, **sent)
    assert '<details class="body" id="create-alias" open>' in refused


@pytest.mark.postgres_too
def test_versions_and_aliases_lead_to_their_executions(project: Project, client: Client) -> None:
    """One by the alias, one by the version itself: the alias has one, its version both."""
    machine = create(project, PASS)
    published = versions.publish_version(machine)
    routing = [{"stateMachineVersionArn": published.arn, "weight": 100}]
    versions.create_alias(project, "PROD", routing)
    for run in ("1", "PROD", ""):
        client.post("/machines/machine/start/", {"name": f"by-{run}", "input": "{}", "run": run})
    shown = markup(client.get("/machines/machine/versions/"))
    for version, names in (("1", {"by-1", "by-PROD"}), ("PROD", {"by-PROD"})):
        address = f"/machines/machine/?version={version}"
        assert shown.count(f'href="{address}"') == 1
        assert {row.name for row in client.get(address).context["executions"].rows} == names


def test_the_difference_begins_with_the_last_save(project: Project, client: Client) -> None:
    """Its head names the states that differ; the same text on both sides says only that."""
    machine = create(project, CHAIN)
    assert "The definitions are the same." in text(client.get("/machines/machine/diff/"))
    changed = json.loads(json.dumps(CHAIN).replace("3600", "7200"))
    inner = {"StartAt": "Price", "States": {"Price": {"Type": "Pass", "End": True}}}
    changed["States"]["Nap"] = {"Type": "Parallel", "Branches": [inner], "Next": "Audit"}
    changed["States"]["Audit"] = {"Type": "Pass", "End": True}
    machines.update_machine(machine, definition=json.dumps(changed))
    shown = markup(client.get("/machines/machine/diff/"))
    assert "<h1><bdi>Revision 1</bdi>→<bdi>Current</bdi></h1>" in shown
    assert "Audit, Price added; Nap changed" in shown
    changed["States"]["Nap"]["Branches"][0]["States"]["Price"]["Comment"] = "now"
    machines.update_machine(machine, definition=json.dumps(changed))
    assert "Price changed" in markup(client.get("/machines/machine/diff/"))
    back = markup(client.get("/machines/machine/diff/?to=rev:1"))
    assert "Audit, Price removed; Nap changed" in back
    same = text(client.get("/machines/machine/diff/?from=&to="))
    assert "The definitions are the same." in same
    assert "Only the role" not in same


def test_an_execution_names_its_revision_version_and_alias(
    project: Project, client: Client
) -> None:
    """On its page and its definition's, each linked while it is kept."""
    machine = create(project, CHAIN)
    machines.update_machine(machine, definition=json.dumps(CHAIN).replace("3600", "7200"))
    published = versions.publish_version(StateMachine.objects.get())
    routing = [{"stateMachineVersionArn": published.arn, "weight": 100}]
    alias = versions.create_alias(project, "PROD", routing)
    sent = {"name": "released", "input": "{}", "run": "PROD"}
    client.post("/machines/machine/start/", sent)
    machines.update_machine(StateMachine.objects.get(), definition=json.dumps(CHAIN))
    execution = Execution.objects.get(name="released")
    links = (
        '<a href="/machines/machine/diff/?from=rev%3A2">Revision 2</a>·'
        '<a href="/machines/machine/diff/?from=1">version 1</a>·'
        '<a href="/machines/machine/versions/#aliases-title">alias<bdi>PROD</bdi></a>'
    )
    assert links in markup(client.get(page_of(execution)))
    definition = markup(client.get(page_of(execution, "definition/")))
    assert links in definition
    assert "diff/?from=run%3Areleased" in definition
    versions.delete_alias(project, alias.arn)
    versions.delete_version(project, published.arn)
    shown = markup(client.get(page_of(execution)))
    assert 'version 1<span class="note">(deleted)</span>' in shown
    plain = start(StateMachine.objects.get(), name="plain")
    assert "Revision 3" in text(client.get(page_of(plain, "definition/")))
