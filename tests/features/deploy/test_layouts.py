"""Layouts that real projects have: one run names all that is missing, then they can be deployed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from console import command_line
from console.cli.account import Account
from console.cli.documents import SourceError
from console.features.deploy.discovery import read_paths
from console.features.deploy.parameters import Parameters
from tests.features.deploy import projects

if TYPE_CHECKING:
    from pathlib import Path

MACHINE = "AWS::StepFunctions::StateMachine"


def definition(value: Any) -> dict[str, Any]:
    """Return a definition whose only state yields a value."""
    return {"StartAt": "P", "States": {"P": {"Type": "Pass", "Result": value, "End": True}}}


def machine(value: Any, **more: Any) -> dict[str, Any]:
    """Return a state machine of CloudFormation."""
    return {"Type": MACHINE, "Properties": {"Definition": definition(value), **more}}


def results(path: Path, **parameters: str) -> dict[str, Any]:
    """Return what the state machines of a project yield, by name."""
    machines = read_paths([path], Account(), Parameters(parameters)).machines
    return {
        machine.name: json.loads(machine.definition)["States"]["P"]["Result"]
        for machine in machines
    }


def asked(path: Path, **parameters: str) -> set[str]:
    """Return the names that one run asks for."""
    with pytest.raises(SourceError) as refused:
        read_paths([path], Account(), Parameters(parameters))
    lines = str(refused.value).splitlines()
    assert all(line.endswith("=VALUE") for line in lines), lines
    return {line.rpartition("--param ")[2].removesuffix("=VALUE").strip("'") for line in lines}


def write(path: Path, value: Any) -> None:
    """Write a file of JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), "utf-8")


def nested(kind: str, key: str, location: Any, **more: Any) -> dict[str, Any]:
    """Return a nested stack."""
    return {"Type": kind, "Properties": {key: location, "Parameters": {"Given": "given"}}, **more}


CHILD = {
    "Parameters": {"Given": {"Type": "String"}},
    "Resources": {"Inner": machine([{"Ref": "Given"}, {"Fn::GetAtt": ["X", "A"]}])},
    "Outputs": {"Said": {"Value": {"Fn::Sub": "${Given}!"}}},
}


@pytest.mark.parametrize("kind", ["local template", "SAM application", "asset of the CDK"])
def test_nested_stacks(tmp_path: Path, kind: str) -> None:
    """Parameters go in, outputs come out; what both lack is asked for together."""
    stacks = {
        "local template": nested("AWS::CloudFormation::Stack", "TemplateURL", "child.json"),
        "SAM application": nested("AWS::Serverless::Application", "Location", "child.json"),
        "asset of the CDK": nested(
            *("AWS::CloudFormation::Stack", "TemplateURL", {"Fn::Sub": "https://s3/${Bucket}/x"}),
            Metadata={"aws:asset:path": "child.json"},
        ),
    }
    outer = machine([{"Fn::GetAtt": ["Part", "Outputs.Said"]}, {"Ref": "Stage"}])
    body = {"Resources": {"Part": stacks[kind], "Outer": outer}}
    write(tmp_path / "template.json", body)
    write(tmp_path / "child.json", CHILD)
    assert asked(tmp_path) == {"X.A", "Stage"}
    values = results(tmp_path, **{"X.A": "1", "Stage": "qa"})
    assert values == {"Part-Inner": ["given", 1], "Outer": ["given!", "qa"]}


def test_a_nested_stack_that_is_not_here_or_holds_itself(tmp_path: Path) -> None:
    """The first is a note, the second an error with its place."""
    elsewhere = nested("AWS::CloudFormation::Stack", "TemplateURL", "https://s3/b/part.yaml")
    write(tmp_path / "template.json", {"Resources": {"Part": elsewhere, "Outer": machine(1)}})
    project = read_paths([tmp_path], Account(), Parameters())
    assert [note.partition(": ")[2] for note in project.notes] == [
        "Part: a nested stack whose template is not here"
    ]
    itself = nested("AWS::CloudFormation::Stack", "TemplateURL", "template.json")
    write(tmp_path / "template.json", {"Resources": {"Part": itself, "Outer": machine(1)}})
    with pytest.raises(SourceError, match="Part: got a circle of nested stacks"):
        read_paths([tmp_path], Account(), Parameters())


def test_stacks_of_an_assembly_export_to_each_other(tmp_path: Path) -> None:
    """In whichever order they stand; an export of another app is asked for."""
    exported = {"Value": {"Fn::GetAtt": ["Topic", "TopicArn"]}, "Export": {"Name": "B:topic"}}
    imports = [{"Fn::ImportValue": "B:topic"}, {"Fn::ImportValue": "other-app"}]
    stacks = {
        "A": {"Resources": {"M": machine(imports)}},
        "B": {
            "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}, "N": machine(1)},
            "Outputs": {"Topic": exported},
        },
    }
    artifacts = {
        name: {
            "type": "aws:cloudformation:stack",
            "properties": {"templateFile": f"{name}.template.json"},
        }
        for name in stacks
    }
    write(tmp_path / "manifest.json", {"version": "38.0.0", "artifacts": artifacts})
    for name, body in stacks.items():
        write(tmp_path / f"{name}.template.json", body)
    assert asked(tmp_path) == {"other-app"}
    values = results(tmp_path, **{"other-app": "x"})
    assert values["M"] == ["arn:aws:sns:us-east-1:123456789012:Topic", "x"]


