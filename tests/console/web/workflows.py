"""Definitions that are hard to draw."""

from __future__ import annotations

import json
from typing import Any


def choices(count: int, rules: int, mark: str = "") -> str:
    """Return ``count`` Choice states, each with ``rules`` ways to others. ``mark``: a comment."""
    states: dict[str, Any] = {
        f"choice{one}": {
            "Type": "Choice",
            "Choices": [
                {
                    "Variable": "$.x",
                    "NumericEquals": way,
                    "Next": f"choice{(one + way + 1) % count}",
                }
                for way in range(rules)
            ],
            "Default": "end",
        }
        for one in range(count)
    }
    states["end"] = {"Type": "Succeed"}
    return json.dumps({"Comment": mark, "StartAt": "choice0", "States": states})


def chain(count: int, name: str = "state") -> str:
    """Return ``count`` Pass states in a row."""
    states = {
        f"{name}{one}": {"Type": "Pass", "Next": f"{name}{one + 1}"}
        if one < count - 1
        else {"Type": "Succeed"}
        for one in range(count)
    }
    return json.dumps({"StartAt": f"{name}0", "States": states})


def caught(count: int) -> str:
    """Return ``count`` Task states in a row, each of which may lead to the same Fail state."""
    task = {"Type": "Task", "Resource": "arn:aws:lambda:us-east-1:123456789012:function:F"}
    states: dict[str, Any] = {
        f"task{one}": {
            **task,
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "failed"}],
            "Next": f"task{one + 1}",
        }
        for one in range(count)
    }
    states |= {f"task{count}": {"Type": "Succeed"}, "failed": {"Type": "Fail", "Error": "No"}}
    return json.dumps({"StartAt": "task0", "States": states})


def maps(count: int) -> str:
    """Return ``count`` Map states in a row, each with a Choice inside that begins a loop."""
    loop = {"Variable": "$.x", "IsPresent": True}
    states: dict[str, Any] = {
        f"map{one}": {
            "Type": "Map",
            "ItemProcessor": {
                "StartAt": f"first{one}",
                "States": {
                    f"first{one}": {
                        "Type": "Choice",
                        "Choices": [{**loop, "Next": f"first{one}"}],
                        "Default": f"second{one}",
                    },
                    f"second{one}": {"Type": "Pass", "End": True},
                },
            },
            "Next": f"map{one + 1}",
        }
        for one in range(count)
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
