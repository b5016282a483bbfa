"""Evaluate the intrinsic functions of CloudFormation, as far as a server without a stack can.

A resource of a template gets the name that it is given, else its logical id, and the ARN that
follows from that name. What only AWS could know - an attribute of a resource, an imported value -
has to be given by ``--param NAME=VALUE``, also as ``--param LogicalId.Attribute=VALUE``.
"""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any

from console.cli.documents import MOST_CHARACTERS, SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from console.cli.sources import Account

MOST_CALLS = 100_000
"""How many functions and conditions may be evaluated: a few of them, each named twice by the next,
are millions."""
_SUB = re.compile(r"\$\{(!?)([^}]+)\}")
_ARNS = {
    "AWS::Lambda::Function": ("lambda", "function:{}", "FunctionName"),
    "AWS::Serverless::Function": ("lambda", "function:{}", "FunctionName"),
    "AWS::DynamoDB::Table": ("dynamodb", "table/{}", "TableName"),
    "AWS::DynamoDB::GlobalTable": ("dynamodb", "table/{}", "TableName"),
    "AWS::Serverless::SimpleTable": ("dynamodb", "table/{}", "TableName"),
    "AWS::SQS::Queue": ("sqs", "{}", "QueueName"),
    "AWS::SNS::Topic": ("sns", "{}", "TopicName"),
    "AWS::StepFunctions::StateMachine": ("states", "stateMachine:{}", "StateMachineName"),
    "AWS::Serverless::StateMachine": ("states", "stateMachine:{}", "Name"),
    "AWS::StepFunctions::Activity": ("states", "activity:{}", "Name"),
    "AWS::Events::EventBus": ("events", "event-bus/{}", "Name"),
    "AWS::Events::Rule": ("events", "rule/{}", "Name"),
    "AWS::Logs::LogGroup": ("logs", "log-group:{}:*", "LogGroupName"),
    "AWS::ECS::Cluster": ("ecs", "cluster/{}", "ClusterName"),
    "AWS::ECS::TaskDefinition": ("ecs", "task-definition/{}:1", "Family"),
    "AWS::Batch::JobQueue": ("batch", "job-queue/{}", "JobQueueName"),
    "AWS::Batch::JobDefinition": ("batch", "job-definition/{}:1", "JobDefinitionName"),
    "AWS::KMS::Key": ("kms", "key/{}", ""),
    "AWS::SecretsManager::Secret": ("secretsmanager", "secret:{}", "Name"),
}
"""Type -> service and resource of its ARN, and the property that names it."""
_NAMES = {
    "AWS::S3::Bucket": "BucketName",
    "AWS::IAM::Role": "RoleName",
    "AWS::Glue::Job": "Name",
    "AWS::Glue::Crawler": "Name",
}
_REF_IS_ARN = {
    "AWS::SNS::Topic",
    "AWS::StepFunctions::StateMachine",
    "AWS::Serverless::StateMachine",
    "AWS::StepFunctions::Activity",
    "AWS::ECS::TaskDefinition",
    "AWS::Batch::JobQueue",
    "AWS::Batch::JobDefinition",
    "AWS::SecretsManager::Secret",
}


