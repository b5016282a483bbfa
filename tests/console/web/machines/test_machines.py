"""A machine's pages: definition, editor, start, stop, delete."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from console.db import audit
from console.models import AuditEntry, Execution, StateMachine
from console.store.executions.stop import stop_execution
from console.store.machines import machines, versions
from console.web.graph import definition_text
from console.web.machines import start_views
from tests.console.store.helpers import PASS, REGION, ROLE, WAIT, create, drain, ended, one, start
from tests.console.web.helpers import CHAIN, MARKUP, markup, page, text

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project
    from console.worker import Embedded


# -- machines -------------------------------------------------------------------------------------


def test_a_machine_shows_definition_and_graph(project: Project, client: Client) -> None:
    """Text and every state of the graph stand on the definition's page."""
    create(project, CHAIN)
    shown = text(client.get("/machines/machine/definition/"))
    assert '"Seconds": <span class="n">3600</span>' in shown
    assert shown.count('class="node idle') == 2
    assert client.get("/machines/machine/definition.json").content.decode() == json.dumps(CHAIN)


def test_a_machine_without_executions_offers_the_form(project: Project, client: Client) -> None:
    """The first thing to do with a new machine is on its page."""
    create(project, PASS)
    assert "data-json-form" in text(client.get("/machines/machine/"))


def test_creating_is_refused_with_the_problems_and_keeps_what_was_typed(client: Client) -> None:
    """Name and text come back, the problems are listed, nothing is stored."""
    bad = json.dumps({"StartAt": "A", "States": {"A": {"Type": "Pass", "Next": "Nope"}}})
    shown = text(client.post("/machines/new/", {"name": "mine", "text": bad}), 422)
    assert 'value="mine"' in shown
    assert "Nope" in shown
    assert "/States/A/Next" in shown
    assert bad in shown
    assert not StateMachine.objects.exists()


@pytest.mark.parametrize("name", ["", "has space", "a" * 81, "semi;colon"])
def test_a_bad_name_is_told_beside_its_field(client: Client, name: str) -> None:
    """AWS's words stand next to the name, the definition is kept."""
    shown = text(client.post("/machines/new/", {"name": name, "text": json.dumps(PASS)}), 422)
    assert "Invalid Name" in shown
    assert json.dumps(PASS) in shown


def test_creating_leads_to_the_machine(client: Client, project: Project) -> None:
    """What was typed is stored as typed, but for the form's line ends."""
    typed = json.dumps(CHAIN, indent=2)
    answer = client.post("/machines/new/", {"name": "mine", "text": typed.replace("\n", "\r\n")})
    assert (answer.status_code, answer["Location"]) == (302, "/machines/mine/")
    machine = StateMachine.objects.select_related("definition").get(project=project)
    assert machine.definition.text == typed
    assert AuditEntry.objects.filter(action="CreateStateMachine", actor="editor").exists()


def test_an_edit_is_kept_or_refused(project: Project, client: Client) -> None:
    """A good text replaces the old one, a bad one changes nothing, the same one is no change."""
    machine = create(project, PASS)
    good = json.dumps(CHAIN)
    opened = {"revision": machines.revision_of(machine)}
    assert client.post("/machines/machine/edit/", {"text": good, **opened}).status_code == 302
    assert text(client.post("/machines/machine/edit/", {"text": "{}"}), 422)
    machine.refresh_from_db()
    assert machine.definition.text == good
    again = {"text": good, "role": machine.role_arn}
    assert client.post("/machines/machine/edit/", again).status_code == 302


# -- two who edit one machine ----------------------------------------------------------------------

OURS, THEIRS = json.dumps(one("Ours", Type="Pass")), json.dumps(one("Theirs", Type="Pass"))


def opened(client: Client) -> str:
    """Return the revision that the form of the editor carries."""
    shown = text(client.get("/machines/machine/edit/"))
    match = re.search(r'name="revision" value="([^"]*)"', shown)
    assert match is not None
    return match[1]


