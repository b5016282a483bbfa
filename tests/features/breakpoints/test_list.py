"""All lines of a project that wait, and the setting by which its owners forbid breakpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import engine
from console.db.audit import Actor
from console.errors import ConflictException, ValidationException
from console.features.breakpoints import list_views
from console.features.breakpoints.setting import put_allowed
from console.features.project_settings import sections
from console.models import Execution, Project, TaskRow
from console.store.executions import breakpoints
from tests.console.store.helpers import create, drain, function, start

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

BY = Actor("olga")
PAGE = "/breakpoints/"
RUN = "/machines/machine/executions/run/breakpoints/"
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
def execution(project: Project) -> Execution:
    """Return an execution that stands before its call."""
    places = (engine.Breakpoint("Call"),)
    execution = start(create(project, CALL), {"n": 1}, name="run", breakpoints=places)
    drain(execution)
    return execution


def test_lines_of_the_project_are_listed(
    signed_in: Callable[[str], Client], execution: Execution, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each with its execution; an editor gets a link to it, and nobody those of others."""
    other = Project.objects.create(name="other", account_id="999999999999")
    theirs = create(other, CALL, "theirs")
    drain(start(theirs, {}, name="unseen", breakpoints=(engine.Breakpoint("Call"),)))
    editor, viewer = signed_in("editor"), signed_in("viewer")
    text = shown(editor.get(PAGE))
    assert f'href="{RUN}#line-1"' in text
    assert "before its work" in text
    assert "unseen" not in text
    text = shown(viewer.get(PAGE))
    assert f'href="{RUN}' not in text
    assert 'href="/machines/machine/executions/run/"' in text
    assert viewer.post(PAGE, {"act": "forbid"}).status_code == 403
    assert editor.post(PAGE, {"act": "forbid"}).status_code == 403
    monkeypatch.setattr(list_views, "MOST", 0)
    assert ">0+</span>" in shown(viewer.get(PAGE))


def test_the_overview_and_the_palette_lead_there(client: Client, execution: Execution) -> None:
    """The count is a link; Ctrl+K finds the page."""
    assert f'href="{PAGE}" id="halted-count">1 at a breakpoint' in shown(client.get("/"))
    assert PAGE in shown(client.get("/palette/?q=breakpoints"))
    assert "No execution is halted" not in shown(client.get(PAGE))


def test_owners_forbid_breakpoints(
    signed_in: Callable[[str], Client], execution: Execution
) -> None:
    """Nothing is set or changed any more; what stands continues as it is."""
    client = signed_in("owner")
    answer = client.post(PAGE, {"act": "forbid"}, follow=True)
    assert "Breakpoints are forbidden in this project" in shown(answer)
    assert client.post(PAGE, {"act": "dance"}).status_code == 404
    page = shown(client.get(RUN))
    assert "This project forbids breakpoints." in page
    assert "Set breakpoint" not in page
    assert 'value="skip"' not in page
    for fields in (
        {"act": "add", "state": "Done"},
        {"act": "skip", "halt": "1", "output": "1"},
        {"act": "fail", "halt": "1", "error": "Mine"},
        {"act": "step", "halt": "1"},
        {"act": "continue", "halt": "1", "input": "2"},
    ):
        refused = client.post(RUN, fields)
        assert refused.status_code == 422, fields
        assert "This project forbids breakpoints." in shown(refused)
    assert 'id="break_state"' not in shown(client.get("/machines/machine/start/"))
    form = {"name": "second", "input": "{}", "break_state": "Call"}
    refused = client.post("/machines/machine/start/", form)
    assert "This project forbids breakpoints." in shown(refused)
    assert (
        client.post(
            RUN, {"act": "remove", "place": '[{"state":"Call","when":"before"}]'}
        ).status_code
        == 302
    )
    assert client.post(RUN, {"act": "continue", "halt": "1"}).status_code == 302
    assert TaskRow.objects.filter(execution=execution).exists()
    client.post(PAGE, {"act": "allow"})
    assert client.post(RUN, {"act": "add", "state": "Done"}).status_code == 302


def test_the_setting_is_exported_and_imported(project: Project, execution: Execution) -> None:
    """As a section of its own; a value that is not a truth value is refused with its line."""
    put_allowed(project, BY, allowed=False)
    text = sections.export_settings(project)
    assert "breakpoints:\n  allowed: false\n" in text
    assert sections.plan_import(project, text).changes == ()
    done = sections.import_settings(project, "breakpoints: {}\n", BY)
    assert [str(change) for change in done.changes] == ["- breakpoints: allowed: forbidden"]
    sections.import_settings(project, "breakpoints:\n  allowed: false\n", BY)
    assert breakpoints.is_forbidden(project.name)
    with pytest.raises(ConflictException, match="forbids breakpoints"):
        breakpoints.change_breakpoints(execution, lambda _: [engine.Breakpoint("Done")], BY)
    for wrong, words in (
        ("breakpoints:\n  allowed: maybe\n", "line 2: breakpoints: allowed: got 'maybe'"),
        ("breakpoints:\n  never: true\n", "line 2: breakpoints: never: an unknown entry"),
    ):
        with pytest.raises(ValidationException, match=words):
            sections.plan_import(project, wrong)
