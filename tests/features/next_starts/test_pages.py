"""The page of next starts: set and removed by editors, seen by everybody; executions are marked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.errors import ValidationException
from console.features.breakpoints.setting import put_allowed
from console.features.notifications.store import routing
from console.models import AuditEntry, Execution, HaltedExecution, StateMachine
from console.recordings.printed import read_printed
from console.store.executions import imports, next_starts
from console.store.executions.start import start_execution
from console.store.executions.stop import stop_execution
from console.web.core.addresses import import_address
from tests.console.store.executions.test_next_starts import (
    ANA,
    BUSY,
    CALLED,
    as_read,
    set_places,
    start,
)
from tests.console.store.helpers import PASS, create, drain
from tests.console.worker.nesting import machine_of, members, outcome, starting
from tests.features.notifications.relay import carry_all, rule_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

PAGE = "/machines/machine/next-starts/"
MACHINE = "/machines/machine/"
SET = {"act": "set", "starts": "3", "hours": "2", "break_state": "Call", "break_when": "before"}


@pytest.fixture
def machine(project: Project) -> StateMachine:
    """Return a machine with a call."""
    return create(project, CALLED)


def shown(answer: Any) -> str:
    """Return the text of a page, with single blanks."""
    return " ".join(answer.content.decode().split())


def test_an_editor_sets_and_removes(client: Client, machine: StateMachine) -> None:
    """By a form without a script; the machine's pages say so meanwhile."""
    assert 'name="break_state"' in shown(client.get(PAGE))
    fields = {
        **SET,
        "break_condition": "$states.input.n = 1",
        "fault_state": ["Call"],
        "fault_error": ["Busy"],
        "fault_attempts": ["1"],
    }
    assert client.post(PAGE, fields).status_code == 302
    page = shown(client.get(PAGE))
    assert "Set for the next 3 starts" in page
    assert "Stops before Call, with a condition: <code>$states.input.n = 1</code>" in page
    assert "<li>Call fails with Busy before its call at attempt 1</li>" in page
    assert "Random for each start" in page
    assert '<dd id="taken">0 of 3 starts</dd>' in page
    for address in (MACHINE, f"{MACHINE}start/"):
        banner = shown(client.get(address))
        assert "Set for the next 3 starts" in banner
        assert "Stops before Call, with a condition" in banner
        assert "$states.input.n" not in banner
    assert "Breakpoints or faults for 3 starts" in shown(client.get("/machines/"))
    current = StateMachine.objects.get().next_starts
    set_ms = json.loads(current or "")["set_ms"]
    assert client.post(PAGE, {"act": "remove", "set_ms": str(set_ms)}).status_code == 302
    assert StateMachine.objects.get().next_starts is None
    gone = client.post(PAGE, {"act": "remove", "set_ms": str(set_ms)})
    assert gone.status_code == 422
    assert "They are gone" in shown(gone)
    actions = AuditEntry.objects.filter(target=machine.arn).values_list("action", flat=True)
    assert [*actions.order_by("pk")][-2:] == ["SetNextStarts", "RemoveNextStarts"]


def test_the_executions_are_marked(client: Client, machine: StateMachine) -> None:
    """On their page, in the list, in the export; the one after is not."""
    set_places(machine, 2, faults={"seed": 7, "faults": [{**BUSY, "attempts": [9]}]})
    start(machine, name="before")
    start(machine, name="run")
    page = shown(client.get(f"{MACHINE}executions/run/"))
    assert "<b>Set for the next 2 starts</b> by <bdi>ana</bdi>" in page
    assert "; this is start 2. Stops before Call." in page
    assert "<b>Faults injected.</b> Call fails with Busy before its call at attempt 9" in page
    assert "Halted at a breakpoint" in page
    for address in ("/executions/", MACHINE):
        listed = shown(client.get(address))
        assert listed.count("Set for the next 2 starts by <bdi>ana</bdi>") == 2
        assert "Faults injected" in listed
    exported = json.loads(b"".join(client.get(f"{MACHINE}executions/run/export.json")))
    place = exported["execution"]["nextStarts"]
    assert (place["by"], place["starts"], place["number"]) == ("ana", 2, 2)
    start(machine, name="later")
    assert "Set for the next" not in shown(client.get(f"{MACHINE}executions/later/"))


