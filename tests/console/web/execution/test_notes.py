"""X15: one note an execution, and who is looking at it, for everybody to see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from console.models import AuditEntry, ExecutionNote, Project
from tests.console.store.helpers import PASS, WAIT, create, drain, start
from tests.console.web.helpers import CHAIN, MARKUP, page, text

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Execution

    SignIn = Callable[[str], Client]


@pytest.fixture
def execution(project: Project) -> Execution:
    """Return one that waits."""
    return drain(start(create(project, CHAIN), name="x"))


def put_note(client: Client, execution: Execution, **form: str) -> None:
    """Send the form of an execution's page, which leads back there."""
    answer = client.post(page(execution, "note/"), {**form, "next": page(execution, "?at=2")})
    assert answer["Location"] == page(execution, "?at=2")


def test_x15_others_see_who_looks_and_what_is_noted(
    execution: Execution, signed_in: SignIn
) -> None:
    """On the page and in the lists, until it is taken back."""
    ana, ben = signed_in("operator"), signed_in("viewer")
    put_note(ana, execution, act="assign")
    put_note(ana, execution, act="note", note=f" ask\r\nthe shop {MARKUP} ")
    for address in (page(execution), "/executions/", "/machines/machine/"):
        shown = text(ben.get(address))
        assert "operator</bdi>" in shown
        assert "Assigned to" in shown
        assert "ask\nthe shop" in shown
        assert MARKUP not in ben.get(address).content.decode()
    assert "Assign to me" not in text(ben.get(page(execution)))
    assert "Unassign" in text(ana.get(page(execution)))
    assert AuditEntry.objects.filter(action="PutNote", target=execution.arn).count() == 1
    put_note(ana, execution, act="unassign")
    put_note(ana, execution, act="note", note="")
    shown = text(ben.get(page(execution)))
    assert "No assignee or note" in shown
    assert "Assigned to" not in text(ben.get("/executions/"))


def test_x15_a_tick_brings_it(execution: Execution, client: Client) -> None:
    """To a list that shows the row, and to the page while the execution runs; once each."""
    other = start(execution.state_machine or create(execution.project, WAIT), name="other")
    rows = f"{execution.pk}:,{other.pk}:"
    newest = f"/executions/_new?newest={other.pk}&count=0"
    assert client.get(f"{newest}&notes={rows}").status_code == 204
    delta = page(execution, "_delta?after=4&seen=4&shown=4&note=")
    assert client.get(delta).status_code == 204
    put_note(client, execution, act="assign")
    told = text(client.get(f"{newest}&notes={rows}"))
    assert "Assigned to" in told
    assert told.count("<tr") == 1
    stamp = ExecutionNote.objects.get().stamp
    rows = f"{execution.pk}:{stamp},{other.pk}:"
    assert client.get(f"{newest}&notes={rows}").status_code == 204
    assert "Assigned to" in text(client.get(delta))
    assert client.get(delta + stamp).status_code == 204


def test_x15_notes_want_a_right_and_an_end(execution: Execution, signed_in: SignIn) -> None:
    """A viewer is refused; a note that is too long is told and not kept."""
    viewer, operator = signed_in("viewer"), signed_in("operator")
    assert viewer.post(page(execution, "note/"), {"act": "assign"}).status_code == 403
    assert operator.post(page(execution, "note/"), {"act": "x"}).status_code == 404
    put_note(operator, execution, act="note", note="x" * 2001)
    assert "At most 2000 are accepted" in text(operator.get(page(execution)))
    assert not ExecutionNote.objects.exists()


def test_x15_a_note_that_quotes_a_masked_value_is_masked(project: Project, client: Client) -> None:
    """On the page; the list only says that there is one."""
    Project.objects.update(masked="$.password")
    execution = drain(start(create(project, PASS), {"password": "canary-15"}, "x"))
    put_note(client, execution, act="note", note="it is canary-15")
    for address, said in ((page(execution), "it is (masked)"), ("/executions/", "A note by")):
        shown = text(client.get(address))
        assert "canary" not in shown
        assert said in shown.replace("<bdi>", "")


def test_an_edited_note_keeps_its_hidden_value(project: Project, client: Client) -> None:
    """The form shows a mask in place of the value; which of several it stands for is uncertain."""
    Project.objects.update(masked="$.password")
    execution = drain(start(create(project, PASS), {"password": "canary-15"}, "x"))
    put_note(client, execution, act="note", note="it is canary-15\nsaid Ana")
    put_note(client, execution, act="note", note="fixed: it was (masked)\r\nsaid Ana")
    stored = "fixed: it was canary-15\nsaid Ana"
    assert ExecutionNote.objects.get(execution=execution).text == stored
    put_note(client, execution, act="note", note="(masked) and (masked)")
    assert "stands for a hidden value" in text(client.get(page(execution)))
    assert ExecutionNote.objects.get(execution=execution).text == stored
    put_note(client, execution, act="note", note="nothing")
    assert ExecutionNote.objects.get(execution=execution).text == "nothing"


def test_the_old_address_of_a_note_leads_to_the_new_one(
    execution: Execution, signed_in: SignIn
) -> None:
    """A 308 repeats the form, so a script that has the old address still writes its note."""
    operator = signed_in("operator")
    answer = operator.post(page(execution, "remark/?region=eu-west-1"), {"act": "note"})
    assert answer.status_code == 308
    assert answer["Location"] == page(execution, "note/?region=eu-west-1")
    answer = operator.post(page(execution, "remark/"), {"act": "note", "note": "kept"}, follow=True)
    assert ExecutionNote.objects.get(execution=execution).text == "kept"