def test_a_project_of_the_cdk_has_its_assembly_in_cdk_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is read if the folder has no other definition, also by lint."""
    about = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "A.template.json"}}
    write(tmp_path / "cdk.json", {"app": "python app.py"})
    write(tmp_path / "cdk.out" / "manifest.json", {"version": "38.0.0", "artifacts": {"A": about}})
    write(tmp_path / "cdk.out" / "A.template.json", {"Resources": {"M": machine(1)}})
    assert results(tmp_path) == {"M": 1}
    with pytest.raises(SystemExit) as end:
        command_line.main(["lint", str(tmp_path)])
    assert (end.value.code or 0, "A.template.json: M" in capsys.readouterr().out) == (0, True)
    write(tmp_path / "flows" / "own.asl.json", definition(2))
    assert results(tmp_path) == {"own": 2}


def test_a_service_of_many_files(tmp_path: Path) -> None:
    """Provider, functions, machines and settings are files; a plugin's variables are asked for."""
    files = {
        "serverless.yml": "service: shop\nplugins: [serverless-step-functions]\n"
        "provider: ${file(config/provider.yml)}\ncustom: ${file(config/${sls:stage}.json)}\n"
        "functions:\n  - ${file(config/functions.yml)}\n  - two: {handler: b.c}\n"
        "stepFunctions:\n  stateMachines:\n    - ${file(machines/one.yml)}\n"
        "    - ${file(machines/two.yml)}\n",
        "config/provider.yml": "name: aws\nstage: ${opt:stage, 'qa'}\n"
        "environment: {SECRET: '${ssm:/never/needed}'}\n",
        "config/qa.json": '{"limits": {"size": 5}}',
        "config/functions.yml": "one: {handler: a.b, environment: '${file(env.js)}'}\n",
        "machines/one.yml": "one:\n  name: one-${self:provider.stage}\n  definition:\n"
        "    StartAt: P\n    States: {P: {Type: Pass, End: true, Result: "
        "['${self:custom.limits.size}', {'Fn::GetAtt': [one, Arn]}, '${git:sha1}']}}\n",
        "machines/two.yml": "two:\n  definition:\n    StartAt: P\n"
        "    States: {P: {Type: Pass, End: true, Result: '${ssm:/a}-${cf:net.Vpc}'}}\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    assert asked(tmp_path) == {"sha1", "/a", "net.Vpc"}
    arn = "arn:aws:lambda:us-east-1:123456789012:function:shop-qa-one"
    values = results(tmp_path, **{"sha1": "c0ffee", "/a": "1", "net.Vpc": "v"})
    assert values == {"one-qa": [5, arn, "c0ffee"], "two": "1-v"}


def test_a_plan_of_terraform_names_all_that_the_apply_knows(tmp_path: Path) -> None:
    """A definition, the target of a rule and that of a schedule; JSON gives the definition."""
    path = projects.terraform_state(tmp_path / "plan.json")
    plan = json.loads(path.read_text("utf-8"))
    root = plan["planned_values"] = plan.pop("values")
    root["root_module"]["child_modules"][0]["resources"][0]["values"].pop("definition")
    for resource in root["root_module"]["resources"]:
        resource["values"].pop("arn", None)
        for target in resource["values"].get("target", ()):
            target.pop("arn")
    write(path, plan)
    machine_name = "module.shop.aws_sfn_state_machine.orders.definition"
    rule, schedule = "aws_cloudwatch_event_target.nightly.arn", "aws_scheduler_schedule.hourly"
    assert asked(path) == {machine_name, rule, f"{schedule}.target.arn"}
    arn = "arn:aws:states:us-east-1:123456789012:stateMachine:orders"
    parameters = {rule: arn, f"{schedule}.target.arn": arn, machine_name: json.dumps(definition(7))}
    assert results(path, **parameters) == {"orders": 7}


def test_a_folder_of_definitions_and_templates(tmp_path: Path) -> None:
    """Placeholders of plain files and parameters of templates are named in one run."""
    write(tmp_path / "flows/one.asl.json", definition("${LambdaArn}"))
    write(tmp_path / "flows/two.asl.json", definition("${TableName}"))
    write(tmp_path / "infra/stack.json", {"Resources": {"M": machine({"Ref": "Stage"})}})
    assert asked(tmp_path) == {"LambdaArn", "TableName", "Stage"}
    values = results(tmp_path, LambdaArn="l", TableName="t", Stage="s")
    assert values == {"one": "l", "two": "t", "M": "s"}