def test_where_faults_are_shown_their_origin_is(client: Client, machine: StateMachine) -> None:
    """On the page of faults, and in a comparison on its side only."""
    set_places(machine, 1, faults={"seed": 7, "faults": [{**BUSY, "attempts": [9]}]})
    taken, free = start(machine, name="run"), start(machine, name="later")
    words = "<b>Set for the next start</b> by <bdi>ana</bdi>"
    assert words in shown(client.get(f"{MACHINE}executions/run/faults/"))
    page = shown(client.get("/compare/", {"a": taken.arn, "b": free.arn}))
    assert page.count(words) == page.count("Faults injected.") == 1
    assert page.count("Stops before Call.") == 1


def test_an_import_keeps_the_place(client: Client, project: Project, machine: StateMachine) -> None:
    """Its page, its list and its own export are as those of the original."""
    set_places(machine, 2, faults={"seed": 7, "faults": [{**BUSY, "attempts": [9]}]})
    start(machine, name="before")
    stop_execution(start(machine, name="run"))
    original = json.loads(b"".join(client.get(f"{MACHINE}executions/run/export.json")))
    place = original["execution"]["nextStarts"]
    assert place["breakpoints"] == ["Stops before Call"]
    printed = read_printed(json.dumps(original), original["execution"]["definition"])
    imported = imports.import_execution(project, printed)
    address = f"/machines/{import_address(imported)}/executions/{imported.name}/"
    page = shown(client.get(address))
    assert "<b>Set for the next 2 starts</b> by <bdi>ana</bdi>" in page
    assert "; this is start 2. Stops before Call." in page
    again = json.loads(b"".join(client.get(f"{address}export.json")))
    assert again["execution"]["nextStarts"] == place
    del place["breakpoints"]  # an export of an earlier version
    printed = read_printed(json.dumps(original), original["execution"]["definition"])
    assert json.loads(printed.next_starts)["breakpoints"] == []


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        (1, "wanted an object with by, since, starts and number"),
        ({"by": "ana", "since": 1, "starts": 2}, "wanted an object with by, since"),
        ({"by": "ana", "since": "x", "starts": 2, "number": 1}, "wanted an object with by"),
        ({"by": "ana", "since": 1, "starts": 2, "number": 3}, "got start 3 of 2, wanted 1 to 100"),
        ({"by": "ana", "since": 1, "starts": 101, "number": 3}, "got start 3 of 101, wanted"),
        (
            {"by": "ana", "since": 1, "starts": 2, "number": 1, "breakpoints": "x"},
            "breakpoints",
        ),
    ],
)
def test_an_import_refuses_a_place(
    client: Client, machine: StateMachine, place: Any, problem: str
) -> None:
    """In words: a page could not show it."""
    start(machine, name="run")
    export = json.loads(b"".join(client.get(f"{MACHINE}executions/run/export.json")))
    export["execution"]["nextStarts"] = place
    with pytest.raises(ValidationException) as refused:
        read_printed(json.dumps(export), export["execution"]["definition"])
    assert refused.value.message.startswith("The history: “nextStarts”: ")
    assert problem in refused.value.message


def test_lists_of_executions_do_not_read_what_is_set(client: Client, machine: StateMachine) -> None:
    """It may have 64 KiB, and each row would have it."""
    set_places(machine, 9)
    start(machine, name="run")
    with CaptureQueriesContext(connection) as queries:
        assert "Set for the next 9 starts" in shown(client.get("/executions/"))
    lists = [query["sql"] for query in queries if "LEFT OUTER JOIN" in query["sql"]]
    assert any('"console_execution"."next_starts"' in sql for sql in lists)
    assert not any('"console_statemachine"."next_starts"' in sql for sql in lists)


