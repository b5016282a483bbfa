"""What people changed at breakpoints stands beside the history wherever the history is read."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

import engine
from console.errors import ValidationException
from console.models import DebugEdit, Execution, StateMachine
from console.recordings.printed import read_printed
from console.store.executions import imports
from console.web.history import debug_edits
from tests.console.store.helpers import create, drain, function, start

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

RUN = "/machines/machine/executions/run/"
EDIT = {
    "timestamp": 1.5,
    "eventId": 2,
    "state": "Call",
    "change": "input",
    "by": "ana",
    "before": "1",
    "after": "2",
}
CALL = {
    "StartAt": "Call",
    "States": {
        "Call": {**function("work"), "Next": "Done"},
        "Done": {"Type": "Pass", "End": True},
    },
}


def shown(answer: Any) -> str:
    """Return the text of a page."""
    return str(answer.content.decode())


@pytest.fixture
def edited(client: Client, project: Project) -> Client:
    """Return a client in whose project an execution was edited at its task, and still runs."""
    places = (engine.Breakpoint("Call"),)
    execution = start(create(project, CALL), {"card": "old-1"}, name="run", breakpoints=places)
    drain(execution)
    fields = {"act": "continue", "halt": "1", "input": '{"card":"new-2"}', "variables": "{}"}
    client.post(f"{RUN}breakpoints/", fields)
    return client


@pytest.mark.parametrize(
    "address", [f"{RUN}events/", f"{RUN}?step=Call&tab=events", f"{RUN}_step?step=Call&tab=events"]
)
def test_pages_show_edits(edited: Client, address: str) -> None:
    """The page of events and the panel of the state: who, what before and what after."""
    text = shown(edited.get(address))
    assert "Changes at breakpoints" in text
    assert "input by" in text
    assert "old-1" in text
    assert "new-2" in text


def test_another_state_has_none(edited: Client) -> None:
    """The panel shows the changes of its own state."""
    assert "Changes at" not in shown(edited.get(f"{RUN}?step=Done&tab=events"))


def test_the_export_has_edits_and_hides_what_is_hidden(edited: Client, project: Project) -> None:
    """As a list beside the events, which stay as AWS writes them."""
    export = b"".join(edited.get(f"{RUN}export.json")).decode()
    (edit,) = engine.loads(export)["edits"]
    assert (edit["state"], edit["change"], edit["after"]) == ("Call", "input", '{"card":"new-2"}')
    project.masked = "$.card"
    project.save()
    for address in (f"{RUN}export.json", f"{RUN}events/", f"{RUN}?step=Call&tab=events"):
        answer = edited.get(address)
        text = b"".join(answer).decode()
        assert "(masked)" in text
        assert "old-1" not in text
        assert "new-2" not in text


def test_an_export_without_edits_has_none(client: Client, project: Project) -> None:
    """It is as it was before there were any."""
    drain(start(create(project, CALL), {}, name="run"))
    assert "edits" not in engine.loads(b"".join(client.get(f"{RUN}export.json")).decode())


def test_a_comparison_says_where_an_execution_was_edited(edited: Client, project: Project) -> None:
    """Of the one that was, and not of the other."""
    other = start(StateMachine.objects.get(), {}, name="other")
    arn = Execution.objects.get(name="run").arn
    text = shown(edited.get("/compare/", {"a": arn, "b": other.arn}))
    assert text.count("Edited at") == 1
    assert "Edited at Call." in " ".join(re.sub("<[^>]+>", "", text).split())
    assert project.pk == other.project_id


def test_an_import_carries_edits(edited: Client, project: Project) -> None:
    """From an export; each with its state, its author and both values."""
    export = b"".join(edited.get(f"{RUN}export.json")).decode()
    definition = json.dumps(CALL)
    imported = imports.import_execution(project, read_printed(export, definition))
    (edit,) = DebugEdit.objects.filter(execution=imported.pk)
    (original,) = DebugEdit.objects.exclude(pk=edit.pk)
    for name in ("event_id", "at_ms", "state", "what", "by", "before", "after"):
        assert getattr(edit, name) == getattr(original, name), name
    assert [each.after for each in debug_edits.shown_edits(imported)] == ['{"card":"new-2"}']


@pytest.mark.parametrize(
    "edits", [{}, [1], [{"state": "Call"}], [{**EDIT, "why": 1}], [{**EDIT, "eventId": "x"}]]
)
def test_wrong_edits_are_refused(edited: Client, edits: Any) -> None:
    """In words, as wrong events are."""
    export = json.loads(b"".join(edited.get(f"{RUN}export.json")))
    export["edits"] = edits
    with pytest.raises(ValidationException, match="The history: "):
        read_printed(json.dumps(export), json.dumps(CALL))


def test_the_panel_leads_to_the_form(edited: Client, signed_in: Callable[[str], Client]) -> None:
    """With the state selected; readers have no such link."""
    link = f'href="{RUN}breakpoints/?state=Done#set"'
    assert link in shown(edited.get(f"{RUN}?step=Done"))
    page = shown(edited.get(f"{RUN}breakpoints/?state=Done"))
    assert '<option value="Done" selected>' in page
    assert link not in shown(signed_in("viewer").get(f"{RUN}?step=Done"))
