"""Every save is a revision, every unsaved text a draft."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from console.db.audit import Actor
from console.models import DefinitionDraft, MachineRevision, StateMachine
from console.store.machines import drafts, machines, versions
from tests.console.store.helpers import PASS, ROLE, WAIT, create
from tests.console.web.helpers import markup, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

ANA = Actor("ana")


def saved(name: str = "machine") -> list[tuple[int, str, str]]:
    """Return number, person and note of the revisions of a machine."""
    rows = MachineRevision.objects.filter(state_machine__name=name).order_by("number")
    return [(row.number, row.saved_by, row.note) for row in rows]


def test_each_save_of_definition_or_role_is_a_revision(project: Project) -> None:
    """Creating, updating by whomever; not what leaves both as they are."""
    machine = create(project, PASS)
    machines.update_machine(machine, definition=json.dumps(WAIT), note=" longer\nwait ", actor=ANA)
    machines.update_machine(machine, definition=json.dumps(WAIT), note="again", actor=ANA)
    machines.update_machine(machine, tracing='{"enabled":true}', actor=ANA)
    machines.update_machine(machine, role_arn=f"{ROLE}2", actor=ANA)
    assert saved() == [(1, "", ""), (2, "ana", "longer wait"), (3, "ana", "")]
    newest = MachineRevision.objects.get(number=3)
    machine.refresh_from_db()
    assert (newest.revision_id, newest.role_arn) == (machine.revision_id, f"{ROLE}2")
    assert newest.definition.text == json.dumps(WAIT)


def test_a_machine_older_than_revisions_keeps_what_it_was(project: Project) -> None:
    """Its next save writes two rows: what was there, and what is."""
    machine = create(project, PASS)
    MachineRevision.objects.all().delete()
    StateMachine.objects.update(edited_by='["ben"]')
    machines.update_machine(machine, definition=json.dumps(WAIT), actor=ANA)
    assert saved() == [(1, "ben", ""), (2, "ana", "")]
    assert MachineRevision.objects.get(number=1).definition.text == json.dumps(PASS)


def test_the_page_lists_compares_and_restores(project: Project, client: Client) -> None:
    """A restored revision is a new one; nothing of the history goes."""
    machine = create(project, PASS)
    form = {"text": json.dumps(WAIT), "role": ROLE, "note": "wait for <b>us</b>"}
    form["revision"] = machines.revision_of(machine)
    assert client.post("/machines/machine/edit/", form).status_code == 302
    raw = client.get("/machines/machine/versions/").content.decode()
    assert "wait for &lt;b&gt;us&lt;/b&gt;" in raw
    changes = text(client.get("/machines/machine/diff/?from=rev:1&to=rev:2"))
    assert "Revision 1" in changes
    assert '"Seconds"' in changes
    machine.refresh_from_db()
    restore = {"act": "restore", "number": "1", "revision": machines.revision_of(machine)}
    assert client.post("/machines/machine/versions/", restore).status_code == 302
    machine = StateMachine.objects.select_related("definition").get()
    assert machine.definition.text == json.dumps(PASS)
    assert saved()[1:] == [
        (2, "editor", "wait for <b>us</b>"),
        (3, "editor", "Restored revision 1"),
    ]


def test_a_stale_page_restores_nothing(project: Project, client: Client) -> None:
    """Somebody saved after the page was opened: the reader is told, and looks again."""
    machine = create(project, PASS)
    seen = machines.revision_of(machine)
    machines.update_machine(machine, definition=json.dumps(WAIT), actor=ANA)
    restore = {"act": "restore", "number": "1", "revision": seen}
    assert "Changed Since" in text(client.post("/machines/machine/versions/", restore), 422)
    assert len(saved()) == 2


@pytest.mark.parametrize("number", ["", "x", "-1", "٣", "99", "9" * 30])
def test_a_revision_that_is_not_there(project: Project, client: Client, number: str) -> None:
    """The answer says so; nothing fails."""
    create(project, PASS)
    assert client.get(f"/machines/machine/diff/?from=rev:{number}").status_code == 404
    sent = {"act": "restore", "number": number, "revision": ""}
    assert client.post("/machines/machine/versions/", sent).status_code == 422


# -- two people ------------------------------------------------------------------------------------


def lines(**changed: Any) -> str:
    """Return a definition of several lines."""
    states = {
        "First": {"Type": "Wait", "Seconds": 1, "Next": "Last"},
        "Last": {"Type": "Wait", "Seconds": 2, "End": True},
    }
    for name, seconds in changed.items():
        states[name]["Seconds"] = seconds
    return json.dumps({"StartAt": "First", "States": states}, indent=2)


def test_who_loses_a_race_can_merge(project: Project, client: Client) -> None:
    """The base is the revision both were made from; each side's change is in the merged text."""
    machine = machines.create_machine(
        project, "us-east-1", name="machine", definition=lines(), role_arn=ROLE
    )
    form = {"text": lines(Last=20), "role": ROLE, "revision": machines.revision_of(machine)}
    machines.update_machine(machine, definition=lines(First=10), note="slower", actor=ANA)
    conflict = text(client.post("/machines/machine/edit/", form), 409)
    assert "with the note “<bdi>slower</bdi>”" in conflict
    assert "2 differences" in conflict
    machine.refresh_from_db()
    form["merge"] = machines.revision_of(machine)
    merged = text(client.post("/machines/machine/edit/", form))
    assert lines(First=10, Last=20) in merged
    assert f'name="revision" value="{form["merge"]}"' in merged
    assert StateMachine.objects.select_related("definition").get().definition.text == lines(
        First=10
    )


