"""The page of named inputs, and the start form that offers them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from console.features.named_inputs import store
from console.features.named_inputs.models import NamedInput
from console.models import AuditEntry, Execution, StateMachine
from console.store.machines import machines
from tests.console.store.helpers import PASS, create, drain, start
from tests.console.web.helpers import MARKUP, markup, page, text

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project

INPUTS, START = "/machines/machine/inputs/", "/machines/machine/start/"
SECRET = '{"card": "4111-2222", "n": 1}'


@pytest.fixture
def machine(project: Project) -> StateMachine:
    """Return a machine of one state."""
    return create(project, PASS)


def save(client: Client, name: str, sent: str, **more: str) -> str:
    """Send the form of a new input and return the page after it."""
    fields = {"act": "save", "name": name, "input": sent, **more}
    return markup(client.post(INPUTS, fields, follow=True))


def test_an_input_is_saved_offered_and_started_with(machine: StateMachine, client: Client) -> None:
    """The select of the start form leads to a form that has the input."""
    assert f'href="{INPUTS}">Named inputs</a>' in markup(client.get("/machines/machine/"))
    assert "“big order”" in save(client, " big  order ", '{"n": 1}')
    shown = markup(client.get(START))
    assert '<select id="saved-choice" name="saved" form="use-input">' in shown
    assert '<option value="big order">' in shown
    filled = markup(client.get(f"{START}?saved=big+order"))
    assert '{"n": 1}</textarea>' in filled
    assert "Named input<bdi>big order</bdi>. You can edit it." in filled
    client.post(START, {"name": "x", "input": '{"n": 2}', "saved": "big order"})
    assert Execution.objects.get(name="x").input == '{"n": 2}'
    row = AuditEntry.objects.get(action="PutNamedInput")
    assert (row.target, row.reason) == (machine.arn, "big order")


def test_the_form_without_a_named_input_has_no_select(
    machine: StateMachine, client: Client
) -> None:
    """A name that is not there any more leaves the suggested input, and the page says so."""
    shown = text(client.get(f"{START}?saved=gone"), 404)
    assert "machine has no input “gone”." in shown
    assert "Named input gone" not in shown
    assert "saved-choice" not in shown
    assert 'name="saved" id="saved"' in shown


def test_the_input_of_an_execution_is_saved(machine: StateMachine, client: Client) -> None:
    """Its page has the link; the form asks for the name alone."""
    execution = drain(start(machine, {"order": 7}, "run"))
    (link,) = re.findall(r'href="([^"]*/inputs/[^"]*)"', text(client.get(page(execution))))
    form = markup(client.get(link))
    assert "Save the input of<bdi>run</bdi>" in form
    assert "<textarea" not in form
    save(client, "seven", "", origin="run")
    assert NamedInput.objects.get().text == '{"order": 7}'
    assert client.get(f"{INPUTS}?origin=nothing").status_code == 404


@pytest.mark.postgres_too
def test_an_input_is_renamed_and_deleted(machine: StateMachine, client: Client) -> None:
    """For everybody, with a row in the audit each."""
    save(client, "one", "1")
    save(client, "two", "2")
    client.post(INPUTS, {"act": "rename", "name": "one", "new_name": "first"})
    assert store.list_names(machine) == ["first", "two"]
    refused = client.post(INPUTS, {"act": "rename", "name": "first", "new_name": "two"})
    assert "has an input “two” already" in text(refused, 422)
    client.post(INPUTS, {"act": "delete", "name": "first"})
    assert store.list_names(machine) == ["two"]
    again = client.post(INPUTS, {"act": "delete", "name": "first"})
    assert "has no input “first”" in text(again, 422)
    reasons = AuditEntry.objects.filter(action__endswith="NamedInput").order_by("pk")
    expected = ["one", "two", "one to first", "first"]
    assert list(reasons.values_list("reason", flat=True)) == expected


@pytest.mark.parametrize(
    ("name", "sent", "message"),
    [
        ("", "{}", "Name: got ''; it must have 1 to 80 printable characters."),
        ("x" * 81, "{}", "it must have 1 to 80 printable characters."),
        ("x", "{", "Input: got no JSON"),
        ("x", "", "Input: got no JSON"),
        ("x", '"' + "x" * 262_144 + '"', "Input: got more than 262144"),
        ("x", '{"card": "(masked)"}', "in place of a hidden value"),
        ("taken", "{}", "has an input “taken” already"),
    ],
)
def test_a_wrong_input_is_refused(
    machine: StateMachine, client: Client, name: str, sent: str, message: str
) -> None:
    """With what was wrong and what was typed; nothing is saved."""
    save(client, "taken", "1")
    refused = text(client.post(INPUTS, {"act": "save", "name": name, "input": sent}), 422)
    assert message in refused
    assert f"{sent[:100]}" in refused
    assert store.list_names(machine) == ["taken"]


def test_a_machine_has_a_bounded_number_of_inputs(
    machine: StateMachine, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next is refused with the limit."""
    monkeypatch.setattr(store, "MOST", 1)
    save(client, "one", "1")
    refused = client.post(INPUTS, {"act": "save", "name": "two", "input": "2"})
    assert "machine has 1 named inputs, the maximum" in text(refused, 422)


@pytest.mark.postgres_too
def test_hidden_values_are_masked_and_still_started_with(
    project: Project, machine: StateMachine, client: Client
) -> None:
    """No page shows them; an execution gets them in place of the mask, also edited."""
    drain(start(machine, {"card": "4111-2222", "n": 1}, "run"))
    project.masked = "$.card"
    project.save()
    save(client, "paid", "", origin="run")
    assert NamedInput.objects.get().text == SECRET
    for address in (INPUTS, f"{START}?saved=paid"):
        shown = text(client.get(address))
        assert "4111-2222" not in shown
        assert "(masked)" in shown
    gone = {"name": "x", "saved": "gone", "input": '{"card": "(masked)"}'}
    assert "has no input “gone”." in text(client.post(START, gone), 422)
    moved = {"name": "x", "saved": "paid", "input": '{"moved": "(masked)"}'}
    assert "is not known at this place" in text(client.post(START, moved), 422)
    sent = {"name": "x", "saved": "paid", "input": '{"card": "(masked)", "n": 2}'}
    client.post(START, sent)
    started = Execution.objects.get(name="x").input
    assert "4111-2222" in started
    assert "(masked)" not in started
    assert '"n":2' in started.replace(" ", "")


def test_names_and_inputs_are_shown_as_typed(machine: StateMachine, client: Client) -> None:
    """Markup in them is text."""
    save(client, MARKUP, f'"{MARKUP}"')
    for address in (INPUTS, START, f"{START}?saved={MARKUP}"):
        assert MARKUP not in client.get(address).content.decode()


def test_an_unknown_act_is_not_found(machine: StateMachine, client: Client) -> None:
    """The page saves, renames and deletes."""
    assert client.post(INPUTS, {"act": "copy", "name": "x"}).status_code == 404


def test_the_inputs_go_with_their_machine(machine: StateMachine, client: Client) -> None:
    """A new machine of the name begins without any."""
    save(client, "one", "1")
    machines.delete_machine(machine.project, machine.arn)
    assert not NamedInput.objects.exists()
