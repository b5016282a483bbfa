"""The command palette: what a text may mean, as far as its reader may see and do it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from console.models import Execution, Project
from tests.console.store.helpers import PASS, create, drain, start
from tests.console.web.helpers import CHAIN, text
from tests.console.web.test_lists import copies

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client


def matches(client: Client, sought: str) -> dict[str, list[str]]:
    """Return kind -> the names of its matches."""
    response = client.get(f"/palette/?q={quote(sought)}")
    assert response.status_code == 200
    return {
        group.title: [match.title for match in group.matches]
        for group in response.context["groups"]
    }


def test_a_text_finds_machines_executions_states_pages_actions_and_people(
    project: Project, signed_in: Callable[[str], Client]
) -> None:
    """Each kind has its matches; the kind with the best one stands first."""
    client = signed_in("editor")
    machine = create(project, CHAIN, "Napping")
    start(machine, name="nap-4711")
    found = matches(client, "nap")
    assert found["State machines"] == ["Napping"]
    assert found["Executions"] == ["nap-4711"]
    assert found["States"] == ["Nap"]
    assert next(iter(found)) == "States", "its name is the text"
    assert {"Start Napping", "Edit Napping"} <= set(found["Actions"])
    assert matches(client, "metrics")["Pages"] == ["Metrics"]
    assert matches(client, "edit")["People"] == ["editor"]
    assert matches(client, "start nap")["Actions"] == ["Start Napping"]


def test_states_inside_maps_and_branches_are_found(project: Project, client: Client) -> None:
    """The match leads to the state in the definition."""
    inner = {"StartAt": "Deep “one”", "States": {"Deep “one”": {"Type": "Pass", "End": True}}}
    outer = {"Type": "Parallel", "Branches": [inner], "End": True}
    create(project, {"StartAt": "Both", "States": {"Both": outer}}, "Nested")
    shown = text(client.get("/palette/?q=deep"))
    assert "Deep “one”" in shown
    assert "/machines/Nested/definition/?state=Deep" in shown


def test_a_pasted_arn_or_id_finds_an_execution_however_old(
    project: Project, client: Client
) -> None:
    """The whole name is looked for in an index, not among the newest ones only."""
    machine = create(project, PASS, "Busy")
    old = start(machine, name="5d2c7a10-old")
    drain(old)
    copies(old, 60, name="newer")
    assert matches(client, "5d2c7a10-old")["Executions"] == ["5d2c7a10-old"]
    assert matches(client, old.arn) == {"Executions": ["5d2c7a10-old"]}
    assert client.get(f"/arn/{old.arn}", follow=True).status_code == 200
    assert matches(client, machine.arn) == {"State machines": ["Busy"]}


def test_nobody_finds_what_is_not_theirs(
    project: Project, signed_in: Callable[[str], Client]
) -> None:
    """A viewer is offered no action without the right; another project stays unseen."""
    other = Project.objects.create(name="other", account_id="210987654321")
    hidden = start(create(other, PASS, "Hidden"), name="hidden-run")
    create(project, PASS, "Mine")
    viewer = signed_in("viewer")
    assert matches(viewer, "hidden") == {}
    assert matches(viewer, hidden.arn) == {}
    assert matches(viewer, "Mine").keys() == {"State machines"}
    offered = matches(viewer, "")["Actions"]
    assert "Create state machine" not in offered
    assert "Import an execution" not in offered
    assert "Start Mine" in matches(signed_in("operator"), "Mine")["Actions"]


def test_the_palette_reads_without_a_script(project: Project, client: Client) -> None:
    """The link of the top bar leads to a page with the same field; htmx gets the list alone."""
    create(project, PASS, "Plain")
    assert 'href="/palette/"' in text(client.get("/"))
    shown = text(client.get("/palette/?q=plain"))
    assert "<form" in shown
    assert 'href="/machines/Plain/"' in shown
    part = text(client.get("/palette/?q=plain", headers={"HX-Request": "true"}))
    assert "<html" not in part
    assert 'href="/machines/Plain/"' in part
    unknown = client.get("/palette/?q=zzz+<b>")
    assert "Nothing is called" in text(unknown)
    assert b"<b>" not in unknown.content
    assert Execution.objects.count() == 0
    assert client.get("/palette/?q=" + "x" * 3000).status_code == 200