def test_a_press_on_the_graph_selects_its_state(client: Client, machine: StateMachine) -> None:
    """Its link opens the form with that state."""
    page = client.get(PAGE).content.decode()
    before, _, rest = page.partition('data-step="Done"')
    assert before
    address = rest.partition('href="')[2].partition('"')[0]
    assert address.startswith("?state=")
    assert '<option value="Done" selected>' in shown(client.get(f"{PAGE}{address}"))
    assert '<option value="Done" selected>' not in shown(client.get(f"{PAGE}?state=nope"))
    assert machine.name == "machine"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"starts": "101"}, "starts: got 101, expected 1 to 100"),
        ({"starts": "x"}, "The number of starts must be a whole number, not &#x27;x&#x27;"),
        ({"hours": "169"}, "hours: got 169, expected 1 to 168"),
        ({"hours": ""}, "The number of hours must be a whole number, not &#x27;&#x27;"),
        ({"break_state": ""}, "Select at least one breakpoint or one fault."),
        ({"break_state": "Nope"}, "got the state &#x27;Nope&#x27;"),
        ({"fault_state": "Done"}, "got Done, a Pass, wanted a Task or Parallel or Map"),
    ],
)
def test_the_page_refuses(
    client: Client, machine: StateMachine, fields: dict[str, str], words: str
) -> None:
    """With what was typed."""
    answer = client.post(PAGE, {**SET, "fault_seed": "", **fields})
    assert answer.status_code == 422
    assert words in shown(answer)
    for name in ("starts", "hours"):
        assert f'name="{name}" value="{ {**SET, **fields}[name] }"' in shown(answer)
    assert StateMachine.objects.get(pk=machine.pk).next_starts is None


def test_a_second_editor_is_refused(client: Client, machine: StateMachine) -> None:
    """The page shows the first one's instead."""
    set_places(machine)
    answer = client.post(PAGE, SET)
    assert answer.status_code == 422
    assert "ana has set some for the next 2 starts: remove these first." in shown(answer)


def test_others_see_and_cannot_change(
    signed_in: Callable[[str], Client], machine: StateMachine
) -> None:
    """A condition is for editors: it may quote values."""
    reader = signed_in("viewer")
    assert "Nothing is set" in shown(reader.get(PAGE))
    assert 'name="starts"' not in shown(reader.get(PAGE))
    set_places(machine)
    page = shown(reader.get(PAGE))
    assert "Stops before Call" in page
    assert "Remove for everybody" not in page
    for person in (reader, signed_in("operator")):
        for fields in (SET, {"act": "remove", "set_ms": "1"}):
            assert person.post(PAGE, fields).status_code == 403
    assert StateMachine.objects.get().next_starts is not None


@pytest.mark.postgres_too
def test_a_project_that_forbids_breakpoints(client: Client, machine: StateMachine) -> None:
    """Faults can be set; what was set before says why no start takes it."""
    set_places(machine)
    put_allowed(machine.project, ANA, allowed=False)
    banner = shown(client.get(MACHINE))
    assert "Starts take no place at the moment: This project forbids breakpoints." in banner
    StateMachine.objects.update(next_starts=None)
    assert "This project forbids breakpoints." in shown(client.get(PAGE))
    assert 'name="break_state"' not in shown(client.get(PAGE))
    assert client.post(PAGE, SET).status_code == 422
    faulty = {"act": "set", "starts": "1", "hours": "1", "fault_state": "Call"}
    assert client.post(PAGE, faulty).status_code == 302


def test_express_machines_offer_none(client: Client, machine: StateMachine) -> None:
    """No link leads there, and a request is refused."""
    StateMachine.objects.filter(pk=machine.pk).update(type="EXPRESS")
    assert "next-starts" not in shown(client.get(MACHINE))
    assert "Express executions have no breakpoints" in shown(client.get(PAGE))
    assert client.post(PAGE, SET).status_code == 422


def test_an_unknown_act_is_not_found(client: Client, machine: StateMachine) -> None:
    """Whatever is set stays."""
    set_places(machine)
    assert client.post(PAGE, {"act": "double"}).status_code == 404
    assert StateMachine.objects.get().next_starts is not None


def test_the_start_form_takes_a_place(client: Client, machine: StateMachine) -> None:
    """As every start does."""
    set_places(machine, 1)
    assert client.post(f"{MACHINE}start/", {"name": "run", "input": "{}"}).status_code == 302
    drain(Execution.objects.get(name="run"))
    assert HaltedExecution.objects.get().execution.name == "run"


def test_nested_and_scheduled_starts_take_places(project: Project, machine: StateMachine) -> None:
    """An execution that a Task starts, and one that a rule starts."""
    members(project, ana="owner")
    set_places(machine, 2)
    parent = machine_of(project, "ana", starting(as_read(machine), Name="child"), "parent")
    outcome(parent, "ana")
    assert next_starts.place_of(Execution.objects.get(name="child")) is not None
    rule_to(project, machine.arn)
    drain(start_execution(create(project, PASS, "other")))
    routing.route_events()
    carry_all()
    places = [next_starts.place_of(execution) for execution in Execution.objects.order_by("pk")]
    assert [place.number for place in places if place] == [1, 2]
