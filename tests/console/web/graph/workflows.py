"""Definitions that are hard to draw."""

from __future__ import annotations

import json
from typing import Any


def choices(count: int, rules: int, mark: str = "") -> str:
    """Return ``count`` Choice states, each with ``rules`` ways to others. ``mark``: a comment."""
    states: dict[str, Any] = {
        f"choice{number}": {
            "Type": "Choice",
            "Choices": [
                {
                    "Variable": "$.x",
                    "NumericEquals": way,
                    "Next": f"choice{(number + way + 1) % count}",
                }
                for way in range(rules)
            ],
            "Default": "end",
        }
        for number in range(count)
    }
    states["end"] = {"Type": "Succeed"}
    return json.dumps({"Comment": mark, "StartAt": "choice0", "States": states})


def chain(count: int, name: str = "state") -> str:
    """Return ``count`` Pass states in a row."""
    states = {
        f"{name}{number}": {"Type": "Pass", "Next": f"{name}{number + 1}"}
        if number < count - 1
        else {"Type": "Succeed"}
        for number in range(count)
    }
    return json.dumps({"StartAt": f"{name}0", "States": states})


def caught(count: int) -> str:
    """Return ``count`` Task states in a row, each of which may lead to the same Fail state."""
    task = {"Type": "Task", "Resource": "arn:aws:lambda:us-east-1:123456789012:function:F"}
    states: dict[str, Any] = {
        f"task{number}": {
            **task,
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "failed"}],
            "Next": f"task{number + 1}",
        }
        for number in range(count)
    }
    states |= {f"task{count}": {"Type": "Succeed"}, "failed": {"Type": "Fail", "Error": "No"}}
    return json.dumps({"StartAt": "task0", "States": states})


def maps(count: int) -> str:
    """Return ``count`` Map states in a row, each with a Choice inside that begins a loop."""
    loop = {"Variable": "$.x", "IsPresent": True}
    states: dict[str, Any] = {
        f"map{number}": {
            "Type": "Map",
            "ItemProcessor": {
                "StartAt": f"first{number}",
                "States": {
                    f"first{number}": {
                        "Type": "Choice",
                        "Choices": [{**loop, "Next": f"first{number}"}],
                        "Default": f"second{number}",
                    },
                    f"second{number}": {"Type": "Pass", "End": True},
                },
            },
            "Next": f"map{number + 1}",
        }
        for number in range(count)
    }
    states[f"map{count}"] = {"Type": "Succeed"}
    return json.dumps({"StartAt": "map0", "States": states})


TEMPLATE = """
Parameters:
  Stage: {Type: String, Default: test}
Resources:
  Pack:
    Type: AWS::Serverless::Function
  Orders:
    Type: AWS::Serverless::StateMachine
    Properties:
      Name: orders
      Type: EXPRESS
      Tags: {team: shop}
      DefinitionSubstitutions: {PackArn: !GetAtt Pack.Arn, Url: !GetAtt Api.Url}
      Definition:
        StartAt: Pack it
        States:
          Pack it: {Type: Task, Resource: "${PackArn}", Comment: "${Url} ${Unknown}", End: true}
  InAFile:
    Type: AWS::StepFunctions::StateMachine
    Properties: {DefinitionUri: /etc/passwd}
"""
"""A template of SAM: a state machine with its definition, and one whose definition is a file."""