def test_a_third_save_is_merged_with_nothing_unseen(project: Project, client: Client) -> None:
    """The choices were made beside another text: the conflict is shown anew."""
    machine = machines.create_machine(
        project, "us-east-1", name="machine", definition=lines(), role_arn=ROLE
    )
    form = {"text": lines(Last=20), "role": ROLE, "revision": machines.revision_of(machine)}
    machine = machines.update_machine(machine, definition=lines(First=10), actor=ANA)
    form["merge"] = machines.revision_of(machine)
    machines.update_machine(machine, definition=lines(First=11), actor=ANA)
    assert '"Seconds": 11' in text(client.post("/machines/machine/edit/", form), 409)


# -- drafts ----------------------------------------------------------------------------------------


def test_a_draft_is_the_persons_own(
    project: Project, client: Client, signed_in: Callable[[str], Client]
) -> None:
    """It is offered to its writer on the next visit, and to nobody else."""
    machine = create(project, PASS)
    draft = {"text": '{"Half": ', "revision": machines.revision_of(machine)}
    assert client.post("/machines/machine/edit/_draft", draft).status_code == 204
    assert '{"Half": ' in text(client.get("/machines/machine/edit/"))
    assert '{"Half": ' not in text(client.get("/machines/machine/edit/?fresh=1"))
    assert '{"Half": ' not in text(client.get("/machines/new/"))
    assert '{"Half": ' not in text(signed_in("owner").get("/machines/machine/edit/"))
    client.post("/machines/machine/edit/_draft", {"discard": "1"})
    assert '{"Half": ' not in text(client.get("/machines/machine/edit/"))


DRAFT = "You have a draft"


def test_the_pages_of_a_machine_lead_back_to_its_draft(
    project: Project, client: Client, signed_in: Callable[[str], Client]
) -> None:
    """Who leaves the editor by Cancel reads there that the draft is kept, and may discard it."""
    create(project, PASS)
    somebody_else = signed_in("owner")
    for name, pages, edit in (
        ("machine", ("/machines/machine/", "/machines/machine/definition/"), "machine/edit/"),
        ("new", ("/machines/",), "new/"),
    ):
        draft = f"/machines/{edit}_draft"
        client.post(draft, {"text": '{"Half": '})
        for address in pages:
            shown = text(client.get(address))
            assert DRAFT in shown, name
            assert f'href="/machines/{edit}">' in shown
            assert DRAFT not in text(somebody_else.get(address))
        answer = client.post(draft, {"discard": "1", "back": "1"}, follow=True)
        assert answer.redirect_chain == [(pages[-1], 302)]  # nobody knows where it was pressed
        assert "The draft was discarded." in text(answer)
        assert DRAFT not in text(answer)
    client.post("/machines/machine/edit/_draft", {"text": json.dumps(PASS, indent=2)})
    assert DRAFT not in text(client.get("/machines/machine/"))  # it is what is saved