def test_a_save_over_an_unseen_one_is_refused_with_both_texts(
    project: Project, client: Client
) -> None:
    """The page has mine in the editor and theirs beside it, says who saved, and changes nothing."""
    machine = create(project, PASS)
    revision = opened(client)
    machines.update_machine(machine, definition=THEIRS, actor=audit.Actor("ann"))
    form = {"text": OURS, "revision": revision, "role": machine.role_arn}
    answer = client.post("/machines/machine/edit/", form)
    shown = text(answer, 409)
    assert "saved this state machine after you opened it" in markup(answer, 409)
    assert ">ann<" in shown
    assert OURS in shown
    assert definition_text.readable_text(THEIRS) in shown
    machine = StateMachine.objects.select_related("definition").get(pk=machine.pk)
    assert machine.definition.text == THEIRS
    # The same form again, by the button Save of a page opened before, is refused again.
    text(client.post("/machines/machine/edit/", form), 409)

    over = re.search(r'name="over" value="([^"]*)"', shown)
    assert over is not None
    saved = client.post("/machines/machine/edit/", form | {"over": over[1]})
    assert saved.status_code == 302
    machine = StateMachine.objects.select_related("definition").get(pk=machine.pk)
    assert machine.definition.text == OURS


def test_saving_over_covers_only_what_was_shown(project: Project, client: Client) -> None:
    """A third save between the page of the conflict and its button is a conflict of its own."""
    machine = create(project, PASS)
    revision = opened(client)
    machines.update_machine(machine, definition=THEIRS)
    form = {"text": OURS, "revision": revision, "role": machine.role_arn}
    shown = text(client.post("/machines/machine/edit/", form), 409)
    over = re.search(r'name="over" value="([^"]*)"', shown)
    assert over is not None
    machines.update_machine(machine, definition=json.dumps(CHAIN))
    text(client.post("/machines/machine/edit/", form | {"over": over[1]}), 409)
    machine = StateMachine.objects.select_related("definition").get(pk=machine.pk)
    assert json.loads(machine.definition.text) == CHAIN


def test_a_namesake_of_the_machine_is_not_overwritten(project: Project, client: Client) -> None:
    """A machine that was deleted and made again is another one, though neither was ever changed."""
    machine = create(project, PASS)
    form = {"text": OURS, "revision": opened(client), "role": machine.role_arn}
    machines.delete_machine(project, machine.arn)
    again = machines.create_machine(
        project, machine.region, name="machine", definition=THEIRS, role_arn=machine.role_arn
    )
    text(client.post("/machines/machine/edit/", form), 409)
    again = StateMachine.objects.select_related("definition").get(pk=again.pk)
    assert again.definition.text == THEIRS


def test_a_form_without_a_revision_overwrites_nothing(project: Project, client: Client) -> None:
    """Nobody knows what a page from before an upgrade was made from."""
    machine = create(project, PASS)
    text(client.post("/machines/machine/edit/", {"text": OURS}), 409)
    machine = StateMachine.objects.select_related("definition").get(pk=machine.pk)
    assert json.loads(machine.definition.text) == PASS


def test_both_saving_the_same_is_no_conflict(project: Project, client: Client) -> None:
    """Nothing would be lost."""
    machine = create(project, PASS)
    form = {"text": OURS, "revision": opened(client), "role": machine.role_arn}
    machines.update_machine(machine, definition=OURS)
    assert client.post("/machines/machine/edit/", form).status_code == 302


def test_the_revision_survives_a_check_and_a_test_of_a_state(
    project: Project, client: Client
) -> None:
    """Each page on the way from the editor back to it carries what the text was made from."""
    machine = create(project, PASS)
    revision = opened(client)
    machines.update_machine(machine, definition=THEIRS)
    form = {"text": OURS, "revision": revision}
    carried = f'name="revision" value="{revision}"'
    tested = markup(client.post("/machines/machine/test/", form | {"edited": "1"}))
    assert tested.count(carried) == 2
    checked = text(client.post("/machines/machine/edit/", form | {"check": "1"}))
    assert carried in checked


def test_the_check_answers_with_problems_or_a_graph(client: Client) -> None:
    """While a text is broken the last graph stays; a good text brings its own."""
    broken = text(client.post("/machines/new/_check", {"text": "{"}))
    assert 'data-broken="true"' in broken
    assert 'id="preview"' not in broken
    good = text(client.post("/machines/new/_check", {"text": json.dumps(CHAIN)}))
    assert "No problems" in good
    assert 'id="preview"' in good


