"""What leaves a page: pictures, flowcharts, and commands to copy."""

from __future__ import annotations

import json
import re
import shlex
from html import unescape
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from django.test import RequestFactory

import engine
from console import access
from console.features.exports import mermaid
from console.web.core import cli_commands
from console.web.core.scope import Scope
from tests.console.store.helpers import PASS, create, drain, start
from tests.console.web.helpers import CHAIN, MARKUP, page, text
from tests.features.versions.test_source import NESTED

if TYPE_CHECKING:
    from django.test import Client

    from console.models import Project

HOSTILE = {
    "Comment": "x",
    "StartAt": MARKUP,
    "States": {
        MARKUP: {
            "Type": "Choice",
            "Choices": [{"Variable": "$.a", "StringEquals": '"]|;#', "Next": "日本\uffff\u0007"}],
            "Default": 'end["',
        },
        "日本\uffff\u0007": {"Type": "Pass", "End": True},
        'end["': {"Type": "Fail"},
    },
}


def test_the_picture_is_whole_and_well_formed(project: Project, client: Client) -> None:
    """An SVG with every state's name, that needs no style and runs no script."""
    create(project, HOSTILE)
    answer = client.get("/machines/machine/definition.svg")
    assert answer["Content-Type"].startswith("image/svg+xml")
    root = ET.fromstring(answer.content)  # noqa: S314 - what we have just written
    words = "".join(root.itertext())
    assert MARKUP in words
    assert "日本\ufffd\u2407" in words
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert not tags & {"script", "style", "foreignObject", "a"}


def test_the_flowchart_has_every_state_and_way(project: Project, client: Client) -> None:
    """Groups hold their states; no name can end its own quotes."""
    create(project, NESTED)
    shown = client.get("/machines/machine/definition.mmd").content.decode()
    graph = engine.build_graph(engine.parse(json.dumps(NESTED)))
    for node in graph.nodes:
        assert re.search(rf"^ *(subgraph )?{node.id}\W", shown, re.MULTILINE)
    for edge in graph.edges:
        assert f"{edge.source} --> {edge.target}" in shown
    assert shown.count("subgraph") == shown.count("  end\n") == 5
    assert shown.startswith("flowchart TD\n")


def test_no_name_breaks_out_of_the_flowchart() -> None:
    """Each line has its quotes in pairs, and nothing but entities between them."""
    shown = mermaid.mermaid_flowchart(engine.build_graph(engine.parse(json.dumps(HOSTILE))))
    for line in shown.splitlines():
        assert line.count('"') in (0, 2)
        for quoted in re.findall(r'"(.*)"', line):
            assert not re.search(r"[<>\"|]|#(?!\d+;)", quoted)
    assert "#60;script#62;" in shown
    assert "#26085;#26412;" in shown


def test_an_execution_offers_its_commands(project: Project, client: Client) -> None:
    """As text to be read, and to be copied; each names this server."""
    execution = drain(start(create(project, PASS), {"it's": "$(x)"}, "run"))
    shown = client.get(page(execution)).content.decode()
    commands = [unescape(command) for command in re.findall(r'data-copy-text="(aws [^"]*)"', shown)]
    assert [command.split()[6] for command in commands] == [
        *("start-execution", "describe-execution", "get-execution-history")
    ]
    assert all(
        "--endpoint-url http://testserver --region us-east-1" in command for command in commands
    )


def test_an_execution_leaves_with_its_history(project: Project, client: Client) -> None:
    """What the API says of it, every event, and the definition it ran with."""
    execution = drain(start(create(project, PASS), {"n": "ü"}, "run"))
    address = page(execution, "export.json")
    assert address in text(client.get(page(execution)))
    answer = b"".join(client.get(address).streaming_content)  # type: ignore[attr-defined]
    export = json.loads(answer)
    assert export["execution"]["input"] == execution.input
    assert json.loads(export["execution"]["definition"]) == PASS
    types = [event["type"] for event in export["events"]]
    assert (types[0], types[-1]) == ("ExecutionStarted", "ExecutionSucceeded")
    assert client.get(page(execution, "nothing.json")).status_code == 404


def test_an_input_is_one_argument(project: Project) -> None:
    """Quotes, dollars and line ends stay what they are; a very long one is a file."""
    request = RequestFactory().get("/")
    user, _, _ = access.first_owner()
    here = Scope.of(access.Principal(user, project, "owner"), "us-east-1")
    value = {"it's": '$(x) `y` "z"\n'}
    execution = start(create(project, CHAIN), value)
    again = shlex.split(cli_commands.execution_commands(request, here, execution)[0].text)
    assert json.loads(again[again.index("--input") + 1]) == value
    assert again[again.index("--state-machine-arn") + 1] == execution.state_machine_arn
    execution.input = json.dumps("x" * 20_000)
    assert "file://input.json" in cli_commands.execution_commands(request, here, execution)[0].text