DISCARD = {"discard": "1", "back": "1"}


def test_discarding_a_draft_leads_back_to_the_page_of_the_button(
    project: Project, client: Client
) -> None:
    """Of the same region; the press asks first."""
    create(project, PASS)
    draft = "/machines/machine/edit/_draft"
    client.post(draft, {"text": "{"})
    shown = markup(client.get("/machines/machine/"))
    banner = shown.partition('id="open-draft"')[2]
    assert '<details class="confirm">' in banner.partition("<form")[0]
    before = "/machines/machine/?status=FAILED"
    answer = client.post(draft, DISCARD, headers={"referer": f"http://testserver{before}"})
    assert answer["Location"] == before
    machines.create_machine(
        project, "eu-west-1", name="there", definition=json.dumps(PASS), role_arn=ROLE
    )
    answer = client.post("/machines/there/edit/_draft?region=eu-west-1", DISCARD)
    assert answer["Location"] == "/machines/there/definition/?region=eu-west-1"


def test_saving_in_another_region_stays_there(project: Project, client: Client) -> None:
    """Both a new machine and a changed one."""
    query = "?region=eu-west-1"
    form = {"name": "there", "text": json.dumps(PASS), "role": ROLE}
    answer = client.post(f"/machines/new/{query}", form)
    assert answer["Location"] == f"/machines/there/{query}"
    there = StateMachine.objects.get(name="there")
    form |= {"text": json.dumps(WAIT), "revision": machines.revision_of(there)}
    answer = client.post(f"/machines/there/edit/{query}", form)
    assert answer["Location"] == f"/machines/there/definition/{query}"


@pytest.mark.parametrize(
    ("saved_text", "typed", "differs"),
    [
        ('{"a": 1}', '{\n"a":1}', False),
        ('{"a": 1}', '{"a": true}', True),
        ('{"a": 1}', '{"a": 1.0}', True),
        ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}', True),
        ('{"a": 1}', '{"a": 2, "a": 1}', True),
        ('{"a": 1}', '{"a": ', True),
    ],
)
def test_a_draft_that_only_python_takes_for_the_same_is_shown(
    project: Project, client: Client, saved_text: str, typed: str, differs: bool
) -> None:
    """Spaces alone are no change; a number for a boolean, an order or a repeated key is."""
    machine = create(project, PASS)
    definition = PASS | {"Comment": "x"}
    whole = json.dumps(definition)[:-1] + ', "Note": %s}'
    machine.definition.text = whole % saved_text
    machine.definition.save()
    client.post("/machines/machine/edit/_draft", {"text": whole % typed})
    assert (DRAFT in text(client.get("/machines/machine/"))) == differs


def test_text_typed_for_a_deleted_machine_can_be_created(project: Project, client: Client) -> None:
    """Who saves after another's deletion gets the text back, in the editor of a new machine."""
    assert client.get("/machines/gone/edit/").status_code == 404
    form = {"text": json.dumps(PASS), "role": ROLE, "note": "an hour", "revision": "1.x"}
    shown = markup(client.post("/machines/gone/edit/", form), 409)
    assert "There is no state machine “gone” any more" in shown
    assert 'action="/machines/new/"' in shown
    for part in ('value="gone"', ROLE, "an hour", '"StartAt"'):
        assert part in shown, part
    assert client.post("/machines/new/", form | {"name": "gone"}).status_code == 302
    assert saved("gone") == [(1, "editor", "an hour")]


@pytest.mark.postgres_too
def test_saving_forgets_the_draft(project: Project, client: Client) -> None:
    """Creating and updating both; a refused save keeps it."""
    for address in ("/machines/new/", "/machines/machine/edit/"):
        machine = StateMachine.objects.filter(name="machine").first()
        form = {"name": "machine", "text": json.dumps(WAIT if machine else PASS), "role": ROLE}
        form["revision"] = machines.revision_of(machine) if machine else ""
        client.post(f"{address}_draft", form)
        assert client.post(address, form | {"text": "{"}).status_code == 422
        assert DefinitionDraft.objects.count() == 1
        assert client.post(address, form).status_code == 302
        assert not DefinitionDraft.objects.exists()


