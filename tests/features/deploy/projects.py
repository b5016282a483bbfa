"""Small projects of each tool, as people have them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

CHOICE = {
    "StartAt": "Price",
    "States": {
        "Price": {"Type": "Task", "Resource": "${PriceFunctionArn}", "Next": "Pause"},
        "Pause": {"Type": "Wait", "Seconds": 0, "End": True},
    },
}
SAM_TEMPLATE = """
AWSTemplateFormatVersion: "2010-09-09"
Transform: AWS::Serverless-2016-10-31
Parameters:
  Stage:
    Type: String
    Default: dev
  TableName:
    Type: String
Conditions:
  InProduction: !Equals [!Ref Stage, prod]
Resources:
  PriceFunction:
    Type: AWS::Serverless::Function
    Properties:
      FunctionName: !Sub "price-${Stage}"
      Handler: app.handler
  Orders:
    Type: AWS::Serverless::StateMachine
    Properties:
      DefinitionUri: statemachine/orders.asl.yaml
      DefinitionSubstitutions:
        PriceFunctionArn: !GetAtt PriceFunction.Arn
        Table: !Ref TableName
      Role: !GetAtt OrdersRole.Arn
      Tracing:
        Enabled: true
      Tags:
        team: shop
      Events:
        Nightly:
          Type: Schedule
          Properties:
            Schedule: rate(1 day)
            Enabled: false
            Input: '{"nightly": true}'
        Weekly:
          Type: ScheduleV2
          Properties:
            ScheduleExpression: cron(0 6 ? * MON *)
            ScheduleExpressionTimezone: Europe/Rome
            State: DISABLED
            Input: '{"weekly": true}'
            RetryPolicy: {MaximumRetryAttempts: 3}
        Placed:
          Type: EventBridgeRule
          Properties:
            Pattern:
              source: [shop]
              detail-type: [placed]
        Web:
          Type: Api
          Properties: {Path: /orders, Method: post}
  OrdersMonthly:
    Type: AWS::Scheduler::Schedule
    Properties:
      Name: !Sub "orders-monthly-${Stage}"
      GroupName: reports
      ScheduleExpression: cron(0 6 1 * ? *)
      StartDate: "2099-01-01T00:00:00Z"
      FlexibleTimeWindow: {Mode: FLEXIBLE, MaximumWindowInMinutes: 15}
      Target:
        Arn: !GetAtt Orders.Arn
        RoleArn: !GetAtt OrdersRole.Arn
  OrdersUniversal:
    Type: AWS::Scheduler::Schedule
    Properties:
      ScheduleExpression: at(2099-01-01T00:00:00)
      FlexibleTimeWindow: {Mode: "OFF"}
      Target:
        Arn: !Sub arn:${AWS::Partition}:scheduler:::aws-sdk:sfn:startExecution
        RoleArn: !ImportValue scheduler-role
        Input: !Sub '{"StateMachineArn": "${Orders}"}'
  Elsewhere:
    Type: AWS::Scheduler::Schedule
    Properties:
      ScheduleExpression: rate(1 day)
      FlexibleTimeWindow: {Mode: "OFF"}
      Target: {Arn: !GetAtt PriceFunction.Arn, RoleArn: !GetAtt OrdersRole.Arn}
  Quick:
    Type: AWS::Serverless::StateMachine
    Properties:
      Name: !Join ["-", [quick, !Ref Stage]]
      Type: EXPRESS
      Definition:
        StartAt: Hello
        States:
          Hello: {Type: Pass, Result: !If [InProduction, careful, fast], End: true}
  OnlyProduction:
    Type: AWS::StepFunctions::StateMachine
    Condition: InProduction
    Properties:
      DefinitionString: "{}"
  OrdersRole:
    Type: AWS::IAM::Role
    Properties:
      Policies:
        - PolicyName: orders
          PolicyDocument:
            Statement: [{Effect: Allow, Action: ["lambda:*", "xray:*"], Resource: "*"}]
"""
SAM_DEFINITION = """
# a comment, which JSON has none of
StartAt: Price
States:
  Price:
    Type: Task
    Resource: ${PriceFunctionArn}
    ResultPath: $.price
    Next: "On"
  "On":
    Type: Pass
    Parameters: {table: "${Table}", day: 2026-01-02}
    End: true
"""
SERVERLESS = """
service: shop
custom:
  names: {machine: "orders-${sls:stage}"}
  rate: ${opt:rate, 'rate(1 hour)'}
provider:
  name: aws
  stage: ${opt:stage, 'test'}
functions:
  price:
    handler: app.price
stepFunctions:
  stateMachines:
    orders:
      name: ${self:custom.names.machine}
      definition: ${file(orders.asl.yml)}
      tags: {team: shop}
      events:
        - schedule:
            rate: ${self:custom.rate}
            input: {hourly: true}
        - eventBridge:
            event: {source: [shop]}
        - http: {path: orders, method: post}
  activities:
    - approve
"""
SERVERLESS_DEFINITION = """
StartAt: Price
States:
  Price:
    Type: Task
    Resource: {"Fn::GetAtt": [price, Arn]}
    End: true
"""


def sam_project(folder: Path) -> Path:
    """Write a project of SAM; return its folder."""
    (folder / "statemachine").mkdir(parents=True)
    (folder / "template.yaml").write_text(SAM_TEMPLATE, encoding="utf-8")
    (folder / "statemachine/orders.asl.yaml").write_text(SAM_DEFINITION, encoding="utf-8")
    return folder


def serverless_project(folder: Path) -> Path:
    """Write a service of the Serverless Framework; return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "serverless.yml").write_text(SERVERLESS, encoding="utf-8")
    (folder / "orders.asl.yml").write_text(SERVERLESS_DEFINITION, encoding="utf-8")
    return folder


