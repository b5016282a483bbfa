"""What the editor takes beside JSON, proposes from data, and keeps with a new machine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from console.cli.account import Account
from console.cli.documents import SourceError
from console.features.editor.conversion import YAML as AS_YAML
from console.features.editor.conversion import convert_text, examine_text
from console.features.editor.problems import list_problems
from console.models import StateMachine
from console.store.machines import tags
from tests.console.store.helpers import PASS, create, drain, start
from tests.console.web.graph.workflows import TEMPLATE
from tests.console.web.helpers import text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.test import Client

    from console.models import Project

YAML = """
# a comment
StartAt: Greet
States:
  Greet:
    Type: Pass
    Result: on  # a text, as YAML 1.2 means it
    End: true
"""
AS_JSON = {"StartAt": "Greet", "States": {"Greet": {"Type": "Pass", "Result": "on", "End": True}}}
CONVERT = 'name="convert"'
ACCOUNT = Account()


# -- YAML ------------------------------------------------------------------------------------------


def test_yaml_is_known_and_becomes_json(client: Client) -> None:
    """The check offers the change; the change keeps what else was typed, and saves nothing."""
    assert CONVERT in text(client.post("/machines/new/_check", {"text": YAML}))
    typed = {"name": "mine", "text": YAML, "tags": "team=a", "convert": "yaml"}
    shown = text(client.post("/machines/new/", typed))
    assert '"StartAt": "Greet"' in shown
    assert 'value="mine"' in shown
    assert ">team=a</textarea>" in shown
    assert not StateMachine.objects.exists()


def test_the_place_of_the_graph_says_what_to_press_for_yaml(client: Client) -> None:
    """Instead of an older graph, which no press changes, and of "no graph yet"."""
    for address in ("/machines/new/_check", "/machines/new/"):
        shown = text(client.post(address, {"text": YAML, "check": "1"}))
        graph = shown.partition('id="preview"')[2]
        assert "The text is YAML" in graph
        assert "Click <b>Convert to JSON</b> below" in graph
        assert "No graph yet" not in shown
        assert "Last valid version" not in shown


def test_a_machine_there_is_takes_yaml_too(project: Project, client: Client) -> None:
    """The editor of a machine changes the text in the same way."""
    create(project, PASS)
    shown = text(client.post("/machines/machine/edit/", {"text": YAML, "convert": "yaml"}))
    assert '"Result": "on"' in shown
    assert StateMachine.objects.get().definition.text == json.dumps(PASS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "other",
    [
        "",
        '{"StartAt": ',
        "StartAt: [",
        "just words",
        "a: &a [1]\nStates: *a",
        "States: {A: 1, A: 2}",
        "States: .nan",
        "States: " + "[" * 3000 + "]" * 3000,
        "States: x\nComment: " + "y" * 300_000,
    ],
)
def test_what_is_no_definition_in_yaml(other: str) -> None:
    """Half of a text, aliases that could grow, keys that stand twice, what JSON cannot say."""
    assert not examine_text(other).is_convertible
    assert convert_text(other, AS_YAML, ACCOUNT) is None


def test_yaml_is_read_as_it_is_deployed() -> None:
    """The same reader as that of ``stateyard deploy``."""
    converted = convert_text(YAML, AS_YAML, ACCOUNT)
    assert converted is not None
    assert json.loads(converted.text) == AS_JSON


def test_broken_yaml_is_no_broken_json() -> None:
    """The place is that of the mistake; other broken texts keep the message of the API."""
    broken = YAML.replace("    End: true", "   End: true")
    (problem,) = list_problems(broken, "STANDARD", examine_text(broken))
    assert problem.message.startswith("Neither JSON nor YAML: ")
    assert problem.line == 8
    (words,) = list_problems("just: [words", "STANDARD", examine_text("just: [words"))
    assert words.message.startswith("Unrecognized token 'just'")


def test_a_line_that_ends_in_a_text_misses_its_quotation_mark() -> None:
    """AWS's parser speaks of a control character there."""
    (problem,) = list_problems('{"StartAt": "A\n}', "STANDARD", examine_text("{"))
    assert problem.message == "A text has no closing quotation mark in its line."
    assert (problem.line, problem.column) == (1, 15)


# -- templates -------------------------------------------------------------------------------------

CDK = json.dumps(
    {
        "Resources": {
            "Flow1234": {
                "Type": "AWS::StepFunctions::StateMachine",
                "Properties": {
                    "DefinitionString": {
                        "Fn::Join": [
                            "",
                            [
                                '{"StartAt":"A","States":{"A":{"Type":"Task","End":true,"Resource":"',
                                {"Fn::GetAtt": ["Fn5678", "Arn"]},
                                '"}}}',
                            ],
                        ]
                    }
                },
                "Metadata": {"aws:cdk:path": "Stack/Flow/Resource"},
            },
            "Fn5678": {"Type": "AWS::Lambda::Function"},
        }
    }
)
PACK = "arn:aws:lambda:us-east-1:123456789012:function:Pack"


