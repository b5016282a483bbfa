"""The page of the definition that an execution ran with: its graph beside its text."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from django.db import connection
from django.test.utils import CaptureQueriesContext

import engine
from console.models import Execution
from console.store.executions.stop import stop_execution
from console.store.machines import machines
from tests.console.store.helpers import create, drain, ended, start
from tests.console.web.graph.workflows import maps
from tests.console.web.helpers import CHAIN, markup, page, text
from tests.features.imports.test_imports import brought
from tests.features.map_runs.test_map_run import FAILS, over

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project
    from console.worker import Embedded


def test_each_state_of_the_graph_leads_to_its_place_in_the_text(
    project: Project, client: Client
) -> None:
    """As it was given, and as it was then."""
    machine = create(project, CHAIN)
    execution = drain(start(machine, name="x"))
    machines.update_machine(
        machine, definition='{"StartAt": "Other", "States": {"Other": {"Type": "Succeed"}}}'
    )
    shown = text(client.get(page(execution, "definition/")))
    for name, node in engine.build_graph(engine.parse(json.dumps(CHAIN))).by_name.items():
        assert f'href="#src-{node}"' in shown
        assert f'id="src-{node}"' in shown
        assert f'data-step="{name}"' in shown
    assert "Other" not in shown
    assert "The definition has changed since" in shown
    assert "data-find-state" in shown
    assert "data-copy" in shown
    raw = client.get(page(execution, "definition.asl.json"))
    assert f'href="{page(execution, "definition.asl.json")}"' in shown
    assert json.loads(raw.content) == CHAIN


def test_groups_of_a_large_one_fold_and_a_named_state_is_seen(
    project: Project, client: Client
) -> None:
    """The address may name a state, whose group is open then."""
    definition = maps(60)
    execution = drain(start(create(project, json.loads(definition), "large"), [], "x"))
    shown = text(client.get(page(execution, "definition/")))
    assert "Unfold map7, 2 states" in shown
    inside = engine.build_graph(engine.parse(definition)).by_name["first9"]
    assert f'id="src-{inside}"' in shown
    named = text(client.get(page(execution, f"definition/?state={inside}")))
    assert "Unfold map9" not in named
    assert f'id="src-{inside}" tabindex="-1" autofocus' in named


def test_children_of_a_map_run_and_imports_have_theirs(
    project: Project, client: Client, worker: Embedded
) -> None:
    """Where no state machine stands behind it."""
    del worker
    ended(start(create(project, over(FAILS, ToleratedFailureCount=1)), [1, 3]))
    child = Execution.objects.filter(map_run__isnull=False).first()
    assert child is not None
    shown = text(client.get(f"/machines/machine~L/executions/{child.name}/definition/"))
    assert "Three?" in shown
    assert "Current definition" not in shown
    assert "Say" in text(client.get(f"{brought(client)}definition/"))


def test_it_takes_few_queries(project: Project, client: Client) -> None:
    """As many for a long history as for a short one, which is read by one of them."""
    execution: Any = drain(start(create(project, CHAIN), name="x"))
    with CaptureQueriesContext(connection) as taken:
        text(client.get(page(execution, "definition/")))
    assert len(taken) <= 6


def test_its_graph_is_coloured_as_it_ran(project: Project, client: Client) -> None:
    """With a legend that says so; what was not entered stands out, and ways not taken."""
    execution = drain(start(create(project, CHAIN), name="x"))
    shown = markup(client.get(page(execution, "definition/")))
    boxes = dict(re.findall(r'<a class="node (\w+)[^"]*" data-step="(\w+)"', shown))
    assert boxes == {"succeeded": "First", "running": "Nap"}
    assert "Status so far:" in shown
    assert re.search(r'class="edge next taken"', shown)
    assert "Waiting · " not in shown  # the page does not tick with the execution
    stop_execution(execution)
    shown = markup(client.get(page(execution, "definition/")))
    assert "Status:" in shown
    assert '<a class="node aborted" data-step="Nap"' in shown


def test_pages_of_an_execution_are_headed_by_its_name(project: Project, client: Client) -> None:
    """So that two tabs of a browser can be told apart."""
    execution = drain(start(create(project, CHAIN), name="order-4711"))
    for part, words in {
        "definition/": "<h1>Definition of<bdi>order-4711</bdi>",
        "events/": "<h1>Events of<bdi>order-4711</bdi>",
        "tree/": "<h1>Execution tree of<bdi>order-4711</bdi>",
        "events/2/": f'<p>Of<a href="{page(execution)}"><bdi>order-4711</bdi></a>',
    }.items():
        assert words in markup(client.get(page(execution, part)))


def test_the_text_leads_to_steps_and_lines(project: Project, client: Client) -> None:
    """From the name of a state to its step in this execution, from Next to the lines it names."""
    execution = drain(start(create(project, CHAIN), name="x"))
    shown = markup(client.get(page(execution, "definition/")))
    assert (
        f'<a class="state-key" href="{page(execution)}?region=us-east-1&step=Nap">"Nap"</a>'
        in shown
    )
    nap = engine.build_graph(engine.parse(json.dumps(CHAIN))).by_name["Nap"]
    assert f'"Next": <a class="s" href="#src-{nap}">"Nap"</a>' in shown.replace(":<a", ": <a")
    assert shown.count("data-line=") == json.dumps(CHAIN, indent=2).count("\n") + 1
