"""The functions of CloudFormation yield what they yield there, as far as a server can know."""

from __future__ import annotations

from typing import Any

import pytest

from console.cli.account import Account
from console.cli.documents import SourceError, parse_document
from console.features.deploy.intrinsics import Template
from console.features.deploy.parameters import Parameters

BODY = """
Parameters:
  Stage: {Type: String, Default: dev}
  Zones: {Type: CommaDelimitedList, Default: "a,b"}
Mappings: {Sizes: {dev: {n: 1}}}
Conditions:
  Dev: !Equals [!Ref Stage, dev]
  NotDev: !Not [!Condition Dev]
  Both: !And [!Condition Dev, !Condition NotDev]
  Either: !Or [!Condition Dev, !Condition NotDev]
Resources:
  Fn: {Type: "AWS::Lambda::Function", Properties: {FunctionName: !Sub "f-${Stage}"}}
  Queue: {Type: "AWS::SQS::Queue", Properties: {}}
  Topic: {Type: "AWS::SNS::Topic", Properties: {TopicName: !Ref Topic}}
  Bucket: {Type: "AWS::S3::Bucket"}
  Thing: {Type: "AWS::Other::Thing"}
  Hidden: {Type: "AWS::SNS::Topic", Condition: NotDev}
"""
LAMBDA = "arn:aws:lambda:eu-west-1:210987654321:function:f-dev"


def template(parameters: Parameters | None = None) -> Template:
    """Return the template with parameters."""
    body = parse_document(BODY, "t.yaml")
    account = Account("210987654321", "eu-west-1")
    return Template(body, "t.yaml", account, parameters or Parameters())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("!Ref Stage", "dev"),
        ("!Ref Zones", ["a", "b"]),
        ("!Ref Fn", "f-dev"),
        ("!GetAtt Fn.Arn", LAMBDA),
        ("Fn::GetAtt: [Fn, Arn]", LAMBDA),
        ("!Ref Queue", "https://sqs.eu-west-1.amazonaws.com/210987654321/Queue"),
        ("!GetAtt Queue.QueueName", "Queue"),
        ("!GetAtt Bucket.Arn", "arn:aws:s3:::Bucket"),
        ("!Sub '${Fn.Arn}:${!literal}-${AWS::Region}'", f"{LAMBDA}:${{literal}}-eu-west-1"),
        ("!Sub ['${a}${Stage}', {a: !Ref Fn}]", "f-devdev"),
        ("!Join ['-', [a, !Ref Stage]]", "a-dev"),
        ("!Select [1, !Split ['|', 'x|y']]", "y"),
        ("!FindInMap [Sizes, !Ref Stage, n]", 1),
        ("!If [Dev, yes, no]", "yes"),
        ("!If [Both, yes, !If [Either, either, no]]", "either"),
        ("a: !If [Dev, !Ref 'AWS::NoValue', 1]\nb: 2", {"b": 2}),
        ("[1, !If [NotDev, 2, !Ref 'AWS::NoValue']]", [1]),
        ("Fn::ToJsonString: {a: !Ref Stage}", '{"a": "dev"}'),
        ("Condition: '{% $x %}'", {"Condition": "{% $x %}"}),
    ],
)
def test_values(text: str, expected: Any) -> None:
    """Each function, in its short or its long form."""
    assert template().resolve(parse_document(text, "x.yaml")) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("!Ref Nobody", "--param Nobody=VALUE"),
        ("!GetAtt Thing.Arn", "--param Thing.Arn=VALUE"),
        ("!GetAtt Fn.Version", "--param Fn.Version=VALUE"),
        ("!ImportValue other-stack", "--param other-stack=VALUE"),
        ("!Ref Topic", "circle"),
        ("!If [None, 1, 2]", "Condition None"),
        ("!Select [9, [a]]", "Fn::Select"),
        ("!Odd ''", "--param Fn::Odd=VALUE"),
    ],
)
def test_what_cannot_be_known_is_asked_for(text: str, expected: str) -> None:
    """The line names the template, the place, and what to add."""
    with pytest.raises(SourceError, match=r"^t\.yaml: ") as refused:
        checked(text)
    assert expected in str(refused.value)


def checked(text: str) -> None:
    """Evaluate a text; raise ``SourceError`` also for what is missing."""
    parameters = Parameters()
    template(parameters).resolve(parse_document(text, "x.yaml"))
    parameters.check()


def test_parameters_come_before_everything() -> None:
    """Also for an attribute that no server knows, and for a stage that hides resources."""
    prod_template = template(Parameters({"Thing.Arn": "arn:x", "Stage": "prod"}))
    assert prod_template.resolve({"Fn::GetAtt": ["Thing", "Arn"]}) == "arn:x"
    assert prod_template.holds("NotDev")
    assert not template().holds("NotDev")
