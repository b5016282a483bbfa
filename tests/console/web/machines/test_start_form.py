"""The start form offers recent inputs, shows the graph, and writes the same start as a command."""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING

from django.db import connection
from django.test.utils import CaptureQueriesContext

from console.store.machines import machines, versions
from tests.console.store.helpers import PASS, WAIT, create, drain, start
from tests.console.web.helpers import markup, text

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project

ADDRESS = "/machines/machine/start/"


def recent(client: Client, query: str = "") -> str:
    """Return the list of recent inputs, without needless blanks."""
    shown = markup(client.get(ADDRESS + query))
    _, there, rest = shown.partition('<section class="card recent-inputs"')
    return rest.partition("</section>")[0] if there else ""


def test_five_distinct_inputs_are_offered_the_newest_first(
    project: Project, client: Client
) -> None:
    """Each with the last execution that had it, its status and its time."""
    machine = create(project, PASS)
    assert recent(client) == ""
    for number in (1, 2, 3, 4, 5, 6, 6, 3):
        drain(start(machine, {"order": number}))
    listed = recent(client)
    orders = [part.partition("}")[0] for part in html.unescape(listed).split('{"order": ')[1:]]
    assert orders == ["3", "6", "5", "4", "2"]
    assert listed.count("Succeeded") == 5
    assert listed.count("<time") == 5
    assert listed.count('data-fill="input"') == 5
    assert f"origin={machine.execution_set.latest('pk').name}" in listed


def test_a_recent_input_is_masked_and_a_long_one_named(project: Project, client: Client) -> None:
    """The list shows no more than the page of its execution; a long input has no beginning."""
    machine = create(project, PASS)
    drain(start(machine, {"card": "4711-0815", "id": 7}))
    drain(start(machine, {"long": "x" * 20_000}))
    project.masked = "$.card"
    project.save()
    listed = html.unescape(recent(client))
    assert "4711-0815" not in text(client.get(ADDRESS))
    assert '"id":7' in listed.replace(" ", "")
    assert "(masked)" in listed
    assert "a long input" in listed
    assert "xxxx" not in listed


def test_the_form_costs_no_more_with_many_executions(project: Project, client: Client) -> None:
    """Inputs are read in one query, and not all of them."""
    machine = create(project, PASS)
    client.get(ADDRESS)
    counts = []
    for _ in range(2):
        for number in range(12):
            drain(start(machine, {"order": number}))
        with CaptureQueriesContext(connection) as queries:
            client.get(ADDRESS)
        counts.append(len(queries))
    assert counts[0] == counts[1]


def test_the_form_shows_the_graph_and_the_command(project: Project, client: Client) -> None:
    """The command has what the form has: version, name and input; what is masked is a file."""
    machine = create(project, PASS)
    version = versions.publish_version(machine)
    machines.update_machine(machine, definition=json.dumps(WAIT))
    shown = text(client.get(ADDRESS))
    assert "data-graph" in shown
    assert "The command does not include the time limit" in shown
    assert f"start-execution --state-machine-arn {machine.arn} --input '{{}}'" in shown
    sent = {"run": "1", "name": "mine", "input": "{nope"}
    refused = text(client.post(ADDRESS, sent), 422)
    assert f"--state-machine-arn {version.arn} --input" not in refused
    assert f"--state-machine-arn {version.arn} --name mine --input '{{nope'" in refused
    project.masked = "$.card"
    project.save()
    secret = drain(start(machine, {"card": "4711-0815"}))
    assert "--input file://input.json" in text(client.get(f"{ADDRESS}?origin={secret.name}"))