def test_a_state_machine_of_a_template_is_taken(client: Client) -> None:
    """Its name, type and tags come along; what only a deployment knows stays a placeholder."""
    page = text(client.post("/machines/new/_check", {"text": TEMPLATE}))
    assert 'name="convert" value="Orders"' in page
    assert "Unrecognized token" not in page
    shown = text(client.post("/machines/new/", {"text": TEMPLATE, "convert": "Orders"}))
    assert f'"Resource": "{PACK}"' in shown
    assert '"Comment": "${Api.Url} ${Unknown}"' in shown
    assert 'value="orders"' in shown
    assert '<option value="EXPRESS" selected>' in shown
    assert ">team=shop</textarea>" in shown
    pressed = {"text": TEMPLATE, "act": "convert", "piece": "Orders"}
    panel = text(client.post("/machines/new/_edit", pressed))
    assert 'data-name="orders" data-type="EXPRESS" data-tags="team=shop"' in panel
    assert PACK in panel
    assert not StateMachine.objects.exists()


def test_what_the_cdk_synthesises_is_taken(client: Client) -> None:
    """The definition is one text of parts there, and opens in lines."""
    pressed = {"text": CDK, "act": "convert", "piece": "Flow1234"}
    panel = text(client.post("/machines/new/_edit", pressed))
    assert '  "StartAt": "A",\n' in panel
    assert "function:Fn5678" in panel
    assert 'data-name="Flow"' in panel


def test_a_template_reads_no_file_of_the_server(client: Client) -> None:
    """A definition in a file is refused, and its text is kept."""
    pressed = {"text": TEMPLATE, "act": "convert", "piece": "InAFile"}
    answer = client.post("/machines/new/_edit", pressed)
    assert "InAFile: got no definition" in text(answer, 422)
    answer = client.post("/machines/new/", {"text": TEMPLATE, "convert": "InAFile"})
    assert "DefinitionUri: /etc/passwd" in text(answer, 422)


def _template(properties: dict[str, Any], **more: Any) -> str:
    """Return a template with one state machine, ``M``."""
    machine = {"Type": "AWS::StepFunctions::StateMachine", "Properties": properties}
    return json.dumps({**more, "Resources": {"M": machine}}, separators=(",", ":"))