class Template:
    """A template with the values of its parameters; ``resolve`` evaluates a value of it."""

    def __init__(
        self,
        body: Mapping[str, Any],
        place: str,
        account: Account,
        given: Mapping[str, str],
        *,
        placeholders: bool = False,
    ) -> None:
        """``given``: what ``--param`` says.

        ``placeholders``: what nobody gave becomes ``${Name}`` in the text, and is no error.
        """
        self._body = body
        self._place = place
        self._account = account
        self._given = given
        self._placeholders = placeholders
        self._resolving: list[str] = []
        self._characters = self._calls = 0
        self._functions: dict[str, Callable[[Any], Any]] = {
            "Ref": self._ref,
            "Fn::GetAtt": self._get_att,
            "Fn::Sub": self._sub,
            "Fn::Join": self._join,
            "Fn::Select": lambda words: words[1][int(words[0])],
            "Fn::Split": lambda words: str(words[1]).split(words[0]),
            "Fn::Base64": lambda text: base64.b64encode(str(text).encode()).decode(),
            "Fn::ToJsonString": lambda value: json.dumps(value, ensure_ascii=False),
            "Fn::Length": len,
            "Fn::ImportValue": lambda name: self._asked(str(name), "Fn::ImportValue"),
            "Fn::FindInMap": self._find_in_map,
        }

    @property
    def resources(self) -> dict[str, dict[str, Any]]:
        """Return logical id -> resource, without those whose condition does not hold."""
        every = self._body.get("Resources") or {}
        return {
            name: resource
            for name, resource in every.items()
            if isinstance(resource, dict) and self._holds(resource.get("Condition"))
        }

    def resolve(self, value: Any) -> Any:
        """Return a value with its functions evaluated; raise ``SourceError`` if that cannot be."""
        if isinstance(value, list):
            parts = [self.resolve(part) for part in value]
            return [part for part in parts if part is not _NO_VALUE]
        if not isinstance(value, dict):
            return value
        if len(value) == 1:
            ((name, argument),) = value.items()
            of_template = name != "Condition" or argument in (self._body.get("Conditions") or {})
            if name in ("Fn::If", *_LOGIC) and of_template:
                return self._decide(name, argument)
            if name in self._functions:
                return self._call(name, argument)
            if isinstance(name, str) and name.startswith("Fn::"):
                raise self._error(name, "a function that is not known", "one of CloudFormation's")
        values = {name: self.resolve(part) for name, part in value.items()}
        return {name: part for name, part in values.items() if part is not _NO_VALUE}

    def physical_name(self, logical_id: str) -> str:
        """Return the name of a resource: the one that it is given, else where it stands."""
        resource = self._body["Resources"][logical_id]
        kind = resource.get("Type", "")
        key = _ARNS[kind][2] if kind in _ARNS else _NAMES.get(kind, "")
        named = (resource.get("Properties") or {}).get(key)
        if named is not None:
            return str(self.resolve(named))
        path = (resource.get("Metadata") or {}).get("aws:cdk:path", "")
        return "-".join(path.split("/")[1:-1]) or logical_id

    def arn_of(self, logical_id: str) -> str | None:
        """Return the ARN of a resource, None for a type whose ARN is not known."""
        kind = self._body["Resources"][logical_id].get("Type", "")
        name = self.physical_name(logical_id)
        if kind == "AWS::S3::Bucket":
            return f"arn:{self._account.partition}:s3:::{name}"
        if kind == "AWS::IAM::Role":
            return self._account.role(name)
        if kind not in _ARNS:
            return None
        service, form, _ = _ARNS[kind]
        return self._account.arn(service, form.format(name))

    # -- functions ---------------------------------------------------------------------------------

    def _call(self, name: str, argument: Any) -> Any:
        ready = argument if name == "Fn::Sub" else self.resolve(argument)
        try:
            self._count_call(name)
            made = self._functions[name](ready)
            if isinstance(made, list | dict):  # one from a mapping may be named many times
                self._count_characters(name, len(json.dumps(made, default=str)))
            else:
                self._count_characters(name, len(str(made)))
        except (LookupError, TypeError, ValueError) as error:
            shown = json.dumps(argument, default=str)[:80]
            raise self._error(name, shown, f"arguments that fit ({error})") from None
        return made

    def _count_characters(self, name: str, count: int) -> None:
        """Raise ``SourceError`` before a small template makes a text of gigabytes."""
        self._characters += count
        if self._characters > MOST_CHARACTERS:
            raise self._error(name, "a text that grows", f"at most {MOST_CHARACTERS} characters")

    def _count_call(self, name: str) -> None:
        """Raise ``SourceError`` before a small template takes hours."""
        self._calls += 1
        if self._calls > MOST_CALLS:
            raise self._error(name, "too much to evaluate", f"at most {MOST_CALLS} functions")

    def _join(self, words: Any) -> str:
        delimiter, parts = str(words[0]), [str(part) for part in words[1]]
        self._count_characters("Fn::Join", len(delimiter) * len(parts))
        return delimiter.join(parts)

    def _ref(self, name: str) -> Any:
        pseudo = {
            "AWS::AccountId": self._account.number,
            "AWS::Region": self._account.region,
            "AWS::Partition": self._account.partition,
            "AWS::URLSuffix": "amazonaws.com",
            "AWS::StackName": self._given.get("AWS::StackName", "stateyard"),
            "AWS::StackId": self._account.arn("cloudformation", "stack/stateyard/0"),
            "AWS::NotificationARNs": [],
            "AWS::NoValue": _NO_VALUE,
        }
        if name in self._given:
            return self._given[name]
        if name in pseudo:
            return pseudo[name]
        parameter = (self._body.get("Parameters") or {}).get(name)
        if isinstance(parameter, dict) and "Default" in parameter:
            default = parameter["Default"]
            is_list = "List" in str(parameter.get("Type"))
            return str(default).split(",") if is_list else default
        resource = (self._body.get("Resources") or {}).get(name)
        if resource is None:
            return self._asked(name, "Ref")
        return self._ref_to_resource(name, resource.get("Type", ""))

    def _ref_to_resource(self, name: str, kind: str) -> Any:
        if name in self._resolving:
            raise self._error(f"Ref {name}", "a circle", "a resource that does not name itself")
        self._resolving.append(name)
        try:
            if kind == "AWS::SQS::Queue":
                return self._queue_url(self.physical_name(name))
            return self.arn_of(name) if kind in _REF_IS_ARN else self.physical_name(name)
        finally:
            self._resolving.pop()

    def _queue_url(self, name: str) -> str:
        return f"https://sqs.{self._account.region}.amazonaws.com/{self._account.number}/{name}"

    def _get_att(self, words: list[str] | str) -> Any:
        name, attribute = words.split(".", 1) if isinstance(words, str) else words
        key = f"{name}.{attribute}"
        if key in self._given:
            return self._given[key]
        resource = (self._body.get("Resources") or {}).get(name)
        kind = resource.get("Type", "") if isinstance(resource, dict) else ""
        if resource is None:
            return self._asked(key, "Fn::GetAtt")
        if attribute in ("Name", "QueueName", "TopicName", "FunctionName"):
            return self.physical_name(name)
        arns = ("Arn", "TopicArn", "StateMachineArn")
        if attribute in arns and (arn := self.arn_of(name)) is not None:
            return arn
        if attribute == "QueueUrl" and kind == "AWS::SQS::Queue":
            return self._queue_url(self.physical_name(name))
        return self._asked(key, "Fn::GetAtt")

    def _sub(self, argument: Any) -> str:
        text, own = argument if isinstance(argument, list) else (argument, {})
        values = {name: self.resolve(value) for name, value in own.items()}

        def value_of(match: re.Match[str]) -> str:
            name = match[2].strip()
            if match[1]:
                return f"${{{name}}}"
            self._count_call("Fn::Sub")
            value = values[name] if name in values else self._value_in_text(name)
            self._count_characters("Fn::Sub", len(str(value)))
            return str(value)

        return _SUB.sub(value_of, str(text))

    def _value_in_text(self, name: str) -> Any:
        return self._get_att(name) if "." in name else self._ref(name)

    def _find_in_map(self, words: list[Any]) -> Any:
        table, first, second = words[:3]
        return self._body.get("Mappings", {})[table][first][second]

    def _asked(self, name: str, function: str) -> str:
        """Return what ``--param`` says of something that only AWS knows."""
        if name not in self._given and self._placeholders:
            return f"${{{name}}}"
        if name not in self._given:
            raise self._error(f"{function} {name}", "no value", f"--param {name}=VALUE")
        return self._given[name]

    # -- conditions --------------------------------------------------------------------------------

    def _holds(self, name: str | None) -> bool:
        if name is None:
            return True
        conditions = self._body.get("Conditions") or {}
        if name not in conditions:
            raise self._error(f"Condition {name}", "none of that name", "one of the Conditions")
        return bool(self.resolve(conditions[name]))

    def _decide(self, name: str, argument: Any) -> Any:
        self._count_call(name)
        if name == "Fn::If":
            condition, yes, no = argument
            return self.resolve(yes if self._holds(condition) else no)
        if name == "Condition":
            return self._holds(argument)
        if name == "Fn::Equals":
            first, second = (self.resolve(value) for value in argument)
            return str(first) == str(second)
        parts = (bool(self.resolve(value)) for value in argument)
        if name == "Fn::Not":
            return not next(parts)
        return all(parts) if name == "Fn::And" else any(parts)

    def _error(self, where: str, got: str, wanted: str) -> SourceError:
        return SourceError(f"{self._place}: {where}: got {got}, wanted {wanted}")


_LOGIC = ("Fn::Equals", "Fn::Not", "Fn::And", "Fn::Or", "Condition")
_NO_VALUE = object()
