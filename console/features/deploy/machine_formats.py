"""Convert a state machine to ASL, SAM, CloudFormation, Terraform or CDK code."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Callable


def _as_asl(machine: dict[str, Any]) -> str:
    return str(machine["definition"])


def _as_sam(machine: dict[str, Any]) -> str:
    properties = {
        "Name": machine["name"],
        "Type": machine["type"],
        "Role": machine["roleArn"],
        "Definition": json.loads(machine["definition"]),
    }
    resource = {"Type": "AWS::Serverless::StateMachine", "Properties": properties}
    return _template(machine, resource, {"Transform": "AWS::Serverless-2016-10-31"})


def _as_cloudformation(machine: dict[str, Any]) -> str:
    properties = {
        "StateMachineName": machine["name"],
        "StateMachineType": machine["type"],
        "RoleArn": machine["roleArn"],
        "DefinitionString": json.dumps(json.loads(machine["definition"]), ensure_ascii=False),
    }
    return _template(
        machine, {"Type": "AWS::StepFunctions::StateMachine", "Properties": properties}, {}
    )


def _template(machine: dict[str, Any], resource: dict[str, Any], more: dict[str, str]) -> str:
    body: dict[str, Any] = {"AWSTemplateFormatVersion": "2010-09-09", **more}
    body |= {"Resources": {_identifier(machine["name"]): resource}}
    return yaml.safe_dump(body, sort_keys=False, allow_unicode=True, width=120)


def _as_terraform(machine: dict[str, Any]) -> str:
    """Return HCL; the definition's own ``${`` and ``%{`` are escaped."""
    text = json.dumps(json.loads(machine["definition"]), indent=2, ensure_ascii=False)
    escaped = re.sub(r"([$%])(?=\{)", r"\1\1", text)
    lines = [
        f'resource "aws_sfn_state_machine" "{_identifier(machine["name"])}" {{',
        f"  name     = {json.dumps(machine['name'])}",
        f"  type     = {json.dumps(machine['type'])}",
        f"  role_arn = {json.dumps(machine['roleArn'])}",
        "",
        "  definition = <<EOT",
        escaped,
        "EOT",
        "}",
    ]
    return "\n".join(lines)


def _as_cdk(machine: dict[str, Any]) -> str:
    """Return TypeScript for the body of a stack; the construct creates the role."""
    name = _identifier(machine["name"])
    text = json.dumps(json.loads(machine["definition"]), indent=2, ensure_ascii=False)
    lines = [
        "import * as sfn from 'aws-cdk-lib/aws-stepfunctions';",
        "",
        f"new sfn.StateMachine(this, {json.dumps(name)}, {{",
        f"  stateMachineName: {json.dumps(machine['name'])},",
        f"  stateMachineType: sfn.StateMachineType.{machine['type']},",
        f"  definitionBody: sfn.DefinitionBody.fromString(JSON.stringify({text})),",
        "});",
    ]
    return "\n".join(lines)


def _identifier(name: str) -> str:
    """Return a name that is an identifier in every tool."""
    identifier = "".join(part[:1].upper() + part[1:] for part in re.findall(r"[A-Za-z0-9]+", name))
    return identifier if identifier[:1].isalpha() else f"Machine{identifier}"


@dataclass(frozen=True, slots=True)
class MachineFormat:
    """A tool's format. ``write``: from DescribeStateMachine; ``ending``: of file names."""

    title: str
    ending: str
    write: Callable[[dict[str, Any]], str]


FORMATS: dict[str, MachineFormat] = {
    "asl": MachineFormat("ASL (JSON)", "asl.json", _as_asl),
    "sam": MachineFormat("SAM", "sam.yaml", _as_sam),
    "cloudformation": MachineFormat("CloudFormation", "cloudformation.yaml", _as_cloudformation),
    "terraform": MachineFormat("Terraform", "tf", _as_terraform),
    "cdk": MachineFormat("CDK (TypeScript)", "ts", _as_cdk),
}