def test_a_machine_is_deleted_after_one_question(project: Project, client: Client) -> None:
    """The page names what happens to running executions; past ones stay readable."""
    execution = start(create(project, WAIT), name="runs")
    assert "1 execution is running" in text(client.get("/machines/machine/delete/"))
    stop_execution(execution)
    assert client.post("/machines/machine/delete/")["Location"] == "/machines/"
    assert "machine was deleted" in text(client.get("/machines/"))
    assert "(deleted)" in text(client.get(page(execution)))


def test_a_machine_that_still_runs_says_that_it_is_being_deleted(
    project: Project, client: Client
) -> None:
    """The list and each of its pages tell; a tab that was open before starts and saves nothing."""
    machine = create(project, WAIT)
    drain(start(machine, name="runs"))
    answer = client.post("/machines/machine/delete/")
    assert answer["Location"] == "/machines/machine/"
    for address in ("", "definition/", "versions/", "metrics/"):
        body = text(client.get(f"/machines/machine/{address}"))
        assert "is being deleted" in body
        assert "machines/machine/start/" not in body
    assert "Deleting" in text(client.get("/machines/"))
    refused = client.post("/machines/machine/start/", {"input": "{}"})
    assert "being deleted" in text(refused, 422)
    typed = {"text": json.dumps(PASS), "role": machine.role_arn}
    assert "being deleted" in text(client.post("/machines/machine/edit/", typed), 422)


# -- starting and stopping ------------------------------------------------------------------------


def test_an_execution_starts_with_name_and_input(project: Project, client: Client) -> None:
    """The form leads to the execution's page, which says who started it."""
    create(project, WAIT)
    sent = {"name": "mine", "input": '{ "a": 1.0 }'}
    answer = client.post("/machines/machine/start/", sent)
    assert answer["Location"] == "/machines/machine/executions/mine/"
    execution = Execution.objects.get(name="mine")
    assert execution.input == '{ "a": 1.0 }'
    assert execution.started_by == "editor"
    assert "editor" in text(client.get(answer["Location"]))


@pytest.mark.parametrize("wrong", ["nope", "{", "NaN", "[" * 600, '"' + "x" * 262_145 + '"'])
def test_a_bad_input_is_refused_and_kept(project: Project, client: Client, wrong: str) -> None:
    """The server checks again, whatever the page let through."""
    create(project, PASS)
    shown = text(client.post("/machines/machine/start/", {"name": "x", "input": wrong}), 422)
    assert "Invalid State Machine Execution Input" in shown
    assert wrong in shown
    assert not Execution.objects.exists()


def test_a_test_case_is_chosen_where_there_are_any(
    project: Project, client: Client, settings: Any
) -> None:
    """The form offers those of the mock configuration; another is refused, and the choice kept."""
    create(project, PASS)
    assert "Test case" not in text(client.get("/machines/machine/start/"))
    settings.STATEYARD_MOCKS = {"StateMachines": {"machine": {"TestCases": {"Happy": {}}}}}
    assert "<option>Happy</option>" in text(client.get("/machines/machine/start/"))
    refused = client.post("/machines/machine/start/", {"input": "{}", "case": "Sad"})
    assert "no test case" in text(refused, 422)
    client.post("/machines/machine/start/", {"input": "{}", "case": "Happy"})
    assert Execution.objects.get().test_case == "Happy"


def test_a_taken_name_is_told_beside_the_name(project: Project, client: Client) -> None:
    """The same name with another input is refused."""
    start(create(project, WAIT), name="mine")
    sent = {"name": "mine", "input": '{"other": 1}'}
    shown = text(client.post("/machines/machine/start/", sent), 422)
    assert "Execution Already Exists" in shown
    assert '{"other": 1}' in shown


def test_a_new_execution_is_prefilled_from_an_old_one(project: Project, client: Client) -> None:
    """The input of the execution it was pressed on stands in the form."""
    execution = drain(start(create(project, PASS), {"order": 4711}))
    missing = text(client.get("/machines/machine/start/?origin=nope"), 404)
    assert "machine has no execution “nope”." in missing
    assert "Input copied from" not in missing
    shown = text(client.get(f"/machines/machine/start/?origin={execution.name}"))
    assert '{"order": 4711}' in shown


def test_the_last_input_is_one_press_away(project: Project, client: Client) -> None:
    """It is named, and offered only where the form does not have it."""
    machine = create(project, PASS)
    assert "Use the last input" not in text(client.get("/machines/machine/start/"))
    drain(start(machine, {"order": 1}, "older"))
    drain(start(machine, {"order": 4711}, "newer"))
    form = markup(client.get("/machines/machine/start/"))
    link = re.search(r'href="([^"]*origin=newer)">', form)
    assert link is not None
    assert "of<bdi>newer</bdi>, started" in form
    shown = text(client.get(link[1]))
    assert '{"order": 4711}' in shown
    assert "Use the last input" not in shown


