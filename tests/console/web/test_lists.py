"""Overview and lists: what runs, what failed, page by page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from console.store import executions
from tests.console.store.helpers import PASS, WAIT, create, drain, start
from tests.console.web.helpers import text

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project


def test_an_empty_yard_says_what_to_do(client: Client) -> None:
    """Overview and list lead to the first machine."""
    assert "create-state-machine" in text(client.get("/"))
    assert "No state machine yet" in text(client.get("/machines/"))
    assert "No execution yet" in text(client.get("/executions/"))


def test_the_overview_shows_running_and_failed(project: Project, client: Client) -> None:
    """What runs now and what failed lately is above the fold."""
    start(create(project, WAIT, "Waits"), name="still-running")
    drain(
        start(
            create(
                project,
                {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "Oops"}}},
                "Fails",
            ),
            name="went-wrong",
        )
    )
    shown = text(client.get("/"))
    assert "still-running" in shown
    assert "went-wrong" in shown
    assert "Oops" in shown


def test_the_overviews_poll_is_silent_until_something_changes(
    project: Project, client: Client
) -> None:
    """Nothing new is a 204; a new execution brings the lists, with their next poll."""
    machine = create(project, PASS)
    seen = client.get("/").context["seen"]
    assert client.get(f"/_overview?seen={seen}").status_code == 204
    start(machine)
    assert "hx-swap-oob" in text(client.get(f"/_overview?seen={seen}", HTTP_HX_REQUEST="true"))


def test_the_list_of_machines_can_be_searched_and_paged(project: Project, client: Client) -> None:
    """A part of the name finds; pages do not repeat."""
    for number in range(53):
        create(project, PASS, f"machine-{number:02}")
    first = text(client.get("/machines/"))
    assert "machine-49" in first
    assert "machine-50" not in first
    assert "machine-52" in text(client.get("/machines/?after=machine-49"))
    found = text(client.get("/machines/?q=ne-07"))
    assert "machine-07" in found
    assert "machine-08" not in found
    assert "Show all" in text(client.get("/machines/?q=nothing"))


def test_executions_are_paged_by_key(project: Project, client: Client) -> None:
    """Executions that start meanwhile neither repeat nor hide a row."""
    machine = create(project, WAIT)
    for number in range(55):
        start(machine, name=f"x{number:02}")
    first = client.get("/machines/machine/").context["executions"]
    for number in range(3):
        start(machine, name=f"late{number}")
    second = client.get(f"/machines/machine/?before={first.before}").context["executions"]
    names = [row.name for row in (*first.rows, *second.rows)]
    assert sorted(names) == [f"x{number:02}" for number in range(55)]
    assert "3 new executions" in text(
        client.get(f"/machines/machine/_new?newest={first.newest}&count=0")
    )


def test_a_lists_poll_marks_what_ended(project: Project, client: Client) -> None:
    """A row that was running is replaced once it has ended, and only then."""
    execution = start(create(project, WAIT), name="soon")
    address = f"/executions/_new?newest={execution.pk}&count=0&running={execution.pk}"
    assert client.get(address).status_code == 204
    executions.stop(execution)
    answer = text(client.get(address))
    assert f'id="x{execution.pk}"' in answer
    assert "Aborted" in answer


def test_executions_are_filtered(project: Project, client: Client) -> None:
    """Status and name narrow the list; a filter without a match can be cleared."""
    machine = create(project, WAIT)
    start(machine, name="alpha")
    executions.stop(start(machine, name="beta"))
    shown = text(client.get("/executions/?status=ABORTED"))
    assert "beta" in shown
    assert "alpha" not in shown
    assert "Clear the filter" in text(client.get("/executions/?q=gamma"))
