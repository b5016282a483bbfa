"""The first page of an empty yard: a sample in one press, and the lines to copy."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import engine
from console.models import Execution
from tests.console.store.helpers import PASS, create
from tests.console.web.helpers import text

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.test import Client

    from console.models import Project

SAMPLE = {"sample": "OrderProcessing"}


def test_an_empty_yard_starts_a_sample_in_one_press(
    project: Project, signed_in: Callable[[str], Client]
) -> None:
    """The press makes the state machine, starts it and leads to the execution; twice is fine."""
    editor, viewer = signed_in("editor"), signed_in("viewer")
    assert "Start a sample" in text(editor.get("/"))
    assert "/samples/start/" not in text(viewer.get("/"))
    assert viewer.post("/samples/start/", SAMPLE).status_code == 403
    for count in (1, 2):
        response = editor.post("/samples/start/", SAMPLE)
        execution = Execution.objects.latest("pk")
        name = execution.name
        assert response["Location"] == f"/machines/OrderProcessing/executions/{name}/"
        assert Execution.objects.filter(project=project).count() == count
    assert "No state machines yet" not in text(editor.get("/"))
    assert editor.post("/samples/start/", {"sample": "Nothing"}).status_code == 404


def test_a_sample_leaves_a_state_machine_of_its_name_alone(
    project: Project, client: Client
) -> None:
    """Whoever has such a state machine is told; nothing is started."""
    create(project, PASS, "OrderProcessing")
    shown = text(client.post("/samples/start/", SAMPLE, follow=True))
    assert "The sample was not started" in shown
    assert not Execution.objects.exists()


def test_the_executions_of_an_empty_yard_lead_to_the_first(
    project: Project, signed_in: Callable[[str], Client]
) -> None:
    """A sample in one press, and not an empty list of state machines; later that list."""
    editor, viewer = signed_in("editor"), signed_in("viewer")
    shown = text(editor.get("/executions/"))
    assert "Start a sample" in shown
    assert "Choose state machine" not in shown
    assert "/samples/start/" not in text(viewer.get("/executions/"))
    response = editor.post("/samples/start/")
    assert response["Location"].startswith("/machines/OrderProcessing/executions/")
    Execution.objects.filter(project=project).delete()
    assert "Choose state machine" in text(editor.get("/executions/"))


def test_an_empty_yard_has_the_lines_to_copy(client: Client) -> None:
    """Address, key and commands stand on the first page, each with its button."""
    shown = text(client.get("/"))
    assert "export AWS_ENDPOINT_URL=http://testserver" in shown
    assert "aws stepfunctions create-state-machine" in shown
    assert shown.count("data-copy-text=") == 5
    copied = re.search(
        r'data-copy-text="(aws stepfunctions create-[^"]*"[^>]*)" data-script', shown
    )
    assert copied is not None
    words = shlex.split(copied[1])
    engine.parse(words[words.index("--definition") + 1])
    assert "Create access key" in shown
    assert 'href="/import/"' in shown


def test_the_first_page_says_where_clients_find_the_server(client: Client) -> None:
    """The endpoint, region and account, as a client of AWS asks for them."""
    facts = text(client.get("/")).partition("<dt>Endpoint</dt>")[2].partition("</dl>")[0]
    assert 'data-copy-text="http://testserver"' in facts
    assert "us-east-1" in facts
    assert "123456789012" in facts


def test_the_first_page_waits_for_the_first_state_machine(project: Project, client: Client) -> None:
    """It says nothing while there is none, and is loaded anew when a client has created one."""
    poll = re.search(r'hx-get="([^"]*/_overview[^"]*)"', text(client.get("/")))
    assert poll is not None
    assert client.get(poll[1]).status_code == 204
    create(project, PASS, "by-the-api")
    answer = client.get(poll[1])
    assert answer.headers["HX-Refresh"] == "true"
    assert client.get("/").context["machines"].total == 1


def test_a_viewer_of_an_empty_yard_gets_no_line_that_is_refused(
    project: Project, signed_in: Callable[[str], Client]
) -> None:
    """The lines of a viewer list state machines; those that create one are an editor's."""
    assert project
    shown = text(signed_in("viewer").get("/"))
    assert "list-state-machines" in shown
    assert "create-state-machine" not in shown
    assert "create_state_machine" not in shown
    assert "An editor creates the first one" in shown