@pytest.mark.postgres_too
def test_a_draft_that_arrives_after_its_save_is_not_kept(project: Project, client: Client) -> None:
    """What the page sent before the save is not shown as unsaved; another page's draft is."""
    machine = create(project, PASS)
    late = {"text": '{"Half": ', "revision": machines.revision_of(machine), "page": "first"}
    form = {"text": json.dumps(WAIT), "role": ROLE, "page": "first", "revision": late["revision"]}
    assert client.post("/machines/machine/edit/", form).status_code == 302
    assert client.post("/machines/machine/edit/_draft", late).status_code == 204
    assert '{"Half": ' not in text(client.get("/machines/machine/edit/"))
    client.post("/machines/machine/edit/_draft", {"discard": "1", "page": "first"})
    client.post("/machines/machine/edit/_draft", late)
    assert '{"Half": ' not in text(client.get("/machines/machine/edit/"))
    client.post("/machines/machine/edit/_draft", late | {"page": "second"})
    assert '{"Half": ' in text(client.get("/machines/machine/edit/"))


def test_a_draft_that_is_too_long_is_refused_with_the_reason(client: Client) -> None:
    """The page then says that it is not kept."""
    answer = client.post("/machines/new/_draft", {"text": "x" * (drafts.LONGEST + 1)})
    assert answer.status_code == 422
    assert b"At most" in answer.content


def test_the_diff_says_who_saved_and_restores(
    project: Project, client: Client, signed_in: Callable[[str], Client]
) -> None:
    """Each side has its author and time; what differs from now can be restored from there."""
    machine = create(project, PASS)
    versions.publish_version(machine, description="the first")
    machines.update_machine(machine, definition=json.dumps(WAIT), note="wait", actor=ANA)
    shown = markup(client.get("/machines/machine/diff/?from=1"))
    sides = shown.partition('<dl class="diff-sides">')[2].partition("</dl>")[0]
    before, after = sides.split("<dt>")[1:]
    assert "published, <time" in before.replace(",<", ", <")
    assert "the first" in before
    assert "revision 1" in before
    assert 'value="restore"' in before
    assert "saved by<bdi>ana</bdi>" in after.replace("by <", "by<")
    assert "wait" in after
    assert 'value="restore"' not in after, "it is the current one"
    viewed = text(signed_in("viewer").get("/machines/machine/diff/?from=1"))
    assert 'value="restore"' not in viewed
    sent = dict(
        re.findall(r'<input type="hidden" name="(number|revision)" value="([^"]*)"', before)
    )
    client.post("/machines/machine/versions/", {"act": "restore", **sent})
    assert StateMachine.objects.get().definition.text == json.dumps(PASS)


def test_publishing_says_what_would_be_published(project: Project, client: Client) -> None:
    """The revision and what changed since the newest version; or that nothing has."""
    machine = create(project, PASS)
    address = "/machines/machine/versions/"
    assert "Publishes revision 1, saved" in one_line(client.get(address))
    versions.publish_version(machine)
    assert "No changes since version 1." in one_line(client.get(address))
    again = client.post(address, {"act": "publish", "description": "again"}, follow=True)
    assert "No changes since version 1, so no version was published." in one_line(again)
    machines.update_machine(machine, definition=json.dumps(WAIT), actor=ANA)
    shown = one_line(client.get(address))
    assert "Publishes revision 2, saved by ana" in shown
    assert re.search(r"Since version 1 ?: .*(added|changed|removed)", shown)
    machines.update_machine(machine, definition=json.dumps(PASS), role_arn=f"{ROLE}2")
    assert "Since version 1: Role changed." in one_line(client.get(address))


def one_line(response: Any) -> str:
    """Return the words of a page, without tags and line ends."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", text(response))).replace(" :", ":")