@pytest.mark.parametrize("grows", ["join", "sub", "ref", "substitutions", "mapping"])
def test_a_small_template_makes_no_huge_text(grows: str) -> None:
    """Each of the functions could make gigabytes of a text that a person can paste."""
    long, times = "x" * 60_000, 15_000
    properties: dict[str, dict[str, Any]] = {
        "join": {"Definition": {"Fn::Join": [long, ["", *[""] * times]]}},
        "sub": {"Definition": {"Fn::Sub": ["${a}" * times, {"a": long}]}},
        "ref": {"Definition": [{"Ref": "P"}] * times},
        "substitutions": {
            "DefinitionString": "${a}" * times,
            "DefinitionSubstitutions": {"a": long},
        },
        "mapping": {"Definition": [{"Fn::FindInMap": ["m", "a", "b"]}] * (times // 3)},
    }
    body = _template(
        properties[grows],
        Parameters={"P": {"Default": long}},
        Mappings={"m": {"a": {"b": [long[:20_000]]}}},
    )
    with pytest.raises(SourceError, match="a text that grows"):
        convert_text(body, "M", ACCOUNT)


@pytest.mark.slow
@pytest.mark.parametrize("takes_long", ["conditions", "names"])
def test_a_small_template_takes_no_hours(takes_long: str) -> None:
    """Forty conditions or names, each of which needs the next one twice, are a million million."""
    steps = range(40)
    conditions: dict[str, Any] = {
        f"C{n}": {"Fn::Or": [{"Condition": f"C{n + 1}"}, {"Condition": f"C{n + 1}"}]} for n in steps
    }
    queues = {
        f"Q{n}": {
            "Type": "AWS::SNS::Topic",
            "Properties": {"TopicName": {"Fn::Sub": f"${{Q{n + 1}.Name}}${{Q{n + 1}.Name}}"}},
        }
        for n in steps
    }
    definition = {
        "conditions": {"Fn::If": ["C0", "{}", "{}"]},
        "names": {"Fn::GetAtt": ["Q0", "Name"]},
    }[takes_long]
    template = json.loads(_template({"DefinitionString": definition}))
    template["Conditions"] = conditions | {"C40": {"Fn::Equals": ["a", "b"]}}
    template["Resources"] |= queues | {
        "Q40": {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": ""}}
    }
    with pytest.raises(SourceError, match="too much to evaluate"):
        convert_text(json.dumps(template), "M", ACCOUNT)


def test_deep_yaml_is_not_read_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each bracket makes the next one dearer: 50,000 of them took minutes."""
    seen: list[yaml.Event] = []
    usual = yaml.parse

    def parse(*arguments: Any) -> Iterator[yaml.Event]:
        for event in usual(*arguments):
            seen.append(event)
            yield event

    monkeypatch.setattr(yaml, "parse", parse)
    assert not examine_text("StartAt: " + "[" * 3_000).is_convertible
    assert len(seen) < 1_000
    assert examine_text("StartAt: A\nStates: {}\nx: " + "[" * 100 + "]" * 100).is_yaml


# -- wrong JSON ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            '{\n "States": {\n  "A": [1}\n}',
            "Unexpected close marker '}': expected ']' (for Array at line 3)",
        ),
        ('{\n "States": {', "expected close marker for Object at line 2"),
    ],
)
def test_wrong_json_is_said_without_the_text(client: Client, wrong: str, said: str) -> None:
    """AWS's parser repeats the definition in its message; the list has the line instead."""
    shown = text(client.post("/machines/new/_check", {"text": wrong}))
    problem = shown.partition('class="problem')[2].partition("<small>")[0]
    assert said in problem
    assert "Source" not in problem


# -- tags of a new machine -------------------------------------------------------------------------


@pytest.mark.postgres_too
def test_a_new_machine_has_its_tags(client: Client) -> None:
    """A line each; empty lines and blanks around do not matter."""
    typed = {
        "name": "mine",
        "text": json.dumps(PASS),
        "tags": "team=pay ments\r\n\r\n env = test=1 ",
    }
    assert client.post("/machines/new/", typed).status_code == 302
    assert tags.get_tags(StateMachine.objects.get().arn) == {"team": "pay ments", "env": "test=1"}


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("team", "Line 1: 'team' is not key=value."),
        ("a=1\n=2", "Line 2: '=2' is not key=value."),
        ("a=1\na=2", "Line 2: the key 'a' is repeated."),
        ("aws:a=1", "aws:"),
        ("\n".join(f"k{number}=v" for number in range(51)), "Too many tags"),
    ],
)
def test_wrong_tags_are_said_beside_their_field(client: Client, typed: str, said: str) -> None:
    """Nothing is stored, and what was typed comes back."""
    sent = {"name": "mine", "text": json.dumps(PASS), "tags": typed}
    shown = text(client.post("/machines/new/", sent), 422)
    error = shown.partition('id="tags-error"')[2].partition("</p>")[0]
    assert said in error
    assert not StateMachine.objects.exists()


# -- places in the data ----------------------------------------------------------------------------


def _proposed(client: Client) -> str:
    shown = text(client.get("/machines/machine/edit/"))
    return shown.partition('id="suggest-paths"')[2].partition("</datalist>")[0]


def test_places_in_the_last_data_are_proposed(project: Project, client: Client) -> None:
    """Of the input of the execution and of its states; keys that no path can name are left out."""
    steps: dict[str, Any] = {
        "StartAt": "A",
        "States": {
            "A": {"Type": "Pass", "Result": {"sum": 3}, "Next": "B"},
            "B": {"Type": "Pass", "End": True},
        },
    }
    machine = create(project, steps)
    assert '"$.' not in _proposed(client)
    execution = start(machine, data={"order": {"items": [{"sku": "a"}]}, "no path": 1})
    drain(execution)
    shown = _proposed(client)
    for place in ("$.order", "$.order.items[0].sku", "$.sum"):
        assert f'value="{place}"' in shown
    assert "no path" not in shown


@pytest.mark.postgres_too
def test_jsonata_has_its_own_form(project: Project, client: Client) -> None:
    """An expression, as a field of that language needs it."""
    machine = create(project, {"QueryLanguage": "JSONata", **PASS})
    start(machine, data={"order": 1})
    assert 'value="{% $states.input.order %}"' in _proposed(client)


def test_hidden_data_has_no_places(project: Project, client: Client) -> None:
    """What is below a masked place is not named."""
    project.masked = "$.card"
    project.save()
    start(create(project, PASS), data={"card": {"holder": "Ann"}, "sum": 1})
    shown = _proposed(client)
    assert 'value="$.card"' in shown
    assert "holder" not in shown