def cdk_project(folder: Path) -> Path:
    """Write what ``cdk synth`` writes of a stack with two state machines and a rule."""
    folder.mkdir(parents=True)
    price = {
        "Type": "AWS::Lambda::Function",
        "Properties": {"Handler": "index.handler"},
        "Metadata": {"aws:cdk:path": "Shop/Price/Resource"},
    }
    definition = [
        '{"StartAt":"Price","States":{"Price":{"End":true,"Type":"Task","Resource":"',
        {"Fn::GetAtt": ["Price1A2B", "Arn"]},
        '"}}}',
    ]
    orders = {
        "Type": "AWS::StepFunctions::StateMachine",
        "Properties": {
            "DefinitionString": {"Fn::Join": ["", definition]},
            "RoleArn": {"Fn::GetAtt": ["OrdersRole3C4D", "Arn"]},
        },
        "Metadata": {"aws:cdk:path": "Shop/Orders/Resource"},
    }
    from_asset = {
        "Type": "AWS::StepFunctions::StateMachine",
        "Properties": {
            "StateMachineName": "from-asset",
            "DefinitionS3Location": {"Bucket": {"Fn::Sub": "b-${AWS::Region}"}, "Key": "abc.json"},
        },
    }
    rule = {
        "Type": "AWS::Events::Rule",
        "Properties": {
            "ScheduleExpression": "rate(1 day)",
            "State": "ENABLED",
            "Targets": [{"Id": "Target0", "Arn": {"Ref": "Orders5E6F"}, "Input": "{}"}],
        },
    }
    resources = {
        "Price1A2B": price,
        "Orders5E6F": orders,
        "FromAsset": from_asset,
        "Nightly7A8B": rule,
        "OrdersRole3C4D": {"Type": "AWS::IAM::Role"},
        "CDKMetadata": {"Type": "AWS::CDK::Metadata", "Properties": {"Analytics": "x"}},
    }
    stack = {
        "type": "aws:cloudformation:stack",
        "properties": {"templateFile": "Shop.template.json"},
        "additionalMetadataFile": "Shop.metadata.json",
    }
    named = {"/Shop/Nightly/Resource": [{"type": "aws:cdk:logicalId", "data": "Nightly7A8B"}]}
    _write(folder / "Shop.metadata.json", named)
    asset = {
        "source": {"path": "asset.abc.json", "packaging": "file"},
        "destinations": {"current": {"bucketName": "b", "objectKey": "abc.json"}},
    }
    _write(folder / "manifest.json", {"version": "38.0.0", "artifacts": {"Shop": stack}})
    _write(folder / "Shop.template.json", {"Resources": resources})
    _write(folder / "Shop.assets.json", {"version": "38.0.0", "files": {"abc": asset}})
    passes = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
    _write(folder / "asset.abc.json", passes)
    return folder


def terraform_state(path: Path) -> Path:
    """Write what ``terraform show -json`` prints of a state with modules; return the file."""
    definition = {
        "StartAt": "P",
        "States": {"P": {"Type": "Pass", "Result": "from terraform", "End": True}},
    }
    machine = {
        "address": "module.shop.aws_sfn_state_machine.orders",
        "mode": "managed",
        "type": "aws_sfn_state_machine",
        "name": "orders",
        "values": {
            "name": "orders",
            "definition": json.dumps(definition),
            "role_arn": "arn:aws:iam::999999999999:role/orders",
            "type": "STANDARD",
            "tags_all": {"team": "shop"},
        },
    }
    rule = {
        "address": "aws_cloudwatch_event_rule.nightly",
        "mode": "managed",
        "type": "aws_cloudwatch_event_rule",
        "values": {"name": "nightly", "schedule_expression": "rate(1 day)", "is_enabled": True},
    }
    target = {
        "address": "aws_cloudwatch_event_target.nightly",
        "mode": "managed",
        "type": "aws_cloudwatch_event_target",
        "values": {
            "rule": "nightly",
            "target_id": "orders",
            "arn": "arn:aws:states:eu-west-1:999999999999:stateMachine:orders",
        },
    }
    schedule = {
        "address": "aws_scheduler_schedule.hourly",
        "mode": "managed",
        "type": "aws_scheduler_schedule",
        "values": {
            "name": "hourly",
            "group_name": "default",
            "schedule_expression": "cron(0 * * * ? *)",
            "schedule_expression_timezone": "UTC",
            "start_date": None,
            "description": "",
            "flexible_time_window": [{"mode": "OFF", "maximum_window_in_minutes": None}],
            "target": [
                {
                    "arn": "arn:aws:states:eu-west-1:999999999999:stateMachine:orders",
                    "role_arn": "arn:aws:iam::999999999999:role/scheduler",
                    "input": '{"hourly": true}',
                    "dead_letter_config": [],
                    "retry_policy": [
                        {"maximum_event_age_in_seconds": 3600, "maximum_retry_attempts": 0}
                    ],
                }
            ],
        },
    }
    module = {"address": "module.shop", "resources": [machine]}
    root = {"resources": [rule, target, schedule], "child_modules": [module]}
    _write(path, {"format_version": "1.0", "values": {"root_module": root}})
    return path


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")