def test_an_express_execution_is_named_so_and_lends_its_input(
    project: Project, client: Client, worker: Embedded
) -> None:
    """Its page says Express; its ARN has an id after the name."""
    del worker
    machines.create_machine(
        project,
        REGION,
        name="fast",
        definition=json.dumps(PASS),
        role_arn=ROLE,
        type="EXPRESS",
    )
    machine = StateMachine.objects.get(name="fast")
    execution = start(machine, {"order": 4711}, "x")
    ended(execution)
    assert "<dt>Type</dt>" in text(client.get(page(execution)))
    assert '{"order": 4711}' in text(client.get("/machines/fast/start/?origin=x"))
    standard = ended(start(create(project, PASS)))
    assert "<dt>Type</dt>" not in text(client.get(page(standard)))


def test_stopping_tells_error_and_cause(project: Project, client: Client) -> None:
    """By form or by dialog; the audit knows who and why."""
    execution = start(create(project, WAIT), name="x")
    drain(execution)
    sent = {"error": "Wrong", "cause": MARKUP}
    answer = client.post(page(execution, "stop/"), sent, HTTP_HX_REQUEST="true")
    assert (answer.status_code, answer["HX-Trigger"]) == (204, '{"stopped": {}}')
    execution.refresh_from_db()
    assert (execution.status, execution.error, execution.cause) == ("ABORTED", "Wrong", MARKUP)
    assert MARKUP not in client.get(page(execution)).content.decode()
    assert "The execution has already ended" in text(client.get(page(execution, "stop/")))
    assert AuditEntry.objects.get(action="StopExecution").actor == "editor"


def test_the_form_never_runs_another_definition_than_its_link_named(
    project: Project, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A version that is too old for the list is selected, and one that is gone is an error."""
    monkeypatch.setattr(start_views, "_MOST_VERSIONS", 1)
    machine = create(project, PASS)
    versions.publish_version(machine)
    machines.update_machine(machine, definition=json.dumps(WAIT))
    versions.publish_version(machine)
    address = "/machines/machine/start/"
    assert '<option value="1" selected>Version 1' in text(client.get(f"{address}?run=1"))
    gone = text(client.get(f"{address}?run=9"), 404)
    assert "State Machine Does Not Exist" in gone
    form = {"name": "x", "input": "{}", "run": "9"}
    assert '<option value="9" selected>' in text(client.post(address, form), 422)


def test_a_version_or_an_alias_is_started_from_the_form(project: Project, client: Client) -> None:
    """The form offers them where there are any; a link chooses one ahead."""
    machine = create(project, PASS)
    address = "/machines/machine/start/"
    shown = text(client.get(address))
    assert "<h1>Start execution of <bdi>machine</bdi></h1>" in shown
    assert 'name="run"' not in shown
    version = versions.publish_version(machine)
    routing = [{"stateMachineVersionArn": version.arn, "weight": 100}]
    alias = versions.create_alias(project, "PROD", routing)
    machines.update_machine(machine, definition=json.dumps(WAIT))
    for key, words in (("", "Current definition"), ("1", "Version 1"), ("PROD", "Alias PROD")):
        shown = text(client.get(f"{address}?run={key}"))
        assert f'<option value="{key}">{words}' in shown.replace(" selected", "")
    assert '<option value="PROD" selected>' in shown
    rows = text(client.get("/machines/machine/versions/"))
    assert f'href="{address}?run=1"' in rows
    assert f'href="{address}?run=PROD"' in rows
    client.post(address, {"name": "by-version", "input": "{}", "run": "1"})
    client.post(address, {"name": "by-alias", "input": "{}", "run": "PROD"})
    started = {each.name: each for each in Execution.objects.all()}
    assert {each.version_arn for each in started.values()} == {version.arn}
    assert started["by-alias"].alias_arn == alias.arn
    assert {each.definition_id for each in started.values()} == {version.definition_id}
    refused = text(client.post(address, {"name": "kept", "input": "{}", "run": "9"}), 422)
    assert "Does Not Exist" in refused
    assert 'value="kept"' in refused
